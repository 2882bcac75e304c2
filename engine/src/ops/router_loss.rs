//! The auxiliary losses of a router, and how it used its experts.
//!
//! Equations stand in `shaders/router_loss.wgsl` (checkpoint format, section 5.2): Switch's balance loss over the whole batch or
//! DeepSeek-V3's over each sequence, and the z-loss of ST-MoE. Counts are constants; gradients flow through the probabilities.

use super::column_sum::blocks;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Experts.
        experts: u32,
        /// Experts that a token uses.
        top_k: u32,
        /// Tokens of a group, over which use is balanced.
        span: u32,
        /// Rows per block of the sums over tokens.
        chunk: u32,
        /// Probabilities are normalised sigmoid scores instead of a softmax.
        sigmoid: u32,
        /// Something depends on the balance loss.
        has_dbalance: u32,
        /// Something depends on the z-loss.
        has_dz: u32,
        /// Add to the gradient instead of storing.
        add: u32,
        /// Coefficient of the balance loss, divided by the number of passes.
        balance_factor: f64,
        /// The same of the z-loss.
        z_factor: f64,
    }
}

/// What is to be balanced how.
#[derive(Clone, Copy, Debug)]
pub struct RouterLoss {
    /// Tokens that belong together: a sequence, or the whole batch. Divides the number of rows.
    pub span: u32,
    /// Whether an expert's probability is its share of the sigmoid scores; else it is its softmax weight.
    pub sigmoid: bool,
    /// Factor of the balance loss.
    pub balance: f64,
    /// Factor of the z-loss.
    pub z: f64,
}

/// What [`router_loss`] returns.
#[derive(Clone, Copy, Debug)]
pub struct RouterLosses {
    /// The balance loss `[1]`, factor included.
    pub balance: Tensor,
    /// The z-loss `[1]`, factor included.
    pub z: Tensor,
    /// `[2, experts]`: how many tokens chose each expert, and its mean probability. To be read, not to be differentiated.
    pub statistics: Tensor,
}

#[derive(Debug)]
struct Loss {
    params: Params,
}

impl Loss {
    fn groups(&self) -> u32 {
        self.params.rows / self.params.span
    }
}

/// Losses of `logits` `[rows, experts]` whose selection was `chosen` `[rows, top_k]` (see [`super::router`]).
///
/// # Errors
/// If the shapes do not belong together, or the groups do not fill the rows.
pub fn router_loss(
    tape: &mut Tape,
    logits: Tensor,
    chosen: Tensor,
    how: &RouterLoss,
) -> Result<RouterLosses> {
    let (rows, experts, top_k) = (
        logits.shape.rows(),
        logits.shape.last(),
        chosen.shape.last(),
    );
    if chosen.shape.rows() != rows {
        return Err(Error::shape(
            "router_loss",
            "chosen",
            ["rows of logits", "top_k"],
            chosen.shape,
        ));
    }
    if how.span == 0 || !rows.is_multiple_of(how.span) {
        return Err(Error::Op {
            op: "router_loss",
            message: format!("{rows} rows are no groups of {}", how.span),
        });
    }
    let params = Params {
        rows,
        experts,
        top_k,
        span: how.span,
        chunk: blocks(how.span).1,
        sigmoid: u32::from(how.sigmoid),
        has_dbalance: 0,
        has_dz: 0,
        add: 0,
        balance_factor: how.balance,
        z_factor: how.z,
    };
    let op = Loss { params };
    let one = Shape::from([1]);
    let sums = Shape::from([op.groups(), 2 * experts + 1]);
    let outputs = [one, one, [2, experts].into(), [rows, 2].into(), sums];
    let outputs = tape.record(op, &[logits, chosen], &outputs)?;
    Ok(RouterLosses {
        balance: outputs[0],
        z: outputs[1],
        statistics: outputs[2],
    })
}

impl Op for Loss {
    fn name(&self) -> &'static str {
        "router_loss"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let params = || self.params.clone();
        let [logits, chosen] = [x[0], x[1]].map(|tensor| rec.value(tensor));
        let [balance, z, statistics, norms, sums] =
            [y[0], y[1], y[2], y[3], y[4]].map(|tensor| rec.value(tensor));
        let rows = self.params.rows as usize;
        rec.dispatch(
            &kernels::ROUTER_LOSS_FORWARD_NORMS,
            params(),
            &[logits, norms],
            rows,
        )?;
        let blocks = self.groups() * self.params.span.div_ceil(self.params.chunk);
        let items = y[4].shape.last() as usize * blocks as usize;
        let partial = rec.scratch("use of experts", items);
        let args = [logits, chosen, norms, partial];
        rec.dispatch(&kernels::ROUTER_LOSS_FORWARD_BLOCKS, params(), &args, items)?;
        let items = y[4].shape.len();
        rec.dispatch(
            &kernels::ROUTER_LOSS_FORWARD_GROUPS,
            params(),
            &[partial, sums],
            items,
        )?;
        let args = [sums, balance, z, statistics];
        let items = self.params.experts as usize + 1;
        rec.dispatch(&kernels::ROUTER_LOSS_FORWARD, params(), &args, items)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        if rec.out_grad(y[2]).is_some() {
            return Err(Error::Op {
                op: "router_loss",
                message: "the statistics have no gradient".into(),
            });
        }
        let (dbalance, dz) = (rec.out_grad(y[0]), rec.out_grad(y[1]));
        let (Some(any), Some(dlogits)) = (dbalance.or(dz), rec.grad(x[0])) else {
            return Ok(());
        };
        let params = Params {
            has_dbalance: u32::from(dbalance.is_some()),
            has_dz: u32::from(dz.is_some()),
            add: dlogits.add,
            ..self.params.clone()
        };
        let [logits, norms, sums] = [x[0], y[3], y[4]].map(|tensor| rec.value(tensor));
        let (dbalance, dz) = (dbalance.unwrap_or(any), dz.unwrap_or(any));
        let args = [logits, norms, sums, dbalance, dz, dlogits.arg];
        rec.dispatch(
            &kernels::ROUTER_LOSS_BACKWARD,
            params,
            &args,
            self.params.rows as usize,
        )
    }
}
