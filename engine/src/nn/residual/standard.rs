//! The ordinary residual stream: `h <- h + F_s(h)`, `out = h` (section 4.1 of the checkpoint format).

use super::about::About;
use super::path::ResidualPath;
use super::states::States;
use crate::error::{Error, Result};
use crate::ops::add::add;
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "every sublayer adds to one stream and reads all of it",
    paper: "",
    equations: "\
h <- e
x_s = h,   h <- h + F_s(x_s)
out = h",
    choices: &[],
};

/// The running sum.
#[derive(Debug, Default)]
pub struct Standard {
    sublayers: u32,
    stream: Option<Tensor>,
    states: States,
}

impl Standard {
    /// The path of a model with so many sublayers.
    #[must_use]
    pub fn new(sublayers: u32) -> Self {
        Self {
            sublayers,
            ..Self::default()
        }
    }

    fn stream(&self) -> Result<Tensor> {
        self.stream.ok_or_else(|| Error::Op {
            op: "standard",
            message: "expand comes first".into(),
        })
    }
}

impl ResidualPath for Standard {
    fn expand(&mut self, _: &mut Tape, e: Tensor) -> Result<()> {
        self.stream = Some(e);
        Ok(())
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let stream = self.stream()?;
        let whole = 0..stream.shape.last();
        self.states.running(tape, site, &[(stream, whole)])?;
        Ok(stream)
    }

    fn write(&mut self, tape: &mut Tape, _: u32, y: Tensor) -> Result<()> {
        self.stream = Some(add(tape, self.stream()?, y)?);
        Ok(())
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.read(tape, self.sublayers)
    }

    fn states(&self) -> &States {
        &self.states
    }
}
