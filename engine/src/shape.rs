//! Shapes: up to four dimensions, row-major.

use std::fmt;

/// Dimensions of a tensor, slowest first. Prints as `[16, 256, 384]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u32; 4],
    rank: u8,
}

impl Shape {
    /// The dimensions.
    #[must_use]
    pub fn dims(&self) -> &[u32] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dims().iter().map(|&dim| dim as usize).product()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last (fastest) dimension; 1 for a scalar.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.dims().last().copied().unwrap_or(1)
    }

    /// Product of all dimensions but the last.
    #[must_use]
    pub fn rows(&self) -> u32 {
        let rank = usize::from(self.rank);
        self.dims[..rank.saturating_sub(1)].iter().product()
    }
}

impl<const N: usize> From<[u32; N]> for Shape {
    fn from(value: [u32; N]) -> Self {
        const { assert!(N <= 4, "a shape has at most four dimensions") };
        let mut dims = [1; 4];
        dims[..N].copy_from_slice(&value);
        Self {
            dims,
            rank: N as u8,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}
