//! Similarity of representations: golden vector G9, closed cases, and all pairs on every executor.

use std::sync::Arc;

use braid_engine::analysis::cka::{Pairs, gram, hsic1, linear_cka, minibatch_cka, u_centre};
use braid_engine::executor::Executor;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::random::stream;
use braid_engine::runtime::Runtime;
use braid_tests::vectors::w;
use braid_tests::{assert_close, executors, oracle};
use rand_distr::{Distribution, StandardNormal};

const TOKENS: usize = 8;

/// The features of G9.
fn golden() -> [Vec<f64>; 2] {
    let x = w(41, TOKENS * 3);
    let mut y = w(42, TOKENS * 5);
    for token in 0..TOKENS {
        for channel in 0..3 {
            y[token * 5 + channel] += x[token * 3 + channel];
        }
    }
    [x, y]
}

fn normal(label: &str, count: usize) -> Vec<f64> {
    let mut rng = stream(7, label);
    (0..count)
        .map(|_| StandardNormal.sample(&mut rng))
        .collect()
}

/// `HSIC1` by the plain formulas.
fn hsic(x: &[f64], y: &[f64], tokens: usize) -> f64 {
    let [x, y] = [x, y].map(|features| {
        let mut gram = gram(features, tokens);
        u_centre(&mut gram, tokens);
        gram
    });
    hsic1(&x, &y, tokens)
}

fn unbiased(x: &[f64], y: &[f64], tokens: usize) -> f64 {
    hsic(x, y, tokens) / (hsic(x, x, tokens) * hsic(y, y, tokens)).sqrt()
}

/// All pairs on an executor.
fn pairs(executor: Box<dyn Executor>, features: &[Vec<f64>], tokens: usize) -> Vec<f64> {
    let spec = ParamSpec::routing("unused", [1], Init::Constant(0.0));
    let parameters = Arc::new(Parameters::layout(vec![spec]).expect("one name"));
    let mut runtime = Runtime::new(executor, parameters).expect("fits");
    let width = features[0].len() / tokens;
    let pairs = Pairs::new(&mut runtime, features.len(), tokens, width).expect("fits");
    pollster::block_on(pairs.hsic(&mut runtime, features)).expect("runs")
}

#[test]
fn golden_vector_g9() {
    let [x, y] = golden();
    assert_close(
        "biased",
        &[linear_cka(&x, &y, TOKENS)],
        &[0.632_495_388],
        1e-9,
    );
    assert_close("HSIC1", &[hsic(&x, &y, TOKENS)], &[0.185_774_418], 1e-8);
    assert_close(
        "unbiased",
        &[unbiased(&x, &y, TOKENS)],
        &[0.371_926_649],
        1e-8,
    );
}

#[test]
fn the_biased_form_is_inflated_where_the_unbiased_is_not() {
    let [x, y] = ["x", "y"].map(|name| normal(name, 64 * 256));
    let biased = linear_cka(&x, &y, 64);
    assert!((biased - 0.80).abs() < 0.01, "{biased}");
    assert!(unbiased(&x, &y, 64).abs() < 0.03);
}

#[test]
fn it_does_not_see_shift_rotation_and_scale() {
    let [x, y] = golden();
    // A turn in the plane of the first two channels, a scale and a shift.
    let (sin, cos) = 0.7_f64.sin_cos();
    let turned: Vec<f64> = x
        .chunks_exact(3)
        .flat_map(|r| [cos * r[0] - sin * r[1], sin * r[0] + cos * r[1], r[2]])
        .map(|v| 3.0 * v + 11.0)
        .collect();
    for form in [linear_cka, unbiased] {
        assert_close("itself", &[form(&x, &x, TOKENS)], &[1.0], 1e-12);
        assert_close("turned", &[form(&x, &turned, TOKENS)], &[1.0], 1e-9);
        assert_close(
            "with another",
            &[form(&turned, &y, TOKENS)],
            &[form(&x, &y, TOKENS)],
            1e-9,
        );
        assert_close(
            "symmetric",
            &[form(&y, &x, TOKENS)],
            &[form(&x, &y, TOKENS)],
            1e-12,
        );
    }
}

#[test]
fn all_pairs_agree_on_every_executor() {
    // Odd sizes; features far from the origin, as activations are.
    let tokens = 63;
    let features: Vec<Vec<f64>> = (0..5)
        .map(|number| {
            let own = normal(&format!("own {number}"), tokens * 17);
            let common = normal("common", tokens * 17);
            own.iter()
                .zip(&common)
                .map(|(a, b)| a + f64::from(number) * b + 20.0)
                .collect()
        })
        .collect();
    let plain: Vec<f64> = (0..25)
        .map(|at| hsic(&features[at / 5], &features[at % 5], tokens))
        .collect();
    assert_close(
        "plain f64",
        &pairs(oracle(), &features, tokens),
        &plain,
        1e-10,
    );
    for (name, executor) in executors() {
        let got = pairs(executor, &features, tokens);
        assert_close(name, &got, &plain, 2e-6);
        let cka = |of: &[f64], i, j| minibatch_cka(&[of.to_vec()], &[1.0], 5, i, j);
        for at in 0..25 {
            let (got, want) = (cka(&got, at / 5, at % 5), cka(&plain, at / 5, at % 5));
            assert!((got - want).abs() < 1e-5, "{name} {at}: {got} {want}");
            assert!(at / 5 != at % 5 || got == 1.0, "{name}: of itself {got}");
        }
    }
}

#[test]
fn equal_and_swapped_streams() {
    // Two features each of two streams; the second pair is the first with its streams exchanged.
    let [a, b] = ["a", "b"].map(|name| normal(name, 40 * 6));
    let features = [a.clone(), b.clone(), b, a];
    for (name, executor) in executors() {
        let all = [pairs(executor, &features, 40)];
        let cka = |i, j| minibatch_cka(&all, &[1.0], 4, i, j);
        assert!(
            (cka(0, 3) - 1.0).abs() < 1e-5 && (cka(1, 2) - 1.0).abs() < 1e-5,
            "{name}"
        );
        assert!((cka(0, 2) - cka(3, 1)).abs() < 1e-5, "{name}");
        assert!(cka(0, 1).abs() < 0.2, "{name}");
    }
}

#[test]
fn minibatches_are_added_before_they_are_divided() {
    let batches = [vec![1.0, 2.0, 2.0, 9.0], vec![3.0, 1.0, 1.0, 4.0]];
    assert_close(
        "both",
        &[minibatch_cka(&batches, &[1.0, 1.0], 2, 0, 1)],
        &[3.0 / 52_f64.sqrt()],
        1e-12,
    );
    assert_close(
        "one",
        &[minibatch_cka(&batches, &[0.0, 2.0], 2, 0, 1)],
        &[1.0 / 12_f64.sqrt()],
        1e-12,
    );
}

#[test]
fn too_few_tokens_are_refused() {
    let spec = ParamSpec::routing("unused", [1], Init::Constant(0.0));
    let parameters = Arc::new(Parameters::layout(vec![spec]).expect("one name"));
    let mut runtime = Runtime::new(oracle(), parameters).expect("fits");
    for (count, tokens) in [(2, 3), (0, 8)] {
        assert!(
            Pairs::new(&mut runtime, count, tokens, 5).is_err(),
            "{count} {tokens}"
        );
    }
}
