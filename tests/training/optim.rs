use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::executor::{BufferId, Data, Executor, ProgramId, Range, Work};
use braid_engine::kernel::Element;
use braid_engine::optim::{
    RING, RING_WIDTH, STATUS_LEN, STATUS_LOSS, STATUS_NORM, STATUS_SCALE, STATUS_STOPPED, STATUS_Z,
    STEP_SCALARS_LEN, StepScalars, UpdateConfig, record_loss, record_part, record_update,
    ring_entry,
};
use braid_engine::params::{Group, Init, ParamSpec, Parameters};
use braid_engine::plan::{External, Plan};
use braid_engine::random::stream;
use braid_engine::tape::Tape;
use braid_tests::{EXACT, F32, assert_close, executors, oracle};
use rand_distr::{Distribution, StandardNormal};

pub(crate) const CONFIG: UpdateConfig = UpdateConfig {
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weight_decay: 0.1,
    clip: 1.0,
    routing_lr_mult: 0.25,
    muon: None,
};
pub(crate) const LR: f64 = 1e-3;
pub(crate) const NO_LIMIT: u64 = u64::MAX;

/// All four groups, with lengths that are not multiples of anything.
fn parameters(largest: u32) -> Arc<Parameters> {
    let spec = |name: &str, len: u32, routing, decay| ParamSpec {
        name: name.into(),
        shape: [len].into(),
        init: Init::Normal(1.0),
        group: Group {
            routing,
            decay,
            ..Group::default()
        },
    };
    let specs = vec![
        spec("matrix", largest, false, true),
        spec("norm", 65, false, false),
        spec("query", 100, true, false),
        spec("phi", 1, true, true),
        spec("other matrix", 63, false, true),
    ];
    Arc::new(Parameters::layout(specs).expect("names differ"))
}

fn noise(len: usize, label: &str) -> Vec<f64> {
    let mut rng = stream(1, label);
    let numbers = (0..len).map(|_| StandardNormal.sample(&mut rng));
    numbers.map(|v: f64| f64::from(v as f32)).collect()
}

/// Optimiser state of a run on one executor.
pub(crate) struct Run {
    executor: Box<dyn Executor>,
    parameters: Arc<Parameters>,
    buffers: BTreeMap<External, BufferId>,
    update: ProgramId,
    loss: ProgramId,
    loss_plan: Plan,
}

impl Run {
    pub(crate) fn new(
        mut executor: Box<dyn Executor>,
        parameters: &Arc<Parameters>,
        config: &UpdateConfig,
        binding_limit: u64,
    ) -> Self {
        let arena = parameters.arena_len();
        let mut buffers = BTreeMap::new();
        for (external, len) in [
            (External::Values, arena),
            (External::Grads, arena),
            (External::FirstMoment, arena),
            (External::SecondMoment, arena),
            (External::StepScalars, STEP_SCALARS_LEN),
            (External::Status, STATUS_LEN),
        ] {
            let buffer = executor
                .allocate(&format!("{external:?}"), len, Element::F32)
                .expect("fits");
            buffers.insert(external, buffer);
        }
        let limits = executor.limits();
        let mut tape = Tape::new(parameters.clone());
        record_update(&mut tape, config, binding_limit).expect("records");
        let plan = tape.finish(&limits).expect("fits");
        let update = executor.load(&plan, &buffers).expect("loads");

        let mut tape = Tape::new(parameters.clone());
        let loss = tape.input("loss", [1]);
        let status = tape.external(External::Status, STATUS_LEN);
        record_loss(&mut tape, loss, status).expect("records");
        // The auxiliary losses are kept apart.
        record_part(&mut tape, loss, STATUS_Z, status).expect("records");
        let loss_plan = tape.finish(&limits).expect("fits");
        let loss = executor.load(&loss_plan, &buffers).expect("loads");

        let mut run = Self {
            executor,
            parameters: parameters.clone(),
            buffers,
            update,
            loss,
            loss_plan,
        };
        let values: Vec<f64> = run
            .parameters
            .initial_values(1)
            .into_iter()
            .map(f64::from)
            .collect();
        run.write(External::Values, &values);
        run
    }

    fn write(&mut self, external: External, values: &[f64]) {
        self.executor
            .write(self.buffers[&external], 0, Data::F64(values))
            .expect("fits");
    }

    pub(crate) fn read(&mut self, external: External) -> Vec<f64> {
        let len = match external {
            External::Status => STATUS_LEN,
            External::StepScalars => STEP_SCALARS_LEN,
            _ => self.parameters.arena_len(),
        };
        let range = Range {
            buffer: self.buffers[&external],
            offset: 0,
            len,
        };
        let pending = self.executor.read(&[range]).expect("in range");
        pollster::block_on(pending).expect("reads")[0].to_f64()
    }

    fn record(&mut self, loss: f64) {
        let place = self
            .executor
            .range(self.loss, self.loss_plan.places["loss"]);
        self.executor
            .write(place.buffer, place.offset, Data::F64(&[loss]))
            .expect("fits");
        self.executor.submit(&[Work::Run(self.loss)]).expect("runs");
    }

    /// One step with this gradient and loss; `step` counts from 1.
    pub(crate) fn step(&mut self, step: u64, lr: f64, grads: &[f64], loss: f64) {
        self.record(loss);
        self.write(External::Grads, grads);
        let scalars = StepScalars {
            lr,
            step,
            beta1: CONFIG.beta1,
            beta2: CONFIG.beta2,
        };
        self.write(External::StepScalars, &scalars.to_values());
        self.executor
            .submit(&[Work::Run(self.update)])
            .expect("runs");
    }

    pub(crate) fn state(&mut self) -> [Vec<f64>; 3] {
        [
            External::Values,
            External::FirstMoment,
            External::SecondMoment,
        ]
        .map(|external| self.read(external))
    }
}

/// A gradient for the whole arena, zero in the padding.
pub(crate) fn gradient(parameters: &Parameters, step: u64, size: f64) -> Vec<f64> {
    let mut arena = vec![0.0; parameters.arena_len()];
    for number in 0..parameters.specs().len() {
        let range = parameters.range(number);
        let noise = noise(range.len(), &format!("gradient {number} {step}"));
        for (to, from) in arena[range].iter_mut().zip(noise) {
            *to = f64::from((from * size) as f32);
        }
    }
    arena
}

/// Section 6 of the checkpoint format, a parameter at a time.
pub(crate) struct Dull {
    pub(crate) p: Vec<f64>,
    pub(crate) m: Vec<f64>,
    pub(crate) v: Vec<f64>,
    pub(crate) norm: f64,
}

impl Dull {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let p: Vec<f64> = parameters
            .initial_values(1)
            .into_iter()
            .map(f64::from)
            .collect();
        let zeros = vec![0.0; p.len()];
        Self {
            p,
            m: zeros.clone(),
            v: zeros,
            norm: 0.0,
        }
    }

    pub(crate) fn step(
        &mut self,
        parameters: &Parameters,
        config: &UpdateConfig,
        t: i32,
        grads: &[f64],
    ) {
        self.norm = grads.iter().map(|g| g * g).sum::<f64>().sqrt();
        let mut scale = 1.0;
        if config.clip > 0.0 {
            scale = f64::min(1.0, config.clip / (self.norm + 1e-6));
        }
        for (number, spec) in parameters.specs().iter().enumerate() {
            for i in parameters.range(number) {
                let g = grads[i] * scale;
                let lr = if spec.group.routing {
                    LR * config.routing_lr_mult
                } else {
                    LR
                };
                self.m[i] = config.beta1 * self.m[i] + (1.0 - config.beta1) * g;
                self.v[i] = config.beta2 * self.v[i] + (1.0 - config.beta2) * g * g;
                if spec.group.decay {
                    self.p[i] -= lr * config.weight_decay * self.p[i];
                }
                let m_hat = self.m[i] / (1.0 - config.beta1.powi(t));
                let v_hat = self.v[i] / (1.0 - config.beta2.powi(t));
                self.p[i] -= lr * m_hat / (v_hat.sqrt() + config.eps);
            }
        }
    }
}

/// Five steps against the dull loop, on every executor and in `f64`.
fn follows_the_dull_loop(largest: u32, config: &UpdateConfig, size: f64, limit: u64) {
    let parameters = parameters(largest);
    let mut all = executors();
    all.push(("f64", oracle()));
    for (name, executor) in all {
        let tolerance = if name == "f64" { 1e-12 } else { F32 };
        let mut run = Run::new(executor, &parameters, config, limit);
        let mut dull = Dull::new(&parameters);
        for t in 1..=5 {
            let grads = gradient(&parameters, t, size);
            run.step(t, LR, &grads, 0.5);
            dull.step(&parameters, config, t as i32, &grads);
            let [p, m, v] = run.state();
            assert_close(&format!("{name}: p, step {t}"), &p, &dull.p, tolerance);
            assert_close(&format!("{name}: m, step {t}"), &m, &dull.m, tolerance);
            assert_close(&format!("{name}: v, step {t}"), &v, &dull.v, tolerance);
            let status = run.read(External::Status);
            let norm = [status[STATUS_NORM]];
            assert_close(&format!("{name}: norm"), &norm, &[dull.norm], tolerance);
            let entry = &status[ring_entry(t)..][..RING_WIDTH];
            let want = [0.5, dull.norm, 1.0, 0.0, 0.5];
            assert_close(&format!("{name}: ring"), entry, &want, tolerance);
        }
    }
}

#[test]
fn adamw_follows_a_dull_loop_with_clipping() {
    follows_the_dull_loop(1_000, &CONFIG, 1.0, NO_LIMIT);
}

#[test]
fn adamw_follows_a_dull_loop_when_the_norm_is_below_the_clip() {
    let parameters = parameters(1_000);
    let norm = |grads: Vec<f64>| grads.iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!(norm(gradient(&parameters, 1, 1e-2)) < CONFIG.clip);
    follows_the_dull_loop(1_000, &CONFIG, 1e-2, NO_LIMIT);
}

#[test]
fn adamw_follows_a_dull_loop_without_clipping_and_without_decay() {
    let config = UpdateConfig {
        clip: 0.0,
        weight_decay: 0.0,
        routing_lr_mult: 1.0,
        ..CONFIG
    };
    follows_the_dull_loop(1_000, &config, 1.0, NO_LIMIT);
}

#[test]
fn a_norm_of_three_levels_is_right() {
    // 300,000 squares make 1,172 partial sums: more than a level holds, and more than a piece of the fast twin.
    follows_the_dull_loop(300_000, &CONFIG, 1.0, NO_LIMIT);
}

#[test]
fn a_small_binding_limit_cuts_the_arena() {
    follows_the_dull_loop(1_000, &CONFIG, 1.0, 4 * 200);
    let parameters = parameters(1_000);
    let calls = |limit| {
        let mut tape = Tape::new(parameters.clone());
        record_update(&mut tape, &CONFIG, limit).expect("records");
        let plan = tape.finish(&oracle().limits()).expect("fits");
        let names = plan.steps.iter().map(|step| step.kernel.name);
        names.filter(|&name| name == "adamw").count()
    };
    assert_eq!(calls(NO_LIMIT), 4, "one call a group");
    // Ranges of 192 elements: 1088 + 64 + 128 + 64 elements in the four groups.
    assert_eq!(calls(4 * 200), 6 + 1 + 1 + 1);
}

#[test]
fn groups_differ_in_decay_and_in_the_learning_rate_only() {
    // Without a gradient only the decay moves a parameter.
    let parameters = parameters(10);
    for (name, executor) in executors() {
        let mut run = Run::new(executor, &parameters, &CONFIG, NO_LIMIT);
        let before = run.read(External::Values);
        run.step(1, 0.5, &vec![0.0; parameters.arena_len()], 1.0);
        let after = run.read(External::Values);
        for (number, spec) in parameters.specs().iter().enumerate() {
            let range = parameters.range(number);
            let factor = match (spec.group.decay, spec.group.routing) {
                (false, _) => 1.0,
                (true, false) => 1.0 - 0.5 * CONFIG.weight_decay,
                (true, true) => 1.0 - 0.5 * CONFIG.weight_decay * CONFIG.routing_lr_mult,
            };
            let want: Vec<f64> = before[range.clone()].iter().map(|p| p * factor).collect();
            assert_close(&format!("{name}: {}", spec.name), &after[range], &want, F32);
        }
    }
}

#[test]
fn losses_of_one_step_add_up_and_the_ring_keeps_sixteen_steps() {
    let parameters = parameters(10);
    let grads = gradient(&parameters, 1, 1.0);
    for (name, executor) in executors() {
        let mut run = Run::new(executor, &parameters, &CONFIG, NO_LIMIT);
        run.record(0.25);
        run.record(0.5);
        assert_eq!(run.read(External::Status)[STATUS_LOSS], 0.75, "{name}");
        run.step(1, LR, &grads, 1.0);
        let status = run.read(External::Status);
        assert_eq!(status[ring_entry(1)], 1.75, "{name}");
        assert_eq!(status[STATUS_LOSS], 0.0, "{name}: the sum begins anew");
        let last = RING as u64 + 3;
        for step in 2..=last {
            run.step(step, LR, &grads, step as f64);
        }
        let status = run.read(External::Status);
        for step in last - RING as u64 + 1..=last {
            let entry = ring_entry(step);
            assert_eq!(status[entry], step as f64, "{name}");
            assert_eq!(status[entry + 2], 1.0, "{name}");
        }
    }
}

/// Two good steps, a bad one, a good one: nothing may change from the bad one on.
fn stops_for_good(what: &str, loss: f64, spoil: impl Fn(&mut Vec<f64>), executors_too: bool) {
    let parameters = parameters(100_000);
    let mut all = if executors_too {
        executors()
    } else {
        Vec::new()
    };
    all.push(("f64", oracle()));
    for (name, executor) in all {
        let mut run = Run::new(executor, &parameters, &CONFIG, NO_LIMIT);
        for t in 1..=2 {
            run.step(t, LR, &gradient(&parameters, t, 1.0), 1.0);
        }
        let good = run.state();
        let mut bad = gradient(&parameters, 3, 1.0);
        spoil(&mut bad);
        run.step(3, LR, &bad, loss);
        run.step(4, LR, &gradient(&parameters, 4, 1.0), 1.0);
        for (got, want) in run.state().iter().zip(&good) {
            assert_close(&format!("{name}, {what}: state"), got, want, EXACT);
        }
        let status = run.read(External::Status);
        assert_eq!(status[STATUS_STOPPED], 1.0, "{name}, {what}");
        assert_eq!(status[STATUS_SCALE], 0.0, "{name}, {what}");
        let ok: Vec<f64> = (1..=4).map(|t| status[ring_entry(t) + 2]).collect();
        assert_eq!(ok, [1.0, 1.0, 0.0, 0.0], "{name}, {what}");

        // The host may clear the flag and go on.
        run.write(External::Status, &[0.0]);
        run.step(5, LR, &gradient(&parameters, 5, 1.0), 1.0);
        assert_ne!(run.state()[0], good[0], "{name}, {what}");
    }
}

#[test]
fn a_gradient_that_is_not_finite_stops_the_updates() {
    let parameters = parameters(100_000);
    let inside = [0, 77_777, parameters.arena_len() - 64];
    for value in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for at in inside {
            stops_for_good(
                &format!("{value} at {at}"),
                1.0,
                |grads| grads[at] = value,
                true,
            );
        }
    }
}

#[test]
fn a_loss_that_is_not_finite_stops_the_updates() {
    for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        stops_for_good(&format!("loss {loss}"), loss, |_| (), true);
    }
}

#[test]
fn a_norm_that_overflows_stops_the_updates() {
    let parameters = parameters(10);
    for (name, executor) in executors() {
        let mut run = Run::new(executor, &parameters, &CONFIG, NO_LIMIT);
        let before = run.state();
        // Each is finite in single precision, its square is not.
        let grads: Vec<f64> = gradient(&parameters, 1, 1e25);
        run.step(1, LR, &grads, 1.0);
        for (got, want) in run.state().iter().zip(&before) {
            assert_close(name, got, want, EXACT);
        }
        assert_eq!(run.read(External::Status)[STATUS_STOPPED], 1.0, "{name}");
    }
    stops_for_good("overflow", 1.0, |grads| grads[5] = 1e200, false);
}

#[test]
fn step_scalars_are_exact_for_small_steps() {
    let scalars = StepScalars {
        lr: 3e-4,
        step: 1,
        beta1: 0.9,
        beta2: 0.999,
    };
    let values = scalars.to_values();
    assert_eq!(values.len(), STEP_SCALARS_LEN);
    assert_eq!(&values[..3], &[3e-4, 1.0 - 0.9, 1.0 - 0.999]);
    let later = StepScalars {
        step: 18,
        ..scalars
    };
    assert_eq!(later.to_values()[3], 1.0, "the ring has sixteen entries");
}
