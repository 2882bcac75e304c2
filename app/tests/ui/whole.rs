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

/// Where the time of a frame goes without a screen, apart: `./x evidence frames`.
#[test]
#[ignore = "a measurement; run by ./x evidence frames"]
fn a_frame_of_the_window_is_short() {
    let mut harness = desk([1400.0, 900.0], Theme::Dark, recorded("live"));
    harness.run_steps(8);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        let began = std::time::Instant::now();
        harness.step();
        times[0].push(began.elapsed().as_secs_f64() * 1e3);
        let shapes = harness.output().shapes.clone();
        let began = std::time::Instant::now();
        let primitives = harness.ctx.tessellate(shapes, 1.0);
        times[1].push(began.elapsed().as_secs_f64() * 1e3);
        assert!(!primitives.is_empty());
    }
    for (times, what) in times.iter_mut().zip(["layout", "tessellation"]) {
        times.sort_by(f64::total_cmp);
        println!(
            "{what} of 1400x900 after 200 steps, nothing training: median {:.2} ms, 95th percentile {:.2} ms",
            times[150], times[285]
        );
    }
}
