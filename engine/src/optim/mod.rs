//! The optimiser: AdamW on the clipped gradient, with Muon for the hidden matrices on request, and what it tells the host.
//!
//! An update is a handful of kernel calls over four flat buffers of one layout (values, gradients and both moments, see
//! [`mod@crate::params`]): the squares of the gradient are summed ([`clip`]), then each parameter group is updated ([`adamw`], [`muon`]).
//! Nothing is read back in between. What changes from step to step goes in through [`StepScalars`]; losses, norms and the
//! stop flag come out through a small status buffer that is read whenever somebody wants to know.
//!
//! **Status buffer** ([`External::Status`], [`STATUS_LEN`] floats):
//!
//! | element | content |
//! |---|---|
//! | [`STATUS_STOPPED`] | 1 once a loss or a gradient norm was NaN or infinite. It stays 1: from that step on parameters and moments keep their values. To go on, the host writes 0 |
//! | [`STATUS_LOSS`] | sum of the losses (cross-entropy) recorded since the last update |
//! | [`STATUS_SCALE`] | factor that clipped the last gradient; 0 when stopped |
//! | [`STATUS_NORM`] | norm of the last gradient, before clipping |
//! | [`STATUS_BALANCE`], [`STATUS_Z`] | the same of the auxiliary losses of experts; 0 without |
//! | [`STATUS_RING`] `+` [`RING_WIDTH`] `k` | loss, gradient norm, 1 if all is well, balance loss, z-loss: of the latest step whose [`ring_entry`] is `k` |

pub mod adamw;
pub mod clip;
pub mod expert_bias;
pub mod muon;
pub mod newton_schulz;
pub mod schedule;

use crate::error::Result;
use crate::plan::External;
use crate::tape::Tape;

pub use clip::{record_loss, record_part};
pub use muon::{Iterations, Muon};
pub use schedule::{Schedule, ScheduleKind};

/// Elements of [`External::StepScalars`]: learning rate, `1 - beta1^t`,
/// `1 - beta2^t`, entry of the ring.
pub const STEP_SCALARS_LEN: usize = 4;

/// Element of the status buffer: the sticky stop flag.
pub const STATUS_STOPPED: usize = 0;
/// Element of the status buffer: sum of the losses since the last update.
pub const STATUS_LOSS: usize = 1;
/// Element of the status buffer: factor that clipped the last gradient.
pub const STATUS_SCALE: usize = 2;
/// Element of the status buffer: norm of the last gradient.
pub const STATUS_NORM: usize = 3;
/// Element of the status buffer: sum of the balance losses since the last update.
pub const STATUS_BALANCE: usize = 4;
/// Element of the status buffer: sum of the z-losses since the last update.
pub const STATUS_Z: usize = 5;
/// First element of the ring in the status buffer.
pub const STATUS_RING: usize = 6;
/// Elements of an entry of the ring.
pub const RING_WIDTH: usize = 5;
/// Entries of the ring: how many steps may pass between two looks at the losses.
pub const RING: usize = 16;
/// Elements of the status buffer.
pub const STATUS_LEN: usize = STATUS_RING + RING_WIDTH * RING;

/// First element of a step's ring entry in the status buffer; `step` counts from 1.
#[must_use]
pub fn ring_entry(step: u64) -> usize {
    STATUS_RING + RING_WIDTH * ring_index(step)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the remainder is less than RING"
)]
fn ring_index(step: u64) -> usize {
    (step.saturating_sub(1) % RING as u64) as usize
}

/// What the host writes before each update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepScalars {
    /// Learning rate of this step.
    pub lr: f64,
    /// Number of this step, from 1.
    pub step: u64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
}

impl StepScalars {
    /// The content of the buffer. Computed in `f64`, because `1 - beta^t` in single precision has no digits left for
    /// small `t`.
    #[must_use]
    pub fn to_values(&self) -> Vec<f64> {
        let rest = |beta: f64| 1.0 - beta.powf(self.step as f64);
        vec![
            self.lr,
            rest(self.beta1),
            rest(self.beta2),
            ring_index(self.step) as f64,
        ]
    }
}

/// What stays the same in all updates of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decay of the parameters of decayed groups, times the learning rate.
    pub weight_decay: f64,
    /// Largest norm of the gradient of all parameters together; 0: no clipping.
    pub clip: f64,
    /// Factor of the learning rate of the residual mechanism's parameters.
    pub routing_lr_mult: f64,
    /// Update the hidden matrices by Muon; `None`: all by AdamW.
    pub muon: Option<Muon>,
}

/// Record one update: gradient norm and status, then AdamW and Muon. A range larger than `binding_limit_bytes` (of four-byte
/// floats) is cut into several calls.
///
/// # Errors
/// If there are no parameters, or too many for 32-bit numbers.
pub fn record_update(
    tape: &mut Tape,
    config: &UpdateConfig,
    binding_limit_bytes: u64,
) -> Result<()> {
    tape.scope("update", |tape| {
        let limit = usize::try_from(binding_limit_bytes / 4).unwrap_or(usize::MAX);
        let status = tape.external(External::Status, STATUS_LEN);
        let scalars = tape.external(External::StepScalars, STEP_SCALARS_LEN);
        clip::record_norm(tape, config.clip, scalars, status, limit)?;
        adamw::record(tape, config, scalars, status, limit)?;
        match &config.muon {
            Some(muon) => tape.scope("muon", |tape| {
                muon::record(tape, config, muon, scalars, status, limit)
            }),
            None => Ok(()),
        }
    })
}

/// Cut a range of an arena into ranges of at most `limit` elements that start where a binding may start.
pub(crate) fn pieces(
    range: std::ops::Range<usize>,
    limit: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let step = (limit / crate::params::ALIGNMENT).max(1) * crate::params::ALIGNMENT;
    let end = range.end;
    range
        .step_by(step)
        .map(move |start| start..end.min(start.saturating_add(step)))
}
