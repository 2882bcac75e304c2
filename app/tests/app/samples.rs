//! Texts that are written by themselves, and kept in the run.

use braid_app::protocol::{Command, Event, RunInfo, RunState, Sampled};

use crate::talk::{Talk, every, finished, start};

fn sampled(talk: &Talk) -> Vec<Sampled> {
    let heard = talk.heard.iter();
    heard
        .filter_map(|event| match event {
            Event::Sampled(sampled) => Some((**sampled).clone()),
            _ => None,
        })
        .collect()
}

fn ready(talk: &Talk) -> &RunInfo {
    let heard = talk.heard.iter().rev();
    let mut runs = heard.filter_map(|event| match event {
        Event::Ready(run) => Some(&**run),
        _ => None,
    });
    runs.next().expect("a run is ready")
}

#[test]
fn texts_come_at_their_updates_and_come_back_with_the_run() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("run");
    let mut talk = Talk::new();
    // Shorter than what is written between two updates, so that none is left out.
    talk.say(every(10, 3));
    talk.say(start(&folder, false));
    talk.until(finished);
    while talk.backend.is_busy() {
        talk.until(|event| matches!(event, Event::Sampled(_)));
    }
    let texts = sampled(&talk);
    let steps: Vec<u64> = texts.iter().map(|text| text.step).collect();
    assert_eq!(steps, [10, 20, 30, 40]);
    // By hand at the same moment: the same text.
    talk.say(Command::Sample {
        prompt: String::new(),
        tokens: 3,
        temperature: 0.8,
        seed: 1,
    });
    talk.until(|event| matches!(event, Event::Sampled(_)));
    assert_eq!(sampled(&talk)[4], texts[3]);
    talk.say(Command::Quit { save: true });

    let mut talk = Talk::new();
    talk.say(Command::Open {
        folder: folder.display().to_string(),
        device: "cpu".into(),
    });
    let kept = &ready(&talk).samples;
    assert_eq!(kept.len(), 5);
    assert_eq!(kept[..4], texts);
    assert_eq!(ready(&talk).chance, Some(1.0 / 16.0));
}

#[test]
fn a_text_is_due_at_a_pause_too_and_goes_with_a_rewind() {
    let root = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::new();
    talk.say(every(7, 3));
    talk.say(start(&root.path().join("run"), true));
    talk.say(Command::Until {
        step: Some(7),
        val_loss: None,
        seconds: None,
    });
    talk.say(Command::Resume);
    talk.until(|event| matches!(event, Event::Sampled(_)));
    assert_eq!(sampled(&talk)[0].step, 7);
    assert_eq!(talk.state(), Some(&RunState::Paused));
    talk.say(Command::Until {
        step: Some(35),
        val_loss: None,
        seconds: None,
    });
    talk.say(Command::Resume);
    talk.until(|event| matches!(event, Event::Sampled(text) if text.step == 35));
    assert_eq!(talk.state(), Some(&RunState::Paused));
    talk.say(Command::Rewind { lr_factor: 1.0 });
    assert_eq!(ready(&talk).step, 30, "the last checkpoint");
    let steps: Vec<u64> = ready(&talk).samples.iter().map(|text| text.step).collect();
    assert_eq!(steps, [7, 14, 21, 28]);
}
