//! I17: finite differences of the whole network, for every class of parameter, in `f64`; and the other executors.

use braid_engine::random::{below, stream};
use braid_tests::net::Net;
use braid_tests::{MODEL, assert_close, executors};

use crate::MECHANISMS;

#[test]
fn agree_with_finite_differences() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let mut net = Net::random(residual, layers, seed as u64);
        let outcome = net.run();
        let mut rng = stream(seed as u64, "elements");
        let parameters = net.parameters.clone();
        for (number, spec) in parameters.trained() {
            let gradient = &outcome[&format!("grad.{}", spec.name)];
            for _ in 0..2 {
                let element = below(&mut rng, spec.shape.len());
                let position = parameters.range(number).start + element;
                let start = net.values[position];
                let mut at = |shift: f64| {
                    net.values[position] = start + shift;
                    net.run()["objective"][0]
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                net.values[position] = start;
                let off = (slope - gradient[element]).abs();
                assert!(
                    off <= 1e-8 + 1e-6 * slope.abs(),
                    "{residual}: `{}`[{element}]: {} by backward, {slope} by differences",
                    spec.name,
                    gradient[element]
                );
            }
        }
    }
}

#[test]
fn agree_on_every_executor() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let net = Net::random(residual, layers, seed as u64);
        let want = net.run();
        let largest = want
            .iter()
            .filter(|(name, _)| name.starts_with("grad."))
            .flat_map(|(_, v)| v);
        let largest = largest.fold(0.0, |most: f64, v| most.max(v.abs()));
        for (name, executor) in executors() {
            let got = net.run_on(executor);
            for (tensor, want) in &want {
                // Small gradients carry the rounding noise of large ones: the floor of section 7.3 of the checkpoint format.
                let mut off = got[tensor].iter().zip(want).map(|(a, b)| (a - b).abs());
                if tensor.starts_with("grad.") && off.all(|error| error <= 1e-6 * largest) {
                    continue;
                }
                // Gradients that vanish in exact arithmetic carry rounding noise.
                if want.iter().all(|v| v.abs() < 1e-4 * largest) {
                    let limit = 1e-5 * largest;
                    assert!(
                        got[tensor]
                            .iter()
                            .all(|v| v.abs() <= 1e-4 * largest + limit),
                        "{residual}, {name}: `{tensor}`"
                    );
                } else {
                    assert_close(
                        &format!("{residual}, {name}: `{tensor}`"),
                        &got[tensor],
                        want,
                        MODEL,
                    );
                }
            }
        }
    }
}
