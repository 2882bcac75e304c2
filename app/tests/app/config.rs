//! The configuration: defaults, settings, refusals.

use braid_app::config::RunConfig;
use braid_engine::nn::residual::{AttnResConfig, ResidualConfig};

fn with(settings: &[&str]) -> Result<RunConfig, String> {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    RunConfig::parse("", &settings).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(settings: &[&str], parts: &[&str]) {
    let message = with(settings).expect_err("is refused");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn the_empty_file_has_the_documented_defaults() {
    let config = RunConfig::default();
    assert_eq!(config.model.ffn, 384);
    assert_eq!(config.model.head_dim, 32);
    assert_eq!(config.model.kv_heads, 4);
    assert_eq!(config.model.context, 64);
    assert_eq!(config.data.task.as_deref(), Some("recall"));
    assert_eq!(config.train.steps, 2000);
    assert_eq!((config.train.lr, config.train.min_lr), (1e-3, 1e-4));
    let model = config.model_config(65).unwrap();
    let residual = serde_json::to_value(model.residual).unwrap();
    assert_eq!(residual["kind"], "dar");
    assert_eq!(residual["layers_per_block"], 2);
    assert!(!config.train.checkpoint);
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    for settings in [
        &[][..],
        &[
            "residual.kind=delta",
            "residual.mode=\"null\"",
            "residual.null_logit=-1.5",
        ],
        &[
            "data.file=some/where.txt",
            "data.tokenizer=char",
            "train.lr=0.0003",
            "train.lr_mult.routing=3",
        ],
        &["feed_forward.kind=moe", "feed_forward.intermediate_size=64"],
    ] {
        let config = with(settings).unwrap();
        let again = RunConfig::parse(&config.to_toml(), &[]).unwrap();
        assert_eq!(config, again);
        assert_eq!(config.to_toml(), again.to_toml());
    }
}

#[test]
fn small_numbers_are_printed_for_people() {
    let text = RunConfig::default().to_toml();
    assert!(
        text.contains("eps = 1e-6") && text.contains("adam_eps = 1e-8"),
        "{text}"
    );
}

#[test]
fn derived_fields_follow_what_they_are_derived_from() {
    let config = with(&["model.width=256", "model.heads=8", "train.lr=1e-5"]).unwrap();
    assert_eq!((config.model.head_dim, config.model.kv_heads), (32, 8));
    assert_eq!(config.model.ffn, 64 * 11);
    assert_eq!(config.train.min_lr, 1e-5);
}

#[test]
fn a_new_kind_resets_the_other_keys_whatever_the_order() {
    for settings in [
        [
            "residual.kind=\"attn_res\"",
            "residual.sublayers_per_block=4",
        ],
        ["residual.sublayers_per_block=4", "residual.kind=attn_res"],
    ] {
        let config = with(&settings).unwrap();
        assert_eq!(
            config.residual,
            ResidualConfig::AttnRes(AttnResConfig::blocks(4))
        );
    }
    let plain = with(&["residual.kind=dar"]).unwrap();
    assert_eq!(
        serde_json::to_value(&plain.residual).unwrap()["layers_per_block"],
        1
    );
}

#[test]
fn muon_is_there_when_it_is_asked_for() {
    let muon = |settings: &[&str]| with(settings).unwrap().train_config().update.muon;
    assert_eq!(muon(&["train.muon_scale=0.2"]), None);
    let found = muon(&[
        "train.optimizer=muon",
        "train.muon_scale=0.2",
        "train.muon_iterations=v4",
    ])
    .unwrap();
    assert_eq!((found.scale, found.momentum), (0.2, 0.95));
    assert_eq!(found.iterations.coefficients().len(), 10);
}

#[test]
fn bpe_has_a_size_unless_a_file_names_its_tokens() {
    let file = "data.file=a.txt";
    let learnt = with(&[file, "data.tokenizer=bpe"]).unwrap();
    assert_eq!(learnt.data.vocab, Some(1024));
    assert_eq!(RunConfig::parse(&learnt.to_toml(), &[]).unwrap(), learnt);
    let named = with(&[file, "data.tokenizer=bpe", "data.tokenizer_file=t.json"]).unwrap();
    assert_eq!(named.data.vocab, None);
    let other = RunConfig::parse(&learnt.to_toml(), &["data.task=copy".into()]).unwrap();
    assert_eq!(other.data.vocab, None);
}

#[test]
fn settings_change_a_file_and_new_data_replace_old_ones() {
    let file = "[data]\nfile = \"a.txt\"\ntokenizer = \"char\"\n[train]\nlr = 2e-3\n";
    let config =
        RunConfig::parse(file, &["data.task=copy".into(), "train.batch=3".into()]).unwrap();
    assert_eq!(config.data.task.as_deref(), Some("copy"));
    assert_eq!((config.data.file, config.data.tokenizer), (None, None));
    assert_eq!((config.train.batch, config.train.lr), (3, 2e-3));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_one() {
    refused(
        &["model.layer=3"],
        &["model.layer:", "did you mean model.layers?"],
    );
    refused(&["train.learning_rate=3"], &["train.learning_rate"]);
    refused(&["train.wamrup=3"], &["did you mean train.warmup?"]);
    refused(&["model.batch=3"], &["did you mean train.batch?"]);
    refused(&["modle.layers=3"], &["did you mean model.layers?"]);
    refused(
        &["residual.layer_per_block=3"],
        &["dar has no such setting", "residual.layers_per_block"],
    );
    refused(
        &["residual.kind=standard", "residual.route=dar"],
        &["residual.route", "standard has no settings"],
    );
    refused(
        &["residual.kind=dra"],
        &["residual.kind", "did you mean dar?"],
    );
    let error = RunConfig::parse("layers = 3", &[]).unwrap_err().to_string();
    assert!(error.contains("layers"), "{error}");
}

#[test]
fn wrong_types_and_ranges_are_refused_with_field_value_and_range() {
    refused(
        &["model.layers=\"six\""],
        &["model.layers: is \"six\"", "between 1 and 256"],
    );
    refused(
        &["model.layers=0"],
        &["model.layers: is 0", "between 1 and 256"],
    );
    refused(
        &["model.layers=1.5"],
        &["model.layers: is 1.5", "whole number"],
    );
    refused(&["model.layers=-1"], &["model.layers: is -1"]);
    refused(
        &["model.heads=3"],
        &["model.heads: is 3", "model.width, 128"],
    );
    refused(&["model.kv_heads=3"], &["model.kv_heads: is 3", "divide"]);
    refused(&["model.tie=1"], &["model.tie: is 1", "true or false"]);
    refused(&["train.batch=0"], &["train.batch: is 0"]);
    refused(&["train.lr=0"], &["train.lr: is 0", "more than 0"]);
    refused(&["train.lr=-1e-3"], &["train.lr"]);
    refused(&["train.lr=nan"], &["train.lr: is NaN"]);
    refused(&["train.lr=inf"], &["train.lr: is inf"]);
    refused(&["train.lr=fast"], &["train.lr: is \"fast\"", "a number"]);
    refused(&["train.beta1=1"], &["train.beta1: is 1", "less than 1"]);
    refused(
        &["train.beta2=-0.1"],
        &["train.beta2: is -0.1", "at least 0"],
    );
    refused(
        &["train.beta2=0.99999999"],
        &["train.beta2", "single precision"],
    );
    refused(&["train.adam_eps=0"], &["train.adam_eps: is 0"]);
    refused(
        &["train.min_lr=1"],
        &["train.min_lr: is 1", "train.lr, 0.001"],
    );
    refused(
        &["train.schedule=linear"],
        &["train.schedule", "cosine, wsd, constant"],
    );
    refused(
        &["train.optimizer=sgd"],
        &["train.optimizer", "adamw, muon"],
    );
    refused(
        &["train.muon_iterations=5"],
        &["train.muon_iterations: is 5", "jordan, v4"],
    );
    refused(&["train.muon_momentum=1"], &["train.muon_momentum: is 1"]);
    refused(&["train.seed=-1"], &["train.seed: is -1", "0 or more"]);
    refused(&["data.val_fraction=1"], &["data.val_fraction: is 1"]);
    refused(&["data.tokenizer=bytes"], &["data.tokenizer", "byte, char"]);
    refused(&["data.tokenizer=char"], &["data.tokenizer", "recall"]);
    refused(
        &["data.file=a.txt", "data.vocab=512"],
        &["data.vocab", "bpe"],
    );
    refused(
        &["data.file=a.txt", "data.tokenizer=bpe", "data.vocab=255"],
        &["data.vocab: is 255", "256 and 32768"],
    );
    refused(
        &[
            "data.file=a.txt",
            "data.tokenizer=bpe",
            "data.vocab=512",
            "data.tokenizer_file=t.json",
        ],
        &["data.vocab", "data.tokenizer_file"],
    );
    refused(
        &["residual.layers_per_block=0"],
        &["residual.layers_per_block: is 0"],
    );
    refused(
        &["residual.layers_per_block=-1"],
        &["residual.layers_per_block: is -1"],
    );
    refused(
        &["residual.route=best"],
        &["residual.route: is \"best\"", "cross_v"],
    );
    refused(&["model"], &["`--set model`", "model.layers=6"]);
    refused(&["train.lr_mult=2"], &["train.lr_mult"]);
    // A rate that is sure to diverge is a wish, not an error.
    assert!(with(&["train.lr=1e6"]).is_ok());
}
