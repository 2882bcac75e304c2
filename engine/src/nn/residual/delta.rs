//! Delta attention residuals, per sublayer and per block (arXiv 2605.18855; section 4.3 of the checkpoint format).
//!
//! ```text
//! x_s = h + sum_i w_i v_i       the sum is read by sublayer s only; it is not written into the stream
//! h   <- h + F_s(x_s),   out = h
//! sources: e (once site 0 has read), then what each sublayer, or each finished block of S sublayers, added to h
//! w_i = a_i  (plain) | a_i - 1/n  (centered) | softmax with one more source of value 0  (null) | eta_s a_i  (gated)
//! ```
//!
//! Where the released code and the paper disagree we take the paper's definition: zero queries, exact block deltas,
//! appended at the end of their block (sections 4.3 and 4.6 of the routing specification, readings A3 to A6).

use super::about::About;
use super::attn_res::{entry_name, mix, query_and_norm};
use super::config::DeltaMode;
use super::path::{ResidualPath, Routing, site_prefix};
use super::states::States;
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::add::add;
use crate::ops::depth_attention::DepthMix;
use crate::ops::scaled_add::scaled_add;
use crate::params::{Init, ParamSpec};
use crate::tape::{History, Slot, Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "a softmax over what each sublayer, or block, changed is added to what is read",
    paper: "Delta Attention Residuals, arXiv 2605.18855",
    equations: "\
x_s = h + sum_i w_i v_i,   v = e, then what each sublayer or block added
h  <- h + F_s(x_s),        out = h
a   = softmax_i <q_s * g_s, rms(v_i)>
w   = a (plain), a - 1/n (centered), eta_s a (gated),
      a with a constant source of value 0 (null)",
    choices: &[
        "Where released code and paper disagree this follows the paper: zero queries, exact block deltas, appended at the \
         end of their block.",
        "An unfinished last block never becomes a source, and the read-out is the plain stream.",
        "Queries, gains and gates are not decayed.",
    ],
};

/// Parameters of sites `0..L`; those of site 0 exist but are not used. `<site>res_gate` `[1]`, zero, with `gated` only.
#[must_use]
pub fn parameters(config: &ModelConfig, mode: DeltaMode) -> Vec<ParamSpec> {
    let mut specs = query_and_norm(config, 0..config.sublayers(), true);
    if mode == DeltaMode::Gated {
        specs.extend((0..config.sublayers()).map(|site| {
            ParamSpec::routing(
                format!("{}res_gate", site_prefix(config, site)),
                [1],
                Init::Constant(0.0),
            )
        }));
    }
    specs
}

/// State while recording.
#[derive(Debug)]
pub struct Delta {
    config: ModelConfig,
    mode: DeltaMode,
    null_logit: f64,
    sublayers_per_block: u32,
    history: History,
    embedding: Option<Tensor>,
    stream: Option<Tensor>,
    /// Sum of the current block's outputs.
    partial: Option<Tensor>,
    sources: Vec<Slot>,
    routing: Vec<Routing>,
    states: States,
}

impl Delta {
    /// A path over `rows` tokens; `sublayers_per_block` is 1 for granularity `sublayer`.
    #[must_use]
    pub fn new(
        tape: &mut Tape,
        config: &ModelConfig,
        sublayers_per_block: u32,
        mode: DeltaMode,
        null_logit: f64,
        rows: u32,
    ) -> Self {
        Self {
            config: config.clone(),
            mode,
            null_logit,
            sublayers_per_block,
            history: tape.history("depth sources", rows, config.hidden_size),
            embedding: None,
            stream: None,
            partial: None,
            sources: Vec::new(),
            routing: Vec::new(),
            states: States::default(),
        }
    }

    fn stream(&self) -> Result<Tensor> {
        self.stream.ok_or_else(|| Error::Op {
            op: "delta",
            message: "expand comes first".into(),
        })
    }
}

impl ResidualPath for Delta {
    fn expand(&mut self, _: &mut Tape, e: Tensor) -> Result<()> {
        (self.embedding, self.stream) = (Some(e), Some(e));
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let stream = self.stream()?;
        if self.sources.is_empty() {
            return Ok(stream);
        }
        let name = |number| entry_name(number, self.sublayers_per_block);
        self.states.history(tape, site, &[&self.sources], name)?;
        let mut names: Vec<String> = (0..self.sources.len()).map(name).collect();
        let null_logit = (self.mode == DeltaMode::Null).then_some(self.null_logit);
        names.extend(null_logit.map(|_| "null".to_owned()));
        self.routing.push(Routing::per_token(site, 0, names));

        let centered = self.mode == DeltaMode::Centered;
        let how = DepthMix {
            centered,
            null_logit,
            ..DepthMix::softmax(self.config.rms_norm_eps)
        };
        let mixed = mix(tape, &self.config, site, self.history, &self.sources, &how)?;
        if self.mode == DeltaMode::Gated {
            let gate = tape.parameter(&format!("{}res_gate", site_prefix(&self.config, site)))?;
            return scaled_add(tape, stream, mixed, gate);
        }
        add(tape, stream, mixed)
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        if let Some(embedding) = self.embedding.take() {
            self.sources.push(tape.push(self.history, embedding)?);
        }
        let sum = match self.partial {
            Some(partial) => add(tape, partial, y)?,
            None => y,
        };
        self.partial = Some(sum);
        if (site + 1).is_multiple_of(self.sublayers_per_block) {
            self.partial = None;
            self.sources.push(tape.push(self.history, sum)?);
        }
        self.stream = Some(add(tape, self.stream()?, y)?);
        Ok(())
    }

    fn readout(&mut self, _: &mut Tape) -> Result<Tensor> {
        self.stream()
    }

    fn routing(&self) -> &[Routing] {
        &self.routing
    }

    fn states(&self) -> &States {
        &self.states
    }
}
