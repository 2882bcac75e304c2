//! The window, drawn without a screen: from events that a real training gave.

mod harness;
mod rulers;
mod whole;
