//! AdamW: decoupled weight decay, bias-corrected moments (checkpoint format, section 6).
//!
//! The kernel is `shaders/adamw.wgsl`. One call per parameter group, since groups differ in decay and learning rate only,
//! and lie together in the arena; with Muon, one for each range between its matrices.

use super::{UpdateConfig, muon, pieces};
use crate::error::Result;
use crate::kernel::kernels;
use crate::plan::External;
use crate::tape::{Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Elements of the range.
        len: u32,
        /// Factor of the learning rate.
        lr_mult: f64,
        /// Decay of the first moment.
        beta1: f64,
        /// `1 - beta1`, with all its digits.
        rest1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// `1 - beta2`, with all its digits.
        rest2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Weight decay.
        decay: f64,
    }
}

/// Record the update of every group, but for what Muon updates, in ranges of at most `limit` elements.
pub(super) fn record(
    tape: &mut Tape,
    config: &UpdateConfig,
    scalars: Tensor,
    status: Tensor,
    limit: usize,
) -> Result<()> {
    let parameters = tape.parameters().clone();
    let whole = parameters.arena_len();
    let ranges = match config.muon {
        Some(_) => muon::others(&parameters),
        None => parameters.groups().to_vec(),
    };
    let trained = ranges.iter().filter(|(group, _)| !group.untrained);
    for (group, range) in trained {
        for piece in pieces(range.clone(), limit) {
            let params = Params {
                len: u32::try_from(piece.len()).unwrap_or(u32::MAX),
                lr_mult: if group.routing {
                    config.routing_lr_mult
                } else {
                    1.0
                },
                beta1: config.beta1,
                rest1: 1.0 - config.beta1,
                beta2: config.beta2,
                rest2: 1.0 - config.beta2,
                eps: config.eps,
                decay: if group.decay {
                    config.weight_decay
                } else {
                    0.0
                },
            };
            let mut part = |external| tape.external_range(external, whole, piece.clone());
            let (p, dp) = (part(External::Values), part(External::Grads));
            let (m, v) = (part(External::FirstMoment), part(External::SecondMoment));
            let args = [scalars, status, dp, p, m, v];
            tape.dispatch(&kernels::ADAMW_UPDATE, params, &args, piece.len())?;
        }
    }
    Ok(())
}
