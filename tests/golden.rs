//! The golden cases, from an independent program in 64-bit floats, on every executor.

use std::fs;
use std::path::PathBuf;

use braid_engine::executor::Executor;
use braid_engine::golden::{CaseFiles, verify};
use braid_tests::{executors, gpu_executor, oracle};

/// Run every case in `golden/` and report all failures at once.
fn verify_all(what: &str, executor: impl Fn() -> Box<dyn Executor>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("tests/golden")
        .map(|entry| entry.expect("entry").path())
        .collect();
    names.sort();
    assert!(names.len() >= 66, "only {} golden cases", names.len());
    let mut failures = Vec::new();
    for path in names {
        let text = |name: &str| fs::read_to_string(path.join(name)).expect("case file");
        let bytes = |name: &str| fs::read(path.join(name)).expect("case file");
        let (config, case) = (text("config.json"), text("case.json"));
        let (model, expected) = (bytes("model.safetensors"), bytes("expected.safetensors"));
        let mut configs = vec![config.clone()];
        // Experts can be computed in two ways.
        let (moe, dense) = (r#""kind": "moe","#, r#""kind": "moe", "compute": "dense","#);
        configs.extend(config.contains(moe).then(|| config.replace(moe, dense)));
        for config in configs {
            let files = CaseFiles {
                config: &config,
                case: &case,
                model: &model,
                expected: &expected,
            };
            match pollster::block_on(verify(&files, executor())) {
                Ok(verdict) if verdict.pass => {}
                other => failures.push(format!("{}: {other:#?}\n{config}", path.display())),
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{what}: {} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn plain_twins_in_f64_agree_to_a_hundredth_of_the_tolerance() {
    verify_all("cpu f64", oracle);
}

#[test]
fn the_cpu_executor_agrees() {
    verify_all("cpu", || {
        Box::new(braid_engine::cpu::CpuExecutor::<f32>::new(None))
    });
}

#[test]
fn the_gpu_executor_agrees() {
    if gpu_executor().is_some() {
        verify_all("gpu", || Box::new(gpu_executor().expect("it was there")));
    }
}

/// The other order of computing `attn_res` is held against the same numbers.
#[test]
fn two_phases_agree_with_the_cases_of_attention_residuals() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    for name in [
        "attn-res-full",
        "attn-res-one-block",
        "attn-res-s2",
        "attn-res-s3-unfinished",
    ] {
        let text =
            |file: &str| fs::read_to_string(folder.join(name).join(file)).expect("case file");
        let bytes = |file: &str| fs::read(folder.join(name).join(file)).expect("case file");
        let mut config: serde_json::Value =
            serde_json::from_str(&text("config.json")).expect("is JSON");
        config["residual"]["evaluation"] = "two_phase".into();
        let files = CaseFiles {
            config: &config.to_string(),
            case: &text("case.json"),
            model: &bytes("model.safetensors"),
            expected: &bytes("expected.safetensors"),
        };
        let all = executors().into_iter().map(|(_, executor)| executor);
        for executor in all.chain([oracle()]) {
            let verdict = pollster::block_on(verify(&files, executor)).expect("runs");
            assert!(verdict.pass, "{name}: {verdict:#?}");
        }
    }
}

/// A safetensors file of two tensors `[1, 2]` of tokens, by hand.
fn only_inputs() -> Vec<u8> {
    let header = r#"{"input_ids":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},"labels":{"dtype":"I32","shape":[1,2],"data_offsets":[8,16]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend([1_i32, 2, 2, 3].iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

#[test]
fn a_case_that_expects_nothing_does_not_pass() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/standard-mha");
    let config = fs::read_to_string(folder.join("config.json")).expect("case file");
    let model = fs::read(folder.join("model.safetensors")).expect("case file");
    let files = CaseFiles {
        config: &config,
        case: r#"{"batch": 1, "seq_len": 2, "tolerances": {}}"#,
        model: &model,
        expected: &only_inputs(),
    };
    let verdict = pollster::block_on(verify(&files, oracle())).expect("runs");
    assert!(!verdict.pass, "{verdict:?}");
    assert_eq!(verdict.skipped.len(), 7);
}
