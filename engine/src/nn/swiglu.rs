//! The dense feed-forward sublayer: `down( silu(gate(x)) * up(x) )`.

use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::matmul::linear;
use crate::ops::swiglu::swiglu;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// Parameters below `prefix` (`model.layers.0.mlp.`) for hidden width `width`.
#[must_use]
pub fn parameters(config: &ModelConfig, prefix: &str, width: u32) -> Vec<ParamSpec> {
    let (d, std) = (config.hidden_size, config.initializer_range);
    let matrix = |name: &str, rows, columns, std| {
        ParamSpec::base(
            format!("{prefix}{name}.weight"),
            [rows, columns],
            Init::Normal(std),
            true,
        )
    };
    vec![
        matrix("gate_proj", width, d, std),
        matrix("up_proj", width, d, std),
        matrix(
            "down_proj",
            d,
            width,
            std / f64::from(config.sublayers()).sqrt(),
        ),
    ]
}

/// `x` `[rows, d]`, already normalised, to `[rows, d]`.
///
/// # Errors
/// If a parameter is missing or a kernel call is malformed.
pub fn forward(tape: &mut Tape, prefix: &str, x: Tensor) -> Result<Tensor> {
    let project = |tape: &mut Tape, name: &str, x| {
        let weight = tape.parameter(&format!("{prefix}{name}.weight"))?;
        linear(tape, x, weight)
    };
    let gate = project(tape, "gate_proj", x)?;
    let up = project(tape, "up_proj", x)?;
    let hidden = swiglu(tape, gate, up)?;
    project(tape, "down_proj", hidden)
}
