//! The whole window.

use egui::Theme;

use super::harness::{answer_checks, desk, recorded};

#[test]
fn a_training_fills_the_window() {
    let mut harness = desk([1400.0, 900.0], Theme::Dark, recorded("dar"));
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.snapshot("training_dark_1400x900");
}
