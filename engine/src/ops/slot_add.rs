//! Adds to a source of a depth history and stores the sum as a new source: the running sum of a block.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{History, Op, Recorder, Slot, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Elements of a slot that are used.
        len: u32,
        /// Elements from one slot to the next.
        stride: u32,
        /// Slot that is read.
        slot_in: u32,
        /// Slot that is written.
        slot_out: u32,
        /// Backward: add to the old slot's gradient instead of storing.
        old_add: u32,
        /// Backward: add to the gradient of `y` instead of storing.
        y_add: u32,
    }
}

#[derive(Debug)]
struct SlotAdd {
    history: History,
    params: Params,
}

/// A new slot that holds `old + y`; `y` is `[rows, dim]` and not itself in this history.
///
/// # Errors
/// If `y` has not the shape of a slot.
pub fn slot_add(tape: &mut Tape, history: History, old: Slot, y: Tensor) -> Result<Slot> {
    let len = history.rows * history.dim;
    if y.shape.len() != len as usize {
        return Err(Error::shape(
            "slot_add",
            "y",
            [history.rows, history.dim],
            y.shape,
        ));
    }
    let slot = tape.reserve(history);
    let params = Params {
        len,
        stride: history.stride,
        slot_in: old.index,
        slot_out: slot.index,
        old_add: 0,
        y_add: 0,
    };
    tape.record_into(
        SlotAdd { history, params },
        &[old.tensor, y],
        vec![slot.tensor],
    )?;
    Ok(slot)
}

impl Op for SlotAdd {
    fn name(&self) -> &'static str {
        "slot_add"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], _: &[Tensor]) -> Result<()> {
        let args = [rec.value(x[1]), rec.history(self.history)];
        rec.dispatch(
            &kernels::SLOT_ADD_FORWARD,
            self.params.clone(),
            &args,
            self.params.len as usize,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], _: &[Tensor]) -> Result<()> {
        let old = rec.grad(x[0]);
        // A source is always tracked; `y` may be an input of a test that is not.
        let Some(dy) = rec.grad(x[1]) else {
            return Err(Error::Op {
                op: "slot_add",
                message: "y must have a gradient".into(),
            });
        };
        let old_add = old.map_or(0, |grad| grad.add);
        let params = Params {
            old_add,
            y_add: dy.add,
            ..self.params.clone()
        };
        let args = [rec.history_grad(self.history), dy.arg];
        rec.dispatch(
            &kernels::SLOT_ADD_BACKWARD,
            params,
            &args,
            self.params.len as usize,
        )
    }
}
