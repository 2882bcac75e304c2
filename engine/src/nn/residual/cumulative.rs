//! A depth mix over running states: the control arms for the sharpness of routing (section 4.4 of the checkpoint format).
//!
//! ```text
//! h_0 = e,   h_(s+1) = h_s + F_s(x_s),   out = h_L
//! m_s = sum_i a_i h_i over i = 0 .. s,   a = softmax_i <q_s * g_s, rms(h_i)>
//! x_s = m_s  (replace)   |   x_0 = h_0, then x_s = h_s + m_s  (add)
//! ```
//!
//! Neighbouring states differ little, so there is little to choose: what `delta` is compared with.

use super::about::About;
use super::attn_res::{mix, query_and_norm};
use super::config::ReadMode;
use super::path::{ResidualPath, Routing};
use super::states::States;
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::add::add;
use crate::ops::depth_attention::DepthMix;
use crate::ops::slot_add::slot_add;
use crate::params::ParamSpec;
use crate::tape::{History, Slot, Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "a softmax over the running states themselves: a control arm",
    paper: "a control arm of Delta Attention Residuals, arXiv 2605.18855",
    equations: "\
h_0     = e,   h_(s+1) = h_s + F_s(x_s),   out = h_L
m_s     = sum_i a_i h_i, i = 0 .. s,   a = softmax_i <q_s * g_s, rms(h_i)>
replace:  x_s = m_s
add:      x_0 = h_0, then x_s = h_s + m_s",
    choices: &[
        "The current state is a source as well.",
        "With `add` the first sublayer reads the embedding alone: a mix would only double it.",
        "Queries and gains are not decayed.",
    ],
};

/// Parameters of sites `0..L`; with `add` those of site 0 exist but are not used.
#[must_use]
pub fn parameters(config: &ModelConfig) -> Vec<ParamSpec> {
    query_and_norm(config, 0..config.sublayers(), true)
}

/// State while recording.
#[derive(Debug)]
pub struct Cumulative {
    config: ModelConfig,
    read: ReadMode,
    history: History,
    states: Vec<Slot>,
    out: Option<Tensor>,
    routing: Vec<Routing>,
    recorded: States,
}

impl Cumulative {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(tape: &mut Tape, config: &ModelConfig, read: ReadMode, rows: u32) -> Self {
        Self {
            config: config.clone(),
            read,
            history: tape.history("depth sources", rows, config.hidden_size),
            states: Vec::new(),
            out: None,
            routing: Vec::new(),
            recorded: States::default(),
        }
    }

    fn state(&self) -> Result<Slot> {
        self.states.last().copied().ok_or_else(not_expanded)
    }
}

fn not_expanded() -> Error {
    Error::Op {
        op: "cumulative",
        message: "expand comes first".into(),
    }
}

impl ResidualPath for Cumulative {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.states.push(tape.push(self.history, e)?);
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let name = |state: usize| match state {
            0 => "embed".to_owned(),
            state => format!("state {state}"),
        };
        self.recorded.history(tape, site, &[&self.states], name)?;
        let state = self.state()?.tensor;
        if self.read == ReadMode::Add && site == 0 {
            return Ok(state);
        }
        let names = (0..self.states.len()).map(name);
        self.routing
            .push(Routing::per_token(site, 0, names.collect()));
        let how = DepthMix::softmax(self.config.rms_norm_eps);
        let mixed = mix(tape, &self.config, site, self.history, &self.states, &how)?;
        match self.read {
            ReadMode::Replace => Ok(mixed),
            ReadMode::Add => add(tape, state, mixed),
        }
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        let state = self.state()?;
        if site + 1 == self.config.sublayers() {
            // Nobody chooses the last state: it needs no slot.
            self.out = Some(add(tape, state.tensor, y)?);
        } else {
            self.states.push(slot_add(tape, self.history, state, y)?);
        }
        Ok(())
    }

    fn readout(&mut self, _: &mut Tape) -> Result<Tensor> {
        self.out.ok_or_else(not_expanded)
    }

    fn routing(&self) -> &[Routing] {
        &self.routing
    }

    fn states(&self) -> &States {
        &self.recorded
    }
}
