//! The generator of the golden vectors in the notes on residual mechanisms (section 8): numbers in `[-1, 1)`, by integer
//! arithmetic alone.

/// `w(series)`: the first `count` numbers of a series.
#[must_use]
pub fn w(series: u32, count: usize) -> Vec<f64> {
    (1..=count as u32)
        .map(|number| {
            let a = number
                .wrapping_mul(747_796_405)
                .wrapping_add(series.wrapping_mul(2_891_336_453));
            let b = ((a >> ((a >> 28) + 4)) ^ a).wrapping_mul(277_803_737);
            f64::from((b >> 22) ^ b) / f64::from(1_u32 << 31) - 1.0
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_numbers_are_those_of_the_notes() {
        let want = [
            0.318_326_3,
            -0.043_005_4,
            -0.007_355_8,
            -0.683_836_9,
            0.006_373_3,
            0.885_275_1,
        ];
        super::super::assert_close("w(1)", &super::w(1, 6), &want, 1e-6);
    }
}
