//! Manifold-constrained hyper-connections (arXiv 2512.24880; section 4.8 of the checkpoint format).
//!
//! ```text
//! X_i  = e,   m = n^2 + 2 n                                              i = 0 .. n-1
//! v    = (phi x) / sqrt(mean(x^2) + eps)     x = X_0, .., X_(n-1) as one vector: one norm for all streams
//! raw  = alpha[group] v + b                  n of the read, n of the write, n^2 of the matrix, a group each
//! pre  = sigmoid(raw),   post = 2 sigmoid(raw),   R = projection(clamp(raw, -30, 30))
//! y    = sum_j pre_j X_j,   o = F_s(y),   X_i <- post_i o + sum_j R[i,j] X_j
//! out  = mean_i X_i
//! ```
//!
//! `sinkhorn` divides columns, then rows, by their sums, a fixed number of times, and is differentiated through all of them.
//! `exact2` is the limit for two streams. Near the identity, where training starts, 20 iterations are far from the limit, in
//! value and in gradient: the two are different mechanisms.
//!
//! # Initial values
//!
//! The paper states the scales, `alpha = 0.01`. The rest is from public code, as section 2.4 of the notes on residual
//! mechanisms lists it. `k` is the number of the sublayer, from 0.
//!
//! | `init` | `phi` | `b` of the read | `b` of the write | `b` of the matrix |
//! |---|---|---|---|---|
//! | `p0` | 0 | 1 for stream `k mod n`, else -1 | 0 | 0, off the diagonal -5 |
//! | `megatron` | uniform (Xavier) | 0 | 0 | 0 |
//! | `mindformers` | normal, deviation 1e-4 | `-ln(n - 1)`, so that `pre = 1/n` | 0 | 0, off the diagonal -5 |
//! | `mhc_lite` | 0 | 1 for a random stream, else -1 | as of the read | 0, off the diagonal -8 |
//!
//! Ours where the sources leave it open: MindFormers is listed with four streams, and `ln 3` is read as `ln(n - 1)`, which
//! has no value for one stream and is 0 there; Xavier counts `n d` inputs and `m` outputs; the random stream of `mhc_lite` is
//! drawn for each sublayer, from the seed. Only initial values are taken over: eps, the order of rows and columns and the
//! form of the matrix stay those above.

use super::about::About;
use super::config::{MhcInit, Projection};
use super::path::{Gate, ResidualPath, site_prefix};
use super::states::States;
use super::streams::{Coefficients, Streams};
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::inverse_rms::inverse_rms;
use crate::ops::matmul::linear;
use crate::ops::mhc_gates::{self, mhc_gates};
use crate::ops::stream_coefficients::{Dynamic, stream_coefficients};
use crate::ops::stream_mix::Layout;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "n streams, mixed by a matrix whose rows and columns sum to about one",
    paper: "mHC: Manifold-Constrained Hyper-Connections, arXiv 2512.24880",
    equations: "\
X_i   = e,   x = X_0, .., X_n-1 as one vector
v     = (phi x) / sqrt(mean(x^2) + eps)
raw   = alpha[group] v + b                    groups: read, write, matrix
pre   = sigmoid(raw),   post = 2 sigmoid(raw),   R = projection(raw)
x_s   = sum_j pre_j X_j,   o = F_s(x_s)
X_i  <- post_i o + sum_j R[i,j] X_j
out   = mean_i X_i",
    choices: &[
        "The paper states of the initial values the gate scales only; `init` has ours (p0) and those of three public \
         programs.",
        "The read-out is the mean of the streams; the paper does not say.",
        "The norm has the model's eps, not the paper's 1e-20.",
        "Raw coefficients of the matrix are clamped to +-30, and the iterations have no eps.",
        "phi is decayed, alpha and the biases are not.",
    ],
};

fn prefix(config: &ModelConfig, site: u32) -> String {
    format!("{}mhc.", site_prefix(config, site))
}

/// Biases: `pre` and `post` of each stream, then `off` off the diagonal of the matrix.
fn biases(pre: Vec<f64>, post: Vec<f64>, off: f64) -> Vec<f64> {
    let n = pre.len();
    let matrix = (0..n * n).map(|k| if k % (n + 1) == 0 { 0.0 } else { off });
    pre.into_iter().chain(post).chain(matrix).collect()
}

/// Initial values of `phi` and of the biases of sublayer `site`.
fn initial(init: MhcInit, site: u32, n: u32, d: u32) -> (Init, Init) {
    let all = |value: f64| vec![value; n as usize];
    let one = |chosen: u32| -> Vec<f64> {
        let sign = |stream| if stream == chosen { 1.0 } else { -1.0 };
        (0..n).map(sign).collect()
    };
    match init {
        MhcInit::P0 => {
            let bias = biases(one(site % n), all(0.0), -5.0);
            (Init::Constant(0.0), Init::Values(bias))
        }
        MhcInit::Megatron => {
            let inputs_and_outputs = f64::from(n) * f64::from(d + n + 2);
            let xavier = Init::Uniform((6.0 / inputs_and_outputs).sqrt());
            (xavier, Init::Constant(0.0))
        }
        MhcInit::Mindformers => {
            let pre = all(-f64::from((n - 1).max(1)).ln());
            let bias = biases(pre, all(0.0), -5.0);
            (Init::Normal(1e-4), Init::Values(bias))
        }
        MhcInit::MhcLite => {
            let bias = |chosen| biases(one(chosen), one(chosen), -8.0);
            (Init::Constant(0.0), Init::OneOf((0..n).map(bias).collect()))
        }
    }
}

/// Parameters of sites `0..L`: `phi` `[m, n d]`, which is decayed, biases `[m]`, and scales `[3]`.
#[must_use]
pub fn parameters(config: &ModelConfig, streams: u32, init: MhcInit) -> Vec<ParamSpec> {
    let (n, d) = (streams, config.hidden_size);
    let m = n * (n + 2);
    let mut specs = Vec::new();
    for site in 0..config.sublayers() {
        let prefix = prefix(config, site);
        let (phi, bias) = initial(init, site, n, d);
        specs.extend([
            ParamSpec::routing(format!("{prefix}phi.weight"), [m, n * d], phi).decayed(),
            ParamSpec::routing(format!("{prefix}bias"), [m], bias),
            ParamSpec::routing(format!("{prefix}alpha"), [3], Init::Constant(0.01)),
        ]);
    }
    specs
}

/// State while recording.
#[derive(Debug)]
pub struct Mhc {
    config: ModelConfig,
    count: u32,
    projection: mhc_gates::Projection,
    rows: u32,
    streams: Streams,
}

impl Mhc {
    /// A path of `streams` streams over `rows` tokens.
    #[must_use]
    pub fn new(
        config: &ModelConfig,
        streams: u32,
        projection: Projection,
        sinkhorn_iters: u32,
        rows: u32,
    ) -> Self {
        let projection = match projection {
            Projection::Sinkhorn => mhc_gates::Projection::Sinkhorn(sinkhorn_iters),
            Projection::Exact2 => mhc_gates::Projection::Exact2,
        };
        Self {
            config: config.clone(),
            count: streams,
            projection,
            rows,
            streams: Streams::new("mhc", streams),
        }
    }

    fn coefficients(&self, tape: &mut Tape, site: u32) -> Result<Coefficients> {
        let prefix = prefix(&self.config, site);
        let mut parameter = |name: &str| tape.parameter(&format!("{prefix}{name}"));
        let (phi, bias, alpha) = (
            parameter("phi.weight")?,
            parameter("bias")?,
            parameter("alpha")?,
        );
        let state = self.streams.state()?;
        let dynamic = Dynamic {
            dots: linear(tape, state, phi)?,
            factors: inverse_rms(tape, state, self.config.rms_norm_eps)?,
            scale: alpha,
            group: self.count,
            squash: false,
        };
        let raw = stream_coefficients(tape, self.rows, bias, Some(&dynamic))?;
        let gates = mhc_gates(tape, raw, self.count, self.projection)?;
        Ok(Coefficients {
            read: gates.pre,
            write: gates.post,
            mix: gates.mix,
            layout: Layout::ToFrom,
        })
    }
}

impl ResidualPath for Mhc {
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
        self.streams.readout(tape, 1.0 / f64::from(self.count))
    }

    fn gates(&self) -> &[Gate] {
        self.streams.gates()
    }

    fn states(&self) -> &States {
        self.streams.states()
    }
}
