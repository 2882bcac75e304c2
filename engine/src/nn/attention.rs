//! Causal grouped-query attention with rotary positions (section 3 of the checkpoint format).

use super::Batch;
use super::rms_norm::norm;
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::attention::attention;
use crate::ops::matmul::linear;
use crate::ops::rope::{RopeTables, rope};
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// Parameters of layer `layer`.
#[must_use]
pub fn parameters(config: &ModelConfig, layer: u32) -> Vec<ParamSpec> {
    let (d, queries, keys) = (config.hidden_size, config.query_width(), config.key_width());
    let (std, prefix) = (
        config.initializer_range,
        format!("model.layers.{layer}.self_attn."),
    );
    let matrix = |name: &str, rows, columns, std| {
        ParamSpec::base(
            format!("{prefix}{name}.weight"),
            [rows, columns],
            Init::Normal(std),
            true,
        )
    };
    let mut specs = vec![
        matrix("q_proj", queries, d, std),
        matrix("k_proj", keys, d, std),
        matrix("v_proj", keys, d, std),
        matrix(
            "o_proj",
            d,
            queries,
            std / f64::from(config.sublayers()).sqrt(),
        ),
    ];
    if config.qk_norm {
        specs.extend(["q_norm", "k_norm"].map(|name| {
            ParamSpec::base(
                format!("{prefix}{name}.weight"),
                [config.head_dim],
                Init::Constant(1.0),
                false,
            )
        }));
    }
    specs
}

/// `x` `[rows, d]`, already normalised, to `[rows, d]`.
///
/// # Errors
/// If a parameter is missing or a kernel call is malformed.
pub fn forward(
    tape: &mut Tape,
    config: &ModelConfig,
    layer: u32,
    batch: Batch,
    tables: &RopeTables,
    x: Tensor,
) -> Result<Tensor> {
    let prefix = format!("model.layers.{layer}.self_attn.");
    let heads =
        |tape: &mut Tape, name: &str, count: u32, norm_name: Option<&str>| -> Result<Tensor> {
            let weight = tape.parameter(&format!("{prefix}{name}.weight"))?;
            let flat = linear(tape, x, weight)?;
            let mut split = tape.reshape(
                flat,
                [batch.sequences, batch.context, count, config.head_dim],
            );
            let Some(norm_name) = norm_name else {
                return Ok(split);
            };
            if config.qk_norm {
                split = norm(
                    tape,
                    &format!("{prefix}{norm_name}.weight"),
                    split,
                    config.rms_norm_eps,
                )?;
            }
            rope(tape, split, tables)
        };
    let queries = heads(tape, "q_proj", config.num_attention_heads, Some("q_norm"))?;
    let keys = heads(tape, "k_proj", config.num_key_value_heads, Some("k_norm"))?;
    let values = heads(tape, "v_proj", config.num_key_value_heads, None)?;
    let mixed = attention(tape, queries, keys, values)?;
    let flat = tape.reshape(mixed, [batch.rows(), config.query_width()]);
    let weight = tape.parameter(&format!("{prefix}o_proj.weight"))?;
    linear(tape, flat, weight)
}
