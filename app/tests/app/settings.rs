//! Configurations as settings of a command line.

use braid_app::config::RunConfig;
use braid_engine::models::config::ResidualConfig;

fn config(settings: &[&str]) -> RunConfig {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    RunConfig::parse("", &settings).unwrap()
}

#[test]
fn settings_make_the_configuration_again() {
    let mut cases: Vec<RunConfig> = ResidualConfig::KINDS
        .into_iter()
        .map(|kind| config(&[&format!("residual.kind={kind}")]))
        .collect();
    cases.push(RunConfig::default());
    cases.push(config(&[
        "feed_forward.kind=moe",
        "feed_forward.intermediate_size=8",
    ]));
    cases.push(config(&["data.file=a b's.txt", "data.tokenizer=bpe"]));
    cases.push(config(&[
        "residual.kind=dar",
        "residual.layers_per_block=1",
    ]));
    cases.push(config(&["train.lr=5e-5", "train.checkpoint=true"]));
    // Here a field is as in the empty file, and not what would follow from the others.
    cases.push(config(&[
        "model.width=16",
        "model.heads=2",
        "model.ffn=384",
    ]));
    for case in cases {
        let settings = case.settings();
        assert_eq!(
            RunConfig::parse("", &settings).unwrap(),
            case,
            "{settings:?}"
        );
    }
    assert!(RunConfig::default().settings().is_empty());
    let short = config(&["residual.kind=standard", "train.steps=5"]).settings();
    assert_eq!(short, ["residual.kind=standard", "train.steps=5"]);
}

#[test]
fn differences_name_the_kind_first() {
    let (one, two) = (
        config(&[]),
        config(&["residual.kind=standard", "train.lr=1e-4"]),
    );
    let (key, own, other) = one.difference(&two, &[]).unwrap();
    assert_eq!(
        (key.as_str(), own.as_str(), other.as_str()),
        ("residual.kind", "\"dar\"", "\"standard\"")
    );
    assert_eq!(one.difference(&one.clone(), &[]), None);
    let seeds = config(&["train.seed=4"]);
    assert!(one.difference(&seeds, &[]).is_some());
    assert_eq!(one.difference(&seeds, &["train.seed"]), None);
}
