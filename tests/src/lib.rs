//! Shared parts of the tests.
//!
//! # How to test an op
//!
//! ```no_run
//! use braid_tests::{Case, F32};
//! Case::seeded(1).tracked("x", [7, 96]).parameter("gain", [96]).check(F32, |tape, x| {
//!     Ok(vec![braid_engine::ops::rms_norm::rms_norm(tape, x["x"], x["gain"], 1e-6)?])
//! });
//! ```
//!
//! [`Case::check`] records the op over the inputs, with a random gradient for every returned tensor, and
//! 1. holds the gradients of the plain twins in `f64` against finite differences of their own forward pass,
//! 2. holds every other executor (plain `f32`, fast `f32`, GPU with NaN around every buffer) against the plain `f64` one,
//! 3. repeats both with the op recorded twice over the same inputs, so that gradients are added to, not only stored,
//! 4. runs everything twice and asks for the same bits.

mod executors;
pub mod net;
pub mod source;
pub mod vectors;

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use braid_engine::Result;
use braid_engine::executor::{BufferId, Data, Executor, ProgramId, Work};
use braid_engine::kernel::Element;
use braid_engine::ops::copy::copy;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::{External, Plan};
use braid_engine::random::stream;
use braid_engine::shape::Shape;
use braid_engine::tape::{History, Slot, Tape, Tensor};
use rand_distr::{Distribution, StandardNormal};

pub use executors::{executors, gpu, gpu_executor, oracle};

/// Norm-relative error: `|got - want| / |want|` over a tensor.
pub type Tolerance = f64;

/// Copies, index operations, two runs of one plan.
pub const EXACT: Tolerance = 0.0;
/// Forward and gradient of one op in single precision.
pub const F32: Tolerance = 2e-6;
/// Sums over more than about 10,000 terms, one whole sublayer.
pub const F32_LONG: Tolerance = 2e-5;
/// Gradients of a whole model.
pub const MODEL: Tolerance = 1e-4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Tracked,
    Plain,
    Parameter,
    Ints,
}

#[derive(Clone, Debug)]
struct Input {
    name: String,
    shape: Shape,
    kind: Kind,
    values: Vec<f64>,
}

/// Inputs of an op, by name, while it is recorded.
#[derive(Debug)]
pub struct Inputs(BTreeMap<String, Tensor>);

impl Index<&str> for Inputs {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        &self.0[name]
    }
}

impl Inputs {
    /// A history whose slots are copies of the named inputs, in this order.
    ///
    /// # Errors
    /// If an input has not the shape `[rows, dim]`.
    pub fn history(
        &self,
        tape: &mut Tape,
        names: &[&str],
        rows: u32,
        dim: u32,
    ) -> Result<(History, Vec<Slot>)> {
        let history = tape.history("history", rows, dim);
        let mut slots = Vec::new();
        for name in names {
            let fresh = copy(tape, self[*name])?;
            slots.push(tape.push(history, fresh)?);
        }
        Ok((history, slots))
    }
}

/// What came out of a run: everything by name, in `f64`.
///
/// Returned tensors are `out.0`, `out.1`, ..; gradients are `grad.<input>`; tensors that the recording published with
/// `Tape::output` keep their names.
pub type Outcome = BTreeMap<String, Vec<f64>>;

/// Inputs for an op, with values.
#[derive(Clone, Debug)]
pub struct Case {
    seed: u64,
    inputs: Vec<Input>,
    repeats: usize,
    output_gradients: Vec<Vec<f64>>,
}

impl Case {
    /// A case whose random numbers follow from this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            inputs: Vec::new(),
            repeats: 1,
            output_gradients: Vec::new(),
        }
    }

    /// An input with a gradient, standard normal.
    #[must_use]
    pub fn tracked(self, name: &str, shape: impl Into<Shape>) -> Self {
        self.add(name, shape.into(), Kind::Tracked)
    }

    /// An input without a gradient, standard normal.
    #[must_use]
    pub fn plain(self, name: &str, shape: impl Into<Shape>) -> Self {
        self.add(name, shape.into(), Kind::Plain)
    }

    /// A parameter: lives in the arena, its gradient is added to. Standard normal.
    #[must_use]
    pub fn parameter(self, name: &str, shape: impl Into<Shape>) -> Self {
        self.add(name, shape.into(), Kind::Parameter)
    }

    /// Unsigned integers below `bound`.
    #[must_use]
    pub fn ints(mut self, name: &str, shape: impl Into<Shape>, bound: u32) -> Self {
        self = self.add(name, shape.into(), Kind::Ints);
        let mut rng = stream(self.seed, &format!("ints/{name}"));
        let last = self.inputs.last_mut().expect("just added");
        for value in &mut last.values {
            *value = braid_engine::random::below(&mut rng, bound as usize) as f64;
        }
        self
    }

    /// Replace the values of the last input.
    #[must_use]
    pub fn values(mut self, values: &[f64]) -> Self {
        let last = self.inputs.last_mut().expect("values() follows an input");
        assert_eq!(
            values.len(),
            last.shape.len(),
            "as many values as the shape has"
        );
        last.values = values.to_vec();
        self
    }

    /// Replace the values of the last input by `value * deviation + mean`.
    #[must_use]
    pub fn scaled(mut self, deviation: f64, mean: f64) -> Self {
        let last = self.inputs.last_mut().expect("scaled() follows an input");
        last.values
            .iter_mut()
            .for_each(|v| *v = *v * deviation + mean);
        self
    }

    fn add(mut self, name: &str, shape: Shape, kind: Kind) -> Self {
        let mut rng = stream(self.seed, name);
        let values = (0..shape.len())
            .map(|_| StandardNormal.sample(&mut rng))
            .map(|v: f64| f64::from(v as f32))
            .collect();
        self.inputs.push(Input {
            name: name.into(),
            shape,
            kind,
            values,
        });
        self
    }

    /// The gradient of the next returned tensor, instead of random numbers.
    #[must_use]
    pub fn output_gradient(mut self, values: &[f64]) -> Self {
        self.output_gradients.push(values.to_vec());
        self
    }

    /// Replace the values of the named input.
    ///
    /// # Panics
    /// If there is none, or it has another length.
    #[must_use]
    pub fn replaced(mut self, name: &str, values: &[f64]) -> Self {
        let input = self.inputs.iter_mut().find(|input| input.name == name);
        let input = input.expect("a known input");
        assert_eq!(
            input.values.len(),
            values.len(),
            "as many values as the shape has"
        );
        input.values = values.to_vec();
        self
    }

    /// Values of an input.
    #[must_use]
    pub fn input(&self, name: &str) -> &[f64] {
        &self
            .inputs
            .iter()
            .find(|input| input.name == name)
            .expect("a known input")
            .values
    }

    /// Check the op everywhere, as the crate's documentation says.
    ///
    /// # Panics
    /// If anything disagrees.
    pub fn check(
        &self,
        tolerance: Tolerance,
        record: impl Fn(&mut Tape, &Inputs) -> Result<Vec<Tensor>>,
    ) {
        for repeats in [1, 2] {
            let case = Self {
                repeats,
                ..self.clone()
            };
            let want = case.check_gradients(&record);
            for (name, executor) in executors() {
                let mut bench = Bench::new(&case, executor, &record);
                let got = bench.run();
                compare(
                    &format!("{name}, recorded {repeats} x"),
                    &got,
                    &want,
                    tolerance,
                );
                let again = bench.run();
                compare(&format!("{name}, second run"), &again, &got, EXACT);
            }
        }
    }

    /// Run on the plain twins in `f64`.
    pub fn oracle(&self, record: impl Fn(&mut Tape, &Inputs) -> Result<Vec<Tensor>>) -> Outcome {
        Bench::new(self, oracle(), &record).run()
    }

    /// Run on one executor.
    pub fn run_on(
        &self,
        executor: Box<dyn Executor>,
        record: impl Fn(&mut Tape, &Inputs) -> Result<Vec<Tensor>>,
    ) -> Outcome {
        Bench::new(self, executor, &record).run()
    }

    /// Hold gradients against finite differences, both of the plain twins in `f64`; returns the outcome.
    fn check_gradients(
        &self,
        record: &impl Fn(&mut Tape, &Inputs) -> Result<Vec<Tensor>>,
    ) -> Outcome {
        let mut bench = Bench::new(self, oracle(), record);
        let outcome = bench.run();
        let mut rng = stream(self.seed, "elements");
        for input in self
            .inputs
            .iter()
            .filter(|input| matches!(input.kind, Kind::Tracked | Kind::Parameter))
        {
            let gradient = &outcome[&format!("grad.{}", input.name)];
            let (mut off, mut size) = (0.0, 0.0);
            for _ in 0..input.values.len().min(20) {
                let element = braid_engine::random::below(&mut rng, input.values.len());
                let step = 1e-5 * input.values[element].abs().max(0.1);
                let mut at = |shift: f64| {
                    let mut values = input.values.clone();
                    values[element] += shift;
                    bench.write(&input.name, &values);
                    bench.objective()
                };
                // Five-point formula: error of order step^4.
                let slope = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step)))
                    / (12.0 * step);
                off += (slope - gradient[element]).powi(2);
                size += slope.powi(2);
            }
            bench.write(&input.name, &input.values);
            let scale = bench.objective().abs() * 1e-9;
            assert!(
                off.sqrt() <= 2e-6 * size.sqrt() + scale.max(1e-8),
                "seed {}: gradient of `{}` differs from finite differences by {:.1e} of {:.1e}",
                self.seed,
                input.name,
                off.sqrt(),
                size.sqrt()
            );
        }
        outcome
    }
}

/// Every tensor of `got` must be within `tolerance` of `want`.
///
/// A gradient that cancels to nearly nothing (the input of a norm over one channel) carries the rounding noise of its
/// neighbours: three tenths of the tolerance of the largest gradient is always allowed.
///
/// # Panics
/// If one is not.
pub fn compare(what: &str, got: &Outcome, want: &Outcome, tolerance: Tolerance) {
    assert_eq!(
        got.keys().collect::<Vec<_>>(),
        want.keys().collect::<Vec<_>>(),
        "{what}: other tensors"
    );
    let grads = want.iter().filter(|(name, _)| name.starts_with("grad."));
    let largest = grads
        .map(|(_, values)| norm(values.iter().copied()))
        .fold(0.0, f64::max);
    for (name, want) in want {
        let floor = if name.starts_with("grad.") {
            0.3 * largest
        } else {
            0.0
        };
        assert_within(
            &format!("{what}: `{name}`"),
            &got[name],
            want,
            tolerance,
            floor,
        );
    }
}

/// Norm-relative comparison; NaN never passes. A `want` of zeros allows `tolerance` itself.
///
/// # Panics
/// If the error is above `tolerance`.
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: Tolerance) {
    assert_within(what, got, want, tolerance, 0.0);
}

fn assert_within(what: &str, got: &[f64], want: &[f64], tolerance: Tolerance, floor: f64) {
    assert_eq!(got.len(), want.len(), "{what}: other length");
    if tolerance == EXACT {
        let first = got
            .iter()
            .zip(want)
            .position(|(a, b)| a.to_bits() != b.to_bits());
        assert!(first.is_none(), "{what}: other bits at element {first:?}");
        return;
    }
    let off = norm(got.iter().zip(want).map(|(a, b)| a - b));
    let size = norm(want.iter().copied()).max(floor);
    let size = if size < 1e-9 { 1.0 } else { size };
    assert!(
        off <= tolerance * size,
        "{what}: error {:.2e}, allowed {tolerance:.0e}",
        off / size
    );
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

/// One recorded case on one executor.
struct Bench<'a> {
    case: &'a Case,
    executor: Box<dyn Executor>,
    program: ProgramId,
    plan: Plan,
    parameters: Arc<Parameters>,
    values: BufferId,
    grads: BufferId,
    outputs: Vec<String>,
    seeds: BTreeMap<String, Vec<f64>>,
}

impl<'a> Bench<'a> {
    fn new(
        case: &'a Case,
        mut executor: Box<dyn Executor>,
        record: &impl Fn(&mut Tape, &Inputs) -> Result<Vec<Tensor>>,
    ) -> Self {
        let specs = case
            .inputs
            .iter()
            .filter(|input| input.kind == Kind::Parameter);
        let specs = specs
            .map(|i| ParamSpec::routing(&*i.name, i.shape, Init::Constant(0.0)))
            .collect();
        let parameters = Arc::new(Parameters::layout(specs).expect("names differ"));
        let mut tape = Tape::new(parameters.clone());
        let inputs = case.inputs.iter().map(|input| {
            let tensor = match input.kind {
                Kind::Tracked => tape.tracked_input(&input.name, input.shape),
                Kind::Plain => tape.input(&input.name, input.shape),
                Kind::Ints => tape.input_ints(&input.name, input.shape),
                Kind::Parameter => tape.parameter(&input.name).expect("laid out above"),
            };
            (input.name.clone(), tensor)
        });
        let inputs = Inputs(inputs.collect());
        let (mut pairs, mut outputs, mut seeds) = (Vec::new(), Vec::new(), BTreeMap::new());
        for _ in 0..case.repeats {
            for tensor in record(&mut tape, &inputs)
                .unwrap_or_else(|error| panic!("recording failed: {error}"))
            {
                let (name, seed_name) = (
                    format!("out.{}", outputs.len()),
                    format!("seed.{}", outputs.len()),
                );
                tape.output(&name, tensor);
                let seed = tape.input(&seed_name, tensor.shape);
                let mut rng = stream(case.seed, &seed_name);
                let numbers = (0..tensor.shape.len()).map(|_| StandardNormal.sample(&mut rng));
                let random = || numbers.map(|v: f64| f64::from(v as f32)).collect();
                let given = case.output_gradients.get(outputs.len()).cloned();
                seeds.insert(seed_name, given.unwrap_or_else(random));
                outputs.push(name);
                pairs.push((tensor, seed));
            }
        }
        tape.backward(&pairs)
            .unwrap_or_else(|error| panic!("recording the gradient failed: {error}"));
        let plan = tape
            .finish(&executor.limits())
            .unwrap_or_else(|error| panic!("{error}"));
        let arena = parameters.arena_len().max(64);
        let values = executor
            .allocate("values", arena, Element::F32)
            .expect("fits");
        let grads = executor
            .allocate("grads", arena, Element::F32)
            .expect("fits");
        let externals = BTreeMap::from([(External::Values, values), (External::Grads, grads)]);
        let program = executor
            .load(&plan, &externals)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut bench = Self {
            case,
            executor,
            program,
            plan,
            parameters,
            values,
            grads,
            outputs,
            seeds,
        };
        for input in &case.inputs {
            bench.write(&input.name, &input.values);
        }
        for (name, values) in bench.seeds.clone() {
            bench.write_place(&name, &values, false);
        }
        bench
    }

    fn write(&mut self, name: &str, values: &[f64]) {
        let input = self
            .case
            .inputs
            .iter()
            .find(|input| input.name == name)
            .expect("a known input");
        if input.kind == Kind::Parameter {
            let offset = self
                .parameters
                .range(self.parameters.position(name).expect("laid out"))
                .start;
            self.executor
                .write(self.values, offset, Data::F64(values))
                .expect("fits");
        } else {
            self.write_place(name, values, input.kind == Kind::Ints);
        }
    }

    fn write_place(&mut self, name: &str, values: &[f64], ints: bool) {
        let range = self.executor.range(self.program, self.plan.places[name]);
        if ints {
            let values: Vec<u32> = values.iter().map(|&v| v as u32).collect();
            self.executor
                .write(range.buffer, range.offset, Data::U32(&values))
                .expect("fits");
        } else {
            self.executor
                .write(range.buffer, range.offset, Data::F64(values))
                .expect("fits");
        }
    }

    fn run(&mut self) -> Outcome {
        self.executor
            .submit(&[Work::Clear(self.grads), Work::Run(self.program)])
            .expect("runs");
        let inputs: Vec<String> = self
            .case
            .inputs
            .iter()
            .map(|input| input.name.clone())
            .collect();
        let names = self
            .plan
            .places
            .keys()
            .filter(|name| !inputs.contains(name) && !name.starts_with("seed."));
        let mut wanted: Vec<(String, _)> = names
            .map(|name| {
                (
                    name.clone(),
                    self.executor.range(self.program, self.plan.places[name]),
                )
            })
            .collect();
        for input in &self.case.inputs {
            if input.kind == Kind::Parameter {
                let range = self
                    .parameters
                    .range(self.parameters.position(&input.name).expect("laid out"));
                let range = braid_engine::executor::Range {
                    buffer: self.grads,
                    offset: range.start,
                    len: range.len(),
                };
                wanted.push((format!("grad.{}", input.name), range));
            }
        }
        let ranges: Vec<_> = wanted.iter().map(|(_, range)| *range).collect();
        let values =
            pollster::block_on(self.executor.read(&ranges).expect("ranges exist")).expect("reads");
        let mut outcome: Outcome = wanted
            .into_iter()
            .zip(values)
            .map(|((name, _), v)| (name, v.to_f64()))
            .collect();
        for input in self
            .case
            .inputs
            .iter()
            .filter(|input| input.kind == Kind::Tracked)
        {
            outcome
                .entry(format!("grad.{}", input.name))
                .or_insert_with(|| vec![0.0; input.values.len()]);
        }
        outcome
    }

    /// `sum over outputs of <output, seed>`.
    fn objective(&mut self) -> f64 {
        let outcome = self.run();
        let dot = |name: &String| {
            let seed = &self.seeds[&name.replace("out.", "seed.")];
            outcome[name]
                .iter()
                .zip(seed)
                .map(|(a, b)| a * b)
                .sum::<f64>()
        };
        self.outputs.iter().map(dot).sum()
    }
}
