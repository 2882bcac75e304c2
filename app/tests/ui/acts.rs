//! What a person does to the window, and what is asked of the engine then.

use braid_app::protocol::{Command, Event, Line, Peek, RunInfo, RunState};
use braid_app::ui::host::Answer;
use egui::{Key, Modifiers, Theme, ViewportEvent, ViewportId};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, answer_checks, desk, devices, recorded};

const LARGE: [f32; 2] = [1400.0, 900.0];
const SMALL: [f32; 2] = [900.0, 600.0];

/// A window in which a run is loaded, in this state.
fn loaded(size: [f32; 2], theme: Theme, state: RunState) -> Harness<'static, Desk> {
    let mut events = vec![devices()];
    events.extend(recorded("dar"));
    events.push(Event::State(state));
    let mut harness = desk(size, theme, events);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.state_mut().sent.clear();
    harness
}

fn sent(harness: &Harness<'_, Desk>) -> Vec<Command> {
    let questions = |command: &&Command| {
        !matches!(command, Command::Check { .. } | Command::SampleEvery { .. })
    };
    let sent = harness.state().sent.iter();
    sent.filter(questions).cloned().collect()
}

fn diverged() -> RunState {
    RunState::Diverged {
        step: 137,
        tensor: Some("model.layers.3.mlp.down_proj.weight".into()),
        message: "The loss of step 137 is not finite: the learning rate is probably too high."
            .into(),
        good: Some(100),
    }
}

#[test]
fn keys_pause_resume_step_and_save() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    harness.key_press(Key::Space);
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Pause]);
    harness
        .state_mut()
        .window
        .hear(Event::State(RunState::Paused));
    harness.run_steps(2);
    harness.state_mut().sent.clear();
    harness.key_press(Key::ArrowRight);
    harness.key_press(Key::Space);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(6);
    assert_eq!(
        sent(&harness),
        [Command::Step, Command::Resume, Command::Save]
    );
    harness.key_press(Key::F1);
    harness.run_steps(2);
    harness.get_by_label("write a checkpoint");
}

#[test]
fn a_run_can_be_paused_with_tab_and_enter_alone() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    for _ in 0..80 {
        if harness.get_by_label("Pause").is_focused() {
            break;
        }
        harness.key_press(Key::Tab);
        harness.run_steps(2);
    }
    harness.key_press(Key::Enter);
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Pause]);
}

#[test]
fn a_loss_that_is_not_finite_offers_a_rewind() {
    let mut harness = loaded(SMALL, Theme::Light, diverged());
    harness.snapshot("diverged_light_900x600");
    harness
        .get_by_label("Rewind to step 100 with half the learning rate")
        .click();
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Rewind { lr_factor: 0.5 }]);
}

#[test]
fn a_configuration_that_cannot_run_says_which_field() {
    let mut harness = desk(SMALL, Theme::Dark, Vec::new());
    harness.run_steps(4);
    // No GPU either: two things to be said in a small window.
    let mut list = devices();
    if let Event::Devices { list, auto } = &mut list {
        list.remove(0);
        *auto = "CPU, 8 threads (no GPU was found)".into();
    }
    let desk = harness.state_mut();
    desk.window.hear(list);
    desk.window.view.draft.edits.set("model.heads", 3.into());
    desk.sent.clear();
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.get_by_label("Go to field: heads").click();
    harness.run_steps(6);
    harness.snapshot("cannot_run_dark_900x600");
    assert!(
        harness.get_by_label("heads").is_focused()
            || harness.get_all_by_label("heads").any(|n| n.is_focused())
    );
    harness.state_mut().sent.clear();
    harness.get_by_label("Start").click();
    harness.run_steps(2);
    assert_eq!(sent(&harness), []);
    // Three heads of a width that three divides can run.
    let desk = harness.state_mut();
    desk.window.view.draft.edits.set("model.width", 96.into());
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.get_by_label("Start").click();
    harness.run_steps(2);
    assert!(matches!(sent(&harness)[..], [Command::Start { .. }]));
}

#[test]
fn a_wish_that_failed_leads_to_its_field() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Paused);
    harness.state_mut().window.hear(Event::Failed {
        what: "set".into(),
        message: "train.lr: is -1; it must be more than 0".into(),
        field: Some("train.lr".into()),
    });
    harness.run_steps(2);
    harness.get_by_label("The field was not changed");
    harness.get_by_label("Go to field").click();
    harness.run_steps(8);
    // Its group was folded.
    harness.get_by_label("batch");
    assert!(harness.query_by_label("Go to field").is_none());
}

#[test]
fn a_safe_field_is_applied_and_another_one_suggests_a_restart() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    let edits = &mut harness.state_mut().window.view.draft.edits;
    edits.set("train.steps", 300.into());
    edits.set("model.layers", 6.into());
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.get_by_label("locked");
    harness.get_by_label("apply").click_accesskit();
    harness.run_steps(2);
    let key = "train.steps".to_owned();
    let value = "300".to_owned();
    assert_eq!(sent(&harness), [Command::Set { key, value }]);
    harness.state_mut().sent.clear();
    harness.get_by_label("Restart").click();
    harness.run_steps(2);
    let [Command::Start { draft, .. }] = &sent(&harness)[..] else {
        panic!("{:?}", sent(&harness));
    };
    assert!(draft.toml.contains("layers = 6"), "{}", draft.toml);
}

fn open(harness: &mut Harness<'_, Desk>) {
    harness.get_by_label("menu").click();
    harness.run_steps(3);
    harness.get_by_label("Open a run …").click();
    harness.run_steps(3);
}

#[test]
fn a_run_is_looked_into_before_it_is_opened() {
    let mut harness = loaded([480.0, 620.0], Theme::Dark, RunState::Paused);
    let folder = "runs/delta-recall".to_owned();
    harness
        .state_mut()
        .answer_dialog(Answer::Folder(folder.clone()));
    open(&mut harness);
    harness.get_by_label("Choose a folder …").click();
    harness.run_steps(3);
    assert_eq!(
        sent(&harness),
        [Command::Peek {
            folder: folder.clone()
        }]
    );
    let other = recorded("dar").into_iter().find_map(|event| match event {
        Event::History { toml, .. } => Some(toml),
        _ => None,
    });
    harness.state_mut().sent.clear();
    harness
        .state_mut()
        .window
        .hear(Event::Peeked(Box::new(Peek {
            folder: folder.clone(),
            toml: other.expect("another run"),
            last: Some(200),
            best: Some((0.412, 190)),
            vocab: 25,
            parameters: 854_912,
            bytes: 10_260_000,
            busy: false,
        })));
    harness.run_steps(4);
    harness.snapshot("open_run_dark_480x620");
    harness.get_by_label("Open").click();
    harness.run_steps(2);
    let device = "auto".to_owned();
    assert_eq!(sent(&harness), [Command::Open { folder, device }]);
}

#[test]
fn a_lost_device_is_told_and_takes_no_edits_along() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    let window = &mut harness.state_mut().window;
    window.view.draft.edits.set("train.seed", 5.into());
    let run = window.heard.run.clone().expect("a run");
    window.hear(Event::Ready(Box::new(run)));
    window.hear(Event::DeviceLost {
        step: 100,
        message: "The GPU was reset; the run goes on from step 100.".into(),
    });
    harness.run_steps(2);
    harness.get_by_label("The device was lost");
    let edits = &harness.state().window.view.draft.edits;
    assert_eq!(edits.get("train.seed"), Some(&5.into()));
    harness.get_by_label("Dismiss").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("The device was lost").is_none());
}

fn close(harness: &mut Harness<'_, Desk>) {
    let viewport = harness.input_mut().viewports.entry(ViewportId::ROOT);
    viewport.or_default().events.push(ViewportEvent::Close);
    harness.step();
    let viewport = harness.input_mut().viewports.entry(ViewportId::ROOT);
    viewport.or_default().events.clear();
    harness.run_steps(3);
}

fn failed(what: &str, message: &str) -> Event {
    Event::Failed {
        what: what.into(),
        message: message.into(),
        field: None,
    }
}

#[test]
fn closing_while_it_trains_asks_and_saves() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    close(&mut harness);
    harness.get_by_label("Cancel").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Save and close").is_none());
    close(&mut harness);
    harness.get_by_label("Save and close").click();
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Quit { save: true }]);
    // The disk is full: the window stays.
    let full = "no space is left on the device";
    harness.state_mut().window.hear(failed("quit", full));
    harness.run_steps(3);
    harness.get_by_label("The run could not be saved");
    harness.get_by_label(full);
    harness.state_mut().sent.clear();
    harness.get_by_label("Try again").click();
    harness.run_steps(3);
    assert_eq!(sent(&harness), [Command::Quit { save: true }]);
    harness.state_mut().window.hear(failed("quit", full));
    harness.run_steps(3);
    harness.state_mut().sent.clear();
    harness.get_by_label("Cancel").click();
    harness.run_steps(3);
    assert!(harness.query_by_label(full).is_none());
    close(&mut harness);
    harness.get_by_label("Close without saving").click();
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Quit { save: false }]);
}

#[test]
fn closing_asks_only_if_something_would_be_lost() {
    // What diverged is worth nothing.
    let mut harness = loaded(LARGE, Theme::Dark, diverged());
    close(&mut harness);
    assert_eq!(sent(&harness), [Command::Quit { save: false }]);
    // Opened, looked at, not trained.
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Paused);
    let window = &mut harness.state_mut().window;
    let mut run = window.heard.run.clone().expect("a run");
    (run.step, run.saved) = (150, Some(100));
    window.hear(Event::Ready(Box::new(run)));
    close(&mut harness);
    assert_eq!(sent(&harness), [Command::Quit { save: false }]);
}

#[test]
fn space_and_arrows_belong_to_a_dialog_that_is_open() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Paused);
    open(&mut harness);
    harness.key_press(Key::Space);
    harness.key_press(Key::ArrowRight);
    harness.run_steps(3);
    assert_eq!(sent(&harness), []);
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Finished);
    harness.key_press(Key::Space);
    harness.run_steps(3);
    assert_eq!(sent(&harness), [], "a new run is not begun by a slip");
}

#[test]
fn a_folder_can_be_typed_and_what_is_wrong_with_it_is_said() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Paused);
    open(&mut harness);
    harness.get_by_label("Folder of the run").focus();
    harness.run_steps(2);
    harness.event(egui::Event::Text("runs/none".into()));
    harness.run_steps(2);
    harness.get_by_label("Look inside").click();
    harness.run_steps(2);
    let folder = "runs/none".to_owned();
    assert_eq!(sent(&harness), [Command::Peek { folder }]);
    let message = "runs/none is not the folder of a run";
    harness
        .state_mut()
        .window
        .hear(failed("look inside", message));
    harness.run_steps(3);
    harness.get_by_label(message);
}

#[test]
fn the_first_failure_of_several_is_shown() {
    let mut harness = desk(LARGE, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    let window = &mut harness.state_mut().window;
    window.hear(failed("start", "the GPU has too little memory"));
    window.hear(failed("step", "no run is loaded; start one, or open one"));
    harness.run_steps(3);
    harness.get_by_label("The run could not be started");
    harness.get_by_label("the GPU has too little memory");
    harness.get_by_label("Start on the CPU").click();
    harness.run_steps(2);
    let starts =
        |command: &Command| matches!(command, Command::Start { device, .. } if device == "cpu");
    assert!(sent(&harness).iter().any(starts));
}

#[test]
fn a_field_that_has_no_row_is_given_up() {
    let mut harness = desk(LARGE, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    let draft = &mut harness.state_mut().window.view.draft;
    draft.edits.set("data.file", "a.txt".into());
    draft.edits.set("data.tokenizer", "bpe".into());
    draft.go_to = Some("data.vocab".into());
    harness.run_steps(4);
    assert!(harness.state().window.view.draft.go_to.is_none());
    assert!(
        harness
            .get_all_by_label("vocabulary")
            .any(|node| node.is_focused())
    );
    // A byte has no vocabulary to choose.
    let draft = &mut harness.state_mut().window.view.draft;
    draft.edits.set("data.tokenizer", "byte".into());
    draft.go_to = Some("data.vocab".into());
    harness.run_steps(16);
    assert!(harness.state().window.view.draft.go_to.is_none());
}

#[test]
fn stop_conditions_that_are_in_force_are_shown() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    harness.state_mut().window.hear(Event::Goal {
        step: Some(1500),
        val_loss: None,
        seconds: Some(60.0),
    });
    harness.get_by_label("stop conditions").click();
    harness.run_steps(3);
    harness.get_by_label("It pauses at step 1,500 or 60 s after it was set.");
}

#[test]
fn what_goes_on_beside_the_steps_is_chosen_in_the_menu() {
    let mut harness = loaded([900.0, 600.0], Theme::Dark, RunState::Running);
    harness.state_mut().sent.clear();
    for (choice, command) in [
        ("10 %", Command::Watch { share: 0.1 }),
        ("0 %", Command::Watch { share: 0.0 }),
        (
            "2 min",
            Command::Autosave {
                seconds: Some(120.0),
            },
        ),
        ("off", Command::Autosave { seconds: None }),
    ] {
        harness.get_by_label("menu").click();
        harness.run_steps(3);
        harness.get_by_label(choice).click();
        harness.run_steps(3);
        assert_eq!(sent(&harness).last(), Some(&command), "{choice}");
        harness.key_press(Key::Escape);
        harness.run_steps(3);
    }
}

#[test]
fn the_last_checkpoint_is_said() {
    let mut harness = loaded([1400.0, 900.0], Theme::Dark, RunState::Running);
    let saved = Event::Saved {
        step: 120,
        path: "checkpoints/step-000120".into(),
    };
    harness.state_mut().window.hear(saved);
    harness.run_steps(3);
    assert!(harness.query_by_label("saved just now").is_some());
    harness.input_mut().time = Some(10_000.0);
    harness.run_steps(2);
    assert!(harness.query_by_label("saved 2 h ago").is_some());
}

#[test]
fn a_schedule_that_was_changed_moves_the_end() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Running);
    let window = &mut harness.state_mut().window;
    let run = window.heard.run.clone().expect("a run");
    window.hear(Event::Configured {
        values: run.values,
        toml: run.toml.replace("steps = 200", "steps = 300"),
        steps: 300,
    });
    harness.run_steps(2);
    harness.get_by_label("step 200 / 300");
    let run = harness.state().window.heard.run.as_ref().expect("a run");
    assert!(run.toml.contains("steps = 300"), "{}", run.toml);
}

#[test]
fn a_link_is_taken_over() {
    let mut harness = desk(LARGE, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    let window = &mut harness.state_mut().window;
    let before = window.view.draft.edits.clone();
    window.view.draft.edits.set("train.seed", 77.into());
    let link = window.view.draft.edits.link("braid://");
    window.view.draft.edits = before;
    harness.run_steps(2);
    harness.get_by_label("Paste…").click_accesskit();
    harness.run_steps(3);
    let title = "Read a link or a configuration";
    let field = harness.get_all_by_label(title).last().expect("a field");
    field.focus();
    harness.run_steps(2);
    harness.event(egui::Event::Paste(link));
    harness.run_steps(2);
    harness.get_by_label("Use it").click();
    harness.run_steps(2);
    let edits = &harness.state().window.view.draft.edits;
    assert_eq!(edits.get("train.seed"), Some(&77.into()));
}

#[test]
fn another_mechanism_is_asked_about() {
    let mut harness = desk(LARGE, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    harness.state_mut().sent.clear();
    harness
        .get_by_label("mechanism: Dual attention residuals")
        .click();
    harness.run_steps(3);
    harness.get_by_label("Standard residual").click();
    harness.run_steps(6);
    let asked = harness
        .state()
        .sent
        .iter()
        .rev()
        .find_map(|command| match command {
            Command::Check { draft, .. } => Some(draft.toml.clone()),
            _ => None,
        });
    let toml = asked.expect("a question");
    assert!(toml.contains("kind = \"standard\"") && !toml.contains("layers_per_block"));
}

#[test]
fn diagnostics_say_what_a_report_needs() {
    let mut harness = loaded(LARGE, Theme::Dark, diverged());
    harness.get_by_label("copy diagnostics").click();
    let mut copied = None;
    for _ in 0..6 {
        harness.step();
        let commands = &harness.output().platform_output.commands;
        copied = copied.or(commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        }));
    }
    let copied = copied.expect("a text on the clipboard");
    for part in [
        env!("CARGO_PKG_VERSION"),
        "Radeon RX 7600 (Vulkan) [discrete]",
        "layers_per_block = 2",
        "the learning rate is probably too high",
    ] {
        assert!(copied.contains(part), "`{part}` is not in: {copied}");
    }
    harness.get_by_label("log (1 error)").click();
    harness.run_steps(3);
    harness.get_by_label("close the log");
}

#[derive(Debug)]
struct Dropped(std::path::PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &std::path::Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("nobody reads it".into())
    }
}

#[test]
fn a_folder_that_is_dropped_is_looked_into_and_a_text_is_the_one_to_learn() {
    let mut harness = desk(LARGE, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let drop = |harness: &mut Harness<'_, Desk>, path: &std::path::Path| {
        let file = std::sync::Arc::new(Dropped(path.to_owned()));
        harness.input_mut().dropped_files.push(file);
        harness.run_steps(4);
    };
    drop(&mut harness, &folder.join("Cargo.toml"));
    let edits = &harness.state().window.view.draft.edits;
    assert!(
        edits
            .word("data.file")
            .is_some_and(|file| file.ends_with("Cargo.toml"))
    );
    drop(&mut harness, &folder);
    let folder = folder.to_string_lossy().into_owned();
    assert!(sent(&harness).contains(&Command::Peek { folder }));
    harness.get_by_label("Open a run");
}

/// The recorded run as somebody finds it on disk who does not train it.
fn looked(step: u64) -> Event {
    let events = recorded("live");
    let mut run = RunInfo::default();
    for event in events {
        match event {
            Event::Ready(ready) => run = *ready,
            Event::Lines(lines) => run.lines.extend(lines),
            Event::Frame(frame) => run.frames.push(*frame),
            Event::Sampled(sampled) => run.samples.push(*sampled),
            _ => {}
        }
    }
    let at = |line: &Line| match line {
        Line::Train { step, .. } | Line::Eval { step, .. } | Line::Routing { step, .. } => *step,
        _ => 0,
    };
    run.lines.retain(|line| at(line) <= step);
    run.frames.retain(|frame| frame.step <= step);
    run.samples.retain(|sample| sample.step <= step);
    run.lines.push(Line::Changed {
        step: 60,
        key: "train.lr".into(),
        value: "5e-4".into(),
    });
    (run.step, run.folder, run.device) = (step, "runs/elsewhere".into(), String::new());
    Event::Looked(Box::new(run))
}

#[test]
fn a_run_of_another_program_is_looked_at_again_and_again() {
    let mut harness = desk(LARGE, Theme::Light, vec![devices()]);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.state_mut().window.hear(looked(100));
    harness.run_steps(4);
    assert!(harness.query_by_label("Looking at a run on disk").is_some());
    assert!(harness.query_by_label("step 100 / 200").is_some());
    harness.snapshot("looking_light_1400x900");
    harness.state_mut().sent.clear();
    // The clock of the test goes on by a quarter of a second a pass.
    let look = Command::Look {
        folder: "runs/elsewhere".into(),
    };
    let asked = |harness: &Harness<'_, Desk>| {
        let sent = harness.state().sent.iter();
        sent.filter(|command| **command == look).count()
    };
    harness.run_steps(2);
    assert_eq!(asked(&harness), 0, "not at every pass");
    let passes = (0..40).take_while(|_| {
        harness.run_steps(1);
        asked(&harness) == 0
    });
    assert!(passes.count() < 39);
    harness.state_mut().window.hear(looked(150));
    harness.run_steps(1);
    assert!(harness.query_by_label("step 150 / 200").is_some());
    harness.run_steps(80);
    assert_eq!(
        asked(&harness),
        2,
        "once more, and then it waits for the answer"
    );
    harness.get_by_label("Stop looking").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Looking at a run on disk").is_none());
    harness.state_mut().sent.clear();
    harness.run_steps(16);
    assert_eq!(asked(&harness), 0);
}

#[test]
fn a_run_that_is_taken_can_be_looked_at_only() {
    let mut harness = desk([480.0, 620.0], Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.state_mut().window.view.opening = true;
    harness
        .state_mut()
        .answer_dialog(Answer::Folder("runs/elsewhere".into()));
    harness.run_steps(4);
    harness.get_by_label("Choose a folder …").click();
    harness.run_steps(4);
    harness
        .state_mut()
        .window
        .hear(Event::Peeked(Box::new(Peek {
            folder: "runs/elsewhere".into(),
            last: Some(200),
            busy: true,
            ..Peek::default()
        })));
    harness.run_steps(4);
    assert!(
        harness
            .query_by_label_contains("Another program is writing this run.")
            .is_some()
    );
    harness.get_by_label("Open").click();
    harness.run_steps(2);
    harness.get_by_label("Look").click();
    harness.run_steps(2);
    let sent = sent(&harness);
    assert!(!sent.iter().any(|c| matches!(c, Command::Open { .. })));
    assert!(sent.iter().any(|c| matches!(c, Command::Look { .. })));
}

#[test]
fn saving_says_that_it_is_done() {
    let mut harness = loaded(LARGE, Theme::Dark, RunState::Paused);
    harness.get_by_label("Save").click();
    harness.run_steps(2);
    assert_eq!(sent(&harness), [Command::Save]);
    harness.state_mut().window.hear(Event::Saved {
        step: 187,
        path: "checkpoints/step-000187".into(),
    });
    harness.run_steps(2);
    assert!(harness.query_by_label("Saved").is_some());
    harness.run_steps(16);
    assert!(harness.query_by_label("Save").is_some(), "for a moment");
}
