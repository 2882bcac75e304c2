//! Float loops for the widest vectors of the machine, with the same bits on all of them.
//!
//! The binary is built for the oldest 64-bit processors. [`wide!`](wide) compiles a function three times and picks one at run
//! time. All three do the same operations in the same order (the compiler neither reorders nor fuses float operations),
//! so the choice changes the speed only. Sums run in [`LANES`] interleaved chains, which the compiler turns into vectors of
//! any width.

/// Define a function, compiled for 128, 256 and 512 bit vectors where the target is x86-64; elsewhere once.
///
/// Everything that its loops call must be `#[inline(always)]`, else it is compiled for the narrow vectors.
macro_rules! wide {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[cfg_attr(target_arch = "x86_64", expect(
            unsafe_code,
            reason = "code for vector extensions may run only where they exist, which is checked first"
        ))]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn body_512($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn body_256($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                match $crate::cpu::fast::math::vectors() {
                    // SAFETY: `vectors` has found the extensions that these two are compiled for.
                    512 => return unsafe { body_512($($arg),*) },
                    256 => return unsafe { body_256($($arg),*) },
                    _ => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use wide;

/// Width in bits of the vectors that this processor has. Cheap: the standard library caches what it found.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn vectors() -> u32 {
    use std::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("fma")) {
        128
    } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        512
    } else {
        256
    }
}

/// `e^x`, relative error below 1e-7. Below -87 it is 0, above 88 it is `e^88`; NaN stays NaN.
///
/// Without branches, so that loops over it become vector code.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has so few bits that its product with a whole number is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-87.0, 88.0);
    let rounded = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    let r = clamped - whole * LN2_HIGH - whole * LN2_LOW;
    // e^r = 1 + r + r^2 p(r) on [-ln 2 / 2, ln 2 / 2], minimax coefficients.
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let power = p * (r * r) + r + 1.0;
    let two_to_whole = f32::from_bits(
        rounded
            .to_bits()
            .wrapping_sub(ROUND.to_bits())
            .wrapping_add(127)
            << 23,
    );
    if x < -87.0 { 0.0 } else { power * two_to_whole }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Chains of a sum: element `i` belongs to chain `i % LANES`.
pub(crate) const LANES: usize = 64;

/// Add the chains pairwise.
#[inline(always)]
pub(crate) fn total(mut chains: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            chains[i] += chains[i + half];
        }
        half /= 2;
    }
    chains[0]
}

/// `sum of a[i]`.
#[inline(always)]
pub(crate) fn sum(a: &[f32]) -> f32 {
    let mut chains = [0.0; LANES];
    let (blocks, rest) = a.as_chunks::<LANES>();
    for a in blocks {
        for i in 0..LANES {
            chains[i] += a[i];
        }
    }
    for (chain, a) in chains.iter_mut().zip(rest) {
        *chain += a;
    }
    total(chains)
}

/// `sum of a[i] * b[i]`; the lengths must be the same.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut chains = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            chains[i] += a[i] * b[i];
        }
    }
    for (chain, (a, b)) in chains.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *chain += a * b;
    }
    total(chains)
}

/// `sum of a[i] * b[i] * c[i]`; the lengths must be the same.
#[inline(always)]
pub(crate) fn dot3(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut chains = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let (c, c_rest) = c.as_chunks::<LANES>();
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for i in 0..LANES {
            chains[i] += a[i] * b[i] * c[i];
        }
    }
    let rest = a_rest.iter().zip(b_rest).zip(c_rest);
    for (chain, ((a, b), c)) in chains.iter_mut().zip(rest) {
        *chain += a * b * c;
    }
    total(chains)
}

/// `sum of exp(a[i] - shift)`.
#[inline(always)]
pub(crate) fn sum_exp(a: &[f32], shift: f32) -> f32 {
    let mut chains = [0.0; LANES];
    let (blocks, rest) = a.as_chunks::<LANES>();
    for a in blocks {
        for i in 0..LANES {
            chains[i] += exp(a[i] - shift);
        }
    }
    for (chain, a) in chains.iter_mut().zip(rest) {
        *chain += exp(a - shift);
    }
    total(chains)
}

/// The largest element, at least -1e30. NaN is passed over.
#[inline(always)]
pub(crate) fn max(a: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut chains = [-1e30; LANES];
    let (blocks, rest) = a.as_chunks::<LANES>();
    for a in blocks {
        for i in 0..LANES {
            chains[i] = larger(a[i], chains[i]);
        }
    }
    for (chain, a) in chains.iter_mut().zip(rest) {
        *chain = larger(*a, *chain);
    }
    chains.into_iter().fold(-1e30, larger)
}

wide! {
    /// `y[i] += x[i]`.
    pub(crate) fn accumulate(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    wide! {
        fn exps(y: &mut [f32], x: &[f32]) {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = exp(x));
        }
    }

    #[test]
    fn exp_is_within_1e_7_of_the_truth() {
        let x: Vec<f32> = (0..1_000_000).map(|i| i as f32 * 1.75e-4 - 87.0).collect();
        let mut y = vec![0.0; x.len()];
        exps(&mut y, &x);
        for (&x, &y) in x.iter().zip(&y) {
            let want = f64::from(x).exp();
            assert!((f64::from(y) / want - 1.0).abs() < 1e-7, "exp({x}) = {y}");
            assert_eq!(
                y.to_bits(),
                exp(x).to_bits(),
                "narrow and wide differ at {x}"
            );
        }
    }

    #[test]
    fn exp_has_finite_ends_and_keeps_nan() {
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(1e30).is_finite());
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn sums_cover_every_element_once() {
        for len in [0, 1, 63, 64, 65, 200] {
            let a: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let ones = vec![1.0; len];
            let want = (0..len).sum::<usize>() as f32;
            assert_eq!(sum(&a), want);
            assert_eq!(dot(&a, &ones), want);
            assert_eq!(dot3(&ones, &a, &ones), want);
            assert_eq!(sum_exp(&ones, 1.0), len as f32);
            assert_eq!(
                max(&a),
                len.checked_sub(1).map_or(-1e30, |last| last as f32)
            );
        }
    }
}
