//! Sorts the choices of a router by expert, so that each expert's tokens are rows of one matrix.
//!
//! Each choice (token and slot: a pair) gets a row; the rows of an expert lie together and begin on a whole tile of
//! [`TILE`] rows. There are rows enough for every outcome, so launches do not depend on it and nothing is read back. The
//! kernels are `shaders/expert_rank.wgsl` and `shaders/expert_sort.wgsl`.

use crate::error::{Error, Result};
use crate::kernel::{Element, kernels};
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

/// Rows of a tile: all of one expert. A multiple of the rows that an invocation of a matrix product computes.
pub const TILE: u32 = 16;

/// No expert, no pair.
pub(crate) const NONE: u32 = u32::MAX;

/// Invocations of a workgroup of `expert_rank`.
const LANES: usize = 256;

crate::params! {
    /// Parameters of `expert_rank`.
    pub struct RankParams {
        /// Choices.
        pairs: u32,
    }
}

crate::params! {
    /// Parameters of `expert_sort`.
    pub struct Params {
        /// Choices.
        pairs: u32,
        /// Experts.
        experts: u32,
        /// Rows of a tile.
        tile: u32,
        /// Rows in all.
        rows: u32,
    }
}

/// Where the choices of a batch stand. All tensors are unsigned integers.
#[derive(Clone, Copy, Debug)]
pub struct Sorted {
    /// Experts.
    pub experts: u32,
    /// Rows, padding included.
    pub rows: u32,
    /// The choices `[tokens, top_k]` that were sorted.
    pub chosen: Tensor,
    /// `[2, experts]`: choices of each expert, and its first row.
    pub places: Tensor,
    /// `[tokens, top_k]`: row of each choice.
    pub slot_row: Tensor,
    /// `[rows]`: the choice of each row, `u32::MAX` for padding.
    pub row_pair: Tensor,
    /// `[rows / TILE]`: the expert of each tile, `u32::MAX` behind the last.
    pub tile_expert: Tensor,
}

#[derive(Debug)]
struct Sort {
    params: Params,
}

/// Sort `chosen` `[tokens, top_k]`, unsigned integers below `experts`.
///
/// # Errors
/// If there are more rows than 32-bit numbers count.
pub fn expert_sort(tape: &mut Tape, chosen: Tensor, experts: u32) -> Result<Sorted> {
    let pairs = chosen.shape.len() as u64;
    // Each expert wastes less than a tile.
    let tiles = pairs.div_ceil(u64::from(TILE)) + u64::from(experts);
    let rows = u32::try_from(tiles * u64::from(TILE)).map_err(|_| Error::Op {
        op: "expert_sort",
        message: format!("{pairs} choices are too many"),
    })?;
    let params = Params {
        pairs: pairs as u32,
        experts,
        tile: TILE,
        rows,
    };
    let shapes = [
        [2, experts].into(),
        chosen.shape,
        [rows].into(),
        [rows / TILE].into(),
    ];
    let outputs = shapes.map(|shape: Shape| (shape, Element::U32));
    let outputs = tape.record_typed(Sort { params }, &[chosen], &outputs)?;
    Ok(Sorted {
        experts,
        rows,
        chosen,
        places: outputs[0],
        slot_row: outputs[1],
        row_pair: outputs[2],
        tile_expert: outputs[3],
    })
}

impl Op for Sort {
    fn name(&self) -> &'static str {
        "expert_sort"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Params {
            pairs,
            experts,
            rows,
            ..
        } = self.params;
        let [chosen, places] = [x[0], y[0]].map(|tensor| rec.value(tensor));
        let [slot_row, row_pair, tile_expert] = [y[1], y[2], y[3]].map(|tensor| rec.value(tensor));
        let rank = rec.scratch_ints("rank", pairs as usize);
        let args = [chosen, rank, places];
        let items = experts as usize * LANES;
        rec.dispatch(
            &kernels::EXPERT_RANK_FORWARD,
            RankParams { pairs },
            &args,
            items,
        )?;
        let params = self.params.clone();
        rec.dispatch(&kernels::EXPERT_SORT_FORWARD_OFFSETS, params, &[places], 1)?;
        let args = [places, chosen, rank, slot_row, row_pair, tile_expert];
        let items = pairs.max(rows) as usize;
        rec.dispatch(
            &kernels::EXPERT_SORT_FORWARD,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, _: &mut Recorder, _: &[Tensor], _: &[Tensor]) -> Result<()> {
        Ok(()) // integers have no gradient
    }
}
