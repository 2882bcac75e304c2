//! Random numbers that depend on a seed and a label only, never on how much was drawn before.
//!
//! Nothing in a run keeps a generator alive: initial values, batches and samples each open the stream of their own label.
//! That is why a resumed run needs no random state beyond the seed and the step.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The stream of a label.
#[must_use]
pub fn stream(seed: u64, label: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    // FNV-1a over the label, once per eight bytes with other offsets, fills the rest of the key.
    for (lane, chunk) in key[8..].chunks_mut(8).enumerate() {
        let mut hash =
            0xcbf2_9ce4_8422_2325_u64 ^ (lane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in label.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        chunk.copy_from_slice(&hash.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Fill with independent normal numbers of the given standard deviation.
#[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
pub fn fill_normal(values: &mut [f32], deviation: f64, seed: u64, label: &str) {
    let mut rng = stream(seed, label);
    for value in values {
        let normal: f64 = StandardNormal.sample(&mut rng);
        *value = (normal * deviation) as f32;
    }
}

/// A whole number below `bound`, which must not be 0.
pub fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    rng.random_range(0..bound as u64) as usize
}

/// A number in `[0, 1)`.
pub fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    rng.random::<f64>()
}
