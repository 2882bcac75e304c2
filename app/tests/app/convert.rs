//! Conversions of a trained standard model.

use std::fs;

use serde_json::Value;

use crate::program::{Place, SMALL, ok, records, stdout};

/// A place with the run `base`: a standard model that has learnt a little.
fn trained() -> Place {
    let place = Place::new();
    let text = "the quick brown fox jumps over the lazy dog, and then it sleeps. ".repeat(60);
    fs::write(place.path("text.txt"), text).unwrap();
    let more = [
        "--data",
        "text.txt",
        "--set",
        "residual.kind=standard",
        "--set",
        "model.layers=3",
        "--set",
        "train.lr=1e-2",
        "--steps",
        "60",
        "--out",
        "base",
    ];
    // The later of two settings of one key counts.
    let args = [
        &["train"],
        SMALL,
        &[
            "--set",
            "train.save_every=60",
            "--set",
            "train.eval_every=60",
        ],
        &more,
    ]
    .concat();
    ok(&place.braid(&args));
    place
}

/// Convert `base`; what was printed, and its losses before and after.
fn convert(
    place: &Place,
    to: &str,
    settings: &[&str],
    out: &str,
    more: &[&str],
) -> (Value, f64, f64) {
    let mut args = vec![
        "convert", "base", "--to", to, "--out", out, "--device", "cpu", "--json",
    ];
    args.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
    args.extend(more);
    let output = place.braid(&args);
    ok(&output);
    let value: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    let loss = |key: &str| value["origin"][key].as_f64().unwrap();
    let (before, after) = (loss("before"), loss("after"));
    (value, before, after)
}

#[test]
fn each_mechanism_starts_as_near_to_the_standard_model_as_is_said() {
    let place = trained();
    // Mechanism, settings, how it starts, and by how much the loss may move.
    let cases: [(&str, &[&str], &str, f64); 18] = [
        ("delta", &["residual.mode=centered"], "exact", 1e-6),
        (
            "delta",
            &[
                "residual.mode=centered",
                "residual.granularity=block",
                "residual.sublayers_per_block=2",
            ],
            "exact",
            1e-6,
        ),
        ("delta", &["residual.mode=gated"], "exact", 1e-6),
        ("dense_former", &[], "exact", 1e-6),
        (
            "dense_former",
            &["residual.dilation=2", "residual.period=2"],
            "exact",
            1e-6,
        ),
        ("delta", &[], "near", 0.02),
        ("delta", &["residual.mode=null"], "near", 0.02),
        ("hyper_connections", &[], "near", 0.02),
        (
            "hyper_connections",
            &["residual.dynamic=false", "residual.streams=4"],
            "near",
            0.02,
        ),
        ("mhc", &[], "near", 0.02),
        ("mhc", &["residual.init=mindformers"], "near", 0.02),
        ("mhc2_matched", &[], "near", 0.02),
        ("attn_res", &[], "near", 0.02),
        (
            "attn_res",
            &["residual.sublayers_per_block=2"],
            "near",
            0.02,
        ),
        ("sep_v", &[], "near", 0.02),
        ("dar", &[], "near", 0.02),
        ("dar", &["residual.layers_per_block=2"], "near", 0.02),
        ("mhc", &["residual.projection=exact2"], "near", 0.02),
    ];
    for (number, (kind, settings, start, most)) in cases.into_iter().enumerate() {
        let (value, before, after) = convert(&place, kind, settings, &format!("run-{number}"), &[]);
        assert_eq!(value["start"], start, "{kind} {settings:?}");
        let moved = (after - before).abs();
        assert!(moved <= most, "{kind} {settings:?}: {before} to {after}");
    }
    // R6: a mean of states that is read in the place of the state loses what was learnt.
    for (kind, settings) in [
        ("cumulative", "residual.read=replace"),
        ("transparent", "residual.init=uniform"),
    ] {
        let (value, before, after) = convert(&place, kind, &[settings], kind, &["--anyway"]);
        assert_eq!(value["start"], "jump");
        assert!(after > before + 0.1, "{kind}: {before} to {after}");
    }
    // Additive reads of blocks and states disturb it less.
    for (number, (kind, settings)) in [
        (
            "delta",
            &[
                "residual.granularity=block",
                "residual.sublayers_per_block=2",
            ][..],
        ),
        ("cumulative", &["residual.read=add"][..]),
        ("transparent", &["residual.init=recent"][..]),
    ]
    .into_iter()
    .enumerate()
    {
        let (value, before, after) =
            convert(&place, kind, settings, &format!("added-{number}"), &[]);
        assert_eq!(value["start"], "near");
        assert!(
            after.is_finite() && (after - before).abs() > 1e-7,
            "{kind}: {before} to {after}"
        );
    }
}

#[test]
fn a_converted_run_is_a_run_that_trains_on() {
    let place = trained();
    let settings = [
        "residual.mode=centered",
        "train.steps=6",
        "train.lr_mult.routing=100",
        "train.eval_every=3",
    ];
    let (value, before, _) = convert(&place, "delta", &settings, "new", &[]);
    assert_eq!(value["origin"]["step"], 60);
    assert!(value["origin"]["added"].as_u64().unwrap() > 0);
    let config = fs::read_to_string(place.path("new/config.toml")).unwrap();
    assert!(
        config.starts_with("# converted from base/checkpoints/step-000060 (standard, step 60)\n"),
        "{config}"
    );
    assert!(config.contains("routing = 100"), "{config}");
    let inspect = place.braid(&["inspect", "new"]);
    ok(&inspect);
    assert!(
        stdout(&inspect).contains("origin     converted from base/"),
        "{}",
        stdout(&inspect)
    );

    // The checkpoint that was written has the loss that was said.
    let loss = |run: &str| {
        let output = place.braid(&["eval", run, "--device", "cpu", "--json"]);
        ok(&output);
        let value: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
        value["val_loss"].as_f64().unwrap()
    };
    assert!((loss("base") - before).abs() < 1e-12);
    assert!((loss("new") - before).abs() < 1e-6);
    let trained = place.braid(&["train", "--resume", "new", "--device", "cpu"]);
    ok(&trained);
    let all = records(&place.path("new"));
    let losses: Vec<f64> = all
        .iter()
        .filter(|record| record["event"] == "train")
        .map(|record| record["loss"].as_f64().unwrap())
        .collect();
    assert_eq!(losses.len(), 6);
    // It goes on from what was learnt: a fresh model begins at the logarithm of the vocabulary, 5.5.
    assert!(losses[0] < before + 0.5, "{losses:?}, {before}");
    assert_eq!(
        fs::read_dir(place.path("base/checkpoints"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn what_cannot_be_converted_gets_a_sentence() {
    let place = trained();
    let fails = |args: &[&str], parts: &[&str]| {
        let args = [&["convert"], args].concat();
        place.fails(2, &args, parts);
    };
    fails(&["none", "--to", "delta"], &["there is no run at none"]);
    fails(&["base"], &["--to"]);
    fails(&["base", "--to", "standard"], &["standard model already"]);
    fails(&["base", "--to", "delte"], &["did you mean delta?"]);
    fails(
        &["base", "--to", "cumulative"],
        &["does not start near", "--anyway"],
    );
    fails(
        &["base", "--to", "transparent"],
        &["does not start near", "--anyway"],
    );
    fails(
        &["base", "--to", "attn_res", "--set", "residual.window=1"],
        &["beyond the window"],
    );
    fails(
        &[
            "base",
            "--to",
            "dar",
            "--set",
            "residual.include_partial=false",
        ],
        &["unfinished block"],
    );
    fails(
        &["base", "--to", "delta", "--set", "model.layers=2"],
        &["keeps the model's shape"],
    );
    fails(
        &["base", "--to", "delta", "--set", "residual.kind=dar"],
        &["given by --to"],
    );
    fails(
        &["base", "--to", "delta", "--set", "residual.mode=x"],
        &["residual.mode"],
    );
    fails(
        &["base", "--to", "delta", "--out", "base"],
        &["holds a run already"],
    );
    convert(&place, "delta", &[], "new", &[]);
    fails(
        &["new", "--to", "dar"],
        &["has the mechanism delta", "only a standard model"],
    );
    let model = place.path("base/checkpoints/step-000060/model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    fails(
        &["base", "--to", "delta", "--out", "other"],
        &["not a complete safetensors file"],
    );
    assert!(!place.path("other").exists() && !place.path("runs").exists());
}
