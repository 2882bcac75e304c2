//! Adds the output of one expert, weighted by its gate: the dense form of a mixture of experts.
//!
//! Every expert computes every token; gates are 0 where it was not selected. The kernels are `shaders/gated_add.wgsl`.

use super::copy;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Width.
        dim: u32,
        /// Columns of the gates.
        experts: u32,
        /// The column of this expert.
        expert: u32,
        /// There is no sum yet.
        first: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

#[derive(Debug)]
struct GatedAdd {
    params: Params,
}

/// `sum + gates[:, expert] u`, for `u` `[rows, dim]` and `gates` `[rows, experts]`; without `sum` only the product.
///
/// # Errors
/// If the shapes do not belong together.
pub fn gated_add(
    tape: &mut Tape,
    sum: Option<Tensor>,
    gates: Tensor,
    expert: u32,
    u: Tensor,
) -> Result<Tensor> {
    let (rows, dim, experts) = (u.shape.rows(), u.shape.last(), gates.shape.last());
    if gates.shape.rows() != rows || expert >= experts {
        return Err(Error::shape(
            "gated_add",
            "gates",
            ["rows of u", "experts"],
            gates.shape,
        ));
    }
    if let Some(sum) = sum.filter(|sum| sum.shape.len() != u.shape.len()) {
        return Err(Error::shape("gated_add", "sum", u.shape, sum.shape));
    }
    let params = Params {
        rows,
        dim,
        experts,
        expert,
        first: u32::from(sum.is_none()),
        add: 0,
    };
    let inputs: Vec<Tensor> = [gates, u].into_iter().chain(sum).collect();
    Ok(tape.record(GatedAdd { params }, &inputs, &[u.shape])?[0])
}

impl Op for GatedAdd {
    fn name(&self) -> &'static str {
        "gated_add"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        // Without a sum its binding gets something that is not read.
        let sum = x.get(2).copied().unwrap_or(x[1]);
        let args = [x[0], x[1], sum, y[0]].map(|tensor| rec.value(tensor));
        let items = y[0].shape.len();
        rec.dispatch(
            &kernels::GATED_ADD_FORWARD,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (gates, u) = (rec.value(x[0]), rec.value(x[1]));
        let adding = |add| Params {
            add,
            ..self.params.clone()
        };
        let items = y[0].shape.len();
        if let Some(dgates) = rec.grad(x[0]) {
            let args = [u, dy, dgates.arg];
            let rows = self.params.rows as usize;
            rec.dispatch(
                &kernels::GATED_ADD_BACKWARD_GATES,
                adding(dgates.add),
                &args,
                rows,
            )?;
        }
        if let Some(du) = rec.grad(x[1]) {
            let args = [gates, dy, du.arg];
            rec.dispatch(&kernels::GATED_ADD_BACKWARD_U, adding(du.add), &args, items)?;
        }
        if let Some(dsum) = x.get(2).and_then(|&sum| rec.grad(sum)) {
            let params = copy::Params {
                len: items as u32,
                add: dsum.add,
            };
            rec.dispatch(&kernels::COPY_FORWARD, params, &[dy, dsum.arg], items)?;
        }
        Ok(())
    }
}
