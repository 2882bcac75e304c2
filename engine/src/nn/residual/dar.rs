//! Dual attention residuals, full (one layer per block) and block (arXiv 2607.18730; section 4.5 of the checkpoint format).
//!
//! Two streams, each with a history of finished blocks and a partial sum. What stream `j` reads is chosen by keys of the
//! *other* stream; the values are its own (route `dar`; the other routes are the paper's ablations).
//!
//! ```text
//! h^j    = depth mix with query q^j;  keys from stream K(j), values from stream V(j)
//! f^j    = rms(h^j)
//! alpha  = softmax_j( b_alpha^j + <w_alpha^j, f^j> )
//! rho    = sigmoid( b_rho + <w_rho^0, f^0> + <w_rho^1, f^1> )
//! beta^j = 2 sigmoid( b_beta^j + <w_beta^j, f^j> )
//! x      = alpha^0 h^0 + alpha^1 h^1,   y = F_s(x)
//! P^j   <- beta^j y                                   at the start of a block
//! P^j   <- rho P^j + (1 - rho) P^(1-j) + beta^j y     later in it
//! ```
//!
//! The paper's full text was not available. Ours are: the gates' features and initial values, queries per stream with a key
//! norm shared by both, partials that restart with each block, the softmax over `alpha`, and the read-out by a last mix
//! (readings A7 to A20 of the routing specification). The biases of `beta` start at +-0.5, alternating, so that the streams
//! are not identical for ever; the initial function is that of block attention residuals all the same.

use super::about::About;
use super::attn_res::entry_name;
use super::config::{DarRoute, Gates};
use super::dual;
use super::path::{Gate, ResidualPath, Routing, site_prefix};
use super::states::{States, freezable_read};
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::depth_attention::{DepthMix, depth_attention};
use crate::ops::dual_gates::{ReadGate, dual_gates};
use crate::ops::dual_write::dual_write;
use crate::params::{Init, ParamSpec};
use crate::tape::{History, Slot, Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "two streams; the keys that choose a stream's depth come from the other stream",
    paper: "Dual Attention Residuals, arXiv 2607.18730",
    equations: "\
h^j    = sum_i a_i v_i,   a = softmax_i <q_s^j * g_s, rms(k_i)>
         v_i of stream V(j), k_i of stream K(j)
f^j    = rms(h^j)
alpha  = softmax_j(b_alpha^j + <w_alpha^j, f^j>)
rho    = sigmoid(b_rho + <w_rho^0, f^0> + <w_rho^1, f^1>)
beta^j = 2 sigmoid(b_beta^j + <w_beta^j, f^j>)
x_s    = alpha^0 h^0 + alpha^1 h^1,   y = F_s(x_s)
P^j   <- rho P^j + (1 - rho) P^(1-j) + beta^j y",
    choices: &[
        "The paper's full text was not available; its core, keys from the other stream and values from the own one, was.",
        "Gate features are the normalised mixes; gates start at alpha = 1/2, rho = sigmoid(2), beta = 2 sigmoid(+-0.5).",
        "Each stream has a query of its own; the gain of the key norm is shared.",
        "Partial sums restart with each block, and the read-out is a last mix with alpha.",
    ],
};

/// Parameters of sites `0..=L`: queries, the key norm, and the gates (`rho` and `beta` not at the read-out).
#[must_use]
pub fn parameters(config: &ModelConfig, gates: Gates) -> Vec<ParamSpec> {
    let d = config.hidden_size;
    let mut specs = Vec::new();
    for site in 0..=config.sublayers() {
        let prefix = format!("{}dar.", site_prefix(config, site));
        let mut add = |name: &str, shape: crate::Shape, init| {
            specs.push(ParamSpec::routing(format!("{prefix}{name}"), shape, init));
        };
        add("query", [2, d].into(), Init::Constant(0.0));
        add("key_norm.weight", [d].into(), Init::Constant(1.0));
        let write = site < config.sublayers();
        specs.extend(dual::parameters(&prefix, d, site, gates, write));
    }
    specs
}

/// State while recording.
#[derive(Debug)]
pub struct Dar {
    config: ModelConfig,
    layers_per_block: u32,
    route: DarRoute,
    gates: Gates,
    include_partial: bool,
    history: History,
    entries: [Vec<Slot>; 2],
    partial: Option<[Slot; 2]>,
    /// Gates of the site that has been read and not yet written.
    open_gates: Option<Tensor>,
    routing: Vec<Routing>,
    published_gates: Vec<Gate>,
    states: States,
}

impl Dar {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(
        tape: &mut Tape,
        config: &ModelConfig,
        layers_per_block: u32,
        route: DarRoute,
        gates: Gates,
        include_partial: bool,
        rows: u32,
    ) -> Self {
        Self {
            config: config.clone(),
            layers_per_block,
            route,
            gates,
            include_partial,
            history: tape.history("depth sources", rows, config.hidden_size),
            entries: [Vec::new(), Vec::new()],
            partial: None,
            open_gates: None,
            routing: Vec::new(),
            published_gates: Vec::new(),
            states: States::default(),
        }
    }

    fn mix(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        // A block has at least two sublayers here, so its name is never that of a sublayer.
        let name = |entry| entry_name(entry, 2 * self.layers_per_block);
        let [first, second] = &self.entries;
        self.states.history(tape, site, &[first, second], name)?;
        // The remainder of an unfinished last block is always read by the read-out, else its layers would be lost.
        let partial = self
            .partial
            .filter(|_| self.include_partial || site == self.config.sublayers());
        let sources = |stream: usize| -> Vec<Slot> {
            self.entries[stream]
                .iter()
                .copied()
                .chain(partial.map(|slots| slots[stream]))
                .collect()
        };
        let mut names: Vec<String> = (0..self.entries[0].len()).map(name).collect();
        names.extend(partial.map(|_| "partial".to_owned()));

        let prefix = format!("{}dar.", site_prefix(&self.config, site));
        let query = tape.parameter(&format!("{prefix}query"))?;
        let gain = tape.parameter(&format!("{prefix}key_norm.weight"))?;
        let eps = self.config.rms_norm_eps;
        let how = DepthMix::softmax(eps);
        let mut read = |stream: usize| -> Result<Tensor> {
            let keys = sources(self.route.key_stream(stream));
            let pairs: Vec<_> = keys
                .into_iter()
                .zip(sources(self.route.value_stream(stream)))
                .collect();
            let (mixed, weights) =
                depth_attention(tape, self.history, &pairs, query, stream as u32, gain, &how)?;
            tape.watch(|| format!("routing.{site}.{stream}"), weights);
            Ok(mixed)
        };
        let streams = [read(0)?, read(1)?];
        self.routing
            .extend([0, 1].map(|stream| Routing::per_token(site, stream, names.clone())));

        let write = site < self.config.sublayers();
        let params = dual::gate_params(tape, &prefix, self.gates, write)?;
        let (x, gates) = dual_gates(tape, streams, &params, ReadGate::Softmax, eps)?;
        let x = freezable_read(tape, &dual::gates_name(site), gates, streams, x)?;
        self.published_gates
            .extend(dual::publish(tape, site, gates, write));
        self.open_gates = Some(gates);
        Ok(x)
    }
}

impl ResidualPath for Dar {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        let slot = tape.push(self.history, e)?;
        self.entries = [vec![slot], vec![slot]];
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        self.mix(tape, site)
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        let early = || Error::Op {
            op: "dar",
            message: "a site is written before it is read".into(),
        };
        let gates = self.open_gates.take().ok_or_else(early)?;
        let partial = dual_write(tape, self.history, self.partial, gates, y)?;
        self.partial = Some(partial);
        if (site + 1).is_multiple_of(2 * self.layers_per_block) {
            self.partial = None;
            self.entries[0].push(partial[0]);
            self.entries[1].push(partial[1]);
        }
        Ok(())
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.mix(tape, self.config.sublayers())
    }

    fn routing(&self) -> &[Routing] {
        &self.routing
    }

    fn gates(&self) -> &[Gate] {
        &self.published_gates
    }

    fn states(&self) -> &States {
        &self.states
    }
}
