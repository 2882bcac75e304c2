//! A pre-norm decoder whose residual path is any of the mechanisms.
//!
//! ```text
//! e = embedding[ids];  for every site s:  x = path.read(s);  y = F_s(x);  path.write(s, y)
//! logits = rms_norm(path.readout()) W_out^T
//! ```
//!
//! `F_s` includes its own norm, which routing never changes. No biases, no dropout.

use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::models::norms;
use crate::nn::experts::{self, Routed};
use crate::nn::residual::{Gate, Routing, States};
use crate::nn::rms_norm::{norm, parameter as gain};
use crate::nn::{Batch, attention, swiglu};
use crate::ops::embedding::embedding;
use crate::ops::matmul::linear;
use crate::ops::rope::{RopeTables, rope_tables};
use crate::params::{Init, ParamSpec, Parameters};
use crate::tape::{Tape, Tensor};

/// What recording a model gives.
#[derive(Debug)]
pub struct Forward {
    /// `[rows, vocab]`
    pub logits: Tensor,
    /// Published depth weights.
    pub routing: Vec<Routing>,
    /// Published gates.
    pub gates: Vec<Gate>,
    /// Which experts the tokens went to, layer by layer; empty without experts.
    pub experts: Vec<Routed>,
    /// Published states; none but on an analysing tape.
    pub states: States,
    /// What each sublayer gave, `[rows, d]`.
    pub outputs: Vec<Tensor>,
}

/// Every parameter of a model, laid out.
///
/// # Errors
/// If the configuration is impossible or asks for something that is not implemented.
pub fn parameters(config: &ModelConfig) -> Result<Parameters> {
    config.validate()?;
    let (d, vocab, std) = (
        config.hidden_size,
        config.vocab_size,
        config.initializer_range,
    );
    let mut specs = vec![ParamSpec::base(
        "model.embed_tokens.weight",
        [vocab, d],
        Init::Normal(std),
        false,
    )];
    for layer in 0..config.num_hidden_layers {
        let prefix = format!("model.layers.{layer}.");
        specs.push(gain(format!("{prefix}input_layernorm.weight"), d));
        specs.extend(attention::parameters(config, layer));
        specs.push(gain(format!("{prefix}post_attention_layernorm.weight"), d));
        specs.extend(match config.experts() {
            None => swiglu::parameters(config, &format!("{prefix}mlp."), config.intermediate_size),
            Some(moe) => experts::parameters(config, moe, layer),
        });
    }
    specs.push(gain("model.norm.weight", d));
    if !config.tie_word_embeddings {
        specs.push(ParamSpec::base(
            "lm_head.weight",
            [vocab, d],
            Init::Normal(std),
            true,
        ));
    }
    specs.extend(config.residual.parameters(config));
    Parameters::layout(specs)
}

/// The site whose sublayer a parameter belongs to, `sublayers` for the read-out's norm and head; `None` for the embedding and
/// for what the residual mechanism or a rule of its own owns.
#[must_use]
pub fn site_of(spec: &ParamSpec, sublayers: u32) -> Option<u32> {
    if spec.group.routing || spec.group.untrained {
        return None;
    }
    let Some(inner) = spec.name.strip_prefix("model.layers.") else {
        let last = ["model.norm.weight", "lm_head.weight"];
        return last.contains(&spec.name.as_str()).then_some(sublayers);
    };
    let (layer, name) = inner.split_once('.')?;
    let feed_forward = name.starts_with("mlp.") || name.starts_with("post_attention_layernorm.");
    Some(2 * layer.parse::<u32>().ok()? + u32::from(feed_forward))
}

/// Record the forward pass over token numbers `ids` `[rows]`.
///
/// # Errors
/// If the configuration asks for something that is not implemented, or a tensor does not fit.
pub fn forward(
    tape: &mut Tape,
    config: &ModelConfig,
    batch: Batch,
    ids: Tensor,
) -> Result<Forward> {
    let tables = rope_tables(tape, batch.context, config.head_dim, config.rope_theta);
    let table = tape.parameter("model.embed_tokens.weight")?;
    let mut path = config.residual.path(tape, config, batch.rows())?;
    let e = tape.scope("embed", |tape| embedding(tape, ids, table))?;
    path.expand(tape, e)?;
    let (mut routed, mut outputs) = (Vec::new(), Vec::new());
    for site in 0..config.sublayers() {
        let scope = format!(
            "layer {} {}",
            site / 2 + 1,
            if site.is_multiple_of(2) {
                "attn"
            } else {
                "mlp"
            }
        );
        tape.scope(&scope, |tape| {
            let x = path.read(tape, site)?;
            norms::publish(tape, || norms::input_name(site), x)?;
            let y = tape.checkpoint(|tape| {
                if site.is_multiple_of(2) {
                    attend(tape, config, batch, &tables, site / 2, x)
                } else {
                    feed_forward(tape, config, site / 2, x, &mut routed)
                }
            })?;
            norms::publish(tape, || norms::output_name(site), y)?;
            outputs.push(y);
            path.write(tape, site, y)
        })?;
    }
    let out = tape.scope("read-out", |tape| {
        let out = path.readout(tape)?;
        norms::publish(tape, || norms::input_name(config.sublayers()), out)?;
        Ok(out)
    })?;
    let logits = tape.scope("head", |tape| {
        let x = norm(tape, "model.norm.weight", out, config.rms_norm_eps)?;
        let head = if config.tie_word_embeddings {
            table
        } else {
            tape.parameter("lm_head.weight")?
        };
        linear(tape, x, head)
    })?;
    Ok(Forward {
        logits,
        routing: path.routing().to_vec(),
        gates: path.gates().to_vec(),
        experts: routed,
        states: path.states().clone(),
        outputs,
    })
}

/// `F_s` of an even site: norm and attention.
fn attend(
    tape: &mut Tape,
    config: &ModelConfig,
    batch: Batch,
    tables: &RopeTables,
    layer: u32,
    x: Tensor,
) -> Result<Tensor> {
    let gain = format!("model.layers.{layer}.input_layernorm.weight");
    let x = norm(tape, &gain, x, config.rms_norm_eps)?;
    attention::forward(tape, config, layer, batch, tables, x)
}

/// `F_s` of an odd site: norm and feed-forward. Experts add to `routed`.
fn feed_forward(
    tape: &mut Tape,
    config: &ModelConfig,
    layer: u32,
    x: Tensor,
    routed: &mut Vec<Routed>,
) -> Result<Tensor> {
    let prefix = format!("model.layers.{layer}.");
    let gain = format!("{prefix}post_attention_layernorm.weight");
    let x = norm(tape, &gain, x, config.rms_norm_eps)?;
    let Some(moe) = config.experts() else {
        return swiglu::forward(tape, &format!("{prefix}mlp."), x);
    };
    let (y, routes) = experts::forward(tape, moe, layer, x)?;
    routed.push(routes);
    Ok(y)
}
