use braid_engine::cpu::CpuExecutor;
use braid_engine::executor::Executor;
use braid_engine::ops::copy::copy;
use braid_engine::ops::dual_gates::{GateParams, ReadGate, WriteGates, dual_gates};
use braid_engine::ops::dual_write::dual_write;
use braid_engine::ops::scaled_add::scaled_add;
use braid_engine::tape::{Tape, Tensor};
use braid_engine::{Result, Shape};
use braid_tests::{Case, EXACT, F32, Inputs, assert_close};

const EPS: f64 = 1e-6;

/// Which parameters a site has.
#[derive(Clone, Copy, Debug)]
struct Site {
    weights: [bool; 3], // of alpha, rho, beta
    write: bool,
    read: ReadGate,
}

const DYNAMIC: Site = Site {
    weights: [true; 3],
    write: true,
    read: ReadGate::Softmax,
};
const STATIC: Site = Site {
    weights: [false; 3],
    ..DYNAMIC
};
const READ_OUT: Site = Site {
    write: false,
    ..DYNAMIC
};

const STATIC_READ_OUT: Site = Site {
    write: false,
    ..STATIC
};

impl Site {
    fn case(&self, seed: u64, rows: u32, dim: u32) -> Case {
        // A single channel is normalised to its sign: keep it away from zero, where that has a kink.
        let (spread, mean) = if dim == 1 { (0.3, 1.5) } else { (1.0, 0.0) };
        let mut case = Case::seeded(seed)
            .tracked("h0", [rows, dim])
            .scaled(spread, mean)
            .tracked("h1", [rows, dim])
            .scaled(spread, -mean)
            .parameter("alpha.bias", [2]);
        // Weights like these keep logits near one: no gate is saturated.
        let deviation = 1.0 / f64::from(dim).sqrt();
        let families = [("alpha", true), ("rho", self.write), ("beta", self.write)];
        for ((name, exists), dynamic) in families.into_iter().zip(self.weights) {
            if exists && name != "alpha" {
                let biases = if name == "rho" { 1 } else { 2 };
                case = case.parameter(&format!("{name}.bias"), [biases]);
            }
            if exists && dynamic {
                case = case
                    .parameter(&format!("{name}.weight"), [2, dim])
                    .scaled(deviation, 0.0);
            }
        }
        case
    }

    fn params(&self, x: &Inputs) -> GateParams {
        let weight = |family: usize, name: &str| self.weights[family].then(|| x[name]);
        GateParams {
            alpha_bias: x["alpha.bias"],
            alpha_weight: weight(0, "alpha.weight"),
            write: self.write.then(|| WriteGates {
                rho_bias: x["rho.bias"],
                rho_weight: weight(1, "rho.weight"),
                beta_bias: x["beta.bias"],
                beta_weight: weight(2, "beta.weight"),
            }),
        }
    }

    fn record(&self, tape: &mut Tape, x: &Inputs) -> Result<(Tensor, Tensor)> {
        dual_gates(tape, [x["h0"], x["h1"]], &self.params(x), self.read, EPS)
    }
}

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            DYNAMIC.case(seed as u64, rows, dim).check(F32, |tape, x| {
                let (x, gates) = DYNAMIC.record(tape, x)?;
                Ok(vec![x, gates])
            });
        }
    }
}

#[test]
fn every_choice_of_parameters_agrees() {
    let mixed = [
        [true, false, false],
        [false, true, false],
        [false, false, true],
    ];
    let mixed = mixed.map(|weights| Site { weights, ..DYNAMIC });
    let sigmoid = Site {
        read: ReadGate::Sigmoid,
        ..DYNAMIC
    };
    let others = [STATIC, READ_OUT, STATIC_READ_OUT, sigmoid];
    for site in mixed.into_iter().chain(others) {
        site.case(3, 20, 33).check(F32, |tape, x| {
            let (x, gates) = site.record(tape, x)?;
            Ok(vec![x, gates])
        });
    }
}

#[test]
fn both_streams_may_be_the_same_tensor() {
    DYNAMIC.case(5, 7, 65).check(F32, |tape, x| {
        let params = DYNAMIC.params(x);
        let (x, gates) = dual_gates(tape, [x["h0"], x["h0"]], &params, ReadGate::Softmax, EPS)?;
        Ok(vec![x, gates])
    });
}

#[test]
fn either_result_may_be_unused() {
    for used in 0..2 {
        DYNAMIC.case(6, 7, 20).check(F32, |tape, x| {
            let (x, gates) = DYNAMIC.record(tape, x)?;
            Ok(vec![[x, gates][used]])
        });
    }
}

#[test]
fn streams_without_a_gradient_still_train_the_gates() {
    Case::seeded(7)
        .plain("h0", [7, 9])
        .tracked("h1", [7, 9])
        .parameter("alpha.bias", [2])
        .parameter("alpha.weight", [2, 9])
        .check(F32, |tape, x| {
            let (x, gates) = READ_OUT.record(tape, x)?;
            Ok(vec![x, gates])
        });
}

#[test]
fn large_logits_saturate_the_gates() {
    let biases = [
        ("alpha.bias", vec![300.0, -300.0]),
        ("rho.bias", vec![-300.0]),
        ("beta.bias", vec![300.0, -300.0]),
    ];
    for read in [ReadGate::Softmax, ReadGate::Sigmoid] {
        let site = Site { read, ..STATIC };
        let mut case = Case::seeded(8).tracked("h0", [2, 3]).tracked("h1", [2, 3]);
        for (name, values) in &biases {
            case = case.parameter(name, [values.len() as u32]).values(values);
        }
        case.check(F32, |tape, x| {
            let (x, gates) = site.record(tape, x)?;
            Ok(vec![x, gates])
        });
        let outcome = case.oracle(|tape, x| Ok(vec![site.record(tape, x)?.1]));
        let want = [1.0, 0.0, 0.0, 2.0, 0.0].repeat(2);
        assert_close("gates", &outcome["out.0"], &want, 1e-12);
    }
}

#[test]
fn the_softmax_read_is_a_mean_and_the_initial_gates_are_as_specified() {
    let case = Case::seeded(9)
        .tracked("h0", [3, 4])
        .tracked("h1", [3, 4])
        .parameter("alpha.bias", [2])
        .values(&[0.0; 2])
        .parameter("rho.bias", [1])
        .values(&[2.0])
        .parameter("beta.bias", [2])
        .values(&[0.5, -0.5]);
    let outcome = case.oracle(|tape, x| {
        let (x, gates) = STATIC.record(tape, x)?;
        Ok(vec![x, gates])
    });
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    let row = [
        0.5,
        0.5,
        sigmoid(2.0),
        2.0 * sigmoid(0.5),
        2.0 * sigmoid(-0.5),
    ];
    assert_close("gates", &outcome["out.1"], &row.repeat(3), 1e-15);
    let mean: Vec<f64> = case
        .input("h0")
        .iter()
        .zip(case.input("h1"))
        .map(|(a, b)| (a + b) / 2.0)
        .collect();
    assert_close("x", &outcome["out.0"], &mean, 1e-15);
}

fn cpus() -> Vec<(&'static str, Box<dyn Executor>)> {
    vec![
        ("f64", Box::new(CpuExecutor::<f64>::new(None))),
        (
            "plain f32",
            Box::new(CpuExecutor::<f32>::new(None).plain_only()),
        ),
        ("fast f32", Box::new(CpuExecutor::<f32>::new(None))),
    ]
}

/// I6 of the routing notes: a site reads two streams and writes to both.
#[test]
fn exchanging_the_streams_exchanges_the_results_bit_for_bit() {
    let (rows, dim) = (20, 65);
    let base = DYNAMIC
        .case(10, rows, dim)
        .tracked("p0", [rows, dim])
        .tracked("p1", [rows, dim])
        .tracked("y", [rows, dim]);
    let record = |tape: &mut Tape, x: &Inputs| {
        let (mixed, gates) = DYNAMIC.record(tape, x)?;
        let (history, old) = x.history(tape, &["p0", "p1"], rows, dim)?;
        let new = dual_write(tape, history, Some([old[0], old[1]]), gates, x["y"])?;
        let [new0, new1] = [copy(tape, new[0].tensor)?, copy(tape, new[1].tensor)?];
        tape.output("x", mixed);
        tape.output("new0", new0);
        tape.output("new1", new1);
        // One result that treats both streams alike, so that the gradients are exchanged as well.
        let one = tape.constant("one", [1], vec![1.0]);
        let sum = scaled_add(tape, new0, new1, one)?;
        Ok(vec![mixed, sum])
    };
    let exchanged = |name: &str| match name {
        "h0" => "h1".to_owned(),
        "h1" => "h0".to_owned(),
        "p0" => "p1".to_owned(),
        "p1" => "p0".to_owned(),
        other => other.to_owned(),
    };
    let names = [
        ("h0", Shape::from([rows, dim])),
        ("h1", Shape::from([rows, dim])),
        ("p0", Shape::from([rows, dim])),
        ("p1", Shape::from([rows, dim])),
        ("y", Shape::from([rows, dim])),
        ("alpha.bias", Shape::from([2])),
        ("alpha.weight", Shape::from([2, dim])),
        ("rho.bias", Shape::from([1])),
        ("rho.weight", Shape::from([2, dim])),
        ("beta.bias", Shape::from([2])),
        ("beta.weight", Shape::from([2, dim])),
    ];
    let mut other = Case::seeded(10);
    for (name, shape) in names {
        let mut values = base.input(&exchanged(name)).to_vec();
        other = if name.contains('.') {
            let half = values.len() / 2;
            values.rotate_left(half);
            other.parameter(name, shape).values(&values)
        } else {
            other.tracked(name, shape).values(&values)
        };
    }
    for ((name, one), (_, two)) in cpus().into_iter().zip(cpus()) {
        let (a, b) = (base.run_on(one, record), other.run_on(two, record));
        assert_close(&format!("{name}: x"), &b["x"], &a["x"], EXACT);
        assert_close(&format!("{name}: new0"), &b["new1"], &a["new0"], EXACT);
        assert_close(&format!("{name}: new1"), &b["new0"], &a["new1"], EXACT);
        for (input, _) in names {
            let mut want = a[&format!("grad.{}", exchanged(input))].clone();
            if input.contains('.') {
                let half = want.len() / 2;
                want.rotate_left(half);
            }
            let got = &b[&format!("grad.{input}")];
            assert_close(&format!("{name}: gradient of {input}"), got, &want, EXACT);
        }
    }
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    let case = Case::seeded(11)
        .tracked("h0", [2, 3])
        .tracked("h1", [2, 4])
        .parameter("alpha.bias", [3]);
    case.oracle(|tape, x| {
        let params = STATIC_READ_OUT.params(x);
        let error = dual_gates(tape, [x["h0"], x["h1"]], &params, ReadGate::Softmax, EPS);
        let message = error.expect_err("streams differ").to_string();
        assert_eq!(message, "dual_gates: h1 has shape [2, 4], expected [2, 3]");
        let error = dual_gates(tape, [x["h0"], x["h0"]], &params, ReadGate::Softmax, EPS);
        let message = error.expect_err("three biases").to_string();
        assert_eq!(
            message,
            "dual_gates: alpha_bias has shape [3], expected [2]"
        );
        Ok(vec![copy(tape, x["h0"])?])
    });
}
