//! Writing a sublayer's output to the partials of both streams.
//!
//! `P^j <- rho P^j + (1 - rho) P^(1-j) + beta_j y`, or `beta_j y` where there are no partials yet (checkpoint format, 4.5
//! and 4.6). The gates are those of [`super::dual_gates`]. Each version of a partial is a slot of a history of its own, so
//! that nothing is overwritten. The kernel is `shaders/dual_write.wgsl`.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{History, Op, Recorder, Slot, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Rows of `y`.
        rows: u32,
        /// Length of a row.
        dim: u32,
        /// First element of the old partial of stream 0 in the history; likewise the next three.
        old0: u32,
        /// See `old0`.
        old1: u32,
        /// See `old0`.
        new0: u32,
        /// See `old0`.
        new1: u32,
        /// Whether there are old partials.
        has_old: u32,
        /// Whether something depends on the new partial of stream 0.
        has_grad0: u32,
        /// The same of stream 1.
        has_grad1: u32,
        /// What to do with the gradient of the old partial of stream 0: store (0), add (1) or [`SKIP`].
        put_old0: u32,
        /// The same of stream 1.
        put_old1: u32,
        /// The same of `y`.
        put_y: u32,
        /// The same of the gates.
        put_gates: u32,
    }
}

/// Nothing trainable lies behind it: leave the gradient alone.
pub const SKIP: u32 = 2;

#[derive(Debug)]
struct DualWrite {
    history: History,
    params: Params,
}

/// Write `y` `[rows, dim]` to both streams with `gates` `[rows, 5]` (see [`super::dual_gates::dual_gates`]). `old` are the
/// partials so far, slots of `history`, `None` if they are empty; both may be the same slot. Returns the new partials, two
/// new slots of `history`.
///
/// # Errors
/// If `y` is not as large as a slot, `gates` are not `[rows, 5]`, or the history is too long for 32-bit offsets.
pub fn dual_write(
    tape: &mut Tape,
    history: History,
    old: Option<[Slot; 2]>,
    gates: Tensor,
    y: Tensor,
) -> Result<[Slot; 2]> {
    let (rows, dim) = (history.rows, history.dim);
    if y.shape.rows() != rows || y.shape.last() != dim {
        return Err(Error::shape("dual_write", "y", [rows, dim], y.shape));
    }
    if gates.shape.rows() != rows || gates.shape.last() != 5 {
        return Err(Error::shape("dual_write", "gates", [rows, 5], gates.shape));
    }
    let new = [tape.reserve(history), tape.reserve(history)];
    let offset = |slot: Slot| {
        slot.index
            .checked_mul(history.stride)
            .ok_or_else(|| Error::Op {
                op: "dual_write",
                message: format!("slot {} begins beyond 2^32 elements", slot.index),
            })
    };
    let [old0, old1] = old.unwrap_or(new);
    let params = Params {
        rows,
        dim,
        old0: offset(old0)?,
        old1: offset(old1)?,
        new0: offset(new[0])?,
        new1: offset(new[1])?,
        has_old: u32::from(old.is_some()),
        has_grad0: 0,
        has_grad1: 0,
        put_old0: SKIP,
        put_old1: SKIP,
        put_y: SKIP,
        put_gates: SKIP,
    };
    let mut inputs = vec![gates, y];
    inputs.extend(old.iter().flatten().map(|slot| slot.tensor));
    tape.record_into(
        DualWrite { history, params },
        &inputs,
        new.map(|slot| slot.tensor).to_vec(),
    )?;
    Ok(new)
}

impl Op for DualWrite {
    fn name(&self) -> &'static str {
        "dual_write"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], _: &[Tensor]) -> Result<()> {
        let args = [rec.value(x[0]), rec.value(x[1]), rec.history(self.history)];
        let items = (self.params.rows * self.params.dim) as usize;
        rec.dispatch(
            &kernels::DUAL_WRITE_FORWARD,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], new: &[Tensor]) -> Result<()> {
        let (gates, y) = (rec.value(x[0]), rec.value(x[1]));
        let (history, history_grad) = (rec.history(self.history), rec.history_grad(self.history));
        let (rows, items) = (
            self.params.rows as usize,
            (self.params.rows * self.params.dim) as usize,
        );
        let mut params = Params {
            has_grad0: u32::from(rec.out_grad(new[0]).is_some()),
            has_grad1: u32::from(rec.out_grad(new[1]).is_some()),
            ..self.params.clone()
        };
        if let Some(dgates) = rec.grad(x[0]) {
            params.put_gates = dgates.add;
            rec.dispatch(
                &kernels::DUAL_WRITE_BACKWARD_GATES,
                params.clone(),
                &[history, y, history_grad, dgates.arg],
                rows,
            )?;
        }
        // If both old partials are one slot, the second call says that it adds to the first.
        let mut old = x[2..].iter().map(|tensor| rec.grad(*tensor));
        let mut put = || old.next().flatten().map_or(SKIP, |grad| grad.add);
        (params.put_old0, params.put_old1) = (put(), put());
        let dy = rec.grad(x[1]);
        params.put_y = dy.map_or(SKIP, |dy| dy.add);
        if [params.put_old0, params.put_old1, params.put_y] == [SKIP; 3] {
            return Ok(());
        }
        let dy = match dy {
            Some(dy) => dy.arg,
            None => rec.scratch("unused gradient", 1),
        };
        rec.dispatch(
            &kernels::DUAL_WRITE_BACKWARD,
            params,
            &[gates, history_grad, dy],
            items,
        )
    }
}
