//! What the page keeps in the browser: runs over a reload, what is dropped on it, storage that refuses, a worker that breaks.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use braid_app::protocol::{Command, Draft, Event, Exported, KeptRun, Piece, RunInfo, RunState};

use crate::chromium::Gpu;
use crate::page::{PATIENCE, TOY, Visit, ended, losses, start};
use crate::server::Files;

/// Stops by itself after 20 of its 40 steps, at a checkpoint.
fn half() -> String {
    TOY.replace("steps = 50", "steps = 40\nsave_every = 20")
}

fn open(in_page: &str, in_workers: Option<&str>) -> Option<Visit> {
    let mut visit = Visit::open(Gpu::None, Files::new(), in_page, in_workers)?;
    visit.load("");
    Some(visit)
}

/// Train the first 20 steps, and wait until they are kept.
fn train_half(visit: &mut Visit) {
    visit.send(&Command::Until {
        step: Some(20),
        val_loss: None,
        seconds: None,
    });
    visit.send(&start(&half(), "cpu"));
    visit.until("checkpoint of step 20", |event| {
        matches!(event, Event::Saved { step: 20, .. })
    });
    let paused = Event::State(RunState::Paused);
    if !visit.heard.contains(&paused) {
        visit.until("pause", |event| *event == paused);
    }
}

fn runs(visit: &mut Visit) -> Vec<KeptRun> {
    visit.heard.clear();
    visit.send(&Command::Runs);
    visit.until("list of runs", |event| matches!(event, Event::Runs(_)));
    let runs = visit.heard.iter().rev().find_map(|event| match event {
        Event::Runs(runs) => Some(runs.clone()),
        _ => None,
    });
    runs.unwrap_or_default()
}

fn open_run(visit: &mut Visit, folder: &str) -> RunInfo {
    visit.send(&Command::Open {
        folder: folder.into(),
        device: "cpu".into(),
    });
    ready(visit)
}

fn ready(visit: &mut Visit) -> RunInfo {
    visit.until("run", |event| {
        matches!(event, Event::Ready(_) | Event::Failed { .. })
    });
    let run = visit.heard.iter().rev().find_map(|event| match event {
        Event::Ready(run) => Some((**run).clone()),
        _ => None,
    });
    run.unwrap_or_else(|| panic!("{:?}", visit.heard.last()))
}

/// The rest of a run, and all of its losses by step.
fn to_the_end(visit: &mut Visit, before: &[(u64, f64)]) -> Vec<(u64, f64)> {
    visit.heard.clear();
    visit.send(&Command::Resume);
    visit.until("end of the training", ended);
    let mut all = before.to_vec();
    all.extend(losses(&visit.heard));
    all
}

fn failure(visit: &mut Visit, what: &str) -> String {
    let own = |event: &Event| matches!(event, Event::Failed { what: own, .. } if own == what);
    if !visit.heard.iter().any(own) {
        visit.until(what, own);
    }
    let failed = visit.heard.iter().rev().find_map(|event| match event {
        Event::Failed { message, .. } => Some(message.clone()),
        _ => None,
    });
    failed.unwrap_or_default()
}

/// Drop files on the page as the system would: an event with their names and contents.
fn drop_on(visit: &mut Visit, files: &[(&str, Vec<u8>)]) {
    let add = |(name, bytes): &(&str, Vec<u8>)| {
        let bytes = STANDARD.encode(bytes);
        format!(
            "dropped.items.add(new File([Uint8Array.from(atob('{bytes}'), (c) => c.charCodeAt(0))], '{name}'));"
        )
    };
    let adds: String = files.iter().map(add).collect();
    visit.tab.eval(&format!(
        "{{ const dropped = new DataTransfer(); {adds}
            const event = {{ dataTransfer: dropped, bubbles: true, cancelable: true }};
            document.getElementById('window').dispatchEvent(new DragEvent('drop', event)); true }}"
    ));
}

#[test]
fn after_a_reload_a_run_goes_on_to_the_same_bits() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    visit.send(&start(&half(), "cpu"));
    visit.until("end of the training", ended);
    let whole = losses(&visit.heard);
    assert_eq!(whole.len(), 40);
    visit.heard.clear();
    train_half(&mut visit);
    let first = losses(&visit.heard);
    let before = runs(&mut visit);
    assert_eq!(before.len(), 2, "{before:?}");

    visit.heard.clear();
    visit.load("");
    let after = runs(&mut visit);
    assert_eq!(after, before);
    let last = &after[0];
    assert_eq!((last.last, last.steps), (Some(20), 40), "{last:?}");
    assert!(
        last.saved > Some(1_700_000_000) && last.bytes > 10_000,
        "{last:?}"
    );
    let run = open_run(&mut visit, &last.folder);
    assert_eq!((run.step, run.saved), (20, Some(20)));
    assert!(!run.lines.is_empty() && !run.frames.is_empty());
    let all = to_the_end(&mut visit, &first);
    let bits = |losses: &[(u64, f64)]| -> Vec<(u64, u64)> {
        let bits = losses.iter().map(|(step, loss)| (*step, loss.to_bits()));
        bits.collect()
    };
    assert_eq!(bits(&all), bits(&whole));
    // The other one is still there, with all of its records.
    visit.send(&Command::History {
        folder: after[1].folder.clone(),
    });
    visit.until(
        "history",
        |event| matches!(event, Event::History { lines, .. } if lines.len() > 40),
    );
    visit.was_clean();
}

#[test]
fn a_run_keeps_the_text_that_was_dropped_and_can_be_handed_out_and_dropped_again() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    let text = "the quick brown fox jumps over the lazy dog. ".repeat(60);
    let toml = half().replace("task = \"recall\"", "file = \"fox.txt\"");
    visit.send(&Command::Start {
        draft: Draft {
            toml,
            text: Some(("fox.txt".into(), text.into_bytes())),
        },
        device: "cpu".into(),
        folder: None,
        paused: false,
    });
    visit.until("end of the training", ended);
    visit.until_saved(40);
    let all = runs(&mut visit);
    visit.send(&Command::Export {
        folder: all[0].folder.clone(),
        piece: Piece::Run,
    });
    visit.until("archive", |event| matches!(event, Event::Exported(_)));
    let Some(Exported { name, bytes }) = visit.heard.iter().rev().find_map(|event| match event {
        Event::Exported(file) => Some((**file).clone()),
        _ => None,
    }) else {
        panic!("an archive");
    };
    assert!(name.ends_with(".zip") && bytes.starts_with(b"PK"), "{name}");

    visit.heard.clear();
    visit.load("");
    drop_on(&mut visit, &[(name.as_str(), bytes)]);
    visit.until("kept run", |event| matches!(event, Event::Imported { .. }));
    let two = runs(&mut visit);
    assert_eq!(two.len(), 2, "{two:?}");
    for run in &two {
        let run = open_run(&mut visit, &run.folder);
        assert_eq!(run.step, 40);
    }
    visit.send(&Command::Stop);
    visit.until("empty window", |event| {
        *event == Event::State(RunState::Empty)
    });
    visit.send(&Command::Delete {
        folder: two[0].folder.clone(),
    });
    visit.until(
        "shorter list",
        |event| matches!(event, Event::Runs(runs) if runs.len() == 1),
    );
    visit.was_clean();
}

#[test]
fn a_corrupt_checkpoint_that_is_dropped_has_its_sentence() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    train_half(&mut visit);
    visit.heard.clear();
    let header = br#"{"model.norm.weight":{"dtype":"F32","shape":[32],"data_offsets":[0,128]}}"#;
    let mut torn = (header.len() as u64).to_le_bytes().to_vec();
    torn.extend(header);
    torn.extend([0; 60]);
    for (bytes, sentence) in [
        (
            b"1234567".to_vec(),
            "(7 bytes) is not a complete safetensors file",
        ),
        (torn, "is not a complete safetensors file"),
    ] {
        visit.heard.clear();
        drop_on(&mut visit, &[("model.safetensors", bytes)]);
        let message = failure(&mut visit, "import");
        assert!(message.contains(sentence), "{message}");
    }
    visit.heard.clear();
    let files = [("notes.txt", b"a".to_vec()), ("more.txt", b"b".to_vec())];
    drop_on(&mut visit, &files);
    let message = failure(&mut visit, "import");
    assert!(message.contains("neither a run"), "{message}");
    // The run that is loaded is as it was.
    let all = to_the_end(&mut visit, &[]);
    assert_eq!(all.last().map(|(step, _)| *step), Some(40));
    assert_eq!(visit.tab.errors, [""; 0]);
}

#[test]
fn without_storage_the_training_goes_on_and_a_download_is_offered() {
    let refused = "Object.defineProperty(navigator, 'storage', { value: { getDirectory: () =>
        Promise.reject(new DOMException('it is not allowed here', 'SecurityError')) } })";
    let Some(mut visit) = open("", Some(refused)) else {
        return;
    };
    let keeping = |visit: &Visit| {
        visit.heard.iter().rev().find_map(|event| match event {
            Event::Keeping { trouble } => Some(trouble.clone()),
            _ => None,
        })
    };
    let trouble = keeping(&visit).flatten().expect("it is said");
    assert!(
        trouble.contains("it is not allowed here") && trouble.contains("download"),
        "{trouble}"
    );
    visit.send(&start(&half(), "cpu"));
    visit.until("end of the training", ended);
    assert_eq!(losses(&visit.heard).len(), 40);
    let all = runs(&mut visit);
    assert_eq!(all.len(), 1, "it is in memory");
    visit.send(&Command::Export {
        folder: all[0].folder.clone(),
        piece: Piece::Run,
    });
    visit.until("archive", |event| matches!(event, Event::Exported(_)));
    visit.was_clean();
}

#[test]
fn a_full_storage_is_said_and_what_was_kept_before_is_whole() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    train_half(&mut visit);
    let before = runs(&mut visit);
    let origin = visit.origin();
    visit.tab.quota(&origin, 1);
    visit.heard.clear();
    visit.send(&Command::Resume);
    visit.until("end of the training", ended);
    let full = |event: &Event| matches!(event, Event::Keeping { trouble: Some(why) } if why.contains("is full"));
    if !visit.heard.iter().any(full) {
        visit.until("word about the storage", full);
    }
    assert!(
        !visit
            .heard
            .iter()
            .any(|event| matches!(event, Event::Saved { step: 40, .. })),
        "what is not kept is not said to be"
    );
    visit.heard.clear();
    visit.load("");
    let after = runs(&mut visit);
    assert_eq!(after, before);
    assert_eq!(open_run(&mut visit, &after[0].folder).step, 20);
    assert_eq!(visit.tab.errors, [""; 0]);
}

#[test]
fn a_second_tab_says_that_it_keeps_nothing_and_leaves_the_first_ones_runs_alone() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    train_half(&mut visit);
    let before = runs(&mut visit);
    // The same page in a frame is another page of the same origin, as a second tab is.
    let second = "(async () => {
        const frame = document.createElement('iframe');
        frame.src = location.href;
        const said = new Promise((answer) => {
            const started = setInterval(() => {
                const engine = frame.contentWindow?.engine;
                if (!engine) return;
                clearInterval(started);
                window.second = frame.contentWindow;
                answer(true);
            }, 20);
        });
        document.body.append(frame);
        return said;
    })()";
    assert_eq!(visit.tab.eval(second), true);
    let late = Instant::now() + PATIENCE;
    let mut heard = Vec::new();
    let trouble = loop {
        heard.extend(visit.heard_by("window.second.heard()"));
        let trouble = heard.iter().find_map(|event| match event {
            Event::Keeping { trouble } => trouble.clone(),
            _ => None,
        });
        if let Some(trouble) = trouble {
            break trouble;
        }
        assert!(Instant::now() < late, "{heard:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(trouble.contains("Another tab"), "{trouble}");
    assert_eq!(runs(&mut visit), before);
    visit.was_clean();
}

#[test]
fn a_tab_that_is_hidden_saves_first_and_goes_on() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    visit.send(&start(&TOY.replace("steps = 50", "steps = 100000"), "cpu"));
    visit.until("first steps", |event| matches!(event, Event::Lines(_)));
    visit.heard.clear();
    visit.tab.hide();
    visit.until(
        "checkpoint",
        |event| matches!(event, Event::Saved { step, .. } if *step > 0),
    );
    visit.until("more steps", |event| matches!(event, Event::Lines(_)));
    visit.was_clean();
}

#[test]
fn a_worker_that_breaks_is_replaced_and_the_run_opened_at_its_last_checkpoint() {
    let Some(mut visit) = open("", None) else {
        return;
    };
    train_half(&mut visit);
    visit.heard.clear();
    let first = visit.tab.worker();
    let broken =
        "setTimeout(() => { throw new Error('out of bounds, as a trap would say') }); true";
    visit.tab.eval_in(&first, broken);
    let run = ready(&mut visit);
    assert_ne!(visit.tab.worker(), first);
    assert_eq!((run.step, run.saved), (20, Some(20)));
    assert!(
        visit.heard.contains(&Event::State(RunState::Paused)) || {
            visit.until("pause", |event| *event == Event::State(RunState::Paused));
            true
        }
    );
    let all = to_the_end(&mut visit, &[]);
    assert_eq!(all.first().map(|(step, _)| *step), Some(21));
    assert_eq!(all.last().map(|(step, _)| *step), Some(40));
}
