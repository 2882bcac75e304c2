//! Two streams with DAR's gates and no history: the control arm of `dar` (section 4.6 of the checkpoint format, section 6 of
//! the routing specification).
//!
//! ```text
//! X^j    = e                                          j = 0, 1
//! f^j    = rms(X^j)
//! pi^j   = sigmoid( b_alpha^j + <w_alpha^j, f^j> )
//! rho    = sigmoid( b_rho + <w_rho^0, f^0> + <w_rho^1, f^1> )
//! beta^j = 2 sigmoid( b_beta^j + <w_beta^j, f^j> )
//! x      = pi^0 X^0 + pi^1 X^1,   y = F_s(x)
//! X^j   <- rho X^j + (1 - rho) X^(1-j) + beta^j y
//! out    = (X^0 + X^1) / 2
//! ```
//!
//! What separates it from `dar` is what `dar` claims: reading the depth. It is not the published mHC, which is `mhc` with two
//! streams; their numbers must not be mixed.

use super::about::About;
use super::config::Gates;
use super::dual;
use super::path::{Gate, ResidualPath, site_prefix};
use super::states::{States, freezable_read};
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::dual_gates::{ReadGate, dual_gates};
use crate::ops::dual_write::dual_write;
use crate::ops::stream_mix::{Term, stream_mix};
use crate::params::ParamSpec;
use crate::tape::{History, Slot, Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "two streams with the gates of dar and no history: its control arm",
    paper: "",
    equations: "\
f^j    = rms(X^j)
pi^j   = sigmoid(b_alpha^j + <w_alpha^j, f^j>)
rho    = sigmoid(b_rho + <w_rho^0, f^0> + <w_rho^1, f^1>)
beta^j = 2 sigmoid(b_beta^j + <w_beta^j, f^j>)
x_s    = pi^0 X^0 + pi^1 X^1,   y = F_s(x_s)
X^j   <- rho X^j + (1 - rho) X^(1-j) + beta^j y
out    = (X^0 + X^1) / 2",
    choices: &[
        "No paper defines it: the parts of mHC with two streams, in the form of dar's gates and with their initial values.",
        "The mixing matrix [[rho, 1 - rho], [1 - rho, rho]] is doubly stochastic as it is and needs no iterations.",
        "The read-out is the mean of the streams.",
    ],
};

fn prefix(config: &ModelConfig, site: u32) -> String {
    format!("{}mhc2.", site_prefix(config, site))
}

/// Parameters of sites `0..L`: the dynamic gates of `dar`.
#[must_use]
pub fn parameters(config: &ModelConfig) -> Vec<ParamSpec> {
    let gates = |site| {
        let prefix = prefix(config, site);
        dual::parameters(&prefix, config.hidden_size, site, Gates::Dynamic, true)
    };
    (0..config.sublayers()).flat_map(gates).collect()
}

/// State while recording.
#[derive(Debug)]
pub struct Mhc2Matched {
    config: ModelConfig,
    history: History,
    streams: Option<[Slot; 2]>,
    /// Gates of the site that has been read and not yet written.
    open_gates: Option<Tensor>,
    published_gates: Vec<Gate>,
    states: States,
}

impl Mhc2Matched {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(tape: &mut Tape, config: &ModelConfig, rows: u32) -> Self {
        Self {
            config: config.clone(),
            history: tape.history("streams", rows, config.hidden_size),
            streams: None,
            open_gates: None,
            published_gates: Vec::new(),
            states: States::default(),
        }
    }

    /// Publish the streams that `site` reads.
    fn visit(&mut self, tape: &mut Tape, site: u32) -> Result<[Slot; 2]> {
        let streams = self.streams()?;
        let all = streams.map(|slot| (slot.tensor, 0..self.config.hidden_size));
        self.states.running(tape, site, &all)?;
        Ok(streams)
    }

    fn streams(&self) -> Result<[Slot; 2]> {
        self.streams.ok_or_else(|| Error::Op {
            op: "mhc2_matched",
            message: "expand comes first".into(),
        })
    }
}

impl ResidualPath for Mhc2Matched {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        let slot = tape.push(self.history, e)?;
        self.streams = Some([slot; 2]);
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let prefix = prefix(&self.config, site);
        let params = dual::gate_params(tape, &prefix, Gates::Dynamic, true)?;
        let streams = self.visit(tape, site)?.map(|slot| slot.tensor);
        let eps = self.config.rms_norm_eps;
        let (x, gates) = dual_gates(tape, streams, &params, ReadGate::Sigmoid, eps)?;
        let x = freezable_read(tape, &dual::gates_name(site), gates, streams, x)?;
        self.published_gates
            .extend(dual::publish(tape, site, gates, true));
        self.open_gates = Some(gates);
        Ok(x)
    }

    fn write(&mut self, tape: &mut Tape, _: u32, y: Tensor) -> Result<()> {
        let early = || Error::Op {
            op: "mhc2_matched",
            message: "a site is written before it is read".into(),
        };
        let gates = self.open_gates.take().ok_or_else(early)?;
        self.streams = Some(dual_write(
            tape,
            self.history,
            Some(self.streams()?),
            gates,
            y,
        )?);
        Ok(())
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        let half = tape.constant("one half", [1, 1], vec![0.5]);
        let streams = self.visit(tape, self.config.sublayers())?;
        let terms = streams.map(|slot| Term::new(slot.tensor, half));
        stream_mix(tape, &terms, 1)
    }

    fn gates(&self) -> &[Gate] {
        &self.published_gates
    }

    fn states(&self) -> &States {
        &self.states
    }
}
