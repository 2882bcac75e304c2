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

use super::about::About;
use super::path::{ResidualPath, Routing, site_prefix, source_name};
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::depth_attention::{DepthMix, depth_attention};
use crate::ops::slot_add::slot_add;
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
    ],
};

/// `<site>res_proj.weight` `[1, d]`, zero: the query; `<site>res_norm.weight` `[d]`, one: the gain of the key norm.
pub(super) fn query_and_norm(
    config: &ModelConfig,
    sites: impl Iterator<Item = u32>,
) -> Vec<ParamSpec> {
    let d = config.hidden_size;
    sites
        .flat_map(|site| {
            let prefix = site_prefix(config, site);
            [
                ParamSpec::routing(
                    format!("{prefix}res_proj.weight"),
                    [1, d],
                    Init::Constant(0.0),
                ),
                ParamSpec::routing(format!("{prefix}res_norm.weight"), [d], Init::Constant(1.0)),
            ]
        })
        .collect()
}

/// Parameters of sites `0..=L`.
#[must_use]
pub fn parameters(config: &ModelConfig) -> Vec<ParamSpec> {
    query_and_norm(config, 0..config.sublayers() + 1)
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
    let prefix = site_prefix(config, site);
    let query = tape.parameter(&format!("{prefix}res_proj.weight"))?;
    let gain = tape.parameter(&format!("{prefix}res_norm.weight"))?;
    let pairs: Vec<_> = sources.iter().map(|&slot| (slot, slot)).collect();
    let (mixed, weights) = depth_attention(tape, history, &pairs, query, 0, gain, how)?;
    tape.watch(|| format!("routing.{site}.0"), weights);
    Ok(mixed)
}

/// State while recording.
#[derive(Debug)]
pub struct AttnRes {
    config: ModelConfig,
    sublayers_per_block: u32,
    history: History,
    entries: Vec<Slot>,
    partial: Option<Slot>,
    routing: Vec<Routing>,
}

impl AttnRes {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(tape: &mut Tape, config: &ModelConfig, sublayers_per_block: u32, rows: u32) -> Self {
        let history = tape.history("depth sources", rows, config.hidden_size);
        let (entries, routing) = (Vec::new(), Vec::new());
        Self {
            config: config.clone(),
            sublayers_per_block,
            history,
            entries,
            partial: None,
            routing,
        }
    }

    fn mix(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let mut names = vec!["embed".to_owned()];
        names.extend(
            (1..self.entries.len())
                .map(|block| source_name(block as u32 - 1, self.sublayers_per_block)),
        );
        names.extend(self.partial.map(|_| "partial".to_owned()));
        self.routing.push(Routing::per_token(site, 0, names));
        let sources: Vec<Slot> = self.entries.iter().copied().chain(self.partial).collect();
        let how = DepthMix {
            eps: self.config.rms_norm_eps,
            centered: false,
            null_logit: None,
        };
        mix(tape, &self.config, site, self.history, &sources, &how)
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
        if (site + 1).is_multiple_of(self.sublayers_per_block) {
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
}
