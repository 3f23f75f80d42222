//! Numbers of the command line that must make sense before anything is started.

/// A number above 0 that is not infinite.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("give a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_above_zero_pass() {
        assert_eq!(positive("6.25e6"), Ok(6.25e6));
        for text in ["", "0", "-1", "nan", "inf", "1e999", "6 MHz", "0x10"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }
}
