//! Plans at the sizes that people train, on a device that validates everything and computes nothing.
//!
//! Needs no driver. Catches what no small case shows: ranges that are not aligned, bindings above the limits of WebGPU,
//! buffers bound readable and writable at once, grids above 65,535 workgroups.

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::device::Device;
use braid_engine::executor::Work;
use braid_engine::kernel::{Element, kernels};
use braid_engine::models::config::ModelConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::nn::Batch;
use braid_engine::ops::{column_sum, copy::copy, rms_norm::rms_norm};
use braid_engine::optim::UpdateConfig;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::{External, Limits, Plan};
use braid_engine::runtime::Runtime;
use braid_engine::tape::{Tape, Tensor};
use braid_engine::{Error, Result};

/// Load a plan on the no-op device and replay it once.
fn replay(plan: &Plan, parameters: &Parameters) {
    let mut executor = Device::noop().executor();
    let mut externals = BTreeMap::new();
    for external in [External::Values, External::Grads] {
        let len = parameters.arena_len().max(1);
        let buffer = executor.allocate(&format!("{external:?}"), len, Element::F32);
        externals.insert(external, buffer.expect("fits"));
    }
    let grads = externals[&External::Grads];
    let program = executor
        .load(plan, &externals)
        .unwrap_or_else(|error| panic!("{error}"));
    executor
        .submit(&[Work::Clear(grads), Work::Run(program)])
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Record `body` with its gradient, within the limits of the no-op device.
fn record(
    specs: Vec<ParamSpec>,
    body: impl FnOnce(&mut Tape) -> Result<Tensor>,
) -> Result<(Plan, Arc<Parameters>)> {
    let parameters = Arc::new(Parameters::layout(specs)?);
    let mut tape = Tape::new(parameters.clone());
    let y = body(&mut tape)?;
    let seed = tape.input("seed", y.shape);
    tape.backward(&[(y, seed)])?;
    let plan = tape.finish(&Device::noop().executor().limits())?;
    Ok((plan, parameters))
}

#[test]
fn the_noop_device_has_the_limits_of_webgpu() {
    let limits = Device::noop().executor().limits();
    let want = Limits {
        binding: 128 << 20,
        buffer: 256 << 20,
        total: None,
        float: 4,
        large_tiles: false,
    };
    assert_eq!(limits, want);
}

#[test]
fn a_norm_of_any_size_can_be_bound() {
    // 70,000 rows are more than one dimension of a grid holds, if each were a workgroup.
    for (rows, dim) in [(1, 1), (4096, 768), (70_001, 3), (65_536, 65)] {
        let gain = ParamSpec::base("gain", [dim], Init::Constant(1.0), false);
        let recorded = record(vec![gain], |tape| {
            let x = tape.tracked_input("x", [rows, dim]);
            let gain = tape.parameter("gain")?;
            rms_norm(tape, x, gain, 1e-6)
        });
        let (plan, parameters) = recorded.unwrap_or_else(|error| panic!("{error}"));
        replay(&plan, &parameters);
    }
}

#[test]
fn more_elements_than_a_row_of_workgroups_can_be_bound() {
    let recorded = record(vec![], |tape| {
        let x = tape.tracked_input("x", [65_535 * 64 + 1]);
        copy(tape, x)
    });
    let (plan, parameters) = recorded.unwrap_or_else(|error| panic!("{error}"));
    replay(&plan, &parameters);
}

#[test]
fn a_tensor_above_the_binding_limit_is_refused_by_name_and_with_advice() {
    let recorded = record(vec![], |tape| {
        tape.scope("logits", |tape| {
            let x = tape.tracked_input("x", [64 * 512, 2048]);
            copy(tape, x)
        })
    });
    let Err(error @ Error::Memory { .. }) = recorded else {
        panic!("256 MiB do not fit one binding");
    };
    let text = error.to_string();
    for part in ["268.4 MB", "134.2 MB", "lower train.batch"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_memory_budget_is_kept() {
    let mut tape = Tape::new(Arc::new(Parameters::layout(vec![]).expect("empty")));
    let x = tape.tracked_input("x", [1000, 1000]);
    let y = copy(&mut tape, x).expect("records");
    tape.output("y", y);
    let limits = Limits {
        total: Some(6_000_000),
        ..Device::noop().executor().limits()
    };
    let error = tape
        .finish(&limits)
        .expect_err("8 MB do not fit 6 MB")
        .to_string();
    assert!(
        error.contains("8.0 MB") && error.contains("6.0 MB"),
        "{error}"
    );
}

#[test]
fn a_kernel_that_would_write_what_it_reads_is_refused() {
    let mut tape = Tape::new(Arc::new(Parameters::layout(vec![]).expect("empty")));
    let x = tape.input("x", [4, 64]);
    let params = column_sum::Params {
        rows: 4,
        dim: 64,
        add: 0,
    };
    let recorded = tape
        .dispatch(&kernels::COLUMN_SUM_FORWARD, params, &[x, x], 64)
        .and_then(|()| tape.finish(&Device::noop().executor().limits()));
    let Err(Error::Aliasing { kernel, a, b }) = recorded else {
        panic!("{recorded:?}");
    };
    assert_eq!((&*kernel, a, b), ("column_sum::forward", "partial", "out"));
}

#[test]
fn everything_that_is_recorded_twice_is_the_same_plan() {
    let once = || {
        let gain = ParamSpec::base("gain", [65], Init::Constant(1.0), false);
        let recorded = record(vec![gain], |tape| {
            let x = tape.tracked_input("x", [70, 65]);
            let gain = tape.parameter("gain")?;
            let y = rms_norm(tape, x, gain, 1e-6)?;
            rms_norm(tape, y, gain, 1e-6)
        });
        format!("{:?}", recorded.expect("fits").0)
    };
    assert_eq!(once(), once());
}

/// Residual mechanisms, and widths that are and are not multiples of anything.
const MODELS: [(&str, u32, u32); 11] = [
    (r#"{"kind": "standard"}"#, 128, 4),
    (r#"{"kind": "standard"}"#, 65, 1),
    (r#"{"kind": "attn_res", "sublayers_per_block": 1}"#, 96, 6),
    (r#"{"kind": "delta", "mode": "gated"}"#, 63, 6),
    (r#"{"kind": "dar", "layers_per_block": 1}"#, 96, 6),
    (
        r#"{"kind": "dar", "layers_per_block": 3, "gates": "static"}"#,
        66,
        7,
    ),
    (r#"{"kind": "mhc2_matched"}"#, 66, 6),
    (r#"{"kind": "hyper_connections", "streams": 3}"#, 65, 6),
    (r#"{"kind": "mhc", "streams": 4}"#, 96, 6),
    (
        r#"{"kind": "dar"}, "feed_forward": {"kind": "moe", "experts": 8, "intermediate_size": 64}"#,
        96,
        3,
    ),
    (
        r#"{"kind": "standard"}, "feed_forward": {"kind": "moe", "experts": 7, "top_k": 3, "gate": "sigmoid_bias",
            "shared_experts": 1, "intermediate_size": 33}"#,
        65,
        2,
    ),
];

#[test]
fn experts_beyond_a_binding_are_refused_with_advice() {
    // 16 experts of 1024 x 2100 numbers: 137.6 MB together.
    let model = |compute: &str| {
        let text = format!(
            r#"{{"vocab_size": 16, "hidden_size": 1024, "intermediate_size": 1, "num_hidden_layers": 1,
                "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2, "feed_forward":
                {{"kind": "moe", "experts": 16, "intermediate_size": 2100, "compute": "{compute}"}}}}"#
        );
        let config = ModelConfig::from_json(&text).expect("valid");
        let parameters = Arc::new(decoder::parameters(&config).expect("fits"));
        let batch = Batch {
            sequences: 1,
            context: 8,
        };
        let limits = Device::noop().executor().limits();
        plans::prediction(&config, &parameters, batch, &limits).map(|_| ())
    };
    let error = model("sorted").expect_err("does not fit").to_string();
    for part in [
        "experts.0.gate_proj",
        "137.6 MB",
        "134.2 MB",
        "feed_forward.experts",
    ] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    model("dense").expect("one expert a binding fits");
}

#[test]
fn whole_training_steps_and_evaluations_can_be_bound() {
    for (residual, width, layers) in MODELS {
        for checkpoint in [false, true] {
            train_on_noop(residual, width, layers, checkpoint)
                .unwrap_or_else(|error| panic!("{residual}, width {width}: {error}"));
        }
    }
}

fn train_on_noop(residual: &str, width: u32, layers: u32, checkpoint: bool) -> Result<()> {
    let config = ModelConfig::from_json(&format!(
        r#"{{"vocab_size": 257, "hidden_size": {width}, "intermediate_size": {}, "num_hidden_layers": {layers},
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "residual": {residual}}}"#,
        2 * width + 1
    ))?;
    let parameters = Arc::new(decoder::parameters(&config)?);
    let mut runtime = Runtime::new(Device::noop().executor(), parameters.clone())?;
    let batch = Batch {
        sequences: 3,
        context: 70,
    };
    let how = plans::Training {
        batch,
        accumulate: 1,
        checkpoint,
        watch: true,
    };
    let optimizer = UpdateConfig {
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
        weight_decay: 0.1,
        clip: 1.0,
        routing_lr_mult: 1.0,
        muon: None,
    };
    let limits = runtime.limits();
    let training = runtime.load_model(&plans::training(&config, &parameters, &how, &limits)?)?;
    let update = runtime.load(&plans::update(&config, &parameters, &optimizer, &limits)?)?;
    let evaluation = plans::evaluation(&config, &parameters, batch, true, &limits)?;
    let evaluation = runtime.load_model(&evaluation)?;

    let before = runtime.counts();
    runtime.submit(true, &[&training, &update])?;
    runtime.submit(false, &[&evaluation])?;
    let after = runtime.counts();
    assert_eq!(after.submits - before.submits, 2);
    assert_eq!(
        after.passes - before.passes,
        2,
        "an update belongs to the pass of its step"
    );
    assert_eq!(after.buffers, before.buffers);
    Ok(())
}
