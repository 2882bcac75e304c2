//! Reverse-mode autodiff by recording.
//!
//! Nothing runs while a model is recorded. Calling an op writes its kernels down, in order, and keeps the op, so that
//! [`Tape::backward`] can write down the kernels of its gradient. [`Tape::finish`] decides which bytes each tensor gets.
//! The result is a [`Plan`]: a flat list of kernel calls that is executed, unchanged, once a training step.
//!
//! Two rules make this simple:
//! * **Recording order is a topological order**, so its reverse is all the graph walking that `backward` needs.
//! * **Forward writes, backward adds.** The recorder knows who comes first: [`Recorder::grad`] says whether a gradient has
//!   been written before, and the kernel stores or adds. No gradient has to be cleared, except those of parameters,
//!   which are cleared once a step and always added to (that makes gradient accumulation free).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernel::{Element, Kernel, Params};
use crate::params::{ALIGNMENT, Parameters};
use crate::plan::{Arg, External, Home, Limits, Origin, Pass, Plan};
use crate::shape::Shape;

mod recorder;

use recorder::HistoryInfo;
pub use recorder::{Grad, History, Op, Recorder, Slot, Tensor};

#[derive(Debug)]
struct Node {
    op: Arc<dyn Op>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    scope: String,
}

/// Records a model, its gradient, and what happens to both.
#[derive(Debug)]
pub struct Tape {
    rec: Recorder,
    nodes: Vec<Node>,
    segments: Vec<(Range<usize>, Vec<Tensor>)>,
    named: BTreeMap<String, Tensor>,
    parameters: Arc<Parameters>,
    parameter_tensors: Vec<Option<Tensor>>,
    watching: bool,
    checkpointing: bool,
    editing: bool,
    sharing: bool,
    analysing: bool,
    /// Depth mixes that can be edited so far.
    edits: usize,
}

/// Name of the input that edits the `number`th depth mix of an editing tape, in the order of recording.
#[must_use]
pub fn edit_name(number: usize) -> String {
    format!("edit.{number}")
}

/// Name of the input that the weights of the `number`th depth mix become while routing is frozen.
#[must_use]
pub fn frozen_name(number: usize) -> String {
    format!("frozen.{number}")
}

/// Name of the input that freezes routing while it is not 0.
pub const FREEZE: &str = "freeze";

impl Tape {
    /// An empty tape over a set of parameters.
    #[must_use]
    pub fn new(parameters: Arc<Parameters>) -> Self {
        let parameter_tensors = vec![None; parameters.specs().len()];
        Self {
            rec: Recorder::default(),
            nodes: Vec::new(),
            segments: Vec::new(),
            named: BTreeMap::new(),
            parameters,
            parameter_tensors,
            watching: false,
            checkpointing: false,
            editing: false,
            sharing: true,
            analysing: false,
            edits: 0,
        }
    }

    /// Let a caller change the weights of every depth mix (see [`crate::ops::edit_weights`]). For evaluation: edits have no
    /// gradient.
    #[must_use]
    pub fn editing(mut self, on: bool) -> Self {
        self.editing = on;
        self
    }

    /// Whether depth mixes can be edited.
    #[must_use]
    pub fn is_editing(&self) -> bool {
        self.editing
    }

    /// The input that edits the next depth mix, `len` floats; `None` on a tape that is not editing.
    pub fn next_edit(&mut self, len: u32) -> Option<Tensor> {
        if !self.editing {
            return None;
        }
        let name = edit_name(self.edits);
        self.edits += 1;
        Some(self.input(&name, [len]))
    }

    /// Record a model for analyses: watching and editing, and with states, weights and gates that the caller can replace (see
    /// [`crate::ops::replace`]).
    #[must_use]
    pub fn analysing(mut self) -> Self {
        (self.analysing, self.watching, self.editing) = (true, true, true);
        self
    }

    /// Whether the tape is for analyses.
    #[must_use]
    pub fn is_analysing(&self) -> bool {
        self.analysing
    }

    /// On an analysing tape: the switch that freezes routing, and the weights `[rows, columns]` that the depth mix whose edit
    /// comes next then has.
    pub fn next_frozen(&mut self, rows: u32, columns: u32) -> Option<[Tensor; 2]> {
        self.analysing.then(|| {
            let name = frozen_name(self.edits);
            [(FREEZE, [1, 1]), (&name, [rows, columns])]
                .map(|(name, shape)| self.standing_input(name, shape))
        })
    }

    /// An input that several parts of a model share: the one of this name, or a new one.
    pub fn standing_input(&mut self, name: &str, shape: impl Into<Shape>) -> Tensor {
        match self.named.get(name) {
            Some(&input) => input,
            None => self.input(name, shape),
        }
    }

    /// Keep what [`Tape::watch`] names; without this, watching costs nothing.
    #[must_use]
    pub fn watching(mut self, on: bool) -> Self {
        self.watching = on;
        self
    }

    /// Whether [`Tape::watch`] keeps anything.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.watching
    }

    /// Let [`Tape::checkpoint`] drop and recompute; without this it only calls its closure.
    #[must_use]
    pub fn checkpointing(mut self, on: bool) -> Self {
        self.checkpointing = on;
        self
    }

    /// Let tensors whose lives do not meet share memory, which is the default. Without, any part of a plan that has run once
    /// can run again and finds its inputs: for measurements.
    #[must_use]
    pub fn sharing(mut self, on: bool) -> Self {
        self.sharing = on;
        self
    }

    /// The parameters behind this tape.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// Floats that the caller writes before each run; `name` finds them in the plan. Not tracked.
    pub fn input(&mut self, name: &str, shape: impl Into<Shape>) -> Tensor {
        self.add_input(name, shape.into(), Element::F32)
    }

    /// Unsigned integers that the caller writes before each run.
    pub fn input_ints(&mut self, name: &str, shape: impl Into<Shape>) -> Tensor {
        self.add_input(name, shape.into(), Element::U32)
    }

    /// A float input that has a gradient, for tests of single ops: `grad.<name>` finds it in the plan.
    pub fn tracked_input(&mut self, name: &str, shape: impl Into<Shape>) -> Tensor {
        let tensor = self.add_input(name, shape.into(), Element::F32);
        self.rec.tensors[tensor.id].tracked = true;
        tensor
    }

    fn add_input(&mut self, name: &str, shape: Shape, element: Element) -> Tensor {
        let value = self
            .rec
            .storage(name.into(), shape.len(), element, Home::Kept);
        let tensor = self.rec.tensor(value, false, shape);
        self.named.insert(name.into(), tensor);
        tensor
    }

    /// Numbers that never change, such as rotary tables.
    pub fn constant(&mut self, label: &str, shape: impl Into<Shape>, content: Vec<f64>) -> Tensor {
        let shape = shape.into();
        let value = self.rec.storage(
            label.into(),
            content.len(),
            Element::F32,
            Home::Constant(Arc::new(content)),
        );
        self.rec.tensor(value, false, shape)
    }

    /// A parameter by name, in its checkpoint shape.
    ///
    /// # Errors
    /// If there is no such parameter: the model and its parameter table disagree.
    pub fn parameter(&mut self, name: &str) -> Result<Tensor> {
        let missing = || Error::Op {
            op: "parameter",
            message: format!("`{name}` is not in the parameter table"),
        };
        let number = self.parameters.position(name).ok_or_else(missing)?;
        if let Some(tensor) = self.parameter_tensors[number] {
            return Ok(tensor);
        }
        let range = self.parameters.range(number);
        let spec = &self.parameters.specs()[number];
        let (shape, trained) = (spec.shape, !spec.group.untrained);
        let end = self.parameters.arena_len();
        let mut whole = |external, label: String| {
            let arg = self
                .rec
                .storage(label, end, Element::F32, Home::External(external));
            Arg {
                storage: arg.storage,
                offset: range.start,
                len: range.len(),
            }
        };
        let value = whole(External::Values, name.into());
        let grad = whole(External::Grads, format!("gradient of {name}"));
        let tensor = self.rec.tensor(value, trained, shape);
        let info = &mut self.rec.tensors[tensor.id];
        (info.grad, info.parameter) = (Some(grad), true);
        self.parameter_tensors[number] = Some(tensor);
        Ok(tensor)
    }

    /// The whole of a caller-owned buffer.
    pub fn external(&mut self, external: External, len: usize) -> Tensor {
        let value = self.rec.storage(
            format!("{external:?}"),
            len,
            Element::F32,
            Home::External(external),
        );
        self.rec.tensor(
            value,
            false,
            Shape::from([u32::try_from(len).unwrap_or(u32::MAX)]),
        )
    }

    /// A range of a caller-owned buffer of `len` elements, for a buffer that is larger than a binding.
    pub fn external_range(
        &mut self,
        external: External,
        len: usize,
        range: Range<usize>,
    ) -> Tensor {
        let whole = self.external(external, len);
        let value = Arg {
            offset: range.start,
            len: range.len(),
            ..self.rec.value(whole)
        };
        let shape = Shape::from([u32::try_from(range.len()).unwrap_or(u32::MAX)]);
        self.rec.tensor(value, false, shape)
    }

    /// Record an op: its forward kernels now, its gradient if `backward` reaches it.
    ///
    /// # Errors
    /// As [`Op::forward`].
    pub fn record(
        &mut self,
        op: impl Op + 'static,
        inputs: &[Tensor],
        outputs: &[Shape],
    ) -> Result<Vec<Tensor>> {
        let outputs: Vec<_> = outputs.iter().map(|&shape| (shape, Element::F32)).collect();
        self.record_typed(op, inputs, &outputs)
    }

    /// As [`Tape::record`], with outputs that may be unsigned integers: row numbers, choices. Those have no gradient.
    ///
    /// # Errors
    /// As [`Op::forward`].
    pub fn record_typed(
        &mut self,
        op: impl Op + 'static,
        inputs: &[Tensor],
        outputs: &[(Shape, Element)],
    ) -> Result<Vec<Tensor>> {
        let tracked = inputs
            .iter()
            .any(|tensor| self.rec.tensors[tensor.id].tracked);
        let label = if self.rec.scope.is_empty() {
            op.name().into()
        } else {
            format!("{} / {}", self.rec.scope, op.name())
        };
        let outputs: Vec<Tensor> = outputs
            .iter()
            .map(|&(shape, element)| {
                let value = self
                    .rec
                    .storage(label.clone(), shape.len(), element, Home::Transient);
                self.rec
                    .tensor(value, tracked && element == Element::F32, shape)
            })
            .collect();
        self.record_into(op, inputs, outputs)
    }

    /// As [`Tape::record`], with outputs that exist already (slots of a history).
    ///
    /// # Errors
    /// As [`Op::forward`].
    pub fn record_into(
        &mut self,
        op: impl Op + 'static,
        inputs: &[Tensor],
        outputs: Vec<Tensor>,
    ) -> Result<Vec<Tensor>> {
        let number = self.nodes.len();
        self.rec.origin = Some(origin(&op, number, Pass::Forward));
        op.forward(&mut self.rec, inputs, &outputs)?;
        self.rec.origin = None;
        self.nodes.push(Node {
            op: Arc::new(op),
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            scope: self.rec.scope.clone(),
        });
        Ok(outputs)
    }

    /// Record a kernel call that has no gradient (optimiser, statistics).
    ///
    /// # Errors
    /// As [`Recorder::dispatch`].
    pub fn dispatch(
        &mut self,
        kernel: &'static Kernel,
        params: impl Params,
        args: &[Tensor],
        items: usize,
    ) -> Result<()> {
        let args: Vec<Arg> = args.iter().map(|tensor| self.rec.value(*tensor)).collect();
        self.rec.dispatch(kernel, params, &args, items)
    }

    /// As [`Recorder::or_large`], for the call of [`Tape::dispatch`].
    pub fn or_large(&mut self, kernel: &'static Kernel, items: usize) {
        self.rec.or_large(kernel, items);
    }

    /// Memory for kernels recorded with [`Tape::dispatch`].
    pub fn scratch(&mut self, label: &str, len: usize) -> Tensor {
        let value = self.rec.scratch(label, len);
        self.rec.tensor(
            value,
            false,
            Shape::from([u32::try_from(len).unwrap_or(u32::MAX)]),
        )
    }

    /// The same numbers under another shape.
    ///
    /// # Panics
    /// If the lengths differ: a bug of the calling module.
    #[must_use]
    pub fn reshape(&self, tensor: Tensor, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        assert_eq!(
            shape.len(),
            tensor.shape.len(),
            "reshape keeps the number of elements"
        );
        Tensor {
            id: tensor.id,
            shape,
        }
    }

    /// Everything recorded by `body` is labelled with `name`.
    ///
    /// # Errors
    /// As `body`.
    pub fn scope<R>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let outer = self.rec.scope.clone();
        self.rec.scope = if outer.is_empty() {
            name.into()
        } else {
            format!("{outer}.{name}")
        };
        let result = body(self);
        self.rec.scope = outer;
        result
    }

    /// Publish a tensor under a name, if this tape is watching. It keeps its buffer until the end of the plan.
    pub fn watch(&mut self, name: impl FnOnce() -> String, tensor: Tensor) {
        if self.watching {
            self.named.insert(name(), tensor);
        }
    }

    /// Publish a tensor under a name, always.
    pub fn output(&mut self, name: &str, tensor: Tensor) {
        self.named.insert(name.into(), tensor);
    }

    /// Open a history of depth sources.
    pub fn history(&mut self, label: &str, rows: u32, dim: u32) -> History {
        let stride = (rows * dim).next_multiple_of(ALIGNMENT as u32);
        let values = self
            .rec
            .storage(label.into(), 0, Element::F32, Home::Transient)
            .storage;
        let grads = self
            .rec
            .storage(
                format!("gradient of {label}"),
                0,
                Element::F32,
                Home::Transient,
            )
            .storage;
        self.rec.histories.push(HistoryInfo {
            values,
            grads,
            slots: Vec::new(),
        });
        History {
            id: self.rec.histories.len() - 1,
            rows,
            dim,
            stride,
        }
    }

    /// Make the output of an earlier op the next slot of a history. Nothing is copied: the op's output *moves* there.
    ///
    /// # Errors
    /// If the tensor has not the history's shape, or has no memory of its own to give away.
    pub fn push(&mut self, history: History, tensor: Tensor) -> Result<Slot> {
        if tensor.shape.len() != (history.rows * history.dim) as usize {
            return Err(Error::shape(
                "history",
                "source",
                [history.rows, history.dim],
                tensor.shape,
            ));
        }
        let value = self.rec.value(tensor);
        let movable =
            matches!(self.rec.storages[value.storage.0].home, Home::Transient) && value.offset == 0;
        if !movable
            || self.rec.tensors[tensor.id].grad.is_some()
            || self.rec.tensors[tensor.id].slot.is_some()
        {
            return Err(Error::Op {
                op: "history",
                message: "only the fresh output of an op can become a source".into(),
            });
        }
        let slot = self.reserve(history);
        let place = self.rec.value(slot.tensor);
        self.rec.storages[value.storage.0].home = Home::Within(place.storage, place.offset);
        self.rec.tensors[tensor.id].slot = self.rec.tensors[slot.tensor.id].slot;
        self.rec.histories[history.id].slots[slot.index as usize] = Some(tensor);
        Ok(Slot {
            index: slot.index,
            tensor,
        })
    }

    /// An empty slot, to be filled by [`Tape::record_into`].
    pub fn reserve(&mut self, history: History) -> Slot {
        let info = &mut self.rec.histories[history.id];
        let index = info.slots.len();
        let (values, grads) = (info.values, info.grads);
        let stride = history.stride as usize;
        for storage in [values, grads] {
            self.rec.storages[storage.0].len = stride * (index + 1);
        }
        let arg = Arg {
            storage: values,
            offset: index * stride,
            len: (history.rows * history.dim) as usize,
        };
        let tensor = self
            .rec
            .tensor(arg, true, Shape::from([history.rows, history.dim]));
        self.rec.tensors[tensor.id].slot = Some((history.id, index));
        self.rec.histories[history.id].slots.push(Some(tensor));
        Slot {
            index: index as u32,
            tensor,
        }
    }

    /// Record `body` so that its inner tensors are dropped after use and computed again for the gradient.
    ///
    /// # Errors
    /// As `body`.
    pub fn checkpoint(&mut self, body: impl FnOnce(&mut Self) -> Result<Tensor>) -> Result<Tensor> {
        let start = self.nodes.len();
        let output = body(self)?;
        if self.checkpointing {
            self.segments.push((start..self.nodes.len(), vec![output]));
        }
        Ok(output)
    }

    /// Record the gradient of `sum over pairs of <output, seed>` with respect to every tracked tensor. For a loss, the
    /// seed is a constant 1.
    ///
    /// # Errors
    /// If nothing trainable lies behind an output, or as [`Op::backward`].
    pub fn backward(&mut self, outputs: &[(Tensor, Tensor)]) -> Result<()> {
        for &(output, seed) in outputs {
            if !self.rec.tensors[output.id].tracked {
                return Err(Error::Op {
                    op: "backward",
                    message: "nothing trainable lies behind the loss".into(),
                });
            }
            let seed = self.rec.value(seed);
            let info = &mut self.rec.tensors[output.id];
            if info.slot.is_some() {
                let message =
                    "a source of a history has its gradient there; take the gradient of a copy";
                return Err(Error::Op {
                    op: "backward",
                    message: message.into(),
                });
            }
            (info.grad, info.grad_written) = (Some(seed), true);
        }
        let outer = self.rec.scope.clone();
        for position in (0..self.nodes.len()).rev() {
            if let Some(segment) = self
                .segments
                .iter()
                .position(|(range, _)| range.end == position + 1)
            {
                self.recompute(segment)?;
            }
            let node = &self.nodes[position];
            if node
                .outputs
                .iter()
                .any(|&tensor| self.rec.out_grad(tensor).is_some())
            {
                self.rec.scope = format!("gradient of {}", node.scope);
                self.rec.origin = Some(origin(&*node.op, position, Pass::Backward));
                node.op
                    .backward(&mut self.rec, &node.inputs, &node.outputs)?;
            }
        }
        (self.rec.scope, self.rec.origin) = (outer, None);
        for (name, tensor) in self.named.clone() {
            let info = &self.rec.tensors[tensor.id];
            if let (true, Some(grad), Home::Kept) = (
                info.grad_written,
                info.grad,
                &self.rec.storages[info.value.storage.0].home,
            ) {
                let alias = self.rec.tensor(grad, false, tensor.shape);
                self.named.insert(format!("grad.{name}"), alias);
            }
        }
        Ok(())
    }

    /// Record the forward kernels of a checkpointed segment a second time, into fresh memory.
    fn recompute(&mut self, segment: usize) -> Result<()> {
        let (range, outputs) = self.segments[segment].clone();
        for position in range {
            let node = &self.nodes[position];
            let inner: Vec<Tensor> = node
                .outputs
                .iter()
                .copied()
                .filter(|tensor| outputs.iter().all(|output| output.id != tensor.id))
                .collect();
            if inner.is_empty() {
                continue;
            }
            for tensor in inner {
                let old = self.rec.value(tensor);
                if self.rec.tensors[tensor.id].slot.is_some() {
                    continue; // sources stay where they are
                }
                let storage = &self.rec.storages[old.storage.0];
                let (label, element) = (format!("{} (again)", storage.label), storage.element);
                let fresh = self.rec.storage(label, old.len, element, Home::Transient);
                self.rec.tensors[tensor.id].value = fresh;
            }
            self.rec.scope = format!("{} again", node.scope);
            self.rec.origin = Some(origin(&*node.op, position, Pass::Forward));
            node.op
                .forward(&mut self.rec, &node.inputs, &node.outputs)?;
        }
        Ok(())
    }

    /// The gradient of a tensor, after [`Tape::backward`]; `None` if there is none.
    pub fn gradient(&mut self, tensor: Tensor) -> Option<Tensor> {
        let grad = self.rec.out_grad(tensor)?;
        Some(self.rec.tensor(grad, false, tensor.shape))
    }

    /// Place every tensor and return the plan.
    ///
    /// # Errors
    /// If something does not fit `limits`, or a kernel call is malformed.
    pub fn finish(self, limits: &Limits) -> Result<Plan> {
        let named = self
            .named
            .iter()
            .map(|(name, tensor)| (name.clone(), self.rec.value(*tensor)))
            .collect();
        let rec = self.rec;
        Plan::build(&rec.storages, rec.steps, &named, self.sharing, limits)
    }
}

fn origin(op: &dyn Op, number: usize, pass: Pass) -> Origin {
    Origin {
        op: op.name(),
        number,
        pass,
    }
}
