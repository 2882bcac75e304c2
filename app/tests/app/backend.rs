//! The engine's side of the window: commands in, events out.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use braid_app::backend::{Backend, Surroundings};
use braid_app::protocol::{Command, Event, Line, RunState};

use crate::talk::{SMALL, Talk, draft, every, finished, frames, start};

fn model(folder: &Path, step: u64) -> Vec<u8> {
    let path = folder.join(format!("checkpoints/step-{step:06}/model.safetensors"));
    std::fs::read(path).expect("a checkpoint")
}

#[test]
fn what_is_watched_trains_to_the_same_bits() {
    let root = tempfile::tempdir().expect("a folder");
    let [plain, watched] = ["plain", "watched"].map(|name| root.path().join(name));

    let mut talk = Talk::new();
    talk.say(Command::Watch { share: 0.0 });
    talk.say(start(&plain, false));
    talk.until(finished);

    // With frames all the time, pauses, single steps, a sample, a trace, a save, and another process in between.
    let mut talk = Talk::new();
    talk.say(Command::Watch { share: 1.0 });
    talk.say(start(&watched, true));
    for _ in 0..7 {
        talk.say(Command::Step);
        talk.until(|event| *event == Event::State(RunState::Paused));
    }
    talk.say(Command::Sample {
        prompt: String::new(),
        tokens: 5,
        temperature: 0.8,
        seed: 3,
    });
    talk.until(|event| matches!(event, Event::Sampled(_)));
    talk.say(Command::Trace {
        text: String::new(),
    });
    talk.say(Command::Until {
        step: Some(13),
        val_loss: None,
        seconds: None,
    });
    talk.say(Command::Resume);
    talk.until(|event| matches!(event, Event::Notice { message } if message.contains("13")));
    talk.say(Command::Save);
    talk.say(Command::Quit { save: true });
    assert_eq!(talk.heard.last(), Some(&Event::Ended));
    let first = talk.losses();
    assert_eq!(first.len(), 13, "{first:?}");

    let mut talk = Talk::new();
    talk.say(Command::Open {
        folder: watched.display().to_string(),
        device: "cpu".into(),
    });
    assert_eq!(
        talk.state(),
        Some(&RunState::Paused),
        "{:?}",
        talk.failures()
    );
    talk.say(Command::Resume);
    talk.until(finished);
    assert_eq!(model(&plain, 40), model(&watched, 40));
    assert_eq!(talk.failures(), Vec::<&str>::new());
}

#[test]
fn each_update_has_a_time_of_its_own_and_pauses_have_none() {
    let root = tempfile::tempdir().expect("a folder");
    let now = Rc::new(Cell::new(0.0));
    let clock = Rc::clone(&now);
    let mut talk = Talk::with_clock(Rc::new(move || {
        clock.set(clock.get() + 0.001);
        clock.get()
    }));
    talk.say(start(&root.path().join("run"), false));
    talk.say(Command::Until {
        step: Some(25),
        val_loss: None,
        seconds: None,
    });
    talk.until(|event| *event == Event::State(RunState::Paused));
    now.set(now.get() + 1000.0);
    talk.say(Command::Resume);
    talk.until(finished);
    let lines = talk.heard.iter().filter_map(|event| match event {
        Event::Lines(lines) => Some(lines),
        _ => None,
    });
    let seconds: Vec<f64> = lines
        .flatten()
        .filter_map(|line| match line {
            Line::Train { seconds, .. } => *seconds,
            _ => None,
        })
        .collect();
    assert_eq!(seconds.len(), 40);
    assert!(
        seconds.windows(2).all(|pair| pair[0] < pair[1]),
        "{seconds:?}"
    );
    assert!(seconds[0] > 0.0 && seconds[39] < 1000.0, "{seconds:?}");
}

#[test]
fn checkpoints_by_time_change_no_step() {
    let root = tempfile::tempdir().expect("a folder");
    let [plain, saved] = ["plain", "saved"].map(|name| root.path().join(name));
    let mut talk = Talk::new();
    talk.say(Command::Autosave { seconds: None });
    talk.say(start(&plain, false));
    talk.until(finished);
    let of = |talk: &Talk| -> Vec<u64> {
        let saved = talk.heard.iter().filter_map(|event| match event {
            Event::Saved { step, .. } => Some(*step),
            _ => None,
        });
        saved.collect()
    };
    let by_step = of(&talk);

    // Time passes whenever it is asked for: no machine is too fast or too slow.
    let now = Rc::new(Cell::new(0.0));
    let clock = Rc::clone(&now);
    let mut talk = Talk::with_clock(Rc::new(move || {
        clock.set(clock.get() + 0.001);
        clock.get()
    }));
    talk.say(Command::Autosave {
        seconds: Some(100.0),
    });
    talk.say(start(&saved, true));
    talk.say(Command::Until {
        step: Some(7),
        val_loss: None,
        seconds: None,
    });
    talk.say(Command::Resume);
    talk.until(|event| *event == Event::State(RunState::Paused));
    assert!(!of(&talk).contains(&8));
    now.set(now.get() + 100.0);
    talk.say(Command::Resume);
    talk.until(finished);
    let by_time = of(&talk);
    assert!(by_time.contains(&8) && !by_step.contains(&8), "{by_time:?}");
    assert_eq!(by_time.len(), by_step.len() + 1);
    assert_eq!(model(&plain, 40), model(&saved, 40));

    // A disk that takes no checkpoint stops no training.
    let folder = root.path().join("full");
    let mut talk = Talk::with_clock({
        let now = Rc::clone(&now);
        Rc::new(move || now.get())
    });
    talk.say(Command::Autosave {
        seconds: Some(100.0),
    });
    talk.say(start(&folder, true));
    talk.say(Command::Step);
    talk.until(|event| *event == Event::State(RunState::Paused));
    let checkpoints = folder.join("checkpoints");
    std::fs::rename(&checkpoints, folder.join("elsewhere")).expect("moves");
    std::fs::write(&checkpoints, "in the way").expect("writes");
    now.set(now.get() + 200.0);
    talk.say(Command::Step);
    talk.until(|event| *event == Event::State(RunState::Paused));
    let failures = talk.failures();
    assert!(
        failures.len() == 1 && failures[0].contains("the training goes on"),
        "{failures:?}"
    );
}

#[test]
fn recorded_frames_come_back_with_their_run() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("run");
    let name = folder.display().to_string();
    let mut talk = Talk::new();
    talk.say(Command::Watch { share: 1.0 });
    talk.say(start(&folder, true));
    for _ in 0..3 {
        talk.say(Command::Step);
        talk.until(|event| *event == Event::State(RunState::Paused));
    }
    talk.say(Command::Quit { save: true });
    let seen: Vec<u64> = frames(&talk).map(|frame| frame.step).collect();
    let shown = frames(&talk).last().expect("frames").clone();
    assert_eq!(shown.step, 3, "{seen:?}");
    assert!(
        shown
            .depth
            .iter()
            .all(|depth| depth.gradient.is_some_and(|norm| norm > 0.0))
    );

    let open = |damage: &dyn Fn(&Path)| {
        damage(&folder.join("frames.jsonl"));
        let mut talk = Talk::new();
        talk.say(Command::History {
            folder: name.clone(),
        });
        talk.say(Command::Open {
            folder: name.clone(),
            device: "cpu".into(),
        });
        assert_eq!(talk.failures(), Vec::<&str>::new());
        let notices = talk
            .heard
            .iter()
            .filter(|event| matches!(event, Event::Notice { .. }))
            .count();
        let [mut history, mut ready] = [Vec::new(), Vec::new()];
        for event in talk.heard {
            match event {
                Event::History { frames, .. } => history = frames,
                Event::Ready(run) => ready = run.frames,
                _ => {}
            }
        }
        assert_eq!(history, ready);
        (ready, notices)
    };
    let (back, notices) = open(&|_| {});
    let steps: Vec<u64> = back.iter().map(|frame| frame.step).collect();
    assert_eq!((steps.as_slice(), notices), ([1, 2, 3].as_slice(), 0));
    let (before, after) = (&shown.sites[3].streams[0], &back[2].sites[3].streams[0]);
    assert_eq!(before.sources, after.sources);
    for (a, b) in before.weight.iter().zip(&after.weight) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    // A run is complete without its frames.
    let (back, notices) = open(&|file| std::fs::write(file, "no frames\n").expect("writes"));
    assert_eq!((back.len(), notices), (0, 2));
    let (back, notices) = open(&|file| std::fs::remove_file(file).expect("removes"));
    assert_eq!((back.len(), notices), (0, 2));
}

#[test]
fn a_configuration_is_looked_at() {
    let mut talk = Talk::new();
    let check = |number, toml: &str| Command::Check {
        number,
        draft: draft(toml),
        device: "cpu".into(),
    };
    talk.say(check(1, SMALL));
    talk.say(check(2, "[model]\nheads = 3\n"));
    talk.say(check(3, "[model]\nlayer = 3\n"));
    let checked: Vec<_> = talk
        .heard
        .iter()
        .filter_map(|event| match event {
            Event::Checked(checked) => Some(checked),
            _ => None,
        })
        .collect();
    let derived = checked[0].derived.as_ref().expect("it can run");
    assert_eq!(derived.tokens_per_step, 4 * 32);
    assert_eq!(derived.shape.last().map(|site| site.site), Some(4));
    assert!(derived.parameters.iter().any(|part| part.name == "routing"));
    assert_eq!(derived.schedule.len(), 40);
    let field = |number: usize| {
        checked[number]
            .error
            .as_ref()
            .and_then(|error| error.field.clone())
    };
    assert_eq!(field(1).as_deref(), Some("model.heads"));
    assert!(checked[2].error.is_some());
}

#[test]
fn wishes_that_cannot_be_fulfilled_are_sentences() {
    let root = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::new();
    talk.say(Command::Resume);
    talk.say(Command::Open {
        folder: root.path().join("none").display().to_string(),
        device: "cpu".into(),
    });
    talk.say(start(&root.path().join("run"), true));
    talk.say(Command::Set {
        key: "model.width".into(),
        value: "64".into(),
    });
    talk.say(Command::Set {
        key: "train.lr".into(),
        value: "-1".into(),
    });
    let failures = talk.failures();
    assert_eq!(failures.len(), 4, "{failures:?}");
    talk.say(Command::Set {
        key: "train.lr".into(),
        value: "2e-3".into(),
    });
    assert_eq!(talk.failures().len(), 4);
    let toml = std::fs::read_to_string(root.path().join("run/config.toml")).expect("a run");
    assert!(toml.contains("lr = 0.002"), "{toml}");
}

#[test]
fn a_run_that_diverged_goes_back() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("run");
    let mut talk = Talk::new();
    talk.say(Command::Start {
        draft: draft(&SMALL.replace("warmup = 5", "warmup = 0\nlr = 1e9")),
        device: "cpu".into(),
        folder: Some(folder.display().to_string()),
        paused: false,
    });
    talk.until(|event| matches!(event, Event::State(RunState::Diverged { .. })));
    talk.say(Command::Rewind { lr_factor: 1e-12 });
    assert_eq!(talk.state(), Some(&RunState::Paused));
    talk.say(Command::Resume);
    talk.until(finished);
    assert_eq!(talk.failures(), Vec::<&str>::new());
}

#[test]
fn a_refused_wish_leaves_everything_as_it_was() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("run");
    let mut talk = Talk::new();
    talk.say(start(&folder, true));
    talk.say(Command::Step);
    talk.until(|event| *event == Event::State(RunState::Paused));
    // Its own folder is taken, nonsense is no configuration, and there is no such run.
    talk.say(start(&folder, false));
    talk.say(Command::Start {
        draft: draft("[model]\nheads = 3\n"),
        device: "cpu".into(),
        folder: Some(root.path().join("other").display().to_string()),
        paused: false,
    });
    talk.say(Command::Open {
        folder: root.path().join("none").display().to_string(),
        device: "cpu".into(),
    });
    assert_eq!(talk.failures().len(), 3, "{:?}", talk.failures());
    assert_eq!(talk.state(), Some(&RunState::Paused));
    assert!(!root.path().join("other").exists());
    // A rate below the final one takes it along; more steps are a longer run.
    for (key, value) in [("train.lr", "1e-6"), ("train.steps", "2")] {
        talk.say(Command::Set {
            key: key.into(),
            value: value.into(),
        });
    }
    talk.say(Command::Resume);
    talk.until(finished);
    talk.say(Command::Set {
        key: "train.steps".into(),
        value: "3".into(),
    });
    assert_eq!(talk.state(), Some(&RunState::Paused));
    talk.say(Command::Resume);
    talk.until(|event| matches!(event, Event::Lines(lines) if lines.iter().any(|line| matches!(line, Line::Done { step: 3, .. }))));
    assert_eq!(talk.failures().len(), 3, "{:?}", talk.failures());
}

#[test]
fn a_cut_route_has_a_price() {
    use braid_app::protocol::{Intervention, RouteEdit};
    let root = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::new();
    talk.say(start(&root.path().join("run"), false));
    talk.until(finished);
    let pin = Intervention {
        site: 3,
        stream: 0,
        edit: RouteEdit::Pin { source: 0 },
    };
    for edits in [Vec::new(), vec![pin]] {
        talk.say(Command::Intervene { edits });
    }
    let nowhere = Intervention { site: 77, ..pin };
    talk.say(Command::Intervene {
        edits: vec![nowhere],
    });
    let effects: Vec<_> = talk
        .heard
        .iter()
        .filter_map(|event| match event {
            Event::Effect(effect) => Some(effect),
            _ => None,
        })
        .collect();
    // Without edits the loss is the same to the bit; with one it is not.
    assert_eq!(effects[0].clean.to_bits(), effects[0].edited.to_bits());
    assert_eq!(effects[1].clean.to_bits(), effects[0].clean.to_bits());
    assert_ne!(effects[1].clean.to_bits(), effects[1].edited.to_bits());
    assert_eq!(talk.failures().len(), 1, "{:?}", talk.failures());
}

/// Numbers of at most four digits: recorded events are committed.
fn rounded(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => {
            let short = format!("{:.3e}", number.as_f64().unwrap_or(0.0));
            short.parse::<f64>().map_or(Value::Null, Value::from)
        }
        Value::Array(list) => list.into_iter().map(rounded).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(key, value)| (key, rounded(value)))
            .collect(),
        other => other,
    }
}

/// Events of a real training for the window's tests: `cargo test --workspace --test app record -- --ignored`.
#[test]
#[ignore = "writes tests/ui/recorded; run by hand"]
fn record_events() {
    use braid_app::protocol::{Intervention, RouteEdit};
    let root = tempfile::tempdir().expect("a folder");
    let toml = "[train]\nsteps = 200\nsave_every = 100\neval_every = 50\neval_batches = 4\n";
    let sample = || Command::Sample {
        prompt: String::new(),
        tokens: 24,
        temperature: 0.8,
        seed: 1,
    };
    // `middle`: samples are written while the model learns, too.
    let recorded = |name: &str, toml: &str, middle: bool| {
        let mut talk = Talk::new();
        talk.say(Command::Devices);
        talk.say(Command::Check {
            number: 1,
            draft: draft(toml),
            device: "cpu".into(),
        });
        if middle {
            talk.say(every(100, 24));
        }
        talk.say(Command::Start {
            draft: draft(toml),
            device: "cpu".into(),
            folder: Some(root.path().join(name).display().to_string()),
            paused: false,
        });
        let ended = |event: &Event| {
            finished(event) || matches!(event, Event::State(RunState::Diverged { .. }))
        };
        talk.until(ended);
        if talk.state() == Some(&RunState::Finished) {
            if !middle {
                talk.say(sample());
            }
            talk.until(|event| matches!(event, Event::Sampled(_)));
            talk.say(Command::Trace {
                text: String::new(),
            });
            talk.say(Command::Intervene {
                edits: vec![Intervention {
                    site: 5,
                    stream: 0,
                    edit: RouteEdit::Cut { source: 1 },
                }],
            });
        }
        let mut text = String::new();
        for event in talk.heard {
            let value = rounded(serde_json::to_value(&event).expect("events are JSON"));
            let line = value.to_string();
            text.push_str(&line.replace(&root.path().display().to_string(), "runs"));
            text.push('\n');
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/recorded");
        std::fs::write(folder.join(format!("{name}.jsonl")), text).expect("writes");
    };
    recorded("live", toml, true);
    recorded(
        "mhc",
        &format!("{toml}[residual]\nkind = \"mhc\"\nstreams = 2\n"),
        false,
    );
    // A rate far too large, after some checkpoints.
    let toml = toml.replace(
        "save_every = 100",
        "save_every = 5\nlr = 300.0\nwarmup = 100",
    );
    recorded("diverged", &toml, false);
}

/// What recording frames costs: `./x evidence frames`.
#[test]
#[ignore = "a measurement; run by ./x evidence frames"]
fn frames_cost_little() {
    let root = tempfile::tempdir().expect("a folder");
    let toml = "[train]\nsteps = 100000\nsave_every = 100000\neval_every = 100000\n";
    // Both trainings are loaded at once and take turns, so that what else the machine does hits both.
    let mut talks = [0.0, 0.03].map(|share| {
        let mut talk = Talk::new();
        talk.say(Command::Watch { share });
        talk.say(Command::Start {
            draft: draft(toml),
            device: "cpu".into(),
            folder: Some(root.path().join(format!("{share}")).display().to_string()),
            paused: false,
        });
        talk
    });
    let mut ratios = Vec::new();
    for round in 0..21 {
        let seconds = talks.each_mut().map(|talk| {
            let began = Instant::now();
            for _ in 0..60 {
                let heard = &mut talk.heard;
                pollster::block_on(talk.backend.turn(&mut |event| heard.push(event)));
            }
            began.elapsed().as_secs_f64()
        });
        if round > 0 {
            ratios.push(seconds[0] / seconds[1]);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let frames = |talk: &Talk| frames(talk).count();
    println!(
        "steps/s with frames over without, {} rounds of 60 steps: median {:.3}, quartiles {:.3} {:.3}; {} frames",
        ratios.len(),
        ratios[10],
        ratios[5],
        ratios[15],
        frames(&talks[1])
    );
    assert_eq!(frames(&talks[0]), 0);
}

#[test]
fn a_run_without_a_folder_goes_back_to_its_checkpoint_in_memory() {
    let mut talk = Talk::new();
    talk.backend = Backend::new(Surroundings {
        clock: Rc::new(|| 0.0),
        calendar: || 0,
        free_memory: || None,
        used_memory: || None,
        files: false,
    });
    talk.say(Command::Start {
        draft: draft(SMALL),
        device: "cpu".into(),
        folder: None,
        paused: false,
    });
    talk.say(Command::Until {
        step: Some(35),
        val_loss: None,
        seconds: None,
    });
    talk.until(|event| *event == Event::State(RunState::Paused));
    let before = talk.losses();
    talk.heard.clear();
    talk.say(Command::Rewind { lr_factor: 1.0 });
    assert_eq!(talk.failures(), Vec::<&str>::new());
    let ready = talk.heard.iter().find_map(|event| match event {
        Event::Ready(run) => Some((run.step, run.again, run.saved)),
        _ => None,
    });
    // The last one is of the best validation, or of `save_every`.
    let Some((good @ (20 | 30), true, Some(saved))) = ready else {
        panic!("{ready:?}");
    };
    assert_eq!(good, saved);
    talk.say(Command::Resume);
    talk.until(finished);
    let after = talk.losses();
    let good = if good == 20 { 20 } else { 30 };
    assert_eq!(after[..35 - good], before[good..], "the same bits again");
    assert_eq!(after.len(), 40 - good);
}
