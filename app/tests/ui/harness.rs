//! A window fed with recorded events, and pictures of it.
//!
//! `recorded/*.jsonl` are events of real trainings, one a line. Pictures are compared with `snapshots/`; run with
//! `UPDATE_SNAPSHOTS=1` to renew them, then look at them.

use std::path::PathBuf;

use std::rc::Rc;

use braid_app::backend::{Backend, Surroundings};
use braid_app::protocol::{Command, DeviceInfo, Event};
use braid_app::ui::Window;
use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use egui::Theme;
use egui_kittest::Harness;

/// A window and the commands that it has sent.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) window: Window,
    pub(crate) sent: Vec<Command>,
}

/// Events of a recorded training.
pub(crate) fn recorded(name: &str) -> Vec<Event> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ui/recorded")
        .join(format!("{name}.jsonl"));
    let text = std::fs::read_to_string(&path).expect("recorded events");
    let event = |line: &str| serde_json::from_str(line).expect("an event");
    text.lines().map(event).collect()
}

/// Answers each dialog at once with what is given.
struct Quick(Vec<Answer>, Vec<(Purpose, Answer)>);

impl Host for Quick {
    fn ask(&mut self, purpose: Purpose, _: Wish) {
        if let Some(answer) = self.0.pop() {
            self.1.push((purpose, answer));
        }
    }

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        self.1.pop()
    }
}

impl Desk {
    /// The next dialog is answered like this.
    pub(crate) fn answer_dialog(&mut self, answer: Answer) {
        let window = std::mem::take(&mut self.window);
        self.window = window.with_host(Box::new(Quick(vec![answer], Vec::new())));
    }
}

/// A window of this size that has heard `events`.
pub(crate) fn desk(size: [f32; 2], theme: Theme, events: Vec<Event>) -> Harness<'static, Desk> {
    desk_of(Window::default(), size, theme, events)
}

/// The same of a window that was begun otherwise.
pub(crate) fn desk_of(
    window: Window,
    size: [f32; 2],
    theme: Theme,
    events: Vec<Event>,
) -> Harness<'static, Desk> {
    let mut desk = Desk {
        window: window.timeless(),
        sent: Vec::new(),
    };
    events.into_iter().for_each(|event| desk.window.hear(event));
    Harness::builder()
        .with_size(size)
        .with_theme(theme)
        .with_max_steps(16)
        .wgpu()
        .build_ui_state(
            |ui, desk: &mut Desk| {
                // Up to the edges, as in a window of the system.
                let all = ui.ctx().content_rect();
                let mut ui = ui.new_child(egui::UiBuilder::new().max_rect(all));
                ui.set_clip_rect(all);
                desk.sent.extend(desk.window.show(&mut ui));
            },
            desk,
        )
}

/// Let a real engine look at what the window asked about, as a thread of the program would.
pub(crate) fn answer_checks(harness: &mut Harness<'_, Desk>) {
    let mut backend = Backend::new(Surroundings {
        clock: Rc::new(|| 0.0),
        calendar: || 0,
        free_memory: || None,
        used_memory: || None,
        files: true,
    });
    let desk = harness.state_mut();
    let checks = desk.sent.iter().filter_map(|command| match command {
        Command::Check { number, draft, .. } => Some(Command::Check {
            number: *number,
            draft: draft.clone(),
            device: "cpu".into(),
        }),
        _ => None,
    });
    let mut heard = Vec::new();
    for check in checks {
        pollster::block_on(backend.handle(check, &mut |event| heard.push(event)));
    }
    heard.into_iter().for_each(|event| desk.window.hear(event));
    harness.run_steps(4);
}

/// A machine with a GPU, the same on every machine that tests.
pub(crate) fn devices() -> Event {
    let device = |choice: &str, name: &str, kind: &str| DeviceInfo {
        choice: choice.into(),
        name: name.into(),
        kind: kind.into(),
        binding_bytes: (kind != "host").then_some(128 << 20),
    };
    Event::Devices {
        list: vec![
            device("gpu", "Radeon RX 7600 (Vulkan)", "discrete"),
            device("cpu", "CPU, 8 threads", "host"),
        ],
        auto: "GPU: Radeon RX 7600 (Vulkan)".into(),
    }
}
