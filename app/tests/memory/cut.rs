//! A run that is cut off before any change still opens, at the last checkpoint that was finished or the one under way.

use std::path::Path;

use crate::files::{self, Moment};
use crate::protocol::{Frame, Sampled};
use crate::records::Record;
use crate::run_dir::{CheckpointFiles, Identity, RunDir, RunWriter, Which, read_checkpoint};

const IDENTITY: Identity<'_> = Identity {
    config_toml: "toml",
    config_json: "{}",
    tokenizer_json: "{}",
    text: Some(b"a text"),
};

fn checkpoint(step: u64) -> CheckpointFiles {
    let text = step.to_string();
    CheckpointFiles {
        model: text.clone().into_bytes(),
        optimizer: Some(text.clone().into_bytes()),
        state: Some(text),
    }
}

fn saved(step: u64) -> Record {
    Record::Saved {
        step,
        path: "somewhere".into(),
    }
}

fn frame(step: u64) -> Frame {
    Frame {
        step,
        ..Frame::default()
    }
}

fn text(step: u64) -> Sampled {
    Sampled {
        step,
        tokens: Vec::new(),
        temperature: 1.0,
        seed: 1,
    }
}

/// The moments of one action, and the checkpoint before it and after it.
struct Chapter {
    moments: Vec<Moment>,
    before: Option<u64>,
    after: Option<u64>,
}

fn last(path: &Path) -> Option<u64> {
    let folder = RunDir::open(path).ok()?.checkpoint(Which::Last).unwrap()?;
    let files = read_checkpoint(&folder).unwrap();
    let (state, text) = (
        files.state.unwrap(),
        String::from_utf8(files.model).unwrap(),
    );
    assert_eq!(state, text, "a checkpoint is whole");
    assert_eq!(files.optimizer, Some(text.into_bytes()));
    state.parse().ok()
}

#[test]
fn a_run_that_is_cut_off_anywhere_opens_at_the_old_or_the_new_checkpoint() {
    let path = Path::new("runs/one");
    let mut chapters = Vec::new();
    let mut chapter = |before, after| {
        chapters.push(Chapter {
            moments: files::moments(),
            before,
            after,
        });
    };
    let mut run = RunWriter::create(path, &IDENTITY).unwrap();
    chapter(None, None);
    run.save(0, &checkpoint(0), false).unwrap();
    chapter(None, Some(0));
    for step in 1..5 {
        run.append(&[saved(step)]).unwrap();
        run.keep_frame(&frame(step), true).unwrap();
        run.keep_sample(&text(step)).unwrap();
    }
    chapter(Some(0), Some(0));
    run.save(5, &checkpoint(5), true).unwrap();
    chapter(Some(0), Some(5));
    run.append(&[saved(6)]).unwrap();
    run.set_config("changed").unwrap();
    run.save(10, &checkpoint(10), false).unwrap();
    chapter(Some(5), Some(10));
    run.append(&[saved(11), saved(12)]).unwrap();
    drop(run);
    let mut run = RunWriter::resume(path).unwrap();
    run.rewind_metrics(10).unwrap();
    run.rewind_frames(10).unwrap();
    run.rewind_samples(3).unwrap();
    run.ensure_saved_record(10, "checkpoints/step-000010".into())
        .unwrap();
    chapter(Some(10), Some(10));
    run.save(20, &checkpoint(20), true).unwrap();
    chapter(Some(10), Some(20));
    drop(run);

    let mut opened = 0;
    for chapter in &chapters {
        for moment in &chapter.moments {
            files::go_back(moment);
            if !files::exists(path) {
                assert_eq!((chapter.before, chapter.after), (None, None));
                continue;
            }
            let found = last(path);
            assert!(
                [chapter.before, chapter.after].contains(&found),
                "{found:?} in {moment:#?}"
            );
            let mut run = RunWriter::resume(path).unwrap();
            assert_eq!(run.run().text().unwrap().as_deref(), Some(&b"a text"[..]));
            run.rewind_metrics(found.unwrap_or(0)).unwrap();
            run.rewind_frames(found.unwrap_or(0)).unwrap();
            run.save(30, &checkpoint(30), false).unwrap();
            drop(run);
            assert_eq!(last(path), Some(30));
            opened += 1;
        }
    }
    assert!(opened > 80, "{opened}");
}

#[test]
fn a_run_is_written_by_one_and_deleted_only_when_it_is_closed() {
    let path = Path::new("runs/one");
    let run = RunWriter::create(path, &IDENTITY).unwrap();
    let error = RunWriter::resume(path).unwrap_err().to_string();
    assert!(error.contains("another process is writing"), "{error}");
    assert!(crate::run_dir::remove_run(path).is_err());
    drop(run);
    crate::run_dir::remove_run(path).unwrap();
    assert!(!files::exists(path));
}
