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

/// How long the window takes to lay out and tessellate a frame: `./x evidence frames`.
#[test]
#[ignore = "a measurement; run by ./x evidence frames"]
fn a_frame_of_the_window_is_short() {
    let mut harness = desk([1400.0, 900.0], Theme::Dark, recorded("live"));
    harness.run_steps(8);
    let mut times: Vec<f64> = (0..300)
        .map(|_| {
            let began = std::time::Instant::now();
            harness.step();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "layout and tessellation of 1400x900, after 200 steps: median {:.2} ms, 95th percentile {:.2} ms",
        times[150], times[285]
    );
}
