//! A model on a device: its parameters, their gradients and moments, and the plans loaded over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::executor::{
    BufferId, Counts, Data, Executor, NonFinite, ProgramId, Range, Values, Work,
};
use crate::kernel::Element;
use crate::models::plans::{IDS, LABELS, ModelPlan};
use crate::optim::{STATUS_LEN, STATUS_STOPPED, STEP_SCALARS_LEN, StepScalars};
use crate::params::Parameters;
use crate::plan::{BufferRef, BufferSpec, External, Limits, Place, Plan};

/// A loaded plan.
#[derive(Debug)]
pub struct Loaded {
    /// Its number on the executor.
    pub program: ProgramId,
    /// Inputs and outputs by name.
    pub places: BTreeMap<String, Place>,
    /// Buffers that hold nothing between two runs.
    scratch: Vec<Range>,
}

/// Parameters on a device. Everything else (which step, which data) is the caller's.
pub struct Runtime {
    executor: Box<dyn Executor>,
    parameters: Arc<Parameters>,
    externals: BTreeMap<External, BufferId>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("parameters", &self.parameters.count())
            .finish_non_exhaustive()
    }
}

/// The buffers that have the layout of the parameters.
pub const ARENAS: [External; 4] = [
    External::Values,
    External::Grads,
    External::FirstMoment,
    External::SecondMoment,
];

impl Runtime {
    /// Allocate all arenas, filled with zeros.
    ///
    /// # Errors
    /// If they do not fit the device.
    pub fn new(mut executor: Box<dyn Executor>, parameters: Arc<Parameters>) -> Result<Self> {
        let mut externals = BTreeMap::new();
        for arena in ARENAS {
            let label = format!("{arena:?} of all parameters");
            externals.insert(
                arena,
                executor.allocate(&label, parameters.arena_len(), Element::F32)?,
            );
        }
        for (external, len) in [
            (External::StepScalars, STEP_SCALARS_LEN),
            (External::Status, STATUS_LEN),
        ] {
            externals.insert(
                external,
                executor.allocate(&format!("{external:?}"), len, Element::F32)?,
            );
        }
        Ok(Self {
            executor,
            parameters,
            externals,
        })
    }

    /// The parameters' names and places.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// What the device can hold.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.executor.limits()
    }

    /// Submissions that the device has not finished.
    ///
    /// # Errors
    /// If the device fails.
    pub fn in_flight(&mut self) -> Result<usize> {
        self.executor.in_flight()
    }

    /// Running totals of the executor.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.executor.counts()
    }

    /// Load a plan.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn load(&mut self, plan: &Plan) -> Result<Loaded> {
        let program = self.executor.load(plan, &self.externals)?;
        let is_named = |buffer| {
            plan.places
                .values()
                .any(|place| place.buffer == BufferRef::Own(buffer))
        };
        let scratch = plan.buffers.iter().enumerate().filter(|(number, spec)| {
            spec.content.is_none() && spec.element == Element::F32 && !is_named(*number)
        });
        let whole = |(number, spec): (usize, &BufferSpec)| {
            let place = Place {
                buffer: BufferRef::Own(number),
                offset: 0,
                len: spec.len,
            };
            self.executor.range(program, place)
        };
        let scratch = scratch.map(whole).collect();
        Ok(Loaded {
            program,
            places: plan.places.clone(),
            scratch,
        })
    }

    /// Load a model's plan.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn load_model(&mut self, plan: &ModelPlan) -> Result<Loaded> {
        self.load(&plan.plan)
    }

    /// Write token numbers, and labels where the plan has them.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn write_batch(&mut self, loaded: &Loaded, ids: &[u32], labels: &[u32]) -> Result<()> {
        for (name, tokens) in [(IDS, ids), (LABELS, labels)] {
            if let Some(&place) = loaded.places.get(name) {
                if tokens.len() != place.len {
                    let message = format!(
                        "{} tokens for {} places of `{name}`",
                        tokens.len(),
                        place.len
                    );
                    return Err(Error::Op {
                        op: "write_batch",
                        message,
                    });
                }
                let range = self.executor.range(loaded.program, place);
                self.executor
                    .write(range.buffer, range.offset, Data::U32(tokens))?;
            }
        }
        Ok(())
    }

    /// Write a float input.
    ///
    /// # Errors
    /// If the plan has no such input, or the numbers do not fit it.
    pub fn write_input(&mut self, loaded: &Loaded, name: &str, data: Data<'_>) -> Result<()> {
        match loaded.places.get(name) {
            Some(&place) if place.len == data.len() => {
                let range = self.executor.range(loaded.program, place);
                self.executor.write(range.buffer, range.offset, data)
            }
            place => Err(Error::Op {
                op: "write_input",
                message: format!(
                    "{} numbers for {} places of `{name}`",
                    data.len(),
                    place.map_or(0, |place| place.len)
                ),
            }),
        }
    }

    /// Write the numbers of the next update.
    ///
    /// # Errors
    /// If the device fails.
    pub fn write_scalars(&mut self, scalars: &StepScalars) -> Result<()> {
        self.executor.write(
            self.externals[&External::StepScalars],
            0,
            Data::F64(&scalars.to_values()),
        )
    }

    /// Run loaded plans in one submission, in order; `clear` clears the gradients before.
    ///
    /// # Errors
    /// If the device fails.
    pub fn submit(&mut self, clear: bool, plans: &[&Loaded]) -> Result<()> {
        let mut work = Vec::with_capacity(plans.len() + 1);
        if clear {
            work.push(Work::Clear(self.externals[&External::Grads]));
        }
        work.extend(plans.iter().map(|loaded| Work::Run(loaded.program)));
        self.executor.submit(&work)
    }

    /// The whole of a caller-owned buffer.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn read_external(&mut self, external: External) -> Result<Values> {
        let len = match external {
            External::StepScalars => STEP_SCALARS_LEN,
            External::Status => STATUS_LEN,
            _ => self.parameters.arena_len(),
        };
        let range = Range {
            buffer: self.externals[&external],
            offset: 0,
            len,
        };
        let mut values = self.executor.read(&[range])?.await?;
        values.pop().ok_or_else(|| Error::Op {
            op: "read",
            message: "nothing came back".into(),
        })
    }

    /// Overwrite a caller-owned buffer from its start.
    ///
    /// # Errors
    /// If the data does not fit.
    pub fn write_external(&mut self, external: External, data: Data<'_>) -> Result<()> {
        self.executor.write(self.externals[&external], 0, data)
    }

    /// Outputs of a loaded plan, in the order of `names`.
    ///
    /// # Errors
    /// If a name is not an output.
    pub async fn read(&mut self, loaded: &Loaded, names: &[String]) -> Result<Vec<Values>> {
        let mut ranges = Vec::new();
        for name in names {
            let missing = || Error::Op {
                op: "read",
                message: format!("the plan does not publish `{name}`"),
            };
            let place = loaded.places.get(name).ok_or_else(missing)?;
            ranges.push(self.executor.range(loaded.program, *place));
        }
        self.executor.read(&ranges)?.await
    }

    /// Run a loaded plan once, measuring each kernel call by itself (see [`Executor::profile`]).
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile(
        &mut self,
        loaded: &Loaded,
        clock: &dyn Fn() -> f64,
    ) -> Result<Option<Vec<f64>>> {
        self.executor.profile(loaded.program, clock)?.await
    }

    /// Run a plan one kernel at a time and name the first tensor that is not finite.
    ///
    /// What an earlier run left behind is cleared first: some kernels bind more than they write. The stop flag stays set, so
    /// that an update changes nothing.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn find_non_finite(&mut self, loaded: &Loaded) -> Result<Option<NonFinite>> {
        let longest = loaded
            .scratch
            .iter()
            .map(|range| range.len)
            .max()
            .unwrap_or(0);
        let zeros = vec![0.0; longest];
        for range in &loaded.scratch {
            self.executor
                .write(range.buffer, range.offset, Data::F32(&zeros[..range.len]))?;
        }
        let mut status = [0.0; STATUS_LEN];
        status[STATUS_STOPPED] = 1.0;
        self.write_external(External::Status, Data::F32(&status))?;
        self.executor.find_non_finite(loaded.program).await
    }
}
