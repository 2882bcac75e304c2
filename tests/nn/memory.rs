//! Recomputed activations give the same bits and need less memory; a plan that does not fit is refused with a sentence.

use std::sync::Arc;

use braid_engine::bench::Size;
use braid_engine::bench::sizes::SIZES;
use braid_engine::device::Device;
use braid_engine::models::config::ResidualConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::plan::{Limits, MemoryReport};
use braid_tests::net::Net;
use braid_tests::{executors, oracle};

use crate::MECHANISMS;

#[test]
fn recomputing_gives_the_same_bits() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let net = Net::random(residual, layers, seed as u64);
        let again = Net {
            checkpoint: true,
            ..net.clone()
        };
        assert_eq!(net.run(), again.run(), "{residual}");
        for ((name, a), (_, b)) in executors().into_iter().zip(executors()) {
            assert_eq!(net.run_on(a), again.run_on(b), "{residual} on {name}");
        }
    }
}

#[test]
fn recomputing_and_sharing_save_memory() {
    let net = Net::initial(r#"{"kind": "dar"}"#, 6, 1);
    let need = |checkpoint| {
        let how = plans::Training {
            batch: net.batch,
            accumulate: 1,
            checkpoint,
            watch: false,
        };
        plans::training(&net.config, &net.parameters, &how, &oracle().limits())
            .expect("records")
            .plan
            .memory
    };
    let (kept, recomputed) = (need(false), need(true));
    assert!(kept.planned < kept.unshared * 3 / 4, "{kept:?}");
    assert!(
        recomputed.planned < kept.planned,
        "{} instead of {}",
        recomputed.planned,
        kept.planned
    );
}

#[test]
fn plans_need_little_more_than_what_is_in_use_at_once() {
    let size = Size {
        width: 256,
        layers: 8,
        context: 256,
        sequences: 8,
        ..SIZES[2]
    };
    for kind in ResidualConfig::KINDS {
        let model = size.model(ResidualConfig::of_kind(kind).expect("a kind"));
        let parameters = Arc::new(decoder::parameters(&model).expect("valid"));
        let need = |checkpoint| {
            let how = plans::Training {
                batch: size.batch(),
                accumulate: 1,
                checkpoint,
                watch: false,
            };
            let limits = Device::noop().executor().limits();
            let recorded = plans::training(&model, &parameters, &how, &limits);
            recorded.expect("records").plan.memory
        };
        for (name, memory) in [("kept", need(false)), ("recomputed", need(true))] {
            let MemoryReport {
                planned,
                unshared,
                alive,
                ..
            } = memory;
            let share = |bytes: u64| bytes as f64 / unshared as f64;
            println!(
                "{kind}, {name}: {planned} bytes planned, {:.3} of {unshared}; {:.3} in use at once",
                share(planned),
                share(alive)
            );
            assert!(alive <= planned, "{kind}, {name}: less than what is in use");
            assert!(
                planned as f64 <= 1.1 * alive as f64,
                "{kind}, {name}: {planned} bytes for {alive} in use at once"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_a_sentence() {
    let net = Net::initial(r#"{"kind": "attn_res"}"#, 4, 1);
    let how = plans::Training {
        batch: net.batch,
        accumulate: 1,
        checkpoint: false,
        watch: false,
    };
    let refuse = |limits| {
        plans::training(&net.config, &net.parameters, &how, &limits)
            .expect_err("does not fit")
            .to_string()
    };
    let roomy = oracle().limits();
    let binding = refuse(Limits {
        binding: 7000,
        ..roomy
    });
    assert!(
        binding.contains("depth sources") && binding.contains("lower train.batch"),
        "{binding}"
    );
    let total = refuse(Limits {
        total: Some(10_000),
        ..roomy
    });
    assert!(
        total.contains("10.0 kB of memory are available") && total.contains("lower train.batch"),
        "{total}"
    );
}

#[test]
fn parameters_beyond_a_binding_are_refused_with_a_sentence() {
    let net = Net::initial(r#"{"kind": "standard"}"#, 2, 1);
    let how = plans::Training {
        batch: net.batch,
        accumulate: 1,
        checkpoint: false,
        watch: false,
    };
    // The embedding has 23 x 12 numbers; no activation is as large.
    let limits = Limits {
        binding: 23 * 12 * 8 - 1,
        ..oracle().limits()
    };
    let error = plans::training(&net.config, &net.parameters, &how, &limits)
        .expect_err("does not fit")
        .to_string();
    assert!(
        error.contains("embed_tokens") && error.contains("lower model.width"),
        "{error}"
    );
}
