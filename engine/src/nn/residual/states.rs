//! The states of a residual path: what analyses look at, and what they replace to ask what it is worth.
//!
//! A state is an entry of a stream's history (the embedding, a finished block), or, for mechanisms whose streams run on, what
//! a stream holds before a site. On an analysing tape every state is published, and at each boundary, a site before which
//! states have been added, the states of each stream can be replaced by vectors that the caller gives: all entries of the
//! history but the embedding, or the running stream. On other tapes nothing is recorded.

use std::ops::Range;

use super::path::source_name;
use crate::error::Result;
use crate::ops::gated_add::gated_add;
use crate::ops::replace::replace;
use crate::tape::{FREEZE, Slot, Tape, Tensor};

/// A published state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The first site that can read it; 0 for the embedding.
    pub site: u32,
    /// Which stream, 0 for mechanisms with one.
    pub stream: u32,
    /// `embed`, `block 1`, ..; for a running stream the sublayer that wrote it last, `attn 1`.
    pub name: String,
    /// Name of the tensor on an analysing tape, `[rows, width]`.
    pub tensor: String,
    /// Its columns.
    pub columns: Range<usize>,
    /// Columns of the whole tensor.
    pub width: usize,
}

/// A site before which states can be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The site that reads them first.
    pub site: u32,
    /// Numbers of the states that are replaced, all streams.
    pub states: Vec<usize>,
}

/// Name of the input that replaces the states of a stream at a boundary while it is not 0.
#[must_use]
pub fn corrupt_name(site: u32, stream: u32) -> String {
    format!("corrupt.{site}.{stream}")
}

/// Name of the vector that takes the place of state `number` in every row.
#[must_use]
pub fn substitute_name(number: usize) -> String {
    format!("substitute.{number}")
}

/// Name of the input that a published gate tensor becomes while routing is frozen.
#[must_use]
pub fn frozen_gates_name(tensor: &str) -> String {
    format!("frozen.{tensor}")
}

/// What a path has published.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// All states, in the order of recording.
    pub states: Vec<State>,
    /// Where they can be replaced.
    pub boundaries: Vec<Boundary>,
    /// Entries of the history that have been published.
    entries: usize,
}

impl States {
    /// Before `site` reads: the entries of each stream's history, the embedding first, with a name for each position.
    pub(super) fn history(
        &mut self,
        tape: &mut Tape,
        site: u32,
        streams: &[&[Slot]],
        name: impl Fn(usize) -> String,
    ) -> Result<()> {
        let count = streams.first().map_or(0, |slots| slots.len());
        if !tape.is_analysing() || count == self.entries {
            return Ok(());
        }
        for entry in self.entries..count {
            for (stream, slots) in streams.iter().enumerate() {
                let tensor = slots[entry].tensor;
                self.publish(
                    tape,
                    (site, stream),
                    name(entry),
                    tensor,
                    0..tensor.shape.last(),
                );
            }
        }
        self.entries = count;
        let replaced = (1..count).flat_map(|entry| {
            let of = move |(stream, slots): (usize, &&[Slot])| {
                let tensor = slots[entry].tensor;
                (
                    entry * streams.len() + stream,
                    tensor,
                    0..tensor.shape.last(),
                )
            };
            streams.iter().enumerate().map(of)
        });
        self.boundary(tape, site, replaced.collect())
    }

    /// Before `site` reads: the running streams, each some columns of a tensor.
    pub(super) fn running(
        &mut self,
        tape: &mut Tape,
        site: u32,
        streams: &[(Tensor, Range<u32>)],
    ) -> Result<()> {
        if !tape.is_analysing() {
            return Ok(());
        }
        let first = self.states.len();
        let name = match site {
            0 => "embed".to_owned(),
            site => source_name(site - 1, 1),
        };
        for (stream, (tensor, columns)) in streams.iter().enumerate() {
            self.publish(tape, (site, stream), name.clone(), *tensor, columns.clone());
        }
        if site == 0 {
            return Ok(());
        }
        let replaced = streams.iter().enumerate();
        let replaced =
            replaced.map(|(stream, (tensor, columns))| (first + stream, *tensor, columns.clone()));
        self.boundary(tape, site, replaced.collect())
    }

    fn publish(
        &mut self,
        tape: &mut Tape,
        (site, stream): (u32, usize),
        name: String,
        tensor: Tensor,
        columns: Range<u32>,
    ) {
        let published = format!("state.{}", self.states.len());
        tape.watch(|| published.clone(), tensor);
        self.states.push(State {
            site,
            stream: stream as u32,
            name,
            tensor: published,
            columns: columns.start as usize..columns.end as usize,
            width: tensor.shape.last() as usize,
        });
    }

    fn boundary(
        &mut self,
        tape: &mut Tape,
        site: u32,
        replaced: Vec<(usize, Tensor, Range<u32>)>,
    ) -> Result<()> {
        if replaced.is_empty() {
            return Ok(());
        }
        let states = replaced.iter().map(|(number, ..)| *number).collect();
        for (number, tensor, columns) in replaced {
            let stream = self.states[number].stream;
            let on = tape.standing_input(&corrupt_name(site, stream), [1]);
            let by = tape.standing_input(&substitute_name(number), [columns.end - columns.start]);
            replace(tape, on, by, tensor, columns)?;
        }
        self.boundaries.push(Boundary { site, states });
        Ok(())
    }
}

/// Let gates `[rows, n]`, which are published as `tensor`, stay what they were while routing is frozen.
pub(super) fn freezable(tape: &mut Tape, tensor: &str, gates: Tensor) -> Result<()> {
    if !tape.is_analysing() {
        return Ok(());
    }
    let on = tape.standing_input(FREEZE, [1]);
    let by = tape.standing_input(&frozen_gates_name(tensor), gates.shape);
    replace(tape, on, by, gates, 0..gates.shape.last())
}

/// The same for the gates of two streams, whose kernel has read the streams `h` already: returns `x`, or on an analysing tape
/// what the gates, frozen or not, read.
pub(super) fn freezable_read(
    tape: &mut Tape,
    tensor: &str,
    gates: Tensor,
    h: [Tensor; 2],
    x: Tensor,
) -> Result<Tensor> {
    if !tape.is_analysing() {
        return Ok(x);
    }
    freezable(tape, tensor, gates)?;
    let first = gated_add(tape, None, gates, 0, h[0])?;
    gated_add(tape, Some(first), gates, 1, h[1])
}
