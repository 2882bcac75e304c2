//! The ordinary residual stream: `h <- h + F_s(h)`, `out = h` (section 4.1 of the checkpoint format).

use super::about::About;
use super::path::ResidualPath;
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
    stream: Option<Tensor>,
}

impl Standard {
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

    fn read(&mut self, _: &mut Tape, _: u32) -> Result<Tensor> {
        self.stream()
    }

    fn write(&mut self, tape: &mut Tape, _: u32, y: Tensor) -> Result<()> {
        self.stream = Some(add(tape, self.stream()?, y)?);
        Ok(())
    }

    fn readout(&mut self, _: &mut Tape) -> Result<Tensor> {
        self.stream()
    }
}
