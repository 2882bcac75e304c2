//! A run on disk is looked at while somebody else trains it.

use braid_app::protocol::{Command, Event, Line, Peek, RunInfo, RunState};

use crate::talk::{Talk, every, start};

fn looked(talk: &Talk) -> &RunInfo {
    match talk.heard.last() {
        Some(Event::Looked(run)) => run,
        other => panic!("not looked at: {other:?}"),
    }
}

fn peeked(talk: &Talk) -> &Peek {
    match talk.heard.last() {
        Some(Event::Peeked(peek)) => peek,
        other => panic!("not looked into: {other:?}"),
    }
}

#[test]
fn a_run_that_is_trained_elsewhere_can_be_followed() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("run");
    let name = folder.display().to_string();
    let mut trains = Talk::new();
    trains.say(every(5, 3));
    trains.say(start(&folder, false));
    let mut looks = Talk::new();
    let look = || Command::Look {
        folder: name.clone(),
    };
    looks.say(look());
    assert_eq!(looked(&looks).step, 0);
    assert_eq!(looked(&looks).steps, 40);
    trains.until(|event| matches!(event, Event::Sampled(text) if text.step == 20));
    looks.say(look());
    let run = looked(&looks);
    assert!(run.step >= 20, "{}", run.step);
    assert_eq!(run.samples.last().map(|text| text.step), Some(20));
    assert!(run.frames.iter().any(|frame| frame.step == 20));
    let evaluated = |line: &Line| matches!(line, Line::Eval { step: 20, .. });
    assert!(run.lines.iter().any(evaluated));

    // Its folder says that it is taken, and it cannot be opened.
    looks.say(Command::Peek {
        folder: name.clone(),
    });
    assert!(peeked(&looks).busy);
    looks.say(Command::Open {
        folder: name.clone(),
        device: "cpu".into(),
    });
    assert!(looks.failures()[0].contains("another process is writing"));
    assert!(looks.failures()[0].contains("Look"));
    trains.say(Command::Quit { save: true });
    looks.say(Command::Peek {
        folder: name.clone(),
    });
    assert!(!peeked(&looks).busy);
    looks.say(Command::Open {
        folder: name,
        device: "cpu".into(),
    });
    assert_eq!(looks.state(), Some(&RunState::Paused));
}

#[test]
fn looking_closes_what_is_loaded_and_a_missing_folder_is_a_sentence() {
    let root = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::new();
    talk.say(start(&root.path().join("own"), true));
    talk.say(Command::Look {
        folder: root.path().join("none").display().to_string(),
    });
    assert!(talk.failures()[0].contains("there is no run at"));
    assert_eq!(talk.state(), Some(&RunState::Paused), "it stays loaded");
    talk.say(Command::Look {
        folder: root.path().join("own").display().to_string(),
    });
    assert_eq!(talk.state(), Some(&RunState::Empty));
    assert_eq!(looked(&talk).name, "dar copy");
}
