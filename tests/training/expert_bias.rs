//! The selection bias of experts: its rule, and that the optimiser leaves it alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::executor::{BufferId, Data, Executor, Range, Work};
use braid_engine::kernel::Element;
use braid_engine::optim::{
    STATUS_LEN, STEP_SCALARS_LEN, StepScalars, UpdateConfig, expert_bias, record_update,
};
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::External;
use braid_engine::tape::Tape;
use braid_tests::{executors, oracle};

const UPDATE: UpdateConfig = UpdateConfig {
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weight_decay: 0.1,
    clip: 0.0,
    routing_lr_mult: 1.0,
    muon: None,
};

/// A matrix of one number and a bias of four experts.
fn parameters() -> Arc<Parameters> {
    let specs = vec![
        ParamSpec::untrained("bias", [4], Init::Constant(0.0)),
        ParamSpec::base("matrix", [1], Init::Constant(1.0), true),
    ];
    Arc::new(Parameters::layout(specs).expect("names differ"))
}

struct Run {
    executor: Box<dyn Executor>,
    buffers: BTreeMap<External, BufferId>,
    work: [Work; 2],
    counts: Range,
}

impl Run {
    /// Counts of a pass, and an update that moves the bias by a thousandth.
    fn new(mut executor: Box<dyn Executor>, bias: &[f64]) -> Self {
        let parameters = parameters();
        let mut buffers = BTreeMap::new();
        for (external, len) in [
            (External::Values, parameters.arena_len()),
            (External::Grads, parameters.arena_len()),
            (External::FirstMoment, parameters.arena_len()),
            (External::SecondMoment, parameters.arena_len()),
            (External::StepScalars, STEP_SCALARS_LEN),
            (External::Status, STATUS_LEN),
        ] {
            let buffer = executor.allocate("buffer", len, Element::F32);
            buffers.insert(external, buffer.expect("fits"));
        }
        let limits = executor.limits();
        let mut tape = Tape::new(parameters.clone());
        let statistics = tape.input("counts", [2, 4]);
        expert_bias::count(&mut tape, "bias", statistics).expect("records");
        let pass = tape.finish(&limits).expect("fits");
        let place = pass.places["counts"];
        let pass = executor.load(&pass, &buffers).expect("loads");
        let counts = executor.range(pass, place);

        let mut tape = Tape::new(parameters.clone());
        record_update(&mut tape, &UPDATE, limits.binding).expect("records");
        expert_bias::record(&mut tape, "bias", 1e-3).expect("records");
        let update = tape.finish(&limits).expect("fits");
        let update = executor.load(&update, &buffers).expect("loads");
        let mut run = Self {
            executor,
            buffers,
            work: [Work::Run(pass), Work::Run(update)],
            counts,
        };
        assert_eq!(
            parameters.range(0).start,
            64,
            "what is not trained lies at the end"
        );
        run.write(External::Values, 64, bias);
        let scalars = StepScalars {
            lr: 0.5,
            step: 1,
            beta1: 0.9,
            beta2: 0.95,
        };
        run.write(External::StepScalars, 0, &scalars.to_values());
        run
    }

    fn write(&mut self, external: External, offset: usize, values: &[f64]) {
        let buffer = self.buffers[&external];
        let data = Data::F64(values);
        self.executor.write(buffer, offset, data).expect("fits");
    }

    /// One step whose passes have these counts.
    fn step(&mut self, passes: &[[f64; 4]]) {
        let grads = self.buffers[&External::Grads];
        self.executor.submit(&[Work::Clear(grads)]).expect("runs");
        for counts in passes {
            // What follows the counts are probabilities.
            let statistics = [*counts, [0.25; 4]].concat();
            let Range { buffer, offset, .. } = self.counts;
            let data = Data::F64(&statistics);
            self.executor.write(buffer, offset, data).expect("fits");
            self.executor.submit(&self.work[..1]).expect("runs");
        }
        self.executor.submit(&self.work[1..]).expect("runs");
    }

    fn read(&mut self, external: External, offset: usize, len: usize) -> Vec<f64> {
        let range = Range {
            buffer: self.buffers[&external],
            offset,
            len,
        };
        let pending = self.executor.read(&[range]).expect("in range");
        pollster::block_on(pending).expect("reads")[0].to_f64()
    }

    fn bias(&mut self) -> Vec<f64> {
        self.read(External::Values, 64, 4)
    }
}

fn everywhere() -> Vec<(&'static str, Box<dyn Executor>)> {
    let mut all = executors();
    all.push(("f64", oracle()));
    all
}

fn close(name: &str, got: &[f64], want: &[f64]) {
    let near = got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-7);
    assert!(near, "{name}: {got:?}, expected {want:?}");
}

/// G8 of the notes on residual mechanisms, section 8.
#[test]
fn rarely_chosen_experts_are_raised_and_popular_ones_lowered() {
    for (name, executor) in everywhere() {
        let mut run = Run::new(executor, &[0.0, 0.3, -0.2, 0.1]);
        run.step(&[[2.0, 1.0, 1.0, 2.0]]);
        close(name, &run.bias(), &[-0.001, 0.301, -0.199, 0.099]);
    }
}

#[test]
fn counts_are_those_of_all_passes_of_the_step() {
    for (name, executor) in everywhere() {
        let mut run = Run::new(executor, &[0.0; 4]);
        // Each pass is uneven, together expert 3 has too many and the others the same.
        run.step(&[[4.0, 0.0, 0.0, 4.0], [0.0, 4.0, 4.0, 1.0]]);
        close(name, &run.bias(), &[1e-3, 1e-3, 1e-3, -1e-3]);
        // The next step begins anew, and counts that are equal to the mean move nothing.
        run.step(&[[3.0, 3.0, 2.0, 4.0]]);
        close(name, &run.bias(), &[1e-3, 1e-3, 2e-3, -2e-3]);
    }
}

#[test]
fn the_optimiser_leaves_it_alone() {
    for (name, executor) in everywhere() {
        let mut run = Run::new(executor, &[0.0, 0.3, -0.2, 0.1]);
        run.step(&[[2.0; 4]]);
        close(name, &run.bias(), &[0.0, 0.3, -0.2, 0.1]);
        for moment in [External::FirstMoment, External::SecondMoment] {
            assert_eq!(run.read(moment, 64, 4), [0.0; 4], "{name}");
        }
        // The counts are no part of the norm.
        let norm = run.read(External::Status, 3, 1);
        assert_eq!(norm, [0.0], "{name}");
    }
}

#[test]
fn a_step_that_was_stopped_does_not_move_it() {
    for (name, executor) in everywhere() {
        let mut run = Run::new(executor, &[0.5; 4]);
        run.write(External::Status, 1, &[f64::NAN]);
        run.step(&[[4.0, 0.0, 0.0, 4.0]]);
        assert_eq!(run.bias(), [0.5; 4], "{name}");
    }
}

#[test]
fn it_is_not_counted_as_trained() {
    let parameters = parameters();
    assert_eq!(parameters.count(), 1);
    assert_eq!(parameters.trained_len(), 64);
    assert_eq!(parameters.arena_len(), 128);
}
