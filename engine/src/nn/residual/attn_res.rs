//! Attention residuals, full and block (arXiv 2603.15031; section 4.2 of the checkpoint format).
//!
//! ```text
//! sources at site s:  e, the finished blocks, then the current block's partial sum P if it has begun
//! x_s = sum_i a_i v_i,   a = softmax_i( <q_s * g_s, rms(v_i)> )
//! P <- P + F_s(x_s);  after every S sublayers P becomes a finished block
//! out = the same mix at site L, over everything, the partial of an unfinished last block included
//! ```
//!
//! `S = 1` is the full form. The query of the read-out is our reading (A2): the report says that the output layer
//! aggregates all blocks, released code gives it a query and a norm of its own.
//!
//! The ablations of the paper are settings ([`AttnResConfig`]); where one needs a choice, it is ours:
//!
//! ```text
//! weights = "sigmoid"   a_i = sigmoid(<q_s * g_s, rms(v_i)>), not divided by their sum
//! weights = "static"    a = softmax(c_s), learned numbers, one a source, the same for all tokens
//! key_norm = false      a = softmax_i <q_s, v_i>; the gain goes with the norm
//! depth_heads = H       H parts of the channels with a softmax each; the norm of a key is over all channels
//! window = w            sources: e and the w newest of the others
//! ```
//!
//! `evaluation = "two_phase"` computes the same model in another order. Queries are parameters, so all sites of a block can
//! read the finished blocks at its start; a site then lets the partial sum join ([`mod@crate::ops::depth_merge`]).

use super::about::About;
use super::config::{AttnResConfig, DepthWeights, Evaluation};
use super::path::{ResidualPath, Routing, Weighting, site_prefix, source_name};
use super::states::States;
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::depth_attention::{Activation, DepthMix, depth_attention, depth_attention_open};
use crate::ops::depth_merge::{OpenMix, depth_merge};
use crate::ops::edit_weights::edited;
use crate::ops::slot_add::slot_add;
use crate::ops::softmax::softmax;
use crate::ops::static_mix::static_mix;
use crate::params::{Init, ParamSpec};
use crate::tape::{History, Slot, Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "a softmax over all earlier outputs, or blocks of them, replaces the stream",
    paper: "Attention Residuals, arXiv 2603.15031",
    equations: "\
x_s = sum_i a_i v_i,   a = softmax_i <q_s * g_s, rms(v_i)>
v   = e, the finished blocks, the partial sum P of the current block
P  <- P + F_s(x_s);  after S sublayers P is a finished block
out = the same mix at site L",
    choices: &[
        "The read-out has a query and a key norm of its own, as in released code; the report only says that the output \
         layer aggregates all blocks.",
        "The key norm has a gain, and eps is that of the model's other norms.",
        "Queries and gains are not decayed.",
        "Ablations: sigmoid weights are not divided by their sum, static weights are a softmax, the norm of a key is over \
         all heads, and without it there is no gain.",
    ],
};

fn query_name(prefix: &str) -> String {
    format!("{prefix}res_proj.weight")
}

fn gain_name(prefix: &str) -> String {
    format!("{prefix}res_norm.weight")
}

fn logits_name(prefix: &str) -> String {
    format!("{prefix}res_logits")
}

/// `<site>res_proj.weight` `[1, d]`, zero: the query; `<site>res_norm.weight` `[d]`, one, if keys are normalised: the gain.
pub(super) fn query_and_norm(
    config: &ModelConfig,
    sites: impl Iterator<Item = u32>,
    key_norm: bool,
) -> Vec<ParamSpec> {
    let d = config.hidden_size;
    sites
        .flat_map(|site| {
            let prefix = site_prefix(config, site);
            let query = ParamSpec::routing(query_name(&prefix), [1, d], Init::Constant(0.0));
            let gain = ParamSpec::routing(gain_name(&prefix), [d], Init::Constant(1.0));
            [Some(query), key_norm.then_some(gain)]
        })
        .flatten()
        .collect()
}

/// Parameters of sites `0..=L`: query and gain, or, with static weights, `<site>res_logits` `[sources]`, zero.
#[must_use]
pub fn parameters(config: &ModelConfig, options: &AttnResConfig) -> Vec<ParamSpec> {
    let sites = 0..config.sublayers() + 1;
    if options.weights != DepthWeights::Static {
        return query_and_norm(config, sites, options.key_norm);
    }
    let logits = |site| {
        let name = logits_name(&site_prefix(config, site));
        ParamSpec::routing(name, [options.sources(site)], Init::Constant(0.0))
    };
    sites.map(logits).collect()
}

/// Depth mix of `sources` (keys = values) with the parameters of `site`; publishes the weights.
pub(super) fn mix(
    tape: &mut Tape,
    config: &ModelConfig,
    site: u32,
    history: History,
    sources: &[Slot],
    how: &DepthMix,
) -> Result<Tensor> {
    let query = query_and_gain(tape, config, site, None)?;
    let (mixed, weights) = mix_all(tape, history, sources, query, how)?;
    tape.watch(|| format!("routing.{site}.0"), weights);
    Ok(mixed)
}

/// Query and gain of a site; `ones` stands for the gain where there is none.
fn query_and_gain(
    tape: &mut Tape,
    config: &ModelConfig,
    site: u32,
    ones: Option<Tensor>,
) -> Result<(Tensor, Tensor)> {
    let prefix = site_prefix(config, site);
    let query = tape.parameter(&query_name(&prefix))?;
    let gain = match ones {
        Some(ones) => ones,
        None => tape.parameter(&gain_name(&prefix))?,
    };
    Ok((query, gain))
}

/// What people call entry `number` of a history, 0 for the embedding.
pub(super) fn entry_name(number: usize, sublayers_per_block: u32) -> String {
    match number {
        0 => "embed".to_owned(),
        number => source_name(number as u32 - 1, sublayers_per_block),
    }
}

/// One mix over all `sources`, keys = values, and its weights.
fn mix_all(
    tape: &mut Tape,
    history: History,
    sources: &[Slot],
    (query, gain): (Tensor, Tensor),
    how: &DepthMix,
) -> Result<(Tensor, Tensor)> {
    let pairs: Vec<_> = sources.iter().map(|&slot| (slot, slot)).collect();
    depth_attention(tape, history, &pairs, query, 0, gain, how)
}

/// State while recording.
#[derive(Debug)]
pub struct AttnRes {
    config: ModelConfig,
    options: AttnResConfig,
    history: History,
    entries: Vec<Slot>,
    partial: Option<Slot>,
    /// Two phases: what the sites of the current block have read of the finished blocks, from the second site on.
    open: Vec<OpenMix>,
    /// Stands for the gain where keys are not normalised.
    ones: Option<Tensor>,
    routing: Vec<Routing>,
    states: States,
}

impl AttnRes {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(tape: &mut Tape, config: &ModelConfig, options: AttnResConfig, rows: u32) -> Self {
        let d = config.hidden_size;
        let ones = (!options.key_norm).then(|| tape.constant("ones", [d], vec![1.0; d as usize]));
        Self {
            config: config.clone(),
            options,
            history: tape.history("depth sources", rows, d),
            entries: Vec::new(),
            partial: None,
            open: Vec::new(),
            ones,
            routing: Vec::new(),
            states: States::default(),
        }
    }

    /// What `site` reads, in order, with names.
    fn sources(&self) -> (Vec<Slot>, Vec<String>) {
        let name = |number| entry_name(number, self.options.sublayers_per_block);
        let entries = self.entries.iter().enumerate();
        let mut all: Vec<(Slot, String)> = entries
            .map(|(number, &slot)| (slot, name(number)))
            .collect();
        all.extend(self.partial.map(|slot| (slot, "partial".to_owned())));
        if self.options.window > 0 {
            let old = all.len().saturating_sub(self.options.window as usize);
            all.drain(1..old.max(1));
        }
        all.into_iter().unzip()
    }

    /// Query and gain of a site.
    fn query(&self, tape: &mut Tape, site: u32) -> Result<(Tensor, Tensor)> {
        query_and_gain(tape, &self.config, site, self.ones)
    }

    fn mix(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let name = |number| entry_name(number, self.options.sublayers_per_block);
        self.states.history(tape, site, &[&self.entries], name)?;
        let (sources, names) = self.sources();
        let routing = Routing::per_token(site, 0, names);
        let (mixed, weights, routing) = match (self.options.weights, self.options.evaluation) {
            (DepthWeights::Static, _) => {
                let name = logits_name(&site_prefix(&self.config, site));
                let logits = tape.parameter(&name)?;
                let weights = softmax(tape, logits)?;
                let weights = edited(tape, weights)?;
                let mixed = static_mix(tape, self.history, &sources, weights)?;
                let routing = Routing::shared(site, routing.sources, Weighting::Softmax);
                (mixed, weights, routing)
            }
            // Edits are of whole rows of weights, which only the single pass has.
            (_, Evaluation::TwoPhase) if !tape.is_editing() => {
                let (mixed, weights) = self.two_phases(tape, site)?;
                (mixed, weights, routing)
            }
            (DepthWeights::Softmax, _) => {
                let (mixed, weights) = self.single(tape, site, &sources, Activation::Softmax)?;
                (mixed, weights, routing)
            }
            (DepthWeights::Sigmoid, _) => {
                let (mixed, weights) = self.single(tape, site, &sources, Activation::Sigmoid)?;
                let routing = Routing {
                    weighting: Weighting::Sigmoid,
                    ..routing
                };
                (mixed, weights, routing)
            }
        };
        tape.watch(|| routing.tensor(), weights);
        self.routing.push(routing);
        Ok(mixed)
    }

    /// One mix over all sources.
    fn single(
        &self,
        tape: &mut Tape,
        site: u32,
        sources: &[Slot],
        activation: Activation,
    ) -> Result<(Tensor, Tensor)> {
        let how = DepthMix {
            activation,
            heads: self.options.depth_heads,
            key_norm: self.options.key_norm,
            ..DepthMix::softmax(self.config.rms_norm_eps)
        };
        let query = self.query(tape, site)?;
        mix_all(tape, self.history, sources, query, &how)
    }

    /// The first site of a block reads the finished blocks for all sites of the block; at the others the partial sum joins.
    fn two_phases(&mut self, tape: &mut Tape, site: u32) -> Result<(Tensor, Tensor)> {
        let how = DepthMix::softmax(self.config.rms_norm_eps);
        let Some(partial) = self.partial else {
            let pairs: Vec<_> = self.entries.iter().map(|&slot| (slot, slot)).collect();
            let length = self.options.sublayers_per_block;
            let last = site.saturating_add(length - 1).min(self.config.sublayers());
            self.open.clear();
            for later in site + 1..=last {
                let (query, gain) = self.query(tape, later)?;
                let (mixed, weights, log_sum) =
                    depth_attention_open(tape, self.history, &pairs, query, 0, gain, &how)?;
                self.open.push(OpenMix {
                    mixed,
                    weights,
                    log_sum,
                });
            }
            return self.single(tape, site, &self.entries, Activation::Softmax);
        };
        let position = site % self.options.sublayers_per_block;
        let open = self.open.get((position as usize).wrapping_sub(1)).copied();
        let open = open.ok_or_else(|| Error::Op {
            op: "attn_res",
            message: format!("site {site} is read before the first site of its block"),
        })?;
        let (query, gain) = self.query(tape, site)?;
        depth_merge(tape, self.history, open, partial, query, gain, &how)
    }
}

impl ResidualPath for AttnRes {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.entries.push(tape.push(self.history, e)?);
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        self.mix(tape, site)
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        self.partial = Some(match self.partial {
            Some(partial) => slot_add(tape, self.history, partial, y)?,
            None => tape.push(self.history, y)?,
        });
        if (site + 1).is_multiple_of(self.options.sublayers_per_block) {
            self.entries.extend(self.partial.take());
        }
        Ok(())
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.mix(tape, self.config.sublayers())
    }

    fn routing(&self) -> &[Routing] {
        &self.routing
    }

    fn states(&self) -> &States {
        &self.states
    }
}
