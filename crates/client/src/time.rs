//! Times in nanoseconds and in ticks.

/// Returns the time of a tick in nanoseconds, rounded to the nearest, exactly.
///
/// A rate that is no number above 0 gives 0.
#[must_use]
pub fn ns_of_ticks(ticks: u64, ticks_hz: f64) -> i64 {
    let Some((mantissa, shift)) = fraction(ticks_hz) else { return 0 };
    let exact = u128::from(ticks)
        .checked_mul(1_000_000_000)
        .filter(|scaled| scaled.leading_zeros() > shift)
        .map(|scaled| rounded(scaled << shift, mantissa.into()));
    let ns = exact.unwrap_or_else(|| (ticks as f64 / ticks_hz * 1e9).round() as u128);
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Returns the tick that is nearest to a time in nanoseconds; 0 for a time below 0.
#[must_use]
pub fn ticks_of_ns(ns: i64, ticks_hz: f64) -> u64 {
    let Some((mantissa, shift)) = fraction(ticks_hz) else { return 0 };
    let Ok(ns) = u128::try_from(ns) else { return 0 };
    // 63 and 53 bits.
    let scaled = ns * u128::from(mantissa);
    let unit = 1_000_000_000_u128.checked_shl(shift).filter(|unit| unit >> shift == 1_000_000_000);
    let ticks = unit.map_or(0, |unit| rounded(scaled, unit));
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Returns a rate as a whole number divided by a power of two.
fn fraction(rate_hz: f64) -> Option<(u64, u32)> {
    if !(rate_hz.is_finite() && (1e-3..1e15).contains(&rate_hz)) {
        return None;
    }
    let mut shift = 0;
    let mut whole = rate_hz;
    while whole.fract() != 0.0 {
        whole *= 2.0;
        shift += 1;
    }
    Some((whole as u64, shift))
}

fn rounded(value: u128, unit: u128) -> u128 {
    value / unit + u128::from(value % unit >= unit.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_nearest_nanosecond_and_return() {
        for (ticks, rate, ns) in [
            (0, 16e6, 0),
            (1, 16e6, 63),
            (16_000_001, 16e6, 1_000_000_063),
            (3, 61.44e6, 49),
            (61_440_000 * 86_400 * 365, 61.44e6, 31_536_000_000_000_000),
            (10, 2.5, 4_000_000_000),
            (5, 0.0, 0),
            (5, f64::NAN, 0),
        ] {
            assert_eq!(ns_of_ticks(ticks, rate), ns, "{ticks} at {rate}");
        }
        for rate in [16e6, 61.44e6, 30.72e6, 25e6 / 3.0, 200e6 / 7.0] {
            for ticks in [0, 1, 12_345_678, 1 << 40, (1 << 50) + 12_347] {
                assert_eq!(ticks_of_ns(ns_of_ticks(ticks, rate), rate), ticks, "{ticks} at {rate}");
            }
        }
        assert_eq!((ticks_of_ns(-5, 1e6), ticks_of_ns(5, 0.0)), (0, 0));
    }
}
