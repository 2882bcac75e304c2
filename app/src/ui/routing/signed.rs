//! Numbers with a sign.

/// `0.61` to `0.612`, `−0.07`: a value with a proper minus.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let zero = text.chars().all(|c| matches!(c, '0' | '.'));
    if value < 0.0 && !zero {
        format!("−{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn a_minus_is_a_minus_and_zero_has_none() {
        assert_eq!(signed(-0.071, 2), "−0.07");
        assert_eq!(signed(-0.001, 2), "0.00");
    }
}
