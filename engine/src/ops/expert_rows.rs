//! Between tokens and the rows of their experts: [`gather`] takes tokens to rows, [`combine`] adds the rows up again.
//!
//! The order of rows is that of [`super::expert_sort`]. The kernels are `shaders/expert_rows.wgsl`.

use super::expert_sort::Sorted;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        tokens: u32,
        /// Rows, padding included.
        rows: u32,
        /// Width.
        dim: u32,
        /// Experts that a token uses.
        top_k: u32,
        /// Experts.
        experts: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

impl Params {
    fn new(sorted: &Sorted, dim: u32) -> Self {
        Self {
            tokens: sorted.chosen.shape.rows(),
            rows: sorted.rows,
            dim,
            top_k: sorted.chosen.shape.last(),
            experts: sorted.experts,
            add: 0,
        }
    }

    fn adding(&self, add: u32) -> Self {
        Self {
            add,
            ..self.clone()
        }
    }

    fn row_items(&self) -> usize {
        self.rows as usize * self.dim as usize
    }

    fn token_items(&self) -> usize {
        self.tokens as usize * self.dim as usize
    }
}

#[derive(Debug)]
struct Gather {
    params: Params,
}

/// Rows `[rows, dim]` of the tokens `x` `[tokens, dim]`; padding is 0.
///
/// # Errors
/// If there are not as many tokens as were sorted.
pub fn gather(tape: &mut Tape, x: Tensor, sorted: &Sorted) -> Result<Tensor> {
    let params = Params::new(sorted, x.shape.last());
    if x.shape.rows() != params.tokens {
        return Err(Error::shape(
            "gather",
            "x",
            ["tokens sorted", "dim"],
            x.shape,
        ));
    }
    let shape = Shape::from([params.rows, params.dim]);
    let inputs = [x, sorted.row_pair, sorted.slot_row];
    Ok(tape.record(Gather { params }, &inputs, &[shape])?[0])
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [x[1], x[0], y[0]].map(|tensor| rec.value(tensor));
        let items = self.params.row_items();
        rec.dispatch(
            &kernels::EXPERT_ROWS_FORWARD_GATHER,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dxs), Some(dx)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let args = [rec.value(x[2]), dxs, dx.arg];
        let (params, items) = (self.params.adding(dx.add), self.params.token_items());
        rec.dispatch(&kernels::EXPERT_ROWS_BACKWARD_GATHER, params, &args, items)
    }
}

#[derive(Debug)]
struct Combine {
    params: Params,
}

/// `y[t] = sum over slots, in order, of gates[t, e] u[row of (t, slot)]`, `[tokens, dim]`, for `u` `[rows, dim]` and `gates`
/// `[tokens, experts]`.
///
/// # Errors
/// If the shapes are not those of what was sorted.
pub fn combine(tape: &mut Tape, u: Tensor, gates: Tensor, sorted: &Sorted) -> Result<Tensor> {
    let params = Params::new(sorted, u.shape.last());
    if u.shape.rows() != params.rows {
        return Err(Error::shape("combine", "u", ["rows", "dim"], u.shape));
    }
    let expected = [params.tokens, params.experts];
    if gates.shape != Shape::from(expected) {
        return Err(Error::shape("combine", "gates", expected, gates.shape));
    }
    let shape = Shape::from([params.tokens, params.dim]);
    let inputs = [u, gates, sorted.chosen, sorted.row_pair, sorted.slot_row];
    Ok(tape.record(Combine { params }, &inputs, &[shape])?[0])
}

impl Op for Combine {
    fn name(&self) -> &'static str {
        "combine"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [x[4], x[2], x[1], x[0], y[0]].map(|tensor| rec.value(tensor));
        let items = self.params.token_items();
        rec.dispatch(
            &kernels::EXPERT_ROWS_FORWARD_COMBINE,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let [u, gates, chosen] = [x[0], x[1], x[2]].map(|tensor| rec.value(tensor));
        let [row_pair, slot_row] = [x[3], x[4]].map(|tensor| rec.value(tensor));
        if let Some(du) = rec.grad(x[0]) {
            let args = [row_pair, chosen, gates, dy, du.arg];
            let (params, items) = (self.params.adding(du.add), self.params.row_items());
            rec.dispatch(
                &kernels::EXPERT_ROWS_BACKWARD_COMBINE_ROWS,
                params,
                &args,
                items,
            )?;
        }
        if let Some(dgates) = rec.grad(x[1]) {
            let args = [slot_row, chosen, u, dy, dgates.arg];
            let (params, items) = (self.params.adding(dgates.add), self.params.tokens as usize);
            rec.dispatch(
                &kernels::EXPERT_ROWS_BACKWARD_COMBINE_GATES,
                params,
                &args,
                items,
            )?;
        }
        Ok(())
    }
}
