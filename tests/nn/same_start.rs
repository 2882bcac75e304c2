//! Mechanisms that start as the standard model: with one seed, the same loss and the same first gradients.
//!
//! Only an eps tells them apart: a norm that reads a multiple of the stream sees another relative eps.

use braid_engine::executor::Executor;
use braid_tests::net::{Net, Outcome};
use braid_tests::{executors, oracle};

/// Mechanism, how far its loss may be off, and how far the gradients of the base model, relative to their norm.
const STARTS: [(&str, f64, f64); 9] = [
    (r#"{"kind": "delta", "mode": "centered"}"#, 1e-5, 1e-4),
    (r#"{"kind": "dense_former"}"#, 1e-5, 1e-4),
    (
        r#"{"kind": "dense_former", "dilation": 2, "period": 2}"#,
        1e-5,
        1e-4,
    ),
    (r#"{"kind": "mhc", "streams": 2}"#, 1e-5, 1e-4),
    (
        r#"{"kind": "mhc", "streams": 2, "projection": "exact2"}"#,
        1e-5,
        1e-4,
    ),
    (r#"{"kind": "mhc", "streams": 4}"#, 1e-4, 5e-3),
    (
        r#"{"kind": "hyper_connections", "streams": 2, "dynamic": false}"#,
        1e-4,
        5e-3,
    ),
    (r#"{"kind": "hyper_connections", "streams": 2}"#, 1e-4, 5e-3),
    (r#"{"kind": "hyper_connections", "streams": 4}"#, 1e-4, 5e-3),
];

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

fn hold(what: &str, got: &Outcome, want: &Outcome, loss: f64, gradients: f64) {
    let off = (got["loss"][0] - want["loss"][0]).abs();
    assert!(off <= loss, "{what}: the loss is off by {off:.1e}");
    for (name, want) in want.iter().filter(|(name, _)| name.starts_with("grad.")) {
        let size = norm(want.iter().copied());
        let off = norm(got[name].iter().zip(want).map(|(a, b)| a - b));
        assert!(
            off <= gradients * size,
            "{what}: `{name}` is off by {:.1e}",
            off / size
        );
    }
}

#[test]
fn the_loss_and_the_first_gradients_are_those_of_the_standard_model() {
    for (residual, loss, gradients) in STARTS {
        let standard = Net::initial(r#"{"kind": "standard"}"#, 3, 5);
        let net = Net::initial(residual, 3, 5);
        assert_eq!(net.ids, standard.ids);
        let compare = |name: &str, one: Box<dyn Executor>, two: Box<dyn Executor>| {
            let (want, got) = (standard.run_on(one), net.run_on(two));
            hold(&format!("{residual}, {name}"), &got, &want, loss, gradients);
        };
        compare("oracle", oracle(), oracle());
        for ((name, one), (_, two)) in executors().into_iter().zip(executors()) {
            compare(name, one, two);
        }
    }
}
