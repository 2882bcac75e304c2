//! Hyper-connections, static and dynamic (arXiv 2409.19606; section 4.7 of the checkpoint format).
//!
//! ```text
//! H_i = e                                                                   i = 0 .. n-1
//! static :  read_i = b_read[i],   mix_(i,j) = b_mix[i,j],   write_i = b_write[i]
//! dynamic:  f_i = rms(H_i)
//!           read_i    += s_r tanh <w_read, f_i>
//!           mix_(i,j) += s_r tanh <w_mix[j], f_i>           from stream i to stream j
//!           write_i   += s_w tanh <w_write, f_i>
//! x = sum_i read_i H_i,   o = F_s(x),   H_j <- write_j o + sum_i mix_(i,j) H_i
//! out = sum_i H_i
//! ```
//!
//! Each stream's coefficients come from its own features. At the start the streams are equal, and equal to the ordinary
//! residual stream.

use super::about::About;
use super::path::{Gate, ResidualPath, site_prefix};
use super::states::States;
use super::streams::{Coefficients, Streams};
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::inverse_rms::inverse_rms;
use crate::ops::matmul::linear;
use crate::ops::stream_coefficients::{Dynamic, stream_coefficients};
use crate::ops::stream_mix::Layout;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "n streams with learned weights for reading, writing and mixing them",
    paper: "Hyper-Connections, arXiv 2409.19606",
    equations: "\
H_i      = e                                   i = 0 .. n-1
read_i   = b_read[i]  + s_r tanh <w_read, rms(H_i)>
mix_i,j  = b_mix[i,j] + s_r tanh <w_mix[j], rms(H_i)>
write_i  = b_write[i] + s_w tanh <w_write, rms(H_i)>
x_s      = sum_i read_i H_i,   o = F_s(x_s)
H_j     <- write_j o + sum_i mix_i,j H_i
out      = sum_i H_i
static: the biases only",
    choices: &[
        "The norm is root-mean-square over the width, per stream, without a gain; the paper's listing uses a layer norm.",
        "Sublayers are counted from 0 for the one-hot start of the read weights.",
        "Output projections are not rescaled at the start: the paper does not say in which direction, and without it the \
         model starts as the standard one.",
        "The scales and biases are not decayed, the dynamic weights are.",
    ],
};

fn prefix(config: &ModelConfig, site: u32) -> String {
    format!("{}hc.", site_prefix(config, site))
}

/// Parameters of sites `0..L`: biases, and for dynamic connections weights, which are decayed, and two scales.
#[must_use]
pub fn parameters(config: &ModelConfig, streams: u32, dynamic: bool) -> Vec<ParamSpec> {
    let (n, d) = (streams, config.hidden_size);
    let mut specs = Vec::new();
    for site in 0..config.sublayers() {
        let prefix = prefix(config, site);
        let mut one_hot = vec![0.0; n as usize];
        one_hot[(site % n) as usize] = 1.0;
        let spec = |name: &str, shape: crate::Shape, init| {
            ParamSpec::routing(format!("{prefix}{name}"), shape, init)
        };
        specs.extend([
            spec("read.bias", [n].into(), Init::Values(one_hot)),
            spec("mix.bias", [n, n].into(), Init::Identity),
            spec("write.bias", [n].into(), Init::Constant(1.0)),
        ]);
        if dynamic {
            let zero = || Init::Constant(0.0);
            specs.extend([
                spec("read.weight", [1, d].into(), zero()).decayed(),
                spec("mix.weight", [n, d].into(), zero()).decayed(),
                spec("write.weight", [1, d].into(), zero()).decayed(),
                spec("read_mix_scale", [1].into(), Init::Constant(0.01)),
                spec("write_scale", [1].into(), Init::Constant(0.01)),
            ]);
        }
    }
    specs
}

/// State while recording.
#[derive(Debug)]
pub struct HyperConnections {
    config: ModelConfig,
    count: u32,
    dynamic: bool,
    rows: u32,
    streams: Streams,
}

impl HyperConnections {
    /// A path of `streams` streams over `rows` tokens.
    #[must_use]
    pub fn new(config: &ModelConfig, streams: u32, dynamic: bool, rows: u32) -> Self {
        Self {
            config: config.clone(),
            count: streams,
            dynamic,
            rows,
            streams: Streams::new("hyper_connections", streams),
        }
    }

    fn coefficients(&self, tape: &mut Tape, site: u32) -> Result<Coefficients> {
        let prefix = prefix(&self.config, site);
        let features = if self.dynamic {
            let each = [self.rows * self.count, self.config.hidden_size];
            let streams = tape.reshape(self.streams.state()?, each);
            let factors = inverse_rms(tape, streams, self.config.rms_norm_eps)?;
            Some((streams, factors))
        } else {
            None
        };
        let mut family = |name: &str, scale: &str| -> Result<Tensor> {
            let bias = tape.parameter(&format!("{prefix}{name}.bias"))?;
            let Some((streams, factors)) = features else {
                return stream_coefficients(tape, self.rows, bias, None);
            };
            let weight = tape.parameter(&format!("{prefix}{name}.weight"))?;
            let dynamic = Dynamic {
                dots: linear(tape, streams, weight)?,
                factors,
                scale: tape.parameter(&format!("{prefix}{scale}"))?,
                group: bias.shape.len() as u32,
                squash: true,
            };
            stream_coefficients(tape, self.rows, bias, Some(&dynamic))
        };
        Ok(Coefficients {
            read: family("read", "read_mix_scale")?,
            mix: family("mix", "read_mix_scale")?,
            write: family("write", "write_scale")?,
            layout: Layout::FromTo,
        })
    }
}

impl ResidualPath for HyperConnections {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.streams.expand(tape, e)
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        self.streams.visit(tape, site)?;
        let coefficients = self.coefficients(tape, site)?;
        self.streams.read(tape, site, coefficients)
    }

    fn write(&mut self, tape: &mut Tape, _: u32, y: Tensor) -> Result<()> {
        self.streams.write(tape, y)
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.streams.visit(tape, self.config.sublayers())?;
        self.streams.readout(tape, 1.0)
    }

    fn gates(&self) -> &[Gate] {
        self.streams.gates()
    }

    fn states(&self) -> &States {
        self.streams.states()
    }
}
