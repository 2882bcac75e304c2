//! Record an op, its gradient, and run both: the whole engine in forty lines.
//!
//! `cargo run -p braid-engine --example 01_gradient`

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::Result;
use braid_engine::cpu::CpuExecutor;
use braid_engine::executor::{Data, Executor, Work};
use braid_engine::ops::rms_norm::rms_norm;
use braid_engine::params::Parameters;
use braid_engine::tape::Tape;

fn main() -> Result<()> {
    // Recording runs nothing. `y` is a handle; the tape owns the memory.
    let mut tape = Tape::new(Arc::new(Parameters::layout(Vec::new())?));
    let x = tape.tracked_input("x", [2, 4]);
    let gain = tape.tracked_input("gain", [4]);
    let y = rms_norm(&mut tape, x, gain, 1e-6)?;
    tape.output("y", y);
    // The gradient of sum(y): every output element has weight one.
    let ones = tape.constant("ones", [2, 4], vec![1.0; 8]);
    tape.backward(&[(y, ones)])?;

    // Placing decides which bytes each tensor gets. The plan is a value: it can be printed.
    let mut executor = CpuExecutor::<f64>::new(None);
    let plan = tape.finish(&executor.limits())?;
    for step in &plan.steps {
        println!("{:28} {:?}", step.kernel.id(), step.params);
    }

    let program = executor.load(&plan, &BTreeMap::new())?;
    let mut write = |name: &str, values: &[f64]| {
        let range = executor.range(program, plan.places[name]);
        executor.write(range.buffer, range.offset, Data::F64(values))
    };
    write("x", &[1.0, 2.0, 3.0, 4.0, 1.0, -1.0, 1.0, -1.0])?;
    write("gain", &[1.0, 1.0, 1.0, 2.0])?;
    executor.submit(&[Work::Run(program)])?;
    for name in ["y", "grad.x", "grad.gain"] {
        let range = executor.range(program, plan.places[name]);
        let values = pollster::block_on(executor.read(&[range])?)?;
        println!("{name:10} {:.4?}", values[0].to_f64());
    }
    Ok(())
}
