//! The gates of two streams, which `dar` and `mhc2_matched` share: parameters, and publication.
//!
//! `alpha` weighs the two streams in what a sublayer reads, `rho` is the share of a stream that stays its own, and `beta` is
//! how much of the sublayer's output each stream gets. The equations stand at the top of [`crate::ops::dual_gates`].

use super::config::Gates;
use super::path::Gate;
use crate::error::Result;
use crate::ops::dual_gates::{GateParams, WriteGates};
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// Parameters of the gates of one site, each name behind `prefix`: a bias and, for dynamic gates, a weight `[2, d]` of
/// `alpha`, and of `rho` and `beta` if the site writes. The biases of `beta` alternate from site to site.
pub(super) fn parameters(
    prefix: &str,
    d: u32,
    site: u32,
    gates: Gates,
    write: bool,
) -> Vec<ParamSpec> {
    let sign = if site.is_multiple_of(2) { 0.5 } else { -0.5 };
    let biases = [
        ("alpha", vec![0.0, 0.0]),
        ("rho", vec![2.0]),
        ("beta", vec![sign, -sign]),
    ];
    let mut specs = Vec::new();
    for (name, bias) in biases {
        if !write && name != "alpha" {
            continue;
        }
        specs.push(ParamSpec::routing(
            format!("{prefix}{name}.bias"),
            [bias.len() as u32],
            Init::Values(bias),
        ));
        if gates == Gates::Dynamic {
            specs.push(ParamSpec::routing(
                format!("{prefix}{name}.weight"),
                [2, d],
                Init::Constant(0.0),
            ));
        }
    }
    specs
}

/// The tensors of what [`parameters`] declares.
pub(super) fn gate_params(
    tape: &mut Tape,
    prefix: &str,
    gates: Gates,
    write: bool,
) -> Result<GateParams> {
    let mut gate = |name: &str| -> Result<(Tensor, Option<Tensor>)> {
        let bias = tape.parameter(&format!("{prefix}{name}.bias"))?;
        let weight = match gates {
            Gates::Dynamic => Some(tape.parameter(&format!("{prefix}{name}.weight"))?),
            Gates::Static => None,
        };
        Ok((bias, weight))
    };
    let (alpha_bias, alpha_weight) = gate("alpha")?;
    let write = if write {
        let ((rho_bias, rho_weight), (beta_bias, beta_weight)) = (gate("rho")?, gate("beta")?);
        Some(WriteGates {
            rho_bias,
            rho_weight,
            beta_bias,
            beta_weight,
        })
    } else {
        None
    };
    Ok(GateParams {
        alpha_bias,
        alpha_weight,
        write,
    })
}

/// Name of the published gates of a site.
pub(super) fn gates_name(site: u32) -> String {
    format!("gates.{site}")
}

/// Publish the gates `[rows, 5]` of a site.
pub(super) fn publish(tape: &mut Tape, site: u32, gates: Tensor, write: bool) -> Vec<Gate> {
    tape.watch(|| gates_name(site), gates);
    let columns: &[_] = if write {
        &[("alpha", 0..2), ("rho", 2..3), ("beta", 3..5)]
    } else {
        &[("alpha", 0..2)]
    };
    let gate = |(name, columns): (_, std::ops::Range<usize>)| Gate {
        site,
        name,
        tensor: gates_name(site),
        shape: vec![columns.len()],
        columns,
        width: 5,
    };
    columns.iter().cloned().map(gate).collect()
}
