//! What hyper-connections and mHC share: `n` streams of a token in one row, and how a site reads and writes them.
//!
//! ```text
//! H_i  = e                                     i = 0 .. n-1
//! x    = sum_i read_i H_i,   o = F_s(x)
//! H_j <- write_j o + sum_i mix_(i,j) H_i
//! out  = c sum_i H_i
//! ```
//!
//! The mechanisms differ in how `read`, `write` and `mix` come about, and in the factor `c` of the read-out.

use super::path::Gate;
use super::states::{States, freezable};
use crate::error::{Error, Result};
use crate::ops::stream_mix::{Layout, Term, stream_mix};
use crate::tape::{Tape, Tensor};

/// The coefficients of one site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficients {
    /// `[rows, n]`
    pub(super) read: Tensor,
    /// `[rows, n]`
    pub(super) write: Tensor,
    /// `[rows, n n]`
    pub(super) mix: Tensor,
    /// Whether a row of `mix` belongs to an old stream or to a new one.
    pub(super) layout: Layout,
}

/// The streams while recording.
#[derive(Debug)]
pub(super) struct Streams {
    name: &'static str,
    count: u32,
    /// `[rows, n d]`
    state: Option<Tensor>,
    /// Coefficients of the site that has been read and not yet written.
    open: Option<Coefficients>,
    gates: Vec<Gate>,
    states: States,
}

impl Streams {
    /// `count` streams of the mechanism `name`.
    pub(super) fn new(name: &'static str, count: u32) -> Self {
        Self {
            name,
            count,
            state: None,
            open: None,
            gates: Vec::new(),
            states: States::default(),
        }
    }

    fn error(&self, message: &str) -> Error {
        Error::Op {
            op: self.name,
            message: message.into(),
        }
    }

    /// Publish the streams that `site` is about to read.
    pub(super) fn visit(&mut self, tape: &mut Tape, site: u32) -> Result<()> {
        let state = self.state()?;
        let dim = state.shape.last() / self.count;
        let streams = (0..self.count).map(|stream| (state, stream * dim..(stream + 1) * dim));
        self.states
            .running(tape, site, &streams.collect::<Vec<_>>())
    }

    /// What has been published of them.
    pub(super) fn states(&self) -> &States {
        &self.states
    }

    /// `[rows, n d]`
    pub(super) fn state(&self) -> Result<Tensor> {
        self.state.ok_or_else(|| self.error("expand comes first"))
    }

    /// Weights `[1, n]` that are the same for all tokens and streams.
    fn equal(&self, tape: &mut Tape, weight: f64) -> Tensor {
        let content = vec![weight; self.count as usize];
        tape.constant("equal weights", [1, self.count], content)
    }

    pub(super) fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        let ones = self.equal(tape, 1.0);
        self.state = Some(stream_mix(tape, &[Term::new(e, ones)], self.count)?);
        Ok(())
    }

    /// What site `site` reads; publishes its coefficients.
    pub(super) fn read(
        &mut self,
        tape: &mut Tape,
        site: u32,
        coefficients: Coefficients,
    ) -> Result<Tensor> {
        let n = self.count as usize;
        for (name, tensor, shape) in [
            ("read", coefficients.read, vec![n]),
            ("write", coefficients.write, vec![n]),
            ("mix", coefficients.mix, vec![n, n]),
        ] {
            let gate = Gate {
                site,
                name,
                tensor: format!("gates.{site}.{name}"),
                columns: 0..tensor.shape.last() as usize,
                shape,
                width: tensor.shape.last() as usize,
            };
            tape.watch(|| gate.tensor.clone(), tensor);
            freezable(tape, &gate.tensor, tensor)?;
            self.gates.push(gate);
        }
        self.open = Some(coefficients);
        stream_mix(tape, &[Term::new(self.state()?, coefficients.read)], 1)
    }

    /// Take the output of the site that was read last.
    pub(super) fn write(&mut self, tape: &mut Tape, y: Tensor) -> Result<()> {
        let early = self.error("a site is written before it is read");
        let Coefficients {
            write, mix, layout, ..
        } = self.open.take().ok_or(early)?;
        let carried = Term {
            x: self.state()?,
            weights: mix,
            layout,
        };
        let terms = [carried, Term::new(y, write)];
        self.state = Some(stream_mix(tape, &terms, self.count)?);
        Ok(())
    }

    /// All streams, each with this weight.
    pub(super) fn readout(&self, tape: &mut Tape, weight: f64) -> Result<Tensor> {
        let weights = self.equal(tape, weight);
        stream_mix(tape, &[Term::new(self.state()?, weights)], 1)
    }

    /// What has been published.
    pub(super) fn gates(&self) -> &[Gate] {
        &self.gates
    }
}
