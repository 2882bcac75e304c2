//! Plans that measure a device: how fast it copies, how fast it multiplies and adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::executor::{Data, Executor, ProgramId, Range, Work};
use crate::ops::anchor;
use crate::params::Parameters;
use crate::tape::Tape;

/// Floats that are copied: too many for any cache.
const COPIED: usize = 8 << 20;
/// Invocations of the other measure: enough for any device.
const INVOCATIONS: usize = 1 << 17;
/// Its rounds.
const ROUNDS: u32 = 128;

/// Both measures, loaded.
#[derive(Clone, Copy, Debug)]
pub struct Anchors {
    program: ProgramId,
    end: Range,
}

impl Anchors {
    /// Bytes that [`Anchors::copy`] reads and writes.
    pub const COPY_BYTES: u64 = 2 * 4 * COPIED as u64;
    /// Float operations of [`Anchors::multiply_add`].
    pub const OPERATIONS: u64 = INVOCATIONS as u64 * ROUNDS as u64 * anchor::OPERATIONS;

    /// Allocate and load.
    ///
    /// # Errors
    /// If they do not fit the device.
    pub fn load(executor: &mut dyn Executor) -> Result<Self> {
        let mut tape = Tape::new(Arc::new(Parameters::layout(Vec::new())?));
        let source = tape.input("source", [COPIED as u32]);
        let copied = anchor::copy(&mut tape, source)?;
        let start = tape.input("start", [4 * INVOCATIONS as u32]);
        let end = anchor::multiply_add(&mut tape, start, ROUNDS)?;
        tape.output("copied", copied);
        tape.output("end", end);
        let plan = tape.finish(&executor.limits())?;
        let program = executor.load(&plan, &BTreeMap::new())?;
        for name in ["source", "start"] {
            let range = executor.range(program, plan.places[name]);
            let ones = vec![1.0; range.len];
            executor.write(range.buffer, range.offset, Data::F32(&ones))?;
        }
        let end = executor.range(program, plan.places["end"]);
        Ok(Self { program, end })
    }

    /// Copy.
    #[must_use]
    pub fn copy(&self, times: usize) -> Work {
        self.call(0, times)
    }

    /// Multiply and add.
    #[must_use]
    pub fn multiply_add(&self, times: usize) -> Work {
        self.call(1, times)
    }

    /// A number to read when one wants to wait for the device.
    #[must_use]
    pub fn end(&self) -> Range {
        Range { len: 1, ..self.end }
    }

    fn call(&self, number: usize, times: usize) -> Work {
        Work::Repeat {
            program: self.program,
            first: number,
            last: number,
            times,
        }
    }
}
