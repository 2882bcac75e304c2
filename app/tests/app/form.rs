//! The form: complete, true to the configuration, and a way there and back.

use braid_app::config::{FIELDS, FieldKind, RunConfig};
use braid_app::form::{
    Edits, FIELD_ROWS, Field, Initial, KINDS, PRESETS, TASKS, difference, same_value,
};
use braid_engine::data::TaskKind;
use braid_engine::models::config::{FeedForwardConfig, ResidualConfig};
use serde_json::Value;

/// All keys of a mechanism but `kind`, with their defaults.
fn keys_of(section: &str, kind: &str) -> Vec<(String, Value)> {
    let value = if section == "residual" {
        serde_json::to_value(ResidualConfig::of_kind(kind).expect("known")).expect("serialises")
    } else {
        let least = serde_json::json!({ "kind": kind, "intermediate_size": 128 });
        let kind = serde_json::json!({ "kind": kind });
        let config: FeedForwardConfig = serde_json::from_value(kind)
            .or_else(|_| serde_json::from_value(least))
            .expect("known");
        serde_json::to_value(config).expect("serialises")
    };
    let Value::Object(map) = value else {
        panic!("{kind} is not an object");
    };
    map.into_iter()
        .filter(|(key, _)| key != "kind")
        .map(|(key, value)| (format!("{section}.{key}"), value))
        .collect()
}

fn as_toml(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        other => other.to_string(),
    }
}

#[test]
fn every_mechanism_and_every_key_has_a_row() {
    let sections = [
        ("residual", &ResidualConfig::KINDS[..]),
        ("feed_forward", &FeedForwardConfig::KINDS[..]),
    ];
    for (section, kinds) in sections {
        let chooser = Field::of(&format!("{section}.kind"), kinds[0]).expect("a chooser");
        for kind in kinds {
            let FieldKind::Choice(words) = chooser.kind else {
                panic!("{section}.kind is a choice");
            };
            assert!(words.contains(kind), "{section}.kind lacks {kind}");
            for (key, value) in keys_of(section, kind) {
                let field = Field::of(&key, kind)
                    .unwrap_or_else(|| panic!("{key} of {kind} has no row in form/table.rs"));
                let (Initial::Is(default) | Initial::Needed(default)) = field.default else {
                    panic!("{key} of {kind} has a default of its own");
                };
                assert!(
                    same_value(default, &as_toml(&value)),
                    "{key} of {kind}: {default} in the form, {value} in the engine"
                );
                assert!(!field.help.is_empty(), "{key} has no help");
            }
        }
    }
    for kind in ResidualConfig::KINDS {
        assert!(KINDS.iter().any(|row| row.kind == kind), "{kind}");
    }
    assert_eq!(KINDS.len(), ResidualConfig::KINDS.len());
}

#[test]
fn no_row_is_for_a_key_that_does_not_exist() {
    for row in FIELD_ROWS {
        let kinds = if row.kinds.is_empty() {
            &[""]
        } else {
            row.kinds
        };
        for kind in kinds {
            let section = row.key.split('.').next().expect("a section");
            let known = row.key.ends_with(".kind")
                || FIELDS.iter().any(|field| field.key == row.key)
                || keys_of(section, kind).iter().any(|(key, _)| key == row.key);
            assert!(known, "{} of {kind} does not exist", row.key);
        }
    }
}

#[test]
fn the_other_fields_have_rows_with_the_true_defaults() {
    let whole: toml::Table = RunConfig::default().to_toml().parse().expect("TOML");
    for field in FIELDS {
        let row = Field::of(field.key, "")
            .unwrap_or_else(|| panic!("{} has no row in form/table.rs", field.key));
        assert!(!row.help.is_empty() && !row.label.is_empty());
        let mut value = Some(toml::Value::Table(whole.clone()));
        for part in field.key.split('.') {
            value = value.and_then(|value| value.get(part).cloned());
        }
        if let Initial::Is(default) = row.default {
            let value = value.unwrap_or_else(|| panic!("{}", field.key)).to_string();
            assert!(
                same_value(default, &value),
                "{}: {default}, {value}",
                field.key
            );
        }
    }
}

#[test]
fn ranges_are_those_that_the_program_accepts() {
    for row in FIELD_ROWS {
        let kinds = if row.kinds.is_empty() {
            &[""]
        } else {
            row.kinds
        };
        for kind in kinds {
            let field = Field::of(row.key, kind).expect("its own row");
            let mut edits = Edits::default();
            match row.key.split('.').next() {
                Some("residual") if !kind.is_empty() => {
                    edits.set("residual.kind", toml::Value::String((*kind).into()));
                }
                Some("feed_forward") if !kind.is_empty() => {
                    edits.set("feed_forward.kind", toml::Value::String((*kind).into()));
                }
                _ => {}
            }
            let mut with = |value: toml::Value| {
                edits.set(row.key, value);
                RunConfig::parse(&edits.to_toml(), &[]).map_err(|error| error.to_string())
            };
            match field.kind {
                FieldKind::Int(low, _) => {
                    let error = with(toml::Value::Integer(low - 1)).expect_err(row.key);
                    assert!(error.contains(row.key), "{error}");
                }
                FieldKind::Float { low, .. } => {
                    let error = with(toml::Value::Float(low - 1.0)).expect_err(row.key);
                    assert!(error.contains(row.key), "{error}");
                }
                FieldKind::Choice(words) if row.key != "data.tokenizer" => {
                    for word in words {
                        let result = with(toml::Value::String((*word).into()));
                        // `exact2` and others may need another field; the word itself is known.
                        if let Err(error) = result {
                            assert!(!error.contains("must be one of"), "{error}");
                            assert!(!error.contains("unknown variant"), "{error}");
                        }
                    }
                    // Whether a task exists is found when the data is made.
                    let late = row.key == "data.task";
                    assert!(late || with(toml::Value::String("nonsense".into())).is_err());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn tasks_are_all_there() {
    let names: Vec<&str> = TaskKind::ALL.into_iter().map(TaskKind::name).collect();
    assert_eq!(TASKS.iter().map(|task| task.0).collect::<Vec<_>>(), names);
    assert_eq!(
        Field::of("data.task", "").expect("a row").kind,
        FieldKind::Choice(&["recall", "copy", "sort", "modular", "depth-recall"])
    );
}

#[test]
fn presets_are_configurations() {
    for preset in PRESETS {
        let edits = Edits::from_toml(preset.toml).expect(preset.name);
        let config = RunConfig::parse(&edits.to_toml(), &[]);
        if edits.word("data.file") == Some("") {
            // Waits for a text.
            assert!(
                config
                    .expect_err("no text")
                    .to_string()
                    .contains("data.file")
            );
        } else {
            assert_eq!(
                config.expect(preset.name),
                RunConfig::parse(preset.toml, &[]).expect(preset.name)
            );
        }
    }
}

#[test]
fn a_configuration_survives_text_and_link() {
    let config = RunConfig::parse(
        "",
        &[
            "residual.kind=delta".into(),
            "residual.mode=\"null\"".into(),
            "residual.null_logit=-1.5".into(),
            "model.heads=8".into(),
            "train.lr=3e-4".into(),
            "feed_forward.kind=moe".into(),
            "feed_forward.intermediate_size=64".into(),
        ],
    )
    .expect("a configuration");
    let edits = Edits::from_toml(&config.to_toml()).expect("TOML");
    assert_eq!(
        RunConfig::parse(&edits.to_toml(), &[]).expect("reads"),
        config
    );
    // What follows from other fields is not held fast.
    assert!(edits.get("model.kv_heads").is_none() && edits.get("model.layers").is_none());
    let link = edits.link("braid://");
    assert!(Edits::is_link(&link) && !Edits::is_link(&config.to_toml()));
    assert_eq!(Edits::from_link(&link), Ok((edits.clone(), None)));
    let other = link.replace(env!("CARGO_PKG_VERSION"), "9.9.9");
    assert_eq!(Edits::from_link(&other), Ok((edits, Some("9.9.9".into()))));
    let cut = &link[..link.len() - 6];
    assert!(Edits::from_link(cut).is_err() || Edits::from_link(cut) != Edits::from_link(&link));
    assert!(Edits::from_link("https://example.org/").is_err());
    assert!(Edits::from_toml("layers = 3").is_err());
    assert!(Edits::from_toml("[model").is_err());
}

#[test]
fn the_empty_file_is_the_program_s_default() {
    let edits = Edits::from_toml("").expect("TOML");
    assert_eq!(
        RunConfig::parse(&edits.to_toml(), &[]).expect("reads"),
        RunConfig::default()
    );
    assert_eq!(edits.residual(), "dar");
    assert!(edits.changed("residual.layers_per_block"));
}

#[test]
fn a_new_kind_takes_its_section_with_it() {
    let mut edits = Edits::from_toml("").expect("TOML");
    edits.set("residual.kind", toml::Value::String("standard".into()));
    assert_eq!(edits.to_toml(), "[residual]\nkind = \"standard\"\n");
    edits.set("feed_forward.kind", toml::Value::String("moe".into()));
    assert!(RunConfig::parse(&edits.to_toml(), &[]).is_ok());
    edits.set("feed_forward.kind", toml::Value::String("swiglu".into()));
    edits.reset("residual.kind");
    assert_eq!(edits.residual(), "dar");
    edits.set("data.file", toml::Value::String("a.txt".into()));
    edits.set("data.tokenizer", toml::Value::String("char".into()));
    edits.set("data.task", toml::Value::String("copy".into()));
    assert!(edits.word("data.file").is_none() && edits.word("data.tokenizer").is_none());
    edits.set("model.layers", toml::Value::Integer(9));
    assert!(edits.changed("model.layers"));
    edits.set("model.layers", toml::Value::Integer(4));
    assert!(edits.get("model.layers").is_none());
}

#[test]
fn differences_see_values_not_spelling() {
    let pairs = |list: &[(&str, &str)]| {
        list.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    let left = pairs(&[("train.lr", "1e-3"), ("a", "1"), ("only.left", "true")]);
    let right = pairs(&[("train.lr", "0.001"), ("a", "2"), ("only.right", "\"x\"")]);
    let keys: Vec<String> = difference(&left, &right)
        .into_iter()
        .map(|d| d.key)
        .collect();
    assert_eq!(keys, ["a", "only.left", "only.right"]);
    let config = RunConfig::default().to_toml();
    let values = braid_app::form::values(&config);
    assert!(difference(&values, &values).is_empty() && values.len() > FIELDS.len() - 4);
    assert!(values.contains(&("train.lr_mult.routing".into(), "1.0".into())));
}
