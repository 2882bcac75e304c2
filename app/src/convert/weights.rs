//! The parameters of a converted model.

use braid_engine::params::Parameters;
use braid_engine::{Error, Result};

/// All of `values` under their names in `to`; what `from` has not gets the initial values of `seed`. Arenas in the layout of
/// their parameters.
///
/// # Errors
/// If `to` lacks a parameter of `from`, or has it in another shape: the two differ in more than the mechanism.
pub fn carry(from: &Parameters, values: &[f32], to: &Parameters, seed: u64) -> Result<Vec<f32>> {
    let mut arena = to.initial_values(seed);
    for (number, spec) in from.specs().iter().enumerate() {
        let same = to
            .position(&spec.name)
            .filter(|&place| to.specs()[place].shape == spec.shape);
        let Some(place) = same else {
            return Err(Error::File(format!(
                "the new model has no `{}` of shape {}: only the residual mechanism may differ",
                spec.name, spec.shape
            )));
        };
        arena[to.range(place)].copy_from_slice(&values[from.range(number)]);
    }
    Ok(arena)
}
