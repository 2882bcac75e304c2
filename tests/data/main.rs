//! Data and configurations: what goes into a model before any number is computed.
#![expect(clippy::unwrap_used, reason = "tests panic where they fail")]

mod bpe;
mod model_config;
mod tasks;
mod text;
mod tokenizers;
