//! The program: exit codes, sentences, records, resume.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A small model.
pub(super) const SMALL: &[&str] = &[
    "--device",
    "cpu",
    "--set",
    "model.layers=2",
    "--set",
    "model.width=16",
    "--set",
    "model.heads=2",
    "--set",
    "model.ffn=32",
    "--set",
    "train.batch=2",
    "--set",
    "train.eval_batches=2",
    "--set",
    "train.eval_every=4",
    "--set",
    "train.save_every=3",
    "--set",
    "train.warmup=2",
];

pub(super) struct Place(pub(super) TempDir);

impl Place {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Run `braid` in this place.
    pub(super) fn braid(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_braid"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    pub(super) fn train(&self, args: &[&str]) -> Output {
        self.braid(&[&["train"], SMALL, args].concat())
    }

    #[track_caller]
    pub(super) fn fails(&self, code: i32, args: &[&str], parts: &[&str]) {
        check_failure(&self.braid(args), code, parts);
    }
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(super) fn check_failure(output: &Output, code: i32, parts: &[&str]) {
    let (out, err) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    for part in parts {
        assert!(err.contains(part), "`{part}` is not in: {err}");
    }
    assert!(!err.contains("panicked"), "{err}");
}

#[track_caller]
pub(super) fn ok(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        stdout(output),
        stderr(output)
    );
}

pub(super) fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Without what differs between runs.
pub(super) fn comparable(records: Vec<Value>, event: &str) -> Vec<Value> {
    let mut kept: Vec<Value> = records
        .into_iter()
        .filter(|record| record["event"] == event)
        .collect();
    for record in &mut kept {
        if let Some(object) = record.as_object_mut() {
            object.remove("seconds");
            object.remove("tokens_per_s");
        }
    }
    kept
}

#[test]
fn a_run_with_experts_says_how_they_are_used_and_resumes() {
    let place = Place::new();
    let experts = [
        "feed_forward.kind=moe",
        "feed_forward.experts=5",
        "feed_forward.gate=sigmoid_bias",
        "feed_forward.shared_experts=1",
        "feed_forward.intermediate_size=8",
    ];
    let settings = experts.iter().flat_map(|setting| ["--set", setting]);
    let settings: Vec<&str> = settings.chain(["--steps", "8", "--out"]).collect();
    let whole = place.train(&[&settings[..], &["whole"]].concat());
    ok(&whole);
    let text = stdout(&whole);
    for part in [
        "2 of 5 for each token, 1 shared",
        "parameters are active",
        "layer 2",
        "in even shares",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    ok(&place.train(&[&settings[..], &["parts", "--until", "3"]].concat()));
    ok(&place.braid(&["train", "--device", "cpu", "--resume", "parts"]));
    for event in ["train", "eval", "routing", "experts"] {
        let [whole, parts] =
            ["whole", "parts"].map(|run| comparable(records(&place.path(run)), event));
        assert!(!whole.is_empty(), "{event}");
        assert_eq!(whole, parts, "{event}");
    }
    for record in comparable(records(&place.path("whole")), "train") {
        let number = |key: &str| record[key].as_f64().unwrap();
        let objective = number("loss") + number("balance") + number("z");
        assert!((number("objective") - objective).abs() < 1e-9, "{record}");
        assert!(number("balance") > 0.0 && number("z") > 0.0, "{record}");
    }
    for record in comparable(records(&place.path("whole")), "experts") {
        for layer in record["layers"].as_array().unwrap() {
            let shares = layer["load"].as_array().unwrap();
            let sum: f64 = shares.iter().map(|share| share.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-9 && shares.len() == 5, "{record}");
        }
    }
    let model = |run: &str| {
        let folder = place.path(run).join("checkpoints/step-000008");
        fs::read(folder.join("model.safetensors")).unwrap()
    };
    assert_eq!(model("whole"), model("parts"));
    let inspect = place.braid(&["inspect", "whole"]);
    ok(&inspect);
    let text = stdout(&inspect);
    for part in [
        "experts",
        "shared experts",
        "routers",
        "active",
        "frames     ",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_run_in_parts_has_the_records_of_a_run_in_one_go() {
    let place = Place::new();
    let every = ["--steps", "8", "--set", "train.eval_every=4", "--out"];
    ok(&place.train(&[&every[..], &["whole"]].concat()));
    ok(&place.train(&[&every[..], &["parts", "--until", "3"]].concat()));
    ok(&place.braid(&["train", "--device", "cpu", "--resume", "parts"]));
    for event in ["train", "eval", "routing"] {
        let of = |run: &str| comparable(records(&place.path(run)), event);
        assert_eq!(of("whole"), of("parts"), "{event}");
    }
}

#[test]
fn a_run_whose_files_contradict_each_other_is_refused() {
    let place = Place::new();
    ok(&place.train(&["--steps", "8", "--until", "2", "--out", "run"]));
    let file = place.path("run/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"dar\"\ngates", "\"cross_v\"\ngates")).unwrap();
    assert_ne!(text, fs::read_to_string(&file).unwrap());
    let resume = ["train", "--device", "cpu", "--resume", "run"];
    place.fails(2, &resume, &["residual", "config.json", "cross_v"]);
    place.fails(2, &["eval", "run"], &["residual", "config.json"]);
    fs::write(&file, text).unwrap();
    fs::remove_file(place.path("run/last")).unwrap();
    place.fails(2, &resume, &["last is missing", "step-000002"]);
}

#[test]
fn a_diverged_run_that_saved_every_step_can_be_taken_up_again() {
    let place = Place::new();
    let high = [
        "--steps",
        "8",
        "--set",
        "train.lr=1e12",
        "--set",
        "train.warmup=0",
        "--set",
        "train.weight_decay=10",
    ];
    let often = [
        "--set",
        "train.save_every=1",
        "--set",
        "train.eval_every=1",
        "--out",
        "run",
    ];
    check_failure(
        &place.train(&[&high[..], &often[..]].concat()),
        4,
        &["diverged at step", "is kept"],
    );
    // What was kept is sound: the run goes on, and ends in the same way.
    check_failure(
        &place.braid(&["train", "--device", "cpu", "--resume", "run"]),
        4,
        &["diverged at step", "is kept"],
    );
}

#[test]
fn a_run_is_repeatable_and_resumes_to_the_same_bits() {
    let place = Place::new();
    let whole = place.train(&["--steps", "10", "--out", "whole", "--json"]);
    ok(&whole);
    assert_eq!(
        stdout(&whole),
        fs::read_to_string(place.path("whole/metrics.jsonl")).unwrap()
    );
    ok(&place.train(&["--steps", "10", "--out", "parts", "--until", "5"]));
    ok(&place.braid(&[
        "train", "--device", "cpu", "--resume", "parts", "--until", "7",
    ]));
    ok(&place.braid(&["train", "--device", "cpu", "--resume", "parts"]));
    for file in ["model.safetensors", "optimizer.safetensors"] {
        let read = |run: &str| {
            fs::read(place.path(run).join("checkpoints/step-000010").join(file)).unwrap()
        };
        assert!(read("whole") == read("parts"), "{file} differs");
    }
    for event in ["train", "done"] {
        let strip = |run: &str| {
            let mut records = comparable(records(&place.path(run)), event);
            records.iter_mut().for_each(|record| {
                record.as_object_mut().unwrap().remove("run");
            });
            records
        };
        assert_eq!(strip("whole"), strip("parts"));
    }
    let all = records(&place.path("whole"));
    let steps = comparable(all.clone(), "train")
        .iter()
        .map(|r| r["step"].as_u64().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(steps, (1..=10).collect::<Vec<_>>());
    let routing = comparable(all, "routing");
    assert_eq!(routing.len(), 3);
    let sites = routing[0]["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 5);
    assert_eq!(sites[4]["kind"], "readout");
    assert_eq!(sites[0]["streams"][0]["sources"][0], "embed");

    // Nothing is left to do; other data are refused.
    let again = place.braid(&["train", "--device", "cpu", "--resume", "whole"]);
    ok(&again);
    assert!(stderr(&again).contains("nothing to do"));

    ok(&place.braid(&["inspect", "whole"]));
    let eval = place.braid(&["eval", "whole", "--device", "cpu", "--json"]);
    ok(&eval);
    let eval: Value = serde_json::from_str(stdout(&eval).trim()).unwrap();
    assert_eq!(eval["step"], 10);
    let sample = |seed: &str| {
        let output = place.braid(&[
            "sample", "whole", "--device", "cpu", "-n", "12", "--seed", seed,
        ]);
        ok(&output);
        stdout(&output)
    };
    assert_eq!(sample("3"), sample("3"));
    let output = place.braid(&[
        "sample",
        "whole",
        "--device",
        "cpu",
        "-n",
        "3",
        "--prompt",
        "\u{1f642}",
    ]);
    ok(&output);
    assert!(stderr(&output).contains("note:"), "{}", stderr(&output));
}

#[test]
fn a_run_on_a_text_refuses_another_text() {
    let place = Place::new();
    let text = "the quick brown fox jumps over the lazy dog. ".repeat(60);
    fs::write(place.path("text.txt"), &text).unwrap();
    let args = [
        "--data",
        "text.txt",
        "--set",
        "data.tokenizer=char",
        "--steps",
        "4",
        "--until",
        "2",
        "--out",
        "run",
    ];
    let output = place.train(&args);
    ok(&output);
    assert!(stdout(&output).contains("     out "), "{}", stdout(&output));
    fs::write(place.path("text.txt"), text.replace("quick", "quiet")).unwrap();
    place.fails(2, &["train", "--resume", "run"], &["not those"]);
    fs::write(place.path("text.txt"), &text).unwrap();
    let model = place.path("run/checkpoints/step-000002/model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    place.fails(
        2,
        &["train", "--resume", "run"],
        &["model.safetensors", "not a complete"],
    );
}

#[test]
fn a_run_with_byte_pairs_is_resumed_sampled_and_compared_by_bits() {
    let place = Place::new();
    let words = ["näive", "the", "quick", "fox", "jumps", "over", "it"];
    let text: String = (0..3000_usize)
        .map(|i| format!("{}{}", words[i * i % 7], [" ", ", ", "\n"][i % 11 % 3]))
        .collect();
    fs::write(
        place.path("text.txt"),
        [text.as_bytes(), b"\xff\xfe"].concat(),
    )
    .unwrap();
    let data = ["--data", "text.txt", "--set", "data.tokenizer=bpe"];
    let size = ["--set", "data.vocab=270", "--steps", "4"];
    let train = |more: &[&str]| {
        let output = place.train(&[&data, &size, more].concat());
        ok(&output);
        stdout(&output)
    };
    let said = train(&["--out", "whole"]);
    assert!(said.contains("bpe tokenizer with 270 tokens"), "{said}");
    assert!(said.contains("bits per byte"), "{said}");
    train(&["--out", "parts", "--until", "2"]);
    ok(&place.braid(&["train", "--resume", "parts", "--device", "cpu"]));
    let file = |run: &str, name: &str| fs::read(place.path(run).join(name)).unwrap();
    for name in [
        "tokenizer.json",
        "checkpoints/step-000004/model.safetensors",
    ] {
        assert!(file("whole", name) == file("parts", name), "{name}");
    }

    let eval = place.braid(&["eval", "whole", "--device", "cpu", "--json"]);
    ok(&eval);
    let eval: Value = serde_json::from_str(stdout(&eval).trim()).unwrap();
    let number = |key: &str| eval[key].as_f64().unwrap();
    // A token of this text is longer than a byte, and at most the longest word with its blank.
    let bits_per_token = number("val_loss") / std::f64::consts::LN_2;
    let bytes_per_token = bits_per_token / number("bits_per_byte");
    assert!((1.5..7.0).contains(&bytes_per_token), "{eval}");

    let sample = place.braid(&[
        "sample",
        "whole",
        "--device",
        "cpu",
        "--prompt",
        "the näive",
        "-n",
        "20",
    ]);
    ok(&sample);
    assert!(
        stdout(&sample).starts_with("the näive"),
        "{}",
        stdout(&sample)
    );
    ok(&place.braid(&["inspect", "whole"]));

    let named = ["--set", "data.tokenizer_file=whole/tokenizer.json"];
    ok(&place.train(&[&data[..], &named, &["--steps", "1", "--out", "named"]].concat()));
    assert_eq!(
        file("whole", "tokenizer.json"),
        file("named", "tokenizer.json")
    );

    let fails = |more: &[&str], parts: &[&str]| {
        check_failure(&place.train(&[&data[..], more].concat()), 2, parts);
    };
    fails(
        &["--set", "data.vocab=30000"],
        &["data.vocab", "Lower it to at most"],
    );
    fs::write(place.path("bad.json"), r#"{"model":{"type":"WordPiece"}}"#).unwrap();
    let bad = ["--set", "data.tokenizer_file=bad.json"];
    fails(&bad, &["data.tokenizer_file", "bad.json", "WordPiece"]);
    fails(&["--set", "data.tokenizer_file=none.json"], &["none.json"]);
}

#[test]
fn muon_is_announced_planned_and_resumed() {
    let place = Place::new();
    let muon = ["--set", "train.optimizer=muon", "--steps", "4"];
    let plan = |more: &[&str]| {
        let output = place.train(&[&["--dry-run", "--json"], more].concat());
        ok(&output);
        let plan: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
        plan["bytes"]["update"].as_u64().unwrap()
    };
    assert!(plan(&muon) > plan(&[]));
    let output = place.train(&[&muon[..], &["--out", "whole"]].concat());
    ok(&output);
    // Two layers of four attention and three feed-forward matrices.
    let said = stdout(&output);
    assert!(
        said.contains("muon for 14 matrices (5,120 parameters)"),
        "{said}"
    );
    ok(&place.train(&[&muon[..], &["--out", "parts", "--until", "2"]].concat()));
    ok(&place.braid(&["train", "--resume", "parts", "--device", "cpu"]));
    for name in ["model.safetensors", "optimizer.safetensors"] {
        let file = |run: &str| {
            let folder = place.path(run).join("checkpoints/step-000004");
            fs::read(folder.join(name)).unwrap()
        };
        assert!(file("whole") == file("parts"), "{name}");
    }
}

#[test]
fn divergence_stops_the_run_with_a_name_and_keeps_a_checkpoint() {
    let place = Place::new();
    let args = [
        "--steps",
        "400",
        "--out",
        "run",
        "--set",
        "train.lr=1e12",
        "--set",
        "train.clip=0",
        "--set",
        "train.warmup=0",
    ];
    check_failure(
        &place.train(&args),
        4,
        &[
            "diverged at step",
            "first tensor that is not finite",
            "train.lr",
        ],
    );
    let records = records(&place.path("run"));
    let error = records.last().unwrap();
    assert_eq!(
        (&error["event"], &error["code"]),
        (&"error".into(), &"non_finite".into())
    );
    assert!(error["tensor"].is_string());
    assert!(place.path("run/last").exists());
}

#[test]
fn a_dry_run_prints_a_plan_and_leaves_nothing() {
    let place = Place::new();
    let output = place.train(&["--dry-run", "--out", "run"]);
    ok(&output);
    for part in [
        "embedding",
        "routing",
        "largest tensors",
        "kernel calls",
        "layers_per_block = 2",
    ] {
        assert!(
            stdout(&output).contains(part),
            "{part}: {}",
            stdout(&output)
        );
    }
    assert!(!place.path("run").exists());
}

#[test]
fn what_cannot_work_is_refused_with_a_sentence() {
    let place = Place::new();
    fs::write(place.path("empty.txt"), "").unwrap();
    fs::write(place.path("short.txt"), "too short").unwrap();
    fs::write(place.path("binary"), [0xff, 0x00, 0x81].repeat(900)).unwrap();
    fs::write(place.path("bad.toml"), "[model\n").unwrap();
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/file"), "").unwrap();
    let cases: &[(i32, &[&str], &[&str])] = &[
        (
            2,
            &["train", "--set", "model.heads=3"],
            &["model.heads: is 3"],
        ),
        (
            2,
            &["train", "--set", "model.layres=3"],
            &["did you mean model.layers?"],
        ),
        (2, &["train", "--config", "bad.toml"], &["not TOML"]),
        (
            2,
            &["train", "--config", "none.toml"],
            &["none.toml cannot be read: it does not exist"],
        ),
        (
            2,
            &["train", "--data", "empty.txt"],
            &["empty.txt is empty"],
        ),
        (
            2,
            &["train", "--data", "short.txt"],
            &["short.txt is too short"],
        ),
        (2, &["train", "--data", "none.txt"], &["it does not exist"]),
        (
            2,
            &["train", "--data", "binary", "--set", "data.tokenizer=char"],
            &["binary is not UTF-8"],
        ),
        (
            2,
            &["train", "--data", "short.txt", "--task", "copy"],
            &["cannot be used with"],
        ),
        (2, &["train", "--task", "cpoy"], &["the tasks are"]),
        (
            2,
            &["train", "--task", "copy", "--set", "data.file=a"],
            &["contradict"],
        ),
        (
            2,
            &["train", "--steps", "3", "--set", "train.steps=4"],
            &["contradict"],
        ),
        (
            2,
            &["train", "--steps", "3", "--until", "4"],
            &["--until 4"],
        ),
        (
            2,
            &["train", "--resume", "none"],
            &["there is no run at none"],
        ),
        (2, &["train", "--resume", "full"], &["not a run"]),
        (
            2,
            &["train", "--resume", "full", "--steps", "3"],
            &["cannot be used with"],
        ),
        (
            2,
            &["train", "--device", "cpu", "--out", "full"],
            &["full is not empty"],
        ),
        (
            2,
            &["train", "--device", "cpu", "--out", "empty.txt/run"],
            &["a part of the path is a file"],
        ),
        (
            2,
            &[
                "train",
                "--set",
                "feed_forward.kind=moe",
                "--set",
                "feed_forward.intermediate_size=8",
                "--set",
                "feed_forward.top_k=1",
            ],
            &["feed_forward.top_k: is 1", "no gradient"],
        ),
        (
            3,
            &["train", "--device", "nonsense"],
            &["no adapter is called `nonsense`"],
        ),
        (
            1,
            &["doctor", "--device", "nonsense"],
            &["no adapter is called `nonsense`"],
        ),
        (2, &["verify", "full"], &["no golden case"]),
        (2, &["verify", "none"], &["nothing at none"]),
        (2, &["inspect", "full"], &["neither a run nor a checkpoint"]),
        (2, &["eval", "none"], &["there is no run at none"]),
        (2, &["sample", "none", "--temperature", "-1"], &[]),
        (2, &["frobnicate"], &["unrecognized"]),
    ];
    for (code, args, parts) in cases {
        place.fails(*code, args, parts);
    }
    assert!(
        !place.path("runs").exists(),
        "a refused training leaves no folder"
    );
}

#[test]
fn verify_judges_each_case_and_says_why_it_fails() {
    let place = Place::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let case = |name: &str| golden.join(name).display().to_string();
    let output = place.braid(&[
        "verify",
        &case("standard-mha"),
        &case("init-dar"),
        "--device",
        "cpu",
        "--dtype",
        "f64",
        "--json",
    ]);
    ok(&output);
    let lines: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["case"], &lines[0]["pass"]),
        (&"standard-mha".into(), &true.into())
    );
    assert!(lines[0]["groups"]["grad"]["ratio"].as_f64().unwrap() <= 1.0);
    assert!(lines[0]["groups"]["grad"]["tensor"].is_string());

    // A folder of two: one damaged, one whole.
    for file in [
        "config.json",
        "case.json",
        "model.safetensors",
        "expected.safetensors",
    ] {
        for name in ["damaged", "whole"] {
            fs::create_dir_all(place.path("cases").join(name)).unwrap();
            fs::copy(
                golden.join("standard-mha").join(file),
                place.path("cases").join(name).join(file),
            )
            .unwrap();
        }
    }
    fs::write(place.path("cases/damaged/expected.safetensors"), "x").unwrap();
    let output = place.braid(&["verify", "cases", "--device", "cpu"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(
        text.contains("expected.safetensors cannot be used"),
        "{text}"
    );
    assert!(
        text.lines()
            .any(|line| line.starts_with("whole") && line.contains("PASS")),
        "{text}"
    );
    assert!(text.contains("1 of 2 cases pass"), "{text}");
}

#[test]
fn an_analysis_prints_tables_writes_files_and_leaves_the_run_as_it_was() {
    let place = Place::new();
    let sizes = ["--steps", "3", "--set", "model.context=32", "--out", "run"];
    ok(&place.train(&[&sizes[..], &["--set", "residual.layers_per_block=1"]].concat()));
    let weights = || {
        let name = fs::read_to_string(place.path("run/last")).unwrap();
        fs::read(
            place
                .path("run/checkpoints")
                .join(name)
                .join("model.safetensors"),
        )
        .unwrap()
    };
    let before = (weights(), records(&place.path("run")));
    let analyze = [
        "analyze",
        "run",
        "--device",
        "cpu",
        "--sequences",
        "9",
        "--draws",
        "30",
    ];
    let text = place.braid(&analyze);
    ok(&text);
    for part in [
        "9 sequences of 32 tokens",
        "reads: largest weight",
        "norms: of what a site reads",
        "directions that states use",
        "similarity across streams",
        "what a stream is worth",
        "rank correlation",
        "training steps",
        "frozen",
        "1 attn",
    ] {
        assert!(
            stdout(&text).contains(part),
            "`{part}` is not in: {}",
            stdout(&text)
        );
    }
    assert!(
        before == (weights(), records(&place.path("run"))),
        "the run was changed"
    );
    let all: Value =
        serde_json::from_str(&fs::read_to_string(place.path("run/analysis.json")).unwrap())
            .unwrap();
    assert_eq!(all["subject"]["sequences"], 9);
    let [low, value, high] = ["low", "value", "high"].map(|key| all["loss"][key].as_f64().unwrap());
    assert!(low < value && value < high);
    // Two layers are two blocks: boundaries before sites 2 and 4, frozen and live, two streams.
    let rescue = all["analyses"]["rescue"].as_array().unwrap();
    assert_eq!(rescue.len(), 4);
    assert!(
        rescue
            .iter()
            .all(|at| at["gain"].as_array().unwrap().len() == 2)
    );
    let costs = all["analyses"]["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 7);
    assert!(
        costs
            .iter()
            .all(|cost| cost["steps"].as_f64().unwrap() > 0.0)
    );
    let csv = fs::read_to_string(place.path("run/analysis/rescue.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 4 * 2);
    assert!(
        lines[0]
            .starts_with("from site,routing,stream,rescue gain,rescue gain low,rescue gain high,")
    );
    assert!(
        lines.iter().all(|line| line.matches(',').count() == 8),
        "{csv}"
    );

    // The same seed gives the same figures; another folder; one part only.
    let json = place.braid(
        &[
            &analyze[..],
            &["--only", "rescue", "--json", "--out", "elsewhere"],
        ]
        .concat(),
    );
    ok(&json);
    let again: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(again["analyses"]["rescue"], all["analyses"]["rescue"]);
    assert!(again["analyses"].get("routes").is_none());
    assert!(place.path("elsewhere/analysis/damage.csv").is_file());

    place.fails(2, &["analyze", "nowhere"], &["nowhere"]);
    place.fails(
        2,
        &["analyze", "run", "--only", "tea"],
        &["there is no analysis `tea`", "rescue"],
    );
    place.fails(2, &["analyze", "run", "--draws", "1"], &["draws"]);
    fs::write(place.path("file"), "").unwrap();
    place.fails(
        2,
        &[
            "analyze", "run", "--device", "cpu", "--only", "routing", "--out", "file",
        ],
        &["cannot be written"],
    );
}

#[test]
fn every_mechanism_can_be_analysed() {
    let place = Place::new();
    for kind in ["standard", "attn_res", "delta", "mhc", "dense_former"] {
        let kind_setting = format!("residual.kind={kind}");
        ok(&place.train(&[
            "--steps",
            "2",
            "--set",
            "model.context=32",
            "--set",
            &kind_setting,
            "--out",
            kind,
        ]));
        let text = place.braid(&[
            "analyze",
            kind,
            "--device",
            "cpu",
            "--sequences",
            "4",
            "--draws",
            "20",
        ]);
        ok(&text);
        let none = stdout(&text).contains("has no depth weights");
        assert_eq!(
            none,
            ["standard", "mhc"].contains(&kind),
            "{}",
            stdout(&text)
        );
        assert!(
            stdout(&text).contains("what a stream is worth"),
            "{}",
            stdout(&text)
        );
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let place = Place::new();
    for command in [
        "train", "eval", "analyze", "sample", "inspect", "doctor", "verify", "bench", "sweep",
        "compare", "convert", "report",
    ] {
        let output = place.braid(&[command, "--help"]);
        ok(&output);
        assert!(stdout(&output).contains("Example"), "{command}");
    }
    ok(&place.braid(&["doctor"]));
}

/// Start a long training that saves often.
#[cfg(unix)]
pub(super) fn start(place: &Place, args: &[&str]) -> std::process::Child {
    let args = [&["train"], args].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    command.args(args).current_dir(place.0.path());
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    command.spawn().unwrap()
}

/// Wait until something is there.
#[cfg(unix)]
pub(super) fn wait_for(what: impl Fn() -> bool) {
    for _ in 0..2000 {
        if what() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing happened");
}

/// Sixty steps with a checkpoint after each.
#[cfg(unix)]
fn often(out: &str) -> Vec<&str> {
    [
        SMALL,
        &["--set", "train.save_every=1", "--steps", "60", "--out", out],
    ]
    .concat()
}

#[test]
#[cfg(unix)]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bits() {
    let place = Place::new();
    ok(&place.braid(&[&["train"], often("whole").as_slice()].concat()));
    let mut child = start(&place, &often("killed"));
    let metrics = place.path("killed/metrics.jsonl");
    let lines = || fs::read_to_string(&metrics).map_or(0, |text| text.lines().count());
    for kill in 0_u64..5 {
        let before = lines();
        wait_for(|| lines() > before + 3);
        std::thread::sleep(std::time::Duration::from_millis(7 * kill));
        child.kill().unwrap();
        child.wait().unwrap();
        child = start(&place, &["--device", "cpu", "--resume", "killed"]);
    }
    assert!(child.wait().unwrap().success());
    let model = |run: &str| {
        fs::read(
            place
                .path(run)
                .join("checkpoints/step-000060/model.safetensors"),
        )
        .unwrap()
    };
    assert!(model("whole") == model("killed"));
    let frames = |run: &str| fs::read_to_string(place.path(run).join("frames.jsonl")).unwrap();
    assert!(frames("whole").lines().count() > 2);
    assert_eq!(frames("whole"), frames("killed"));
    for event in ["train", "eval", "routing", "saved"] {
        let of = |run: &str| comparable(records(&place.path(run)), event);
        assert_eq!(of("whole"), of("killed"), "{event}");
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves_and_the_run_goes_on() {
    let place = Place::new();
    let mut child = start(
        &place,
        &[SMALL, &["--steps", "100000", "--out", "run"]].concat(),
    );
    let metrics = place.path("run/metrics.jsonl");
    wait_for(|| fs::read_to_string(&metrics).is_ok_and(|text| text.lines().count() > 3));
    ok(&Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .output()
        .unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let step = records(&place.path("run")).last().unwrap()["step"]
        .as_u64()
        .unwrap();
    let until = (step + 2).to_string();
    ok(&place.braid(&[
        "train", "--device", "cpu", "--resume", "run", "--until", &until,
    ]));
}

#[test]
fn a_bad_link_gets_a_sentence_and_no_window() {
    let place = Place::new();
    let cut = "braid://#v=0.1.0&c=W3Jlc2lkdWFs!";
    place.fails(
        2,
        &["ui", cut],
        &["this link cannot be opened", "was it cut?"],
    );
    place.fails(2, &["ui", "braid://run"], &["not a link of Braid", "`#c=`"]);
    // "kind = 3 3"
    let toml = "braid://#c=a2luZCA9IDMgMw";
    place.fails(
        2,
        &["ui", toml],
        &["this link cannot be opened", "not TOML"],
    );
}

#[test]
fn bench_measures_and_counts() {
    let place = Place::new();
    let bench = |parts: &[&str]| {
        let always = ["bench", "--device", "cpu", "--rounds", "1", "--json"];
        let output = place.braid(&[&always, parts].concat());
        ok(&output);
        serde_json::from_str::<Value>(&stdout(&output)).expect("one object")
    };
    let positive = |value: &Value| value.as_f64().is_some_and(|value| value > 0.0);

    let report = bench(&["anchors", "ops", "--only", "rms_norm"]);
    assert!(
        positive(&report["anchors"]["copy_gb_per_s"]["median"]),
        "{report}"
    );
    assert!(positive(
        &report["anchors"]["compute_gflop_per_s"]["median"]
    ));
    let ops = report["ops"].as_array().expect("rows");
    for pass in ["forward", "backward"] {
        assert!(ops.iter().any(|row| row["pass"] == pass), "{report}");
    }
    for row in ops {
        assert!(
            row["op"].as_str().is_some_and(|op| op.contains("rms_norm")),
            "{row}"
        );
        assert!(
            positive(&row["share"]["median"]) && positive(&row["bytes"]),
            "{row}"
        );
    }

    let report = bench(&["steps", "--only", "delta block"]);
    let steps = report["steps"].as_array().expect("rows");
    let names: Vec<_> = steps.iter().map(|row| &row["mechanism"]).collect();
    assert_eq!(names, ["standard", "delta block"]);
    for row in steps {
        let created = [
            "buffers_created",
            "bind_groups_created",
            "pipelines_created",
        ];
        assert!(created.iter().all(|what| row[what] == 0), "{row}");
        assert_eq!(row["submits"], 1, "{row}");
        let kernels = row["kernels"].as_array().expect("a CPU has a clock");
        let calls: u64 = kernels
            .iter()
            .filter_map(|kernel| kernel["calls"].as_u64())
            .sum();
        assert_eq!(row["dispatches"], calls, "every call has its time");
        let memory = |what: &str| row[what].as_u64().expect("bytes");
        assert!(memory("planned_bytes") < memory("unshared_bytes"), "{row}");
        assert!(
            memory("checkpointed_bytes") < memory("planned_bytes"),
            "{row}"
        );
    }

    place.fails(
        2,
        &["bench", "--size", "huge"],
        &["no size `huge`", "small, medium, large"],
    );
    place.fails(2, &["bench", "--rounds", "0"], &["--rounds"]);
}
