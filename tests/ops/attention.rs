use braid_engine::executor::Executor;
use braid_engine::ops::attention::attention;
use braid_tests::{Case, EXACT, F32, F32_LONG, Outcome, assert_close, executors, oracle};

/// `[batch, tokens, heads, kv_heads, dim]`.
type Sizes = [u32; 5];

fn case(seed: u64, [batch, tokens, heads, kv_heads, dim]: Sizes) -> Case {
    Case::seeded(seed)
        .tracked("q", [batch, tokens, heads, dim])
        .tracked("k", [batch, tokens, kv_heads, dim])
        .tracked("v", [batch, tokens, kv_heads, dim])
}

fn check(seed: u64, sizes: Sizes) {
    case(seed, sizes).check(F32, |tape, x| {
        Ok(vec![attention(tape, x["q"], x["k"], x["v"])?])
    });
}

fn run(case: &Case, executor: Box<dyn Executor>) -> Outcome {
    case.run_on(executor, |tape, x| {
        Ok(vec![attention(tape, x["q"], x["k"], x["v"])?])
    })
}

/// The definition, with every score written down.
fn naive(case: &Case, [batch, tokens, heads, kv_heads, dim]: Sizes) -> Vec<f64> {
    let [batch, tokens, heads, kv_heads, dim] =
        [batch, tokens, heads, kv_heads, dim].map(|size| size as usize);
    let (q, k, v) = (case.input("q"), case.input("k"), case.input("v"));
    let mut out = Vec::new();
    for b in 0..batch {
        for t in 0..tokens {
            for h in 0..heads {
                let query = &q[((b * tokens + t) * heads + h) * dim..][..dim];
                let key = |s: usize| ((b * tokens + s) * kv_heads + h / (heads / kv_heads)) * dim;
                let score = |s: usize| -> f64 {
                    let products = (0..dim).map(|c| query[c] * k[key(s) + c]);
                    products.sum::<f64>() / (dim as f64).sqrt()
                };
                let total: f64 = (0..=t).map(|s| score(s).exp()).sum();
                out.extend((0..dim).map(|c| {
                    let terms = (0..=t).map(|s| score(s).exp() / total * v[key(s) + c]);
                    terms.sum::<f64>()
                }));
            }
        }
    }
    out
}

#[test]
fn agrees_everywhere() {
    let sizes = [
        [2, 1, 1, 1, 2],
        [1, 2, 2, 1, 10],
        [2, 7, 4, 2, 10],
        [1, 7, 6, 2, 16],
        [2, 33, 2, 2, 32],
        [1, 70, 3, 1, 32],
        [1, 7, 2, 1, 64],
        [1, 7, 1, 1, 127],
        [1, 7, 2, 2, 128],
    ];
    for (seed, sizes) in sizes.into_iter().enumerate() {
        check(seed as u64, sizes);
    }
}

#[test]
fn is_what_the_definition_says() {
    for sizes in [[1, 1, 1, 1, 2], [2, 7, 4, 2, 10], [2, 33, 6, 2, 32]] {
        let case = case(1, sizes);
        let got = run(&case, oracle());
        assert_close("output", &got["out.0"], &naive(&case, sizes), 1e-13);
    }
}

#[test]
fn queries_and_keys_can_be_one_tensor() {
    let case = Case::seeded(3)
        .tracked("x", [2, 7, 2, 10])
        .tracked("v", [2, 7, 2, 10]);
    case.check(F32, |tape, x| {
        Ok(vec![attention(tape, x["x"], x["x"], x["v"])?])
    });
}

#[test]
fn inputs_without_a_gradient_get_none() {
    let case = Case::seeded(4)
        .plain("q", [1, 7, 2, 10])
        .plain("k", [1, 7, 1, 10])
        .tracked("v", [1, 7, 1, 10]);
    case.check(F32, |tape, x| {
        Ok(vec![attention(tape, x["q"], x["k"], x["v"])?])
    });
}

#[test]
fn later_tokens_change_no_bit() {
    let sizes = [1, 33, 4, 2, 32];
    let whole = case(5, sizes);
    let known = 20;
    let mut changed = Case::seeded(5);
    for (name, heads) in [("q", 4), ("k", 2), ("v", 2)] {
        let mut values = whole.input(name).to_vec();
        values[known * heads * 32..].fill(0.5);
        changed = changed
            .tracked(name, [1, 33, heads as u32, 32])
            .values(&values);
    }
    for ((name, one), (_, two)) in executors().into_iter().zip(executors()) {
        let (one, two) = (run(&whole, one), run(&changed, two));
        let prefix = ..known * 4 * 32;
        assert_close(name, &one["out.0"][prefix], &two["out.0"][prefix], EXACT);
        assert_ne!(one["out.0"], two["out.0"], "{name}: the rest differs");
    }
}

#[test]
fn a_zero_query_reads_the_mean_of_what_came_before() {
    let case = Case::seeded(6)
        .tracked("q", [1, 9, 1, 16])
        .values(&[0.0; 9 * 16])
        .tracked("k", [1, 9, 1, 16])
        .tracked("v", [1, 9, 1, 16]);
    let v = case.input("v");
    let mean = |t: usize, c: usize| (0..=t).map(|s| v[s * 16 + c]).sum::<f64>() / (t + 1) as f64;
    let want: Vec<f64> = (0..9 * 16).map(|i| mean(i / 16, i % 16)).collect();
    for (name, executor) in executors() {
        assert_close(name, &run(&case, executor)["out.0"], &want, F32);
    }
}

#[test]
fn large_scores_pick_one_key_and_stay_finite() {
    // Scores of several thousand: their rounding, 6e-8 of them, is what the weights are wrong by.
    const TOLERANCE: f64 = 10.0 * F32_LONG;
    for dim in [10, 32] {
        let case = Case::seeded(7)
            .tracked("q", [1, 33, 2, dim])
            .scaled(100.0, 0.0)
            .tracked("k", [1, 33, 1, dim])
            .scaled(30.0, 0.0)
            .tracked("v", [1, 33, 1, dim]);
        let want = run(&case, oracle());
        for (name, executor) in executors() {
            let got = run(&case, executor);
            assert!(got.values().flatten().all(|v| v.is_finite()), "{name}");
            assert_close(name, &got["out.0"], &want["out.0"], TOLERANCE);
        }
    }
}

#[test]
fn refuses_what_it_cannot_do() {
    let refusal = |shapes: [[u32; 4]; 3], same: bool| {
        let case = Case::seeded(8)
            .tracked("q", shapes[0])
            .tracked("k", shapes[1])
            .tracked("v", shapes[2]);
        let message = std::cell::RefCell::new(String::new());
        case.oracle(|tape, x| {
            let v = if same { x["k"] } else { x["v"] };
            if let Err(error) = attention(tape, x["q"], x["k"], v) {
                message.replace(error.to_string());
            }
            Ok(Vec::new())
        });
        message.into_inner()
    };
    let one = [1, 2, 1, 4];
    assert!(refusal([[1, 2, 1, 130]; 3], false).contains("model.head_dim"));
    assert!(refusal([[1, 2, 3, 4], [1, 2, 2, 4], [1, 2, 2, 4]], false).contains("model.kv_heads"));
    assert!(refusal([one, one, [1, 3, 1, 4]], false).contains("v has shape [1, 3, 1, 4]"));
    assert!(refusal([one, one, one], true).contains("same tensor"));
    assert_eq!(refusal([one, one, one], false), "");
}
