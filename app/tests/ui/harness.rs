//! A window fed with recorded events, and pictures of it.
//!
//! `recorded/*.jsonl` are events of real trainings, one a line. Pictures are compared with `snapshots/`; run with
//! `UPDATE_SNAPSHOTS=1` to renew them, then look at them.

use std::path::PathBuf;

use braid_app::protocol::{Command, Event};
use braid_app::ui::Window;
use egui::Theme;
use egui_kittest::Harness;

/// A window and the commands that it has sent.
#[derive(Debug, Default)]
pub struct Desk {
    pub window: Window,
    pub sent: Vec<Command>,
}

/// Events of a recorded training.
pub fn recorded(name: &str) -> Vec<Event> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ui/recorded")
        .join(format!("{name}.jsonl"));
    let text = std::fs::read_to_string(&path).expect("recorded events");
    let event = |line: &str| serde_json::from_str(line).expect("an event");
    text.lines().map(event).collect()
}

/// A window of this size that has heard `events`.
pub fn desk(size: [f32; 2], theme: Theme, events: Vec<Event>) -> Harness<'static, Desk> {
    let mut desk = Desk::default();
    events.into_iter().for_each(|event| desk.window.hear(event));
    Harness::builder()
        .with_size(size)
        .with_theme(theme)
        .with_max_steps(16)
        .wgpu()
        .build_ui_state(
            |ui, desk: &mut Desk| desk.sent.extend(desk.window.show(ui)),
            desk,
        )
}
