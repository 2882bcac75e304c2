//! Gates of two streams: read weights `alpha`, transport `rho` and write strengths `beta`, and the mixed branch input.
//!
//! Dual Attention Residuals (arXiv 2607.18730) retrieve two states a site; mHC-2 keeps two streams. Both read them with
//! `x = alpha_0 h^0 + alpha_1 h^1` and later write with `rho` and `beta` ([`super::dual_write`]). The equations are those of
//! sections 4.5 and 4.6 of the checkpoint format; the kernel is `shaders/dual_gates.wgsl`, the gradient is derived there.

use super::column_sum::blocks;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::plan::Arg;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Rows of a stream.
        rows: u32,
        /// Length of a row.
        dim: u32,
        /// Rows per block of `backward_params`.
        chunk: u32,
        /// Columns of `backward_params`: five biases, then `[2, dim]` for each weight.
        columns: u32,
        /// 1: read gates are independent sigmoids, 0: a softmax.
        sigmoid: u32,
        /// Stream of `backward`.
        stream: u32,
        /// Add to `dh` instead of storing.
        add: u32,
        /// Whether something depends on `x`.
        has_dx: u32,
        /// Whether something depends on the gates beside `x`.
        has_dgates: u32,
        /// Offset of the parameter in the span, or [`NONE`]; likewise the next five.
        alpha_bias: u32,
        /// See `alpha_bias`.
        alpha_weight: u32,
        /// See `alpha_bias`.
        rho_bias: u32,
        /// See `alpha_bias`.
        rho_weight: u32,
        /// See `alpha_bias`.
        beta_bias: u32,
        /// See `alpha_bias`.
        beta_weight: u32,
        /// Added to the mean square.
        eps: f64,
    }
}

/// Offset of a parameter that does not exist.
pub const NONE: u32 = u32::MAX;

/// How the two streams are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadGate {
    /// Softmax over the two streams (DAR): the read is convex.
    Softmax,
    /// Two independent sigmoids (`mhc2_matched`).
    Sigmoid,
}

/// Parameters of one site's gates. All must be parameters of the tape, best declared one after the other: the kernels bind
/// the part of the arena from the first to the last.
#[derive(Clone, Copy, Debug)]
pub struct GateParams {
    /// `[2]`: logits of the read gates at zero features.
    pub alpha_bias: Tensor,
    /// `[2, dim]`: a row a stream. `None`: the same gates for all tokens.
    pub alpha_weight: Option<Tensor>,
    /// Gates of the write. `None` at the read-out, which writes nothing.
    pub write: Option<WriteGates>,
}

/// Parameters of the gates of [`super::dual_write`].
#[derive(Clone, Copy, Debug)]
pub struct WriteGates {
    /// `[1]`: logit of the transport at zero features.
    pub rho_bias: Tensor,
    /// `[2, dim]`: a row a stream, both for the one logit.
    pub rho_weight: Option<Tensor>,
    /// `[2]`: logits of the write strengths at zero features.
    pub beta_bias: Tensor,
    /// `[2, dim]`: a row a stream.
    pub beta_weight: Option<Tensor>,
}

impl GateParams {
    /// In the order of `Params`: name, parameter if present, elements per row of `dim`, elements besides.
    fn list(&self, dim: u32) -> [(&'static str, Option<Tensor>, Shape); 6] {
        let (bias, weight) = (Shape::from([2]), Shape::from([2, dim]));
        let write = self.write;
        [
            ("alpha_bias", Some(self.alpha_bias), bias),
            ("alpha_weight", self.alpha_weight, weight),
            ("rho_bias", write.map(|w| w.rho_bias), Shape::from([1])),
            ("rho_weight", write.and_then(|w| w.rho_weight), weight),
            ("beta_bias", write.map(|w| w.beta_bias), bias),
            ("beta_weight", write.and_then(|w| w.beta_weight), weight),
        ]
    }
}

#[derive(Debug)]
struct DualGates {
    params: Params,
    /// Which of the six parameters exist; those that do are inputs 2, 3, ..
    present: [bool; 6],
}

/// Mix two streams `h`, each `[rows, dim]`, and compute the gates of the site. Both may be the same tensor.
///
/// Returns `x` `[rows, dim]` and the gates `[rows, 5]`: `alpha_0, alpha_1, rho, beta_0, beta_1`, the last three zero at
/// the read-out. `eps` is added to the mean square of the gate features.
///
/// # Errors
/// If the streams or a parameter have the wrong shape.
pub fn dual_gates(
    tape: &mut Tape,
    h: [Tensor; 2],
    params: &GateParams,
    read: ReadGate,
    eps: f64,
) -> Result<(Tensor, Tensor)> {
    let (rows, dim) = (h[0].shape.rows(), h[0].shape.last());
    if h[1].shape.rows() != rows || h[1].shape.last() != dim {
        return Err(Error::shape("dual_gates", "h1", h[0].shape, h[1].shape));
    }
    let list = params.list(dim);
    let mut inputs = h.to_vec();
    for (name, tensor, expected) in list {
        if let Some(tensor) = tensor {
            if tensor.shape.len() != expected.len() {
                return Err(Error::shape("dual_gates", name, expected, tensor.shape));
            }
            inputs.push(tensor);
        }
    }
    let present = list.map(|(_, tensor, _)| tensor.is_some());
    let weights = match present {
        [_, _, _, true, ..] | [.., true] => 3,
        [_, true, ..] => 1,
        _ => 0,
    };
    let params = Params {
        rows,
        dim,
        chunk: blocks(rows).1,
        columns: 5 + weights * 2 * dim,
        sigmoid: u32::from(read == ReadGate::Sigmoid),
        stream: 0,
        add: 0,
        has_dx: 0,
        has_dgates: 0,
        alpha_bias: NONE,
        alpha_weight: NONE,
        rho_bias: NONE,
        rho_weight: NONE,
        beta_bias: NONE,
        beta_weight: NONE,
        eps,
    };
    let shapes = [h[0].shape, Shape::from([rows, 5]), Shape::from([rows, 2])];
    let outputs = tape.record(DualGates { params, present }, &inputs, &shapes)?;
    Ok((outputs[0], outputs[1]))
}

impl DualGates {
    /// Params with the places of the parameters, the span that holds them, and the span of their gradients.
    fn place(&self, rec: &Recorder, x: &[Tensor]) -> (Params, Arg, Arg) {
        let (values, grads, offsets) = rec.span(&x[2..]);
        let mut found = offsets.into_iter();
        let mut next = |number: usize| {
            let offset = if self.present[number] {
                found.next()
            } else {
                None
            };
            offset.unwrap_or(NONE)
        };
        let params = Params {
            alpha_bias: next(0),
            alpha_weight: next(1),
            rho_bias: next(2),
            rho_weight: next(3),
            beta_bias: next(4),
            beta_weight: next(5),
            ..self.params.clone()
        };
        (params, values, grads)
    }
}

impl Op for DualGates {
    fn name(&self) -> &'static str {
        "dual_gates"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (params, span, _) = self.place(rec, x);
        let rows = params.rows as usize;
        let args = [
            rec.value(x[0]),
            rec.value(x[1]),
            span,
            rec.value(y[0]),
            rec.value(y[1]),
            rec.value(y[2]),
        ];
        rec.dispatch(&kernels::DUAL_GATES_FORWARD, params, &args, rows)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (params, span, dspan) = self.place(rec, x);
        let (rows, columns) = (params.rows as usize, params.columns as usize);
        let h = [rec.value(x[0]), rec.value(x[1])];
        let (gates, r) = (rec.value(y[1]), rec.value(y[2]));
        let (dx, dgates) = (rec.out_grad(y[0]), rec.out_grad(y[1]));
        let params = Params {
            has_dx: u32::from(dx.is_some()),
            has_dgates: u32::from(dgates.is_some()),
            ..params
        };
        // Bindings cannot be empty: an absent gradient is replaced by something that the kernel multiplies by zero.
        let (dx, dgates) = (dx.unwrap_or(h[0]), dgates.unwrap_or(gates));

        let dlogits = rec.scratch("gate logit gradients", rows * 5);
        rec.dispatch(
            &kernels::DUAL_GATES_BACKWARD_LOGITS,
            params.clone(),
            &[h[0], h[1], gates, dx, dgates, dlogits],
            rows,
        )?;
        for stream in 0..2 {
            if let Some(dh) = rec.grad(x[stream]) {
                let params = Params {
                    stream: stream as u32,
                    add: dh.add,
                    ..params.clone()
                };
                let args = [h[stream], dx, span, gates, r, dlogits, dh.arg];
                rec.dispatch(&kernels::DUAL_GATES_BACKWARD, params, &args, rows)?;
            }
        }
        for parameter in &x[2..] {
            rec.grad(*parameter); // marks it as written; arena gradients are always added to
        }
        let count = blocks(params.rows).0 as usize;
        let partial = rec.scratch("partial gate parameters", count * columns);
        rec.dispatch(
            &kernels::DUAL_GATES_BACKWARD_PARAMS,
            params.clone(),
            &[h[0], h[1], r, dlogits, partial],
            count * columns,
        )?;
        rec.dispatch(
            &kernels::DUAL_GATES_BACKWARD_PARAMS_SUM,
            params,
            &[partial, dspan],
            columns,
        )
    }
}
