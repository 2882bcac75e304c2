//! A mechanism written as one matrix reads exactly what the mechanism reads.

use braid_engine::analysis::unfolded::{Published, unfold};
use braid_engine::executor::{Data, Values};
use braid_engine::ops::copy::copy;
use braid_engine::plan::External;
use braid_engine::runtime::Runtime;
use braid_engine::tape::Tape;
use braid_tests::net::Net;
use braid_tests::oracle;

use super::MECHANISMS;

/// Sources that are random numbers, the same for every mechanism: no sublayers, so the reads are all that can differ.
fn source(number: usize, element: usize) -> f64 {
    ((number * 977 + element * 131) % 199) as f64 / 100.0 - 1.0
}

/// The largest difference between what the mechanism reads and what its matrix says, over all sites of one token.
fn difference(residual: &str, layers: u32) -> Option<f64> {
    let net = Net::random(residual, layers, 5);
    let (config, rows) = (&net.config, net.batch.rows());
    let (dim, sublayers) = (config.hidden_size, config.sublayers());
    let mut runtime = Runtime::new(oracle(), net.parameters.clone()).expect("fits");
    let mut tape = Tape::new(net.parameters.clone()).watching(true);
    let content = |number: usize| -> Vec<f64> {
        (0..(rows * dim) as usize)
            .map(|at| source(number, at))
            .collect()
    };
    let mut path = config
        .residual
        .path(&mut tape, config, rows)
        .expect("records");
    // Only the fresh output of an op can become a source of a history.
    let fresh = |tape: &mut Tape, number: u32| {
        let input = tape.input(&format!("source.{number}"), [rows, dim]);
        copy(tape, input).expect("records")
    };
    let e = fresh(&mut tape, 0);
    path.expand(&mut tape, e).expect("records");
    let mut reads = Vec::new();
    for site in 0..sublayers {
        let x = path.read(&mut tape, site).expect("records");
        tape.output(&format!("x.{site}"), x);
        reads.push(format!("x.{site}"));
        let y = fresh(&mut tape, site + 1);
        path.write(&mut tape, site, y).expect("records");
    }
    let out = path.readout(&mut tape).expect("records");
    tape.output("out", out);
    reads.push("out".into());

    let (routing, gates) = (path.routing().to_vec(), path.gates().to_vec());
    let plan = tape.finish(&runtime.limits()).expect("fits");
    let loaded = runtime.load(&plan).expect("loads");
    runtime
        .write_external(External::Values, Data::F64(&net.values))
        .expect("fits");
    for number in 0..=sublayers as usize {
        let name = format!("source.{number}");
        runtime
            .write_input(&loaded, &name, Data::F64(&content(number)))
            .expect("fits");
    }
    runtime.submit(false, &[&loaded]).expect("runs");
    let mut read = |names: &[String]| -> Vec<Vec<f64>> {
        let values = pollster::block_on(runtime.read(&loaded, names)).expect("reads");
        values.iter().map(Values::to_f64).collect()
    };
    let got = read(&reads);
    let names: Vec<String> = routing
        .iter()
        .map(braid_engine::nn::residual::Routing::tensor)
        .chain(gates.iter().map(|gate| gate.tensor.clone()))
        .collect();
    let published = read(&names);
    let find = |name: &str| {
        let at = names.iter().position(|known| known == name)?;
        Some(published[at].clone())
    };
    let matrix = unfold(
        config,
        &Published {
            routing: &routing,
            gates: &gates,
            find: &find,
            tokens: 1,
        },
    )?;
    let mut worst: f64 = 0.0;
    for (row, got) in matrix.iter().zip(&got) {
        for (channel, got) in got[..dim as usize].iter().enumerate() {
            let want: f64 = row
                .iter()
                .enumerate()
                .map(|(number, c)| c * source(number, channel))
                .sum();
            worst = worst.max((got - want).abs());
        }
    }
    assert_eq!(matrix.len(), got.len(), "{residual}");
    Some(worst)
}

#[test]
fn a_matrix_reads_what_the_mechanism_reads() {
    let mut without = Vec::new();
    for (residual, layers) in MECHANISMS {
        match difference(residual, layers) {
            Some(worst) => assert!(worst < 1e-12, "{residual}: {worst:e}"),
            None => without.push(residual),
        }
    }
    // Value maps are matrices, the gate of `gated` is not published, and heads have weights of their own.
    let known = |residual: &&str| {
        ["sep_v", "gated", "depth_heads"]
            .iter()
            .any(|w| residual.contains(w))
    };
    assert!(without.iter().all(known), "{without:?}");
}
