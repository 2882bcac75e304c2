//! What holds for any plan on the GPU executor: equal bits, constant costs, honest errors.

mod devices;
mod faults;
mod readback;
mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::executor::{BufferId, Data, Executor, ProgramId, Range, Values};
use braid_engine::kernel::Element;
use braid_engine::ops::rms_norm::rms_norm;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::{External, Plan};
use braid_engine::tape::Tape;

const ROWS: u32 = 70;
const DIM: u32 = 96;

/// Two norms in a row with their gradients: a small plan with parameters, scratch memory and reuse.
struct Small {
    plan: Plan,
    program: ProgramId,
    values: BufferId,
    grads: BufferId,
}

impl Small {
    fn load(executor: &mut dyn Executor) -> Self {
        let spec = |name| ParamSpec::routing(name, [DIM], Init::Normal(1.0));
        let parameters = Parameters::layout(vec![spec("a"), spec("b")]).expect("names differ");
        let start = parameters.initial_values(1);
        let mut tape = Tape::new(Arc::new(parameters));
        let x = tape.tracked_input("x", [ROWS, DIM]);
        let seed = tape.input("seed", [ROWS, DIM]);
        let [a, b] = ["a", "b"].map(|name| tape.parameter(name).expect("laid out"));
        let y = rms_norm(&mut tape, x, a, 1e-6).expect("shapes fit");
        let y = rms_norm(&mut tape, y, b, 1e-6).expect("shapes fit");
        tape.output("y", y);
        tape.backward(&[(y, seed)]).expect("records");
        let plan = tape.finish(&executor.limits()).expect("fits");
        let mut arena = |label| {
            executor
                .allocate(label, start.len(), Element::F32)
                .expect("fits")
        };
        let (values, grads) = (arena("values"), arena("grads"));
        let externals = BTreeMap::from([(External::Values, values), (External::Grads, grads)]);
        let program = executor.load(&plan, &externals).expect("loads");
        executor.write(values, 0, Data::F32(&start)).expect("fits");
        let small = Self {
            plan,
            program,
            values,
            grads,
        };
        small.write(executor, "x", 0.37);
        small.write(executor, "seed", 0.11);
        small
    }

    fn range(&self, executor: &dyn Executor, name: &str) -> Range {
        executor.range(self.program, self.plan.places[name])
    }

    /// Some numbers between -1 and 1.
    fn write(&self, executor: &mut dyn Executor, name: &str, step: f64) {
        let range = self.range(executor, name);
        let numbers: Vec<f64> = (0..range.len).map(|i| (i as f64 * step).sin()).collect();
        let data = Data::F64(&numbers);
        executor
            .write(range.buffer, range.offset, data)
            .expect("fits");
    }

    /// The output, the gradient of `x` and the gradients of the parameters.
    fn results(&self, executor: &mut dyn Executor) -> Vec<Values> {
        let grads = Range {
            buffer: self.grads,
            offset: 0,
            len: DIM as usize,
        };
        let ranges = [
            self.range(executor, "y"),
            self.range(executor, "grad.x"),
            grads,
        ];
        pollster::block_on(executor.read(&ranges).expect("ranges exist")).expect("arrives")
    }
}
