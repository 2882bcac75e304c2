//! The catalogue of mechanisms, and `braid list`.

use std::process::Command;

use braid_app::catalogue::{Size, catalogue};
use braid_app::config::RunConfig;
use braid_engine::models::config::ResidualConfig;
use braid_engine::models::decoder;
use serde_json::Value;

fn config(settings: &[&str]) -> RunConfig {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
    RunConfig::parse("", &settings).unwrap()
}

/// Exit code, standard output, standard error.
fn braid(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn every_mechanism_is_listed_with_its_true_size() {
    for settings in [&[][..], &["model.layers=3", "model.width=64"]] {
        let config = config(settings);
        let entries = catalogue(&config).unwrap();
        for kind in ResidualConfig::KINDS {
            let mut model = config.model_config(1).unwrap();
            if config.residual.kind() != kind {
                model.residual = ResidualConfig::of_kind(kind).unwrap();
            }
            let entry = entries
                .iter()
                .find(|entry| (entry.section, entry.kind) == ("residual", kind));
            let entry = entry.unwrap_or_else(|| panic!("{kind} is missing"));
            let parameters = decoder::parameters(&model).unwrap();
            let Size::Parameters { count, tensors } = &entry.size else {
                panic!("{kind}: {:?}", entry.size);
            };
            assert_eq!(*count, parameters.routing_count(), "{kind}");
            let elements = |shape: &[u32]| shape.iter().product::<u32>() as usize;
            let sum: usize = tensors
                .iter()
                .map(|tensor| tensor.count * elements(&tensor.shape))
                .sum();
            assert_eq!(sum, *count, "{kind}: {tensors:?}");
        }
        let swiglu = entries.iter().find(|entry| entry.kind == "swiglu").unwrap();
        let model = &config.model;
        let want = 3 * model.layers * model.width * model.ffn;
        assert!(matches!(swiglu.size, Size::Parameters { count, .. } if count == want as usize));
    }
}

#[test]
fn texts_are_plain_and_short() {
    for entry in catalogue(&config(&[])).unwrap() {
        let kind = entry.kind;
        assert!(
            !entry.summary.is_empty() && !entry.summary.ends_with('.'),
            "{kind}"
        );
        assert!(!entry.equations.is_empty(), "{kind}");
        for line in entry.equations.lines() {
            assert!(line.chars().count() <= 76, "{kind}: {line}");
        }
        for choice in entry.choices {
            assert!(choice.ends_with('.'), "{kind}: {choice}");
        }
    }
}

#[test]
fn settings_that_cannot_be_are_named_in_the_list() {
    let entries = catalogue(&config(&["model.layers=100"])).unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry.kind == "attn_res")
        .unwrap();
    assert!(
        matches!(&entry.size, Size::Impossible(why) if why.contains("lower model.layers")),
        "{:?}",
        entry.size
    );
}

#[test]
fn the_list_fits_a_terminal_of_eighty_columns() {
    let (code, all, _) = braid(&["list", "--set", "model.width=96"]);
    assert_eq!(code, Some(0));
    let mut texts = vec![all.clone()];
    for entry in catalogue(&config(&[])).unwrap() {
        let name = format!("\n{} ", entry.kind);
        assert!(all.contains(&name) && all.contains(entry.summary), "{all}");
        let (code, detail, error) = braid(&["list", entry.kind]);
        assert_eq!(code, Some(0), "{error}");
        assert!(detail.contains(entry.equations.lines().next().unwrap()));
        for key in &entry.keys {
            assert!(detail.contains(&format!("{} = ", key.name)), "{detail}");
        }
        texts.push(detail);
    }
    for text in texts {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn a_kind_is_shown_with_the_settings_that_are_given() {
    let count = |args: &[&str]| {
        let (code, text, error) = braid(&[&["list", "--json"], args].concat());
        assert_eq!(code, Some(0), "{error}");
        let entry: Value = serde_json::from_str(text.trim()).unwrap();
        (
            entry["size"]["parameters"]["count"].as_u64().unwrap(),
            entry,
        )
    };
    let (narrow, entry) = count(&["attn_res"]);
    let (wide, _) = count(&["attn_res", "--set", "model.width=256"]);
    // A query and a gain of the width at each of nine sites.
    assert_eq!((narrow, wide), (9 * 2 * 128, 9 * 2 * 256));
    assert_eq!(entry["keys"][0]["name"], "residual.sublayers_per_block");
    let (_, dar) = count(&["dar", "--set", "residual.route=self_kv"]);
    let keys = dar["keys"].as_array().unwrap();
    let route = keys
        .iter()
        .find(|key| key["name"] == "residual.route")
        .unwrap();
    assert_eq!(route["value"], "self_kv");
    assert_eq!(route["words"].as_array().unwrap().len(), 4);
    let (_, delta) = count(&["delta", "--set", "residual.mode=centered"]);
    assert_eq!(delta["kind"], "delta");
}

#[test]
fn what_there_is_not_is_refused_with_the_nearest() {
    let (code, _, error) = braid(&["list", "dra"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("did you mean dar?"), "{error}");
    let (code, _, error) = braid(&["list", "dar", "--set", "residual.mode=plain"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("residual.mode"), "{error}");
}
