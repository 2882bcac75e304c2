//! Shapes and addresses of batches.

/// Which training batch: it depends on these three numbers and on the data, on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    /// Seed of the run.
    pub seed: u64,
    /// Training step, from 1.
    pub step: u64,
    /// Micro-batch within the step, from 0.
    pub micro: u32,
}

impl Draw {
    /// The label of the random stream that this batch is drawn from.
    #[must_use]
    pub fn label(&self) -> String {
        format!("batch/{}/{}", self.step, self.micro)
    }
}

/// Sequences in a batch, and tokens in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchShape {
    /// Sequences, `B`.
    pub batch: usize,
    /// Tokens in each, `T`.
    pub context: usize,
}

impl BatchShape {
    /// `B * T`.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batch * self.context
    }
}

/// A batch of the validation part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalBatch {
    /// Tokens, `[B, T]` row-major.
    pub ids: Vec<u32>,
    /// The token to predict at each of them.
    pub labels: Vec<u32>,
    /// The first so many rows count, the rest is padding: average the loss over these only.
    pub counted: usize,
    /// Rows that answer a question of a task, ascending; empty for texts. All are among the counted ones.
    pub answers: Vec<usize>,
}

/// A 64-bit FNV-1a hash, the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    pub(super) fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}
