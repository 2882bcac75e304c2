//! The folder of a run: whatever a kill leaves behind, it resumes.

use std::fs;
use std::path::Path;

use braid_app::frame_log;
use braid_app::protocol::{Depth, Frame};
use braid_app::records::{Record, lines_until};
use braid_app::run_dir::{CheckpointFiles, Identity, RunDir, RunWriter, Which, read_checkpoint};

const IDENTITY: Identity<'_> = Identity {
    config_toml: "",
    config_json: "{}",
    tokenizer_json: "{}",
    text: None,
};

fn files(content: &str) -> CheckpointFiles {
    CheckpointFiles {
        model: content.as_bytes().to_vec(),
        optimizer: Some(content.as_bytes().to_vec()),
        state: Some(content.into()),
    }
}

fn train(step: u64) -> Record {
    Record::Train {
        step,
        objective: None,
        balance: None,
        z: None,
        loss: 1.5,
        lr: 0.001,
        grad_norm: f64::NAN,
        tokens: 10,
        tokens_per_s: 2.0,
        seconds: 0.5,
    }
}

fn last(path: &Path) -> String {
    let folder = RunDir::open(path)
        .unwrap()
        .checkpoint(Which::Last)
        .unwrap()
        .unwrap();
    read_checkpoint(&folder).unwrap().state.unwrap()
}

fn checkpoints(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.join("checkpoints")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn last_and_best_are_kept_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/run");
    let mut run = RunWriter::create(&path, &IDENTITY).unwrap();
    assert_eq!(run.run().checkpoint(Which::Last).unwrap(), None);
    for (step, best) in [(0, false), (10, true), (20, false), (30, false)] {
        let saved = run.save(step, &files(&step.to_string()), best).unwrap();
        assert!(path.join(saved).is_dir());
    }
    assert_eq!(checkpoints(&path), ["step-000010", "step-000030"]);
    assert_eq!(
        fs::read_to_string(path.join("best")).unwrap(),
        "step-000010"
    );
    assert_eq!(last(&path), "30");
}

#[test]
fn every_state_that_a_kill_can_leave_resumes() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    drop(RunWriter::create(&path, &IDENTITY).unwrap());
    // Before the first checkpoint.
    assert_eq!(
        RunWriter::resume(&path)
            .unwrap()
            .run()
            .checkpoint(Which::Last)
            .unwrap(),
        None
    );
    RunWriter::resume(&path)
        .unwrap()
        .save(10, &files("10"), true)
        .unwrap();

    let all = path.join("checkpoints");
    // While a checkpoint was written, when it was complete but not named, while `last` was replaced.
    fs::create_dir(all.join(".step-000020.new")).unwrap();
    fs::write(all.join(".step-000020.new/model.safetensors"), "half").unwrap();
    assert_eq!(last(&path), "10");
    fs::create_dir(all.join("step-000020")).unwrap();
    fs::write(path.join(".last.new"), "step-0000").unwrap();
    fs::write(path.join(".metrics.jsonl.new"), "{").unwrap();
    assert_eq!(last(&path), "10");
    let mut run = RunWriter::resume(&path).unwrap();
    assert_eq!(checkpoints(&path), ["step-000010"]);
    assert!(!path.join(".last.new").exists() && !path.join(".metrics.jsonl.new").exists());
    run.save(20, &files("20"), false).unwrap();
    drop(run);
    // While an old checkpoint was removed: half of it is left.
    fs::create_dir(all.join("step-000005")).unwrap();
    drop(RunWriter::resume(&path).unwrap());
    assert_eq!(checkpoints(&path), ["step-000010", "step-000020"]);
    assert_eq!(last(&path), "20");
    // A folder that was begun and not finished is no obstacle.
    let other = place.path().join("other");
    fs::create_dir(place.path().join(".other.new")).unwrap();
    drop(RunWriter::create(&other, &IDENTITY).unwrap());
    assert!(!place.path().join(".other.new").exists());
}

#[test]
fn lines_beyond_the_checkpoint_and_a_torn_one_are_dropped() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut run = RunWriter::create(&path, &IDENTITY).unwrap();
    run.append(&[train(1), train(2), train(3)]).unwrap();
    let metrics = path.join("metrics.jsonl");
    let torn = fs::read_to_string(&metrics).unwrap() + "{\"event\":\"train\",\"step\":1";
    fs::write(&metrics, torn).unwrap();
    run.rewind_metrics(2).unwrap();
    run.append(&[train(3)]).unwrap();
    let text = fs::read_to_string(&metrics).unwrap();
    let steps: Vec<u64> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["step"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(steps, [1, 2, 3]);
    // The end of the run and its errors go, since it goes on.
    let done = "{\"event\":\"done\",\"step\":2}\n{\"event\":\"eval\",\"step\":2}\n";
    assert_eq!(lines_until(done, 2), "{\"event\":\"eval\",\"step\":2}\n");
}

#[test]
fn one_process_at_a_time_and_no_folder_of_others() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let first = RunWriter::create(&path, &IDENTITY).unwrap();
    let message = |error: braid_engine::Error| error.to_string();
    assert!(message(RunWriter::resume(&path).unwrap_err()).contains("another process"));
    assert!(message(RunWriter::create(&path, &IDENTITY).unwrap_err()).contains("--resume"));
    drop(first);
    RunWriter::resume(&path).unwrap();

    let full = place.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.txt"), "").unwrap();
    assert!(message(RunWriter::create(&full, &IDENTITY).unwrap_err()).contains("not empty"));
    let below_a_file = full.join("thesis.txt/run");
    assert!(
        message(RunWriter::create(&below_a_file, &IDENTITY).unwrap_err())
            .contains("a part of the path is a file")
    );
    assert!(message(RunDir::open(&full).unwrap_err()).contains("not a run"));
    assert!(message(RunDir::open(&place.path().join("none")).unwrap_err()).contains("no run"));
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    RunWriter::create(&empty, &IDENTITY).unwrap();
}

#[test]
fn a_damaged_last_is_refused_and_cannot_lead_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    drop(RunWriter::create(&path, &IDENTITY).unwrap());
    for name in ["", "step-000007", "../..", ".hidden"] {
        fs::write(path.join("last"), name).unwrap();
        let error = RunDir::open(&path)
            .unwrap()
            .checkpoint(Which::Last)
            .unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
}

#[test]
fn records_are_one_line_each_with_null_for_what_is_not_finite() {
    assert_eq!(
        train(3).to_line(),
        "{\"event\":\"train\",\"step\":3,\"loss\":1.5,\"lr\":0.001,\"grad_norm\":null,\"tokens\":10,\
         \"tokens_per_s\":2.0,\"seconds\":0.5}"
    );
    let eval = Record::Eval {
        step: 2,
        val_loss: 0.5,
        val_tokens: 7,
        bits_per_byte: None,
        accuracy: None,
    };
    assert_eq!(
        eval.to_line(),
        "{\"event\":\"eval\",\"step\":2,\"val_loss\":0.5,\"val_tokens\":7}"
    );
    let done = Record::Done {
        step: 2,
        loss: None,
        val_loss: None,
        run: "runs/a".into(),
    };
    assert_eq!(
        done.to_line(),
        "{\"event\":\"done\",\"step\":2,\"loss\":null,\"val_loss\":null,\"run\":\"runs/a\"}"
    );
    let error = Record::Error {
        step: 2,
        code: "non_finite",
        tensor: None,
        message: "a \"b\"".into(),
    };
    assert_eq!(
        error.to_line(),
        "{\"event\":\"error\",\"step\":2,\"code\":\"non_finite\",\"tensor\":null,\"message\":\"a \\\"b\\\"\"}"
    );
}

/// A frame with a number that has no short decimal.
fn frame(step: u64) -> Frame {
    Frame {
        step,
        tokens: 12,
        depth: vec![Depth {
            site: 0,
            input: f64::from(1.0_f32 / 3.0),
            output: step as f64,
            gradient: None,
        }],
        ..Frame::default()
    }
}

fn steps(path: &Path) -> Vec<u64> {
    frame_log::read(path)
        .frames
        .iter()
        .map(|frame| frame.step)
        .collect()
}

#[test]
fn frames_come_back_and_are_cut_to_the_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut run = RunWriter::create(&path, &IDENTITY).unwrap();
    for step in [1, 2, 2, 5, 8] {
        run.keep_frame(&frame(step), false).unwrap();
    }
    // What diverged has nothing to show.
    let mut broken = frame(9);
    broken.depth[0].input = f64::NAN;
    run.keep_frame(&broken, true).unwrap();
    let recorded = frame_log::read(&path);
    assert_eq!(steps(&path), [1, 2, 5, 8]);
    // As exact as the device's numbers are.
    let [read, kept] = [&recorded.frames[0], &frame(1)].map(|frame| frame.depth[0].input as f32);
    assert_eq!(read.to_bits(), kept.to_bits());
    assert_eq!((recorded.notice, recorded.frames[3].tokens), (None, 12));
    drop(run);
    // A kill tears the last line; another fault damages one in the middle.
    let file = path.join("frames.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{{\"event\":\"frame\",\"st")).unwrap();
    assert_eq!(frame_log::read(&path).notice, None);
    let mut run = RunWriter::resume(&path).unwrap();
    run.rewind_frames(5).unwrap();
    assert_eq!(steps(&path), [1, 2, 5]);
    for step in [6, 7] {
        run.keep_frame(&frame(step), false).unwrap();
    }
    assert_eq!(steps(&path), [1, 2, 5, 6, 7]);
    drop(run);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"step\":2", "\"step\":", 1)).unwrap();
    assert_eq!(steps(&path), [1, 5, 6, 7]);
    let notice = frame_log::read(&path).notice.unwrap();
    assert!(notice.starts_with("1 of 5 lines of"), "{notice}");
    fs::remove_file(&file).unwrap();
    let missing = frame_log::read(&path);
    assert!(missing.frames.is_empty() && missing.notice.unwrap().contains("has no frames.jsonl"));
    // Not a file at all: the run is opened, and says once that nothing is recorded.
    fs::create_dir(&file).unwrap();
    for rewind in [false, true] {
        let mut run = RunWriter::resume(&path).unwrap();
        let failed = match rewind {
            true => run.rewind_frames(5),
            false => run.keep_frame(&frame(6), true),
        };
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("frames.jsonl"), "{error}");
        run.keep_frame(&frame(7), true).unwrap();
    }
}

#[test]
fn many_frames_are_thinned() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut run = RunWriter::create(&path, &IDENTITY).unwrap();
    for step in 0..5000 {
        run.keep_frame(&frame(step), false).unwrap();
    }
    run.keep_frame(&frame(5001), true).unwrap();
    let kept = steps(&path);
    assert!((1024..=2048).contains(&kept.len()), "{}", kept.len());
    assert_eq!((kept[0], kept[kept.len() - 1]), (0, 5001));
    let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap <= 5), "{gaps:?}");
    // What is kept of the frames to come does not begin anew with the process.
    drop(run);
    let mut run = RunWriter::resume(&path).unwrap();
    run.rewind_frames(6000).unwrap();
    for step in 6000..6016 {
        run.keep_frame(&frame(step), false).unwrap();
    }
    let after = steps(&path).into_iter().filter(|step| *step >= 6000);
    assert_eq!(after.collect::<Vec<_>>(), [6000, 6004, 6008, 6012]);
}
