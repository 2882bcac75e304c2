//! What ops are made of and what they may do: tensors, sources, gradients, and the recorder that writes kernels down.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernel::{Element, Kernel, Params};
use crate::plan::{Arg, Home, Origin, Step, Storage, StorageId};
use crate::shape::Shape;

/// A handle to numbers on a tape: an id and a shape. Copy it freely; the tape owns the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(super) id: usize,
    /// Its shape.
    pub shape: Shape,
}

/// Depth sources in one buffer of slots `[slots, rows, dim]`, each written once.
///
/// One buffer, because a kernel has only eight bindings and a site may read dozens of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    pub(super) id: usize,
    /// Tokens.
    pub rows: u32,
    /// Width.
    pub dim: u32,
    /// Elements from one slot to the next.
    pub stride: u32,
}

/// A filled slot of a [`History`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Position in the history.
    pub index: u32,
    /// The tensor in it.
    pub tensor: Tensor,
}

/// One differentiable operation. `forward` writes outputs, `backward` adds into gradients.
///
/// Both may be recorded more than once for one op (`Tape::checkpoint` records `forward` again), so neither may change
/// the op.
pub trait Op: Debug + Send + Sync {
    /// Name for messages.
    fn name(&self) -> &'static str;
    /// Record the kernels that compute the outputs `y` from the inputs `x`.
    ///
    /// # Errors
    /// If a kernel call is malformed.
    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()>;
    /// Record the kernels that add to the gradients of `x`, given the gradients of `y`. Called only if at least one
    /// output has a gradient.
    ///
    /// # Errors
    /// If a kernel call is malformed.
    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()>;
}

/// Where to put a gradient.
#[derive(Clone, Copy, Debug)]
pub struct Grad {
    /// The range.
    pub arg: Arg,
    /// 1: add to what is there. 0: this is the first contribution, store it.
    pub add: u32,
}

#[derive(Debug)]
pub(super) struct Info {
    pub(super) value: Arg,
    pub(super) grad: Option<Arg>,
    /// Something trainable lies behind it.
    pub(super) tracked: bool,
    /// A kernel that writes the gradient has been recorded.
    pub(super) grad_written: bool,
    /// A parameter: its gradient is cleared at the start of a step.
    pub(super) parameter: bool,
    /// Set for tensors in a history: the history and the slot.
    pub(super) slot: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(super) struct HistoryInfo {
    pub(super) values: StorageId,
    pub(super) grads: StorageId,
    pub(super) slots: Vec<Option<Tensor>>,
}

/// What an op may do while it is recorded.
#[derive(Debug, Default)]
pub struct Recorder {
    pub(super) storages: Vec<Storage>,
    pub(super) tensors: Vec<Info>,
    pub(super) histories: Vec<HistoryInfo>,
    pub(super) steps: Vec<Step>,
    pub(super) scope: String,
    /// The op that is being recorded.
    pub(super) origin: Option<Origin>,
}

impl Recorder {
    /// The numbers of a tensor.
    #[must_use]
    pub fn value(&self, tensor: Tensor) -> Arg {
        self.tensors[tensor.id].value
    }

    /// Where to add the gradient of an input; `None` if nothing trainable lies behind it. The caller must record a kernel
    /// that writes it: the next call for this tensor says `add`.
    pub fn grad(&mut self, tensor: Tensor) -> Option<Grad> {
        if !self.tensors[tensor.id].tracked {
            return None;
        }
        let arg = self.grad_arg(tensor);
        let info = &mut self.tensors[tensor.id];
        let add = u32::from(info.grad_written || info.parameter);
        info.grad_written = true;
        Some(Grad { arg, add })
    }

    /// The gradient of an output; `None` if nothing was added to it.
    #[must_use]
    pub fn out_grad(&self, tensor: Tensor) -> Option<Arg> {
        let info = &self.tensors[tensor.id];
        if info.grad_written { info.grad } else { None }
    }

    /// All slots of a history.
    #[must_use]
    pub fn history(&self, history: History) -> Arg {
        let storage = self.histories[history.id].values;
        Arg {
            storage,
            offset: 0,
            len: self.storages[storage.0].len,
        }
    }

    /// The gradients of all slots of a history. Call [`Recorder::grad`] for each slot that the kernel writes.
    #[must_use]
    pub fn history_grad(&self, history: History) -> Arg {
        let storage = self.histories[history.id].grads;
        Arg {
            storage,
            offset: 0,
            len: self.storages[storage.0].len,
        }
    }

    /// The smallest range of the parameter arena (or of its gradients) that covers all `tensors`, and the offset of each
    /// in it. For kernels that need more parameters than there are bindings.
    ///
    /// # Panics
    /// If a tensor is not a parameter: a bug of the calling op.
    #[must_use]
    pub fn span(&self, tensors: &[Tensor]) -> (Arg, Arg, Vec<u32>) {
        let values: Vec<Arg> = tensors.iter().map(|tensor| self.value(*tensor)).collect();
        let start = values.iter().map(|arg| arg.offset).min().unwrap_or(0);
        let end = values
            .iter()
            .map(|arg| arg.offset + arg.len)
            .max()
            .unwrap_or(0);
        let grads = tensors
            .iter()
            .find_map(|tensor| self.tensors[tensor.id].grad)
            .expect("spans are made of parameters");
        let offsets = values
            .iter()
            .map(|arg| u32::try_from(arg.offset - start).unwrap_or(u32::MAX))
            .collect();
        let range = |storage| Arg {
            storage,
            offset: start,
            len: end - start,
        };
        (range(values[0].storage), range(grads.storage), offsets)
    }

    /// Memory for the time between the kernels of one op.
    pub fn scratch(&mut self, label: &str, len: usize) -> Arg {
        let label = format!("{} {label}", self.scope);
        self.storage(label, len, Element::F32, Home::Transient)
    }

    /// As [`Recorder::scratch`], for unsigned integers.
    pub fn scratch_ints(&mut self, label: &str, len: usize) -> Arg {
        let label = format!("{} {label}", self.scope);
        self.storage(label, len, Element::U32, Home::Transient)
    }

    /// Record one kernel call with `items` invocations that have work.
    ///
    /// # Errors
    /// If there is no work, or more than a dispatch can hold.
    pub fn dispatch(
        &mut self,
        kernel: &'static Kernel,
        params: impl Params,
        args: &[Arg],
        items: usize,
    ) -> Result<()> {
        if items == 0 || items > u32::MAX as usize / 4 {
            return Err(Error::Plan {
                kernel: kernel.id(),
                message: format!("{items} invocations in one dispatch"),
            });
        }
        let label = if self.scope.is_empty() {
            kernel.name.into()
        } else {
            format!("{} / {}", self.scope, kernel.name)
        };
        self.steps.push(Step {
            origin: self.origin,
            kernel,
            params: Arc::new(params),
            args: args.to_vec(),
            items,
            large: None,
            label,
        });
        Ok(())
    }

    /// Say which kernel computes the same as the call that was recorded last, with larger tiles: for devices that are
    /// processors. It takes the same parameters and arguments.
    pub fn or_large(&mut self, kernel: &'static Kernel, items: usize) {
        if let Some(step) = self.steps.last_mut() {
            step.large = Some((kernel, items));
        }
    }

    pub(super) fn storage(
        &mut self,
        label: String,
        len: usize,
        element: Element,
        home: Home,
    ) -> Arg {
        self.storages.push(Storage {
            label,
            len,
            element,
            home,
        });
        Arg {
            storage: StorageId(self.storages.len() - 1),
            offset: 0,
            len,
        }
    }

    pub(super) fn grad_arg(&mut self, tensor: Tensor) -> Arg {
        if let Some(arg) = self.tensors[tensor.id].grad {
            return arg;
        }
        let value = self.tensors[tensor.id].value;
        let arg = if let Some((history, slot)) = self.tensors[tensor.id].slot {
            let grads = self.histories[history].grads;
            let stride = self.storages[grads.0].len / self.histories[history].slots.len();
            Arg {
                storage: grads,
                offset: slot * stride,
                len: value.len,
            }
        } else {
            let label = format!("gradient of {}", self.storages[value.storage.0].label);
            self.storage(label, value.len, Element::F32, Home::Transient)
        };
        self.tensors[tensor.id].grad = Some(arg);
        arg
    }

    pub(super) fn tensor(&mut self, value: Arg, tracked: bool, shape: Shape) -> Tensor {
        self.tensors.push(Info {
            value,
            grad: None,
            tracked,
            grad_written: false,
            parameter: false,
            slot: None,
        });
        Tensor {
            id: self.tensors.len() - 1,
            shape,
        }
    }
}
