//! What a person sees who opens the program for the first time.

use braid_app::protocol::Command;
use egui::Theme;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, answer_checks, desk, devices};

fn first(size: [f32; 2], theme: Theme) -> Harness<'static, Desk> {
    let mut harness = desk(size, theme, vec![devices()]);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

#[test]
fn it_looks_like_this_in_a_wide_window() {
    first([1400.0, 900.0], Theme::Dark).snapshot("first_start_dark_1400x900");
}

#[test]
fn it_looks_like_this_in_a_small_window() {
    first([900.0, 600.0], Theme::Light).snapshot("first_start_light_900x600");
}

#[test]
fn it_looks_like_this_on_a_phone() {
    first([390.0, 844.0], Theme::Dark).snapshot("first_start_dark_390x844");
}

#[test]
fn one_press_starts_the_first_preset() {
    for key in [false, true] {
        let mut harness = first([1400.0, 900.0], Theme::Dark);
        harness.state_mut().sent.clear();
        if key {
            harness.key_press(egui::Key::Space);
        } else {
            harness.get_by_label("Start").click();
        }
        harness.run_steps(2);
        let sent = &harness.state().sent;
        let Some(Command::Start { draft, paused, .. }) = sent.first() else {
            panic!("{sent:?}");
        };
        assert!(!paused);
        assert!(
            draft.toml.contains("layers_per_block = 2"),
            "{}",
            draft.toml
        );
    }
}
