//! The router of a sparse mixture of experts: which experts a token goes to, and how much each weighs.
//!
//! Equations stand in `shaders/router.wgsl`. Sources of the three gates: Switch (Fedus et al. 2021) and OLMoE for softmax
//! weights as they are, Mixtral for weights renormalised over the selection, DeepSeek-V3 for sigmoid scores with a bias that
//! only selects.

use crate::error::{Error, Result};
use crate::kernel::{Element, kernels};
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

/// `mode` of softmax weights over all experts.
pub(crate) const ALL: u32 = 0;
/// `mode` of sigmoid scores.
pub(crate) const SIGMOID: u32 = 2;

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Experts.
        experts: u32,
        /// Experts that a token uses.
        top_k: u32,
        /// 0: softmax over all, 1: softmax over the selection, 2: sigmoid scores.
        mode: u32,
        /// Add to the gradient instead of storing.
        add: u32,
        /// Sum of the gates of a token, mode 2 only.
        scale: f64,
    }
}

/// How experts are selected and weighted.
#[derive(Clone, Copy, Debug)]
pub enum Gates {
    /// Softmax over all experts; the gates of a token sum to less than one.
    Softmax,
    /// Softmax over the selected experts.
    SoftmaxOfSelected,
    /// Sigmoid scores, scaled to sum to `scale`.
    Sigmoid {
        /// Added to the scores for the selection, `[experts]`; has no gradient.
        bias: Tensor,
        /// What the gates of a token sum to.
        scale: f64,
    },
}

/// What [`router`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Routes {
    /// Weights `[rows, experts]`, 0 where an expert was not selected.
    pub gates: Tensor,
    /// Selected experts `[rows, top_k]`, the one with the largest score first. Unsigned integers, without a gradient.
    pub chosen: Tensor,
}

#[derive(Debug)]
struct Router {
    params: Params,
}

/// Select `top_k` experts for each row of `logits` `[rows, experts]`. Of equal scores the lower number wins.
///
/// # Errors
/// If `logits` is not a matrix, `top_k` is not between 1 and `experts`, the bias has another length, or the scale is not
/// above 0.
pub fn router(tape: &mut Tape, logits: Tensor, top_k: u32, gates: Gates) -> Result<Routes> {
    let &[rows, experts] = logits.shape.dims() else {
        return Err(Error::shape(
            "router",
            "logits",
            ["rows", "experts"],
            logits.shape,
        ));
    };
    if !(1..=experts).contains(&top_k) {
        return Err(Error::Op {
            op: "router",
            message: format!("{top_k} of {experts} experts cannot be selected"),
        });
    }
    // Without a bias its binding gets something that is not read.
    let (mode, bias, scale) = match gates {
        Gates::Softmax => (ALL, logits, 0.0),
        Gates::SoftmaxOfSelected => (1, logits, 0.0),
        Gates::Sigmoid { scale, .. } if scale <= 0.0 => {
            return Err(Error::Op {
                op: "router",
                message: format!("the scale is {scale}; it must be above 0"),
            });
        }
        Gates::Sigmoid { bias, scale } if bias.shape.len() == experts as usize => {
            (SIGMOID, bias, scale)
        }
        Gates::Sigmoid { bias, .. } => {
            return Err(Error::shape("router", "bias", [experts], bias.shape));
        }
    };
    let params = Params {
        rows,
        experts,
        top_k,
        mode,
        add: 0,
        scale,
    };
    let outputs = [
        (logits.shape, Element::F32),
        (Shape::from([rows, top_k]), Element::U32),
    ];
    let outputs = tape.record_typed(Router { params }, &[logits, bias], &outputs)?;
    Ok(Routes {
        gates: outputs[0],
        chosen: outputs[1],
    })
}

impl Op for Router {
    fn name(&self) -> &'static str {
        "router"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [x[0], x[1], y[0], y[1]].map(|tensor| rec.value(tensor));
        let rows = self.params.rows as usize;
        rec.dispatch(&kernels::ROUTER_FORWARD, self.params.clone(), &args, rows)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dgates), Some(dlogits)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let params = Params {
            add: dlogits.add,
            ..self.params.clone()
        };
        let [logits, gates, chosen] = [x[0], y[0], y[1]].map(|tensor| rec.value(tensor));
        let args = [logits, gates, chosen, dgates, dlogits.arg];
        rec.dispatch(
            &kernels::ROUTER_BACKWARD,
            params,
            &args,
            self.params.rows as usize,
        )
    }
}
