//! Sweeps: the same start, resumed, split and put together, refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use braid_app::config::RunConfig;
use braid_app::sampler::parameters;
use braid_engine::data::{BatchShape, Draw};
use braid_engine::models::config::ResidualConfig;
use serde_json::Value;

use crate::program::{Place, check_failure, comparable, ok, records, stderr, stdout};

const FILE: &str = r#"
seeds = 2
steps = 24
device = "cpu"
out = "out"

[base.model]
layers = 2
width = 16
heads = 2
ffn = 32
context = 32
[base.train]
batch = 2
eval_batches = 2
eval_every = 8
save_every = 1
warmup = 2

[[variant]]
name = "standard"
residual.kind = "standard"

[[variant]]
name = "delta"
residual = { kind = "delta", mode = "centered" }

[[variant]]
name = "blocks"
residual = { kind = "attn_res", sublayers_per_block = 2 }
"#;

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("sweep.toml"), FILE).unwrap();
    place
}

/// Without what differs from one training to the next.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("seconds");
            map.remove("tokens_per_s");
            map.values_mut().for_each(without_times);
        }
        Value::Array(list) => list.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// `results.json`, times left out.
fn results(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("results.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    without_times(&mut value);
    value.to_string()
}

/// Every metric line of every run, with its times: a run that was trained again has others.
fn all_metrics(out: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for variant in ["standard", "delta", "blocks"] {
        for seed in [1, 2] {
            let name = format!("{variant}/seed-{seed}");
            if let Ok(text) = fs::read_to_string(out.join(&name).join("metrics.jsonl")) {
                all.insert(name, text);
            }
        }
    }
    all
}

#[test]
fn one_seed_gives_every_mechanism_the_same_start_and_the_same_batches() {
    let config = |kind: &str, seed: u64| {
        let settings = [
            format!("residual.kind={kind}"),
            format!("train.seed={seed}"),
        ];
        RunConfig::parse("", &settings).unwrap()
    };
    let start = |config: &RunConfig| {
        let data = config.dataset(b"", None, &mut |_, _| {}).unwrap();
        let model = config.model_config(data.vocab_size()).unwrap();
        let parameters = parameters(&model).unwrap();
        let arena = parameters.initial_values(config.train.seed);
        let specs = parameters.specs().iter().enumerate();
        let values: BTreeMap<String, Vec<u32>> = specs
            .map(|(number, spec)| {
                let values = arena[parameters.range(number)].iter();
                (
                    spec.name.clone(),
                    values.map(|value| value.to_bits()).collect(),
                )
            })
            .collect();
        let batch = config.batch();
        let shape = BatchShape {
            batch: batch.sequences as usize,
            context: batch.context as usize,
        };
        let batches: Vec<(Vec<u32>, Vec<u32>)> = (1..4)
            .map(|step| {
                let (mut ids, mut labels) = (vec![0; shape.rows()], vec![0; shape.rows()]);
                let draw = Draw {
                    seed: config.train.seed,
                    step,
                    micro: 0,
                };
                data.train_batch(draw, shape, &mut ids, &mut labels);
                (ids, labels)
            })
            .collect();
        (values, batches)
    };
    let (base, batches) = start(&config("standard", 7));
    for kind in ResidualConfig::KINDS {
        let (values, own) = start(&config(kind, 7));
        assert_eq!(own, batches, "{kind}");
        for (name, want) in &base {
            assert!(values.get(name) == Some(want), "{kind}: {name}");
        }
    }
    let (other, own) = start(&config("standard", 8));
    assert!(other != base && own != batches);
}

#[test]
fn a_sweep_that_is_killed_trains_nothing_twice() {
    let place = place();
    // Long enough to be hit.
    fs::write(
        place.path("sweep.toml"),
        FILE.replace("steps = 24", "steps = 60"),
    )
    .unwrap();
    ok(&place.braid(&["sweep", "sweep.toml", "--out", "whole"]));
    let whole = all_metrics(&place.path("whole"));
    assert_eq!(whole.len(), 6);

    // The second run is killed half-way.
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
        command
            .args(["sweep", "sweep.toml"])
            .current_dir(place.0.path());
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let out = place.path("out");
    let mut child = start();
    let steps = |name: &str| {
        let text = fs::read_to_string(out.join(name).join("metrics.jsonl")).unwrap_or_default();
        text.lines()
            .filter(|line| line.contains("\"train\""))
            .count()
    };
    for _ in 0..4000 {
        if steps("delta/seed-1") > 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = all_metrics(&out);
    let finished = before["standard/seed-1"].clone();
    assert!(
        !out.join("blocks/seed-2").exists(),
        "it was killed too late"
    );

    let again = place.braid(&["sweep", "sweep.toml"]);
    ok(&again);
    let text = stdout(&again);
    assert!(text.contains("6 runs, 1 of them finished"), "{text}");
    assert!(
        text.contains("delta, seed 1     begins, from step"),
        "{text}"
    );
    assert!(!text.contains("standard, seed 1"), "{text}");
    let after = all_metrics(&out);
    assert_eq!(after["standard/seed-1"], finished, "it was trained again");
    // What was cut in half has the losses of what was not.
    for name in whole.keys() {
        let of = |root: &str| comparable(records(&place.path(root).join(name)), "train");
        assert_eq!(of("whole"), of("out"), "{name}");
    }
    assert_eq!(results(&place.path("whole")), results(&out));

    // Once more: nothing is left, and nothing is touched.
    let third = place.braid(&["sweep", "sweep.toml", "--json"]);
    ok(&third);
    assert_eq!(all_metrics(&out), after);
    let printed: Value = serde_json::from_str(stdout(&third).trim()).unwrap();
    assert_eq!(printed["runs"].as_array().unwrap().len(), 6);
}

#[test]
#[cfg(unix)]
fn commands_on_two_machines_give_the_table_of_one() {
    let place = place();
    ok(&place.braid(&["sweep", "sweep.toml", "--jobs", "2"]));
    fs::create_dir_all(place.path("plan")).unwrap();
    let listed = place.braid(&["sweep", "sweep.toml", "--commands", "--out", "plan/out"]);
    ok(&listed);
    let lines: Vec<String> = stdout(&listed).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    // A command has everything in it: it runs in an empty folder.
    let program = Path::new(env!("CARGO_BIN_EXE_braid")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let shell = |machine: &str, line: &str| {
        fs::create_dir_all(place.path(machine)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("PATH", &path);
        command.current_dir(place.path(machine)).output().unwrap()
    };
    for (number, line) in lines.iter().enumerate() {
        ok(&shell(["a", "b"][number % 2], line));
    }
    let collected = place.braid(&[
        "sweep",
        "collect",
        "plan/out",
        "a/plan/out",
        "b/plan/out",
        "--out",
        "all",
    ]);
    ok(&collected);
    assert_eq!(results(&place.path("all")), results(&place.path("out")));
    assert!(stdout(&collected).contains("differences are to standard"));
    // Given again, a command does nothing.
    let metrics = place.path("a/plan/out/standard/seed-1/metrics.jsonl");
    let before = fs::read(&metrics).unwrap();
    let again = shell("a", &lines[0]);
    ok(&again);
    assert!(
        stderr(&again).contains("nothing to do"),
        "{}",
        stderr(&again)
    );
    assert_eq!(fs::read(&metrics).unwrap(), before);
    // With another setting it is another run.
    let other = lines[0].replace("train.steps=24", "train.steps=25");
    assert_ne!(other, lines[0]);
    check_failure(
        &shell("a", &other),
        2,
        &["`train.steps` 24, now it is to be 25", "another folder"],
    );

    // Without the plan and a part of the runs: the first is asked for, what is missing cannot be known.
    let part = place.braid(&[
        "sweep",
        "collect",
        "a/plan/out",
        "--first",
        "standard",
        "--json",
    ]);
    ok(&part);
    let part: Value = serde_json::from_str(stdout(&part).trim()).unwrap();
    assert_eq!(part["first"], "standard");
    let row = |name: &str| {
        let rows = part["variants"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("delta")["difference"], Value::Null, "no seed in common");
    assert_eq!(row("blocks")["verdict"], "too_few_seeds");
    let with_plan = place.braid(&["sweep", "collect", "plan/out", "a/plan/out", "--out", "all"]);
    ok(&with_plan);
    assert!(
        stderr(&with_plan).contains("not in the table: standard, seed 2 (not begun)"),
        "{}",
        stderr(&with_plan)
    );
    place.fails(
        2,
        &["sweep", "collect", "a/plan/out", "--first", "dar"],
        &["there is no variant `dar`", "blocks"],
    );
    // The same run with another result.
    let model = place.path("b/plan/out/standard/seed-1/metrics.jsonl");
    fs::create_dir_all(place.path("b/plan/out/standard")).unwrap();
    ok(&Command::new("cp")
        .args([
            "-r",
            "a/plan/out/standard/seed-1",
            "b/plan/out/standard/seed-1",
        ])
        .current_dir(place.0.path())
        .output()
        .unwrap());
    ok(&place.braid(&[
        "sweep",
        "collect",
        "a/plan/out",
        "b/plan/out",
        "--out",
        "all",
    ]));
    let text = fs::read_to_string(&model).unwrap();
    let last = text.rfind("\"val_loss\":").unwrap();
    let last = text[..last].rfind("\"event\":\"eval\"").unwrap();
    let changed = text[last..].replacen("\"val_loss\":", "\"val_loss\":1", 1);
    fs::write(&model, format!("{}{changed}", &text[..last])).unwrap();
    place.fails(
        2,
        &["sweep", "collect", "a/plan/out", "b/plan/out"],
        &["standard, seed 1 was trained twice with different results"],
    );
}

#[test]
fn a_comparison_pairs_seeds_and_says_what_it_cannot_say() {
    let place = place();
    fs::write(
        place.path("base.toml"),
        "[model]\nlayers = 2\nwidth = 16\nheads = 2\nffn = 32\ncontext = 32\n[train]\nbatch = 2\neval_batches = 2\n",
    )
    .unwrap();
    let args = |seeds: &'static str, out: &'static str| {
        [
            "compare",
            "standard",
            "delta",
            "--config",
            "base.toml",
            "--steps",
            "6",
            "--device",
            "cpu",
            "--set",
            "train.warmup=2",
            "--seeds",
            seeds,
            "--out",
            out,
        ]
    };
    let one = place.braid(&args("4,", "one"));
    ok(&one);
    let text = stdout(&one);
    for part in [
        "too few seeds",
        "differences are to standard",
        "tokens/s",
        "parameters",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    ok(&place.braid(&args("3..5", "three")));
    let read = |out: &str| -> Value {
        let text = fs::read_to_string(place.path(out).join("results.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (one, three) = (read("one"), read("three"));
    let run = |results: &Value, variant: &str, seed: u64| {
        let runs = results["runs"].as_array().unwrap();
        let mut same = runs
            .iter()
            .filter(|run| run["variant"] == variant && run["seed"] == seed);
        same.next().unwrap()["val_loss"].as_f64().unwrap()
    };
    assert!(
        (run(&one, "delta", 4) - run(&three, "delta", 4)).abs() < 1e-15,
        "one seed, one run"
    );
    let difference = &three["variants"][1]["difference"];
    let want: f64 = (3..6)
        .map(|seed| run(&three, "delta", seed) - run(&three, "standard", seed))
        .sum::<f64>()
        / 3.0;
    assert!((difference["mean"].as_f64().unwrap() - want).abs() < 1e-12);
    assert!(
        difference["low"].as_f64().unwrap() < want && difference["high"].as_f64().unwrap() > want
    );
    assert_eq!(three["variants"][0]["difference"], Value::Null);
    let csv = fs::read_to_string(place.path("three/runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 7, "{csv}");
    let csv = fs::read_to_string(place.path("three/results.csv")).unwrap();
    assert!(
        csv.starts_with("variant,seeds,val_loss,val_loss_sd,difference,difference low,"),
        "{csv}"
    );
    // A name is a folder's, and a changed setting is no reason to mix.
    place.fails(
        2,
        &[&args("4,", "one")[..], &["--set", "train.lr=2e-3"]].concat(),
        &["one/standard/seed-4 holds a run with `train.lr` 0.001, now it is to be 0.002"],
    );
    assert!(
        stderr(&place.braid(&[&args("4,", "two")[..], &["--commands"]].concat()))
            .contains("0 of 2 runs")
    );
}

#[test]
fn a_variant_that_diverges_is_a_result_and_one_that_fails_is_a_sentence() {
    let place = Place::new();
    let wild = FILE
        .replace("seeds = 2", "seeds = 1")
        .replace(
            "residual.kind = \"standard\"",
            "residual.kind = \"standard\"\ntrain.lr = 1e12\ntrain.weight_decay = 10\ntrain.warmup = 0",
        )
        .replace("name = \"blocks\"", "name = \"blocks\"\ndata.file = \"text.txt\"");
    fs::write(place.path("sweep.toml"), wild).unwrap();
    place.fails(
        2,
        &["sweep", "sweep.toml"],
        &["variant blocks: there is no file", "text.txt"],
    );
    assert!(!place.path("out").exists(), "nothing is trained then");
    fs::write(place.path("text.txt"), "too short").unwrap();
    let output = place.braid(&["sweep", "sweep.toml"]);
    check_failure(
        &output,
        1,
        &[
            "blocks and standard do not see the same batches",
            "blocks, seed 1: its process ended with code 2: ",
            "too short",
            "standard, seed 1 (diverged at step",
        ],
    );
    let text = stdout(&output);
    assert!(text.contains("it counts as ended"), "{text}");
    let log = place.path("out/blocks/seed-1.log");
    assert!(fs::read_to_string(log).unwrap().contains("too short"));
    // Only what failed is tried again.
    let again = place.braid(&["sweep", "sweep.toml"]);
    check_failure(&again, 1, &["too short"]);
    assert!(
        stdout(&again).contains("3 runs, 2 of them finished"),
        "{}",
        stdout(&again)
    );
}

#[test]
fn bad_sweep_files_get_sentences() {
    let place = Place::new();
    let cases = [
        ("[[variant]\n", "is not TOML"),
        ("seeds = 2\n", "there are no variants"),
        ("seed = 2\n", "did you mean seeds?"),
        ("lr = 2\n", "belong into [base]"),
        ("seeds = 0\n[[variant]]\nname = \"a\"\n", "which is 0 seeds"),
        ("seeds = [1, 1]\n[[variant]]\nname = \"a\"\n", "has 1 twice"),
        (
            "seeds = \"x\"\n[[variant]]\nname = \"a\"\n",
            "must be a number of seeds",
        ),
        (
            "steps = -1\n[[variant]]\nname = \"a\"\n",
            "whole number, 1 or more",
        ),
        (
            "steps = 0\n[[variant]]\nname = \"a\"\n",
            "variant a: train.steps: is 0",
        ),
        ("base = 3\n", "base: is 3"),
        (
            "base = \"none.toml\"\n",
            "none.toml cannot be read: it does not exist",
        ),
        (
            "device = 3\n[[variant]]\nname = \"a\"\n",
            "must be a text in quotes",
        ),
        ("[variant]\nname = \"a\"\n", "in two brackets"),
        (
            "[[variant]]\nresidual.kind = \"delta\"\n",
            "missing from variant 1",
        ),
        ("[[variant]]\nname = \"../a\"\n", "name of a folder"),
        (
            "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"A\"\n",
            "is `A` twice",
        ),
        (
            "[[variant]]\nname = \"a\"\ntrain.seed = 3\n",
            "write them into `seeds`",
        ),
        (
            "[base.train]\nseed = 3\n[[variant]]\nname = \"a\"\n",
            "is given in [base]",
        ),
        (
            "[[variant]]\nname = \"a\"\nmodel.layres = 3\n",
            "variant a: model.layres: ",
        ),
        (
            "[[variant]]\nname = \"a\"\nresidual.kind = \"delte\"\n",
            "did you mean delta?",
        ),
        (
            "[[variant]]\nname = \"a\"\nmodel.heads = 3\n",
            "variant a: model.heads",
        ),
    ];
    for (text, part) in cases {
        fs::write(place.path("bad.toml"), text).unwrap();
        check_failure(&place.braid(&["sweep", "bad.toml"]), 2, &[part]);
    }
    let cases: [(&[&str], &str); 9] = [
        (&["sweep", "none.toml"], "none.toml cannot be read"),
        (&["sweep", "collect", "none"], "there is no folder none"),
        (
            &["sweep", "collect", "."],
            "there are no runs of a sweep in .",
        ),
        (
            &["compare", "standrad"],
            "neither a configuration file nor a residual mechanism",
        ),
        (&["compare", "delta", "delta"], "is `delta` twice"),
        (
            &["compare", "delta", "--set", "train.seed=3"],
            "use --seeds",
        ),
        (
            &["compare", "delta", "--seeds", "some"],
            "write a number of seeds",
        ),
        (&["compare", "delta", "--jobs", "0"], "0"),
        (&["train", "--continue"], "--out"),
    ];
    for (args, part) in cases {
        place.fails(2, args, &[part]);
    }
    place.fails(2, &["compare"], &["CONFIG"]);
    place.fails(2, &["sweep"], &["FILE"]);
    assert!(
        !place.path("sweeps").exists(),
        "a refused sweep leaves no folder"
    );
}
