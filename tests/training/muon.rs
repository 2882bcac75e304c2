//! Muon: the iteration against golden vectors and plain loops, the update against section 6.3 of the notes, and a training.

use std::sync::Arc;

use braid_engine::cpu::CpuExecutor;
use braid_engine::models::config::ModelConfig;
use braid_engine::models::decoder;
use braid_engine::optim::muon::matrices;
use braid_engine::optim::newton_schulz::newton_schulz;
use braid_engine::optim::{Iterations, Muon, STATUS_SCALE, UpdateConfig};
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::External;
use braid_engine::trainer::{TrainConfig, plan_memory};
use braid_tests::vectors::w;
use braid_tests::{Case, Tolerance, assert_close, executors, oracle};

use crate::optim::{CONFIG, Dull, LR, NO_LIMIT, Run, gradient};
use crate::repeatable::{bits, config, train, trainer_of};

const MUON: Muon = Muon {
    momentum: 0.95,
    scale: 0.18,
    iterations: Iterations::Jordan,
};

/// Five iterations multiply a small singular value, and with it its rounding error, by 3.44^5 = 485.
const ITERATED: Tolerance = 485.0 * 2e-7;

/// `a b`, where `a` is `[m, k]` and `b` `[k, n]`.
fn product([m, n, k]: [usize; 3], a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..m * n)
        .map(|at| (0..k).map(|l| a[at / n * k + l] * b[l * n + at % n]).sum())
        .collect()
}

fn transposed([rows, cols]: [usize; 2], x: &[f64]) -> Vec<f64> {
    (0..rows * cols)
        .map(|at| x[at % rows * cols + at / rows])
        .collect()
}

/// One matrix of any shape, as section 6.3 says it.
fn iterated([rows, cols]: [usize; 2], x: &[f64], iterations: Iterations) -> Vec<f64> {
    if rows > cols {
        let lying = transposed([rows, cols], x);
        return transposed([cols, rows], &iterated([cols, rows], &lying, iterations));
    }
    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt() + 1e-7;
    let mut x: Vec<f64> = x.iter().map(|x| x / norm).collect();
    for [a, b, c] in iterations.coefficients() {
        let gram = product([rows, rows, cols], &x, &transposed([rows, cols], &x));
        let square = product([rows; 3], &gram, &gram);
        let mix: Vec<f64> = gram
            .iter()
            .zip(&square)
            .map(|(g, s)| b * g + c * s)
            .collect();
        let change = product([rows, cols, rows], &mix, &x);
        x = x
            .iter()
            .zip(&change)
            .map(|(x, change)| a * x + change)
            .collect();
    }
    x
}

/// The recorded iteration on a stack.
fn recorded(inputs: &Case, shape: [u32; 3], iterations: Iterations) -> Vec<(String, Vec<f64>)> {
    let mut all = executors();
    all.push(("f64", oracle()));
    let run = |(name, executor): (&str, _)| {
        let outcome = inputs.run_on(executor, |tape, inputs| {
            let x = newton_schulz(tape, inputs["x"], shape, iterations)?;
            tape.output("x'", x);
            Ok(Vec::new())
        });
        (name.to_owned(), outcome["x'"].clone())
    };
    all.into_iter().map(run).collect()
}

#[test]
fn the_iteration_gives_the_golden_vectors() {
    let inputs = Case::seeded(1).plain("x", [1, 4, 6]).values(&w(71, 24));
    let row = [
        0.3355994, 0.6675148, 0.0554971, -0.1333838, -0.6042293, -0.0996063,
    ];
    let singular = [1.0829928, 1.0571125, 0.9470715, 0.9425840];
    for (name, x) in recorded(&inputs, [1, 4, 6], Iterations::Jordan) {
        let tolerance = if name == "f64" { 2e-7 } else { ITERATED };
        assert_close(&format!("{name}: row 0"), &x[..6], &row, tolerance);
        // The singular values by their sums of even powers: traces of (X X^T)^k.
        let gram = product([4, 4, 6], &x, &transposed([4, 6], &x));
        let mut power = gram.clone();
        for k in 1..=4 {
            let trace: f64 = (0..4).map(|i| power[5 * i]).sum();
            let want: f64 = singular.iter().map(|s: &f64| s.powi(2 * k)).sum();
            assert_close(&format!("{name}: trace {k}"), &[trace], &[want], tolerance);
            power = product([4; 3], &power, &gram);
        }
    }
    for (name, x) in recorded(&inputs, [1, 4, 6], Iterations::V4) {
        let gram = product([4, 4, 6], &x, &transposed([4, 6], &x));
        for (at, value) in gram.iter().enumerate() {
            let one = if at % 5 == 0 { 1.0 } else { 0.0 };
            assert!((value - one).abs() < 1.3e-3, "{name}: {gram:?}");
        }
    }
}

#[test]
fn stacks_of_odd_and_even_shapes_follow_the_plain_loops() {
    for shape @ [_, rows, cols] in [[3, 5, 7], [1, 1, 1], [2, 4, 8], [5, 12, 12], [2, 3, 301]] {
        let inputs = Case::seeded(7).plain("x", shape);
        let size = (rows * cols) as usize;
        for iterations in [Iterations::Jordan, Iterations::V4] {
            let want: Vec<f64> = inputs
                .input("x")
                .chunks(size)
                .flat_map(|x| iterated([rows as usize, cols as usize], x, iterations))
                .collect();
            for (name, got) in recorded(&inputs, shape, iterations) {
                let tolerance = match (name.as_str(), iterations) {
                    ("f64", _) => 1e-9,
                    (_, Iterations::Jordan) => ITERATED,
                    // The last iterations settle what the first have multiplied.
                    (_, Iterations::V4) => 1e-3,
                };
                assert_close(&format!("{name}: {shape:?}"), &got, &want, tolerance);
            }
        }
    }
}

fn muon(change: impl Fn(&mut Muon)) -> UpdateConfig {
    let mut muon = MUON;
    change(&mut muon);
    UpdateConfig {
        muon: Some(muon),
        ..CONFIG
    }
}

/// Matrices that lie, stand and are square, a stack, and everything that AdamW keeps.
fn parameters() -> Arc<Parameters> {
    let init = Init::Normal(1.0);
    let base =
        |name: &str, shape: [u32; 2], decay| ParamSpec::base(name, shape, init.clone(), decay);
    let stack = ParamSpec::base("b.stack.weight", [3, 5, 7], init.clone(), true);
    let mut phi = ParamSpec::routing("a.phi", [10, 4], init.clone());
    phi.group.decay = true;
    let specs = vec![
        base("model.embed_tokens.weight", [11, 5], false),
        base("a.q_proj.weight", [7, 5], true),
        ParamSpec::base("a.gain", [5], init.clone(), false),
        base("b.mlp.gate.weight", [4, 5], true),
        base("a.k_proj.weight", [5, 7], true),
        base("a.row.weight", [1, 9], true),
        base("a.o_proj.weight", [8, 8], true),
        stack,
        base("lm_head.weight", [11, 5], true),
        phi,
        ParamSpec::routing("a.bias", [10, 4], init.clone()),
    ];
    Arc::new(Parameters::layout(specs).expect("names differ"))
}

#[test]
fn the_matrices_are_those_of_group_d_without_head_and_router() {
    let parameters = parameters();
    let found: Vec<(String, u32)> = matrices(&parameters)
        .iter()
        .map(|found| (parameters.specs()[found.number].name.clone(), found.count))
        .collect();
    let want = [
        ("a.q_proj.weight", 1),
        ("a.k_proj.weight", 1),
        ("a.o_proj.weight", 1),
        ("b.stack.weight", 3),
        ("a.phi", 1),
    ];
    assert_eq!(found, want.map(|(name, count)| (name.to_owned(), count)));
    let model = r#"{"vocab_size": 30, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": false,
        "residual": {"kind": "dar"}}"#;
    let model = ModelConfig::from_json(model).expect("valid");
    let parameters = decoder::parameters(&model).expect("valid");
    // Four of attention and three of the feed-forward sublayer in each layer.
    assert_eq!(matrices(&parameters).len(), 3 * 7);
}

/// Section 6.3 for the matrices, the dull loop of AdamW for the rest.
fn follow(config: &UpdateConfig, limit: u64) {
    let parameters = parameters();
    let muon = config.muon.expect("Muon");
    let mut all = executors();
    all.push(("f64", oracle()));
    for (name, executor) in all {
        let tolerance = if name == "f64" { 1e-8 } else { ITERATED };
        let mut run = Run::new(executor, &parameters, config, limit);
        let mut dull = Dull::new(&parameters);
        for t in 1..=4 {
            let grads = gradient(&parameters, t, 1.0);
            run.step(t, LR, &grads, 0.5);
            let before = (dull.p.clone(), dull.m.clone());
            dull.step(&parameters, config, t as i32, &grads);
            let scale = (config.clip / (dull.norm + 1e-6)).min(1.0);
            for found in matrices(&parameters) {
                let range = parameters.range(found.number);
                let group = parameters.specs()[found.number].group;
                let lr = if group.routing {
                    LR * config.routing_lr_mult
                } else {
                    LR
                };
                let (rows, cols) = (found.rows as usize, found.cols as usize);
                for start in range.step_by(rows * cols) {
                    let mut u = vec![0.0; rows * cols];
                    for (i, u) in (start..).zip(&mut u) {
                        let g = scale * grads[i];
                        dull.m[i] = muon.momentum * before.1[i] + g;
                        dull.v[i] = 0.0;
                        *u = muon.momentum * dull.m[i] + g;
                    }
                    let o = iterated([rows, cols], &u, muon.iterations);
                    let rate = muon.scale * (rows.max(cols) as f64).sqrt();
                    for (i, o) in (start..).zip(&o) {
                        dull.p[i] = before.0[i] * (1.0 - lr * config.weight_decay) - lr * rate * o;
                    }
                }
            }
            let [p, m, v] = run.state();
            assert_close(&format!("{name}: p, step {t}"), &p, &dull.p, tolerance);
            assert_close(&format!("{name}: m, step {t}"), &m, &dull.m, tolerance);
            assert_close(&format!("{name}: v, step {t}"), &v, &dull.v, tolerance);
        }
    }
}

#[test]
fn muon_follows_the_plain_loops_with_adamw_for_the_rest() {
    follow(&muon(|_| ()), NO_LIMIT);
    follow(
        &muon(|muon| {
            muon.iterations = Iterations::V4;
            muon.momentum = 0.5;
            muon.scale = 0.5;
        }),
        NO_LIMIT,
    );
}

#[test]
fn a_small_binding_limit_cuts_the_stacks() {
    // 128 elements: the stack of three matrices alone fills one.
    follow(&muon(|_| ()), 4 * 128);
}

#[test]
fn what_is_not_finite_changes_no_matrix() {
    let parameters = parameters();
    for (name, executor) in executors() {
        let mut run = Run::new(executor, &parameters, &muon(|_| ()), NO_LIMIT);
        run.step(1, LR, &gradient(&parameters, 1, 1.0), 1.0);
        let good = run.state();
        let bits = |state: &[Vec<f64>; 3]| {
            state
                .clone()
                .map(|values| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
        };
        for bad in [f64::NAN, f64::INFINITY] {
            let mut grads = gradient(&parameters, 2, 1.0);
            let number = parameters.position("a.q_proj.weight").expect("declared");
            grads[parameters.range(number).start] = bad;
            run.step(2, LR, &grads, 1.0);
            // It stays stopped, whatever comes.
            run.step(3, LR, &gradient(&parameters, 3, 1.0), 1.0);
            assert_eq!(bits(&run.state()), bits(&good), "{name}: {bad}");
            assert_eq!(run.read(External::Status)[STATUS_SCALE], 0.0, "{name}");
        }
    }
}

fn muon_training() -> TrainConfig {
    let mut config = config();
    config.update.muon = Some(MUON);
    config
}

const DAR: &str = r#"{"kind": "dar", "layers_per_block": 2}"#;

#[test]
fn a_training_with_muon_learns_and_resumes_to_the_bit() {
    for (((name, a), (_, b)), (_, c)) in executors().into_iter().zip(executors()).zip(executors()) {
        let trainer = |executor| trainer_of(DAR, executor, muon_training());
        let (whole, tensors) = train(&mut trainer(a), 12);
        assert!(whole.iter().all(|result| result.ok), "{name}: {whole:?}");
        assert!(whole[11].loss < whole[0].loss, "{name}: {whole:?}");
        let (half, [values, first, second]) = train(&mut trainer(b), 6);
        let mut resumed = trainer(c);
        resumed
            .restore(6, &values, Some((&first, &second)))
            .expect("fits");
        let (rest, again) = train(&mut resumed, 6);
        assert_eq!([half, rest].concat(), whole, "{name}");
        assert_eq!(bits(&tensors), bits(&again), "{name}");
    }
}

#[test]
fn the_memory_plan_has_room_for_the_stacks() {
    let executor = CpuExecutor::<f32>::new(None);
    let trainer = trainer_of(DAR, Box::new(executor), muon_training());
    let limits = oracle().limits();
    let plan = |config: &TrainConfig| plan_memory(trainer.model(), config, &limits).expect("fits");
    let (with, without) = (plan(&muon_training()), plan(&config()));
    // At least the momentum of the largest stack: gate, up and down of three layers, in f64.
    let stack = 3 * 3 * 20 * 24 * 8;
    assert!(with.update.planned >= without.update.planned + stack);
    assert_eq!(
        with.total() - without.total(),
        with.update.planned - without.update.planned
    );
    assert_eq!(with.training.planned, without.training.planned);
}
