//! Muon for the hidden matrices, beside AdamW for the rest.
//!
//! `M = mu M + g`; `O = NS(mu M + g)`; `W = W (1 - lr wd) - lr s sqrt(max(rows, cols)) O`, where `g` is the clipped gradient and `NS`
//! makes all singular values about 1 ([`mod@super::newton_schulz`]). With `s` = 0.18 an update is as large as one of AdamW (mean
//! square about `s^2`), so both share the learning rate and the weight decay. Formula: section 6.3 of the notes on residual mechanisms, from the
//! optimiser section of the DeepSeek-V4 report; the idea: K. Jordan 2024; the scale: Moonlight, <https://arxiv.org/abs/2502.16982>,
//! which has 0.2.
//!
//! **Which parameters** ([`matrices`]): the decayed ones (group D) that are matrices of at least two rows and columns: attention,
//! feed-forward, experts (each expert on its own), and the mechanisms' maps, among them `phi` of mHC as in V4. Not the output
//! matrix and not the router of experts, though they are decayed: rows of both belong to one token or expert each. V4 says
//! nothing about the other mechanisms' matrices: that they follow the rule of `phi` is our choice.
//!
//! The momentum is the first moment of the checkpoint; the second moment of these parameters stays 0. The kernels are
//! `shaders/muon.wgsl`. Matrices of one size are orthogonalised together.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::UpdateConfig;
use super::newton_schulz::newton_schulz;
use crate::error::Result;
use crate::kernel::kernels;
use crate::params::{Group, ParamSpec, Parameters};
use crate::plan::External;
use crate::tape::{Tape, Tensor};

/// Settings of Muon. Learning rate and weight decay are those of AdamW.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Muon {
    /// Decay of the momentum.
    pub momentum: f64,
    /// Factor of an update: its root mean square for a matrix of full rank.
    pub scale: f64,
    /// The Newton-Schulz iteration.
    pub iterations: Iterations,
}

/// Which Newton-Schulz iterations are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Iterations {
    /// Five of (3.4445, -4.7750, 2.0315).
    #[default]
    Jordan,
    /// Eight of these, then two of (2, -1.5, 0.5), as in DeepSeek-V4.
    V4,
}

impl Iterations {
    /// Coefficients `a`, `b`, `c` of each iteration.
    #[must_use]
    pub fn coefficients(self) -> Vec<[f64; 3]> {
        const FAST: [f64; 3] = [3.4445, -4.7750, 2.0315];
        match self {
            Self::Jordan => vec![FAST; 5],
            Self::V4 => [vec![FAST; 8], vec![[2.0, -1.5, 0.5]; 2]].concat(),
        }
    }
}

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Matrices of the parameter.
        count: u32,
        /// Rows of each.
        rows: u32,
        /// Columns of each.
        cols: u32,
        /// Number of the first in the stack.
        first: u32,
        /// Decay of the momentum.
        momentum: f64,
        /// Factor of the learning rate for the update.
        rate: f64,
        /// Factor of the learning rate for the decay.
        decay: f64,
    }
}

/// A stack has at most so many elements, if its parameters allow it: several of its size are needed at a time.
const STACK: usize = 1 << 22;

/// A parameter that Muon updates.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// Number of the parameter.
    pub number: usize,
    /// Matrices in it: 1, or the product of the leading dimensions.
    pub count: u32,
    /// Rows of each.
    pub rows: u32,
    /// Columns of each.
    pub cols: u32,
}

impl Matrices {
    /// The sides of each, the shorter one first.
    fn sides(&self) -> (u32, u32) {
        (self.rows.min(self.cols), self.rows.max(self.cols))
    }

    fn len(&self) -> usize {
        self.count as usize * self.rows as usize * self.cols as usize
    }
}

/// The parameters that Muon updates, in the order of declaration.
#[must_use]
pub fn matrices(parameters: &Parameters) -> Vec<Matrices> {
    let of = |(number, spec): (usize, &ParamSpec)| {
        let [leading @ .., rows, cols] = spec.shape.dims() else {
            return None;
        };
        let apart = spec.name == "lm_head.weight" || spec.name.ends_with(".mlp.gate.weight");
        (spec.group.decay && !apart && *rows > 1 && *cols > 1).then(|| Matrices {
            number,
            count: leading.iter().product(),
            rows: *rows,
            cols: *cols,
        })
    };
    parameters
        .specs()
        .iter()
        .enumerate()
        .filter_map(of)
        .collect()
}

/// Ranges of the arena that hold no parameter of Muon, each of one group.
pub(super) fn others(parameters: &Parameters) -> Vec<(Group, Range<usize>)> {
    let mut taken: Vec<Range<usize>> = matrices(parameters)
        .iter()
        .map(|matrices| parameters.range(matrices.number))
        .map(|range| range.start..range.end.next_multiple_of(crate::params::ALIGNMENT))
        .collect();
    taken.sort_by_key(|range| range.start);
    let mut ranges = Vec::new();
    for (group, range) in parameters.groups() {
        let mut start = range.start;
        for hole in taken.iter().filter(|hole| range.contains(&hole.start)) {
            if start < hole.start {
                ranges.push((*group, start..hole.start));
            }
            start = hole.end;
        }
        if start < range.end {
            ranges.push((*group, start..range.end));
        }
    }
    ranges
}

/// Record the update of all matrices.
pub(super) fn record(
    tape: &mut Tape,
    config: &UpdateConfig,
    muon: &Muon,
    scalars: Tensor,
    status: Tensor,
    limit: usize,
) -> Result<()> {
    let mut sizes = BTreeMap::<(u32, u32), Vec<Matrices>>::new();
    for matrices in matrices(tape.parameters()) {
        sizes.entry(matrices.sides()).or_default().push(matrices);
    }
    for ((rows, cols), all) in sizes {
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let mut len = 0;
            let fitting = rest.iter().take_while(|matrices| {
                len += matrices.len();
                len <= limit.min(STACK)
            });
            let (stack, later) = rest.split_at(fitting.count().max(1));
            rest = later;
            let count = stack.iter().map(|matrices| matrices.count).sum();
            update(
                tape,
                config,
                muon,
                [scalars, status],
                stack,
                [count, rows, cols],
            )?;
        }
    }
    Ok(())
}

/// Record the update of a stack of matrices of one size.
fn update(
    tape: &mut Tape,
    config: &UpdateConfig,
    muon: &Muon,
    [scalars, status]: [Tensor; 2],
    stack: &[Matrices],
    shape @ [count, rows, cols]: [u32; 3],
) -> Result<()> {
    let parameters = tape.parameters().clone();
    let whole = parameters.arena_len();
    let mut calls = Vec::new();
    let mut first = 0;
    for matrices in stack {
        let group = parameters.specs()[matrices.number].group;
        let lr_mult = if group.routing {
            config.routing_lr_mult
        } else {
            1.0
        };
        let params = Params {
            count: matrices.count,
            rows: matrices.rows,
            cols: matrices.cols,
            first,
            momentum: muon.momentum,
            rate: lr_mult * muon.scale * f64::from(cols).sqrt(),
            decay: lr_mult * config.weight_decay,
        };
        calls.push((params, parameters.range(matrices.number)));
        first += matrices.count;
    }
    let elements = count as usize * rows as usize * cols as usize;
    let lying = tape.scratch("momentum", elements);
    for (params, range) in &calls {
        let mut part = |external| tape.external_range(external, whole, range.clone());
        let (dp, m) = (part(External::Grads), part(External::FirstMoment));
        let args = [status, dp, m, lying];
        tape.dispatch(&kernels::MUON_MOMENTUM, params.clone(), &args, range.len())?;
    }
    let direction = newton_schulz(tape, lying, shape, muon.iterations)?;
    for (params, range) in calls {
        let p = tape.external_range(External::Values, whole, range.clone());
        let args = [status, scalars, direction, p];
        tape.dispatch(&kernels::MUON_APPLY, params, &args, range.len())?;
    }
    Ok(())
}
