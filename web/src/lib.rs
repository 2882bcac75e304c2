//! The engine behind a page: what JavaScript can call.
//!
//! So far: reading a model's configuration and verifying golden cases on the CPU executor. The window and the training session
//! of the browser build come with the desktop app, whose code they share.

use std::task::{Context, Poll, Waker};

use braid_engine::cpu::CpuExecutor;
use braid_engine::golden::{CaseFiles, verify};
use braid_engine::models::config::ModelConfig;
use braid_engine::models::decoder;
use wasm_bindgen::prelude::wasm_bindgen;

/// Number of trained parameters of the model in a `config.json`.
///
/// # Errors
/// If the text is not a configuration that this version can run.
#[wasm_bindgen]
pub fn parameter_count(config: &str) -> Result<usize, String> {
    let config = ModelConfig::from_json(config).map_err(|error| error.to_string())?;
    Ok(decoder::parameters(&config)
        .map_err(|error| error.to_string())?
        .count())
}

/// Verify a golden case on the CPU executor; the verdict as JSON.
///
/// # Errors
/// If a file cannot be used.
#[wasm_bindgen]
pub fn verify_on_cpu(
    config: &str,
    case: &str,
    model: &[u8],
    expected: &[u8],
) -> Result<String, String> {
    let files = CaseFiles {
        config,
        case,
        model,
        expected,
    };
    let mut run = Box::pin(verify(&files, Box::new(CpuExecutor::<f32>::new(None))));
    // Nothing on the CPU executor waits, so the first poll finishes.
    match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(verdict) => {
            let verdict = verdict.map_err(|error| error.to_string())?;
            serde_json::to_string(&verdict).map_err(|error| error.to_string())
        }
        Poll::Pending => Err("the CPU executor did not finish at once".into()),
    }
}
