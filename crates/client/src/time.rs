//! Times of a radio's clock.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// The ticks of a nanosecond's clock, per second.
const NS_HZ: f64 = 1e9;

/// A moment by a radio's clock: a count of ticks, and the rate of the ticks.
///
/// It keeps the unit in which it was made, so that nothing is rounded before a program asks for
/// another one; each conversion gives the nearest tick, exactly, also at rates such as 25e6/3 Hz.
/// Comparisons are exact, too, whatever the units. The clock begins at 0, and no time is before it.
///
/// ```
/// # use millstream_client::DeviceTime;
/// # use std::time::Duration;
/// let start = DeviceTime::from_ticks(16_000_001, 16e6);
/// assert_eq!(start.ns(), 1_000_000_063);
/// assert!(start + Duration::from_millis(1) > start);
/// assert_eq!(DeviceTime::from_ns(1_000_000_000).ticks_at(16e6), 16_000_000);
/// assert_eq!(start.to_string(), "1.000000063 s");
/// ```
#[derive(Clone, Copy)]
pub struct DeviceTime {
    ticks: u64,
    rate_hz: f64,
}

impl DeviceTime {
    /// Returns the time of a number of nanoseconds; below 0 the begin of the clock.
    #[must_use]
    pub fn from_ns(ns: i64) -> Self {
        Self { ticks: u64::try_from(ns).unwrap_or(0), rate_hz: NS_HZ }
    }

    /// Returns the time of a number of ticks, of which `rate_hz` are a second. A rate that is no
    /// number above 0 makes it the begin of the clock.
    #[must_use]
    pub fn from_ticks(ticks: u64, rate_hz: f64) -> Self {
        if fraction(rate_hz).is_none() {
            return Self::from_ns(0);
        }
        Self { ticks, rate_hz }
    }

    /// Returns the ticks, in the unit in which it was made.
    #[must_use]
    pub fn ticks(self) -> u64 {
        self.ticks
    }

    /// Returns the rate of these ticks, per second.
    #[must_use]
    pub fn rate_hz(self) -> f64 {
        self.rate_hz
    }

    /// Returns the ticks of a clock of another rate: the nearest.
    #[must_use]
    pub fn ticks_at(self, rate_hz: f64) -> u64 {
        scaled(self.ticks, self.rate_hz, rate_hz)
    }

    /// Returns the nanoseconds: the nearest.
    #[must_use]
    pub fn ns(self) -> i64 {
        i64::try_from(self.ticks_at(NS_HZ)).unwrap_or(i64::MAX)
    }

    /// Returns the seconds, as near as a float can be.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.ns() as f64 / NS_HZ
    }
}

/// To the nearest tick of the time's own unit.
impl Add<Duration> for DeviceTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self { ticks: self.ticks.saturating_add(self.ticks_of(duration)), ..self }
    }
}

/// To the nearest tick of the time's own unit; not below the begin of the clock.
impl Sub<Duration> for DeviceTime {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self { ticks: self.ticks.saturating_sub(self.ticks_of(duration)), ..self }
    }
}

/// The time from one moment to another; none if the other is the later one.
impl Sub for DeviceTime {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        let ns = if self.rate_hz == earlier.rate_hz {
            let ticks = self.ticks.saturating_sub(earlier.ticks);
            Self { ticks, ..self }.ticks_at(NS_HZ)
        } else {
            self.ticks_at(NS_HZ).saturating_sub(earlier.ticks_at(NS_HZ))
        };
        Duration::from_nanos(ns)
    }
}

impl DeviceTime {
    fn ticks_of(self, duration: Duration) -> u64 {
        scaled(duration.as_nanos().try_into().unwrap_or(u64::MAX), NS_HZ, self.rate_hz)
    }
}

impl Ord for DeviceTime {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.rate_hz == other.rate_hz {
            return self.ticks.cmp(&other.ticks);
        }
        // An invalid rate stands for 0.
        let parts = |time: &Self| {
            fraction(time.rate_hz).map_or((0, 1, 0), |(whole, shift)| (time.ticks, whole, shift))
        };
        let ((a, a_hz, a_shift), (b, b_hz, b_shift)) = (parts(self), parts(other));
        let common = a_shift.min(b_shift);
        // One of them is not shifted, and has 117 bits at most.
        let side = |ticks: u64, hz: u64, shift: u32| {
            let product = u128::from(ticks) * u128::from(hz);
            if product.leading_zeros() < shift { u128::MAX } else { product << shift }
        };
        side(a, b_hz, a_shift - common).cmp(&side(b, a_hz, b_shift - common))
    }
}

impl PartialOrd for DeviceTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DeviceTime {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for DeviceTime {}

/// Seconds with nine digits behind the point.
impl fmt::Display for DeviceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.ticks_at(NS_HZ);
        write!(f, "{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

impl fmt::Debug for DeviceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({} ticks at {} Hz)", self.ticks, self.rate_hz)
    }
}

/// Returns the ticks of one clock in those of another one: the nearest, exactly. A rate that is no
/// number above 0 gives 0.
fn scaled(ticks: u64, from_hz: f64, to_hz: f64) -> u64 {
    let (Some((from, from_shift)), Some((to, to_shift))) = (fraction(from_hz), fraction(to_hz))
    else {
        return 0;
    };
    let common = from_shift.min(to_shift);
    let (up, down) = (from_shift - common, to_shift - common);
    // 64 and 53 bits; 53 and 62 bits. One of the shifts is 0.
    let (value, unit) = (u128::from(ticks) * u128::from(to), u128::from(from) << down);
    let whole = value / unit;
    if whole.leading_zeros() < up {
        return u64::MAX;
    }
    let rest = (value % unit) << up;
    let nearest = rest / unit + u128::from(rest % unit >= unit.div_ceil(2));
    u64::try_from((whole << up).saturating_add(nearest)).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [f64; 5] = [16e6, 61.44e6, 30.72e6, 25e6 / 3.0, 200e6 / 7.0];

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
            (u64::MAX, 16e6, i64::MAX),
        ] {
            assert_eq!(DeviceTime::from_ticks(ticks, rate).ns(), ns, "{ticks} at {rate}");
        }
        for rate in RATES {
            for ticks in [0, 1, 12_345_678, 1 << 40, (1 << 50) + 12_347] {
                let time = DeviceTime::from_ticks(ticks, rate);
                let back = DeviceTime::from_ns(time.ns());
                assert_eq!(back.ticks_at(rate), ticks, "{ticks} at {rate}");
                assert_eq!(time.ticks_at(rate), ticks);
            }
        }
        let early = DeviceTime::from_ns(-5);
        assert_eq!((early.ns(), early.ticks_at(1e6)), (0, 0));
        assert_eq!(DeviceTime::from_ns(5).ticks_at(0.0), 0);
    }

    #[test]
    fn times_of_any_two_rates_compare_and_convert_exactly() {
        for (from, to) in RATES.iter().flat_map(|from| RATES.map(|to| (*from, to))) {
            for ticks in [1, 999, 12_345_678, (1 << 45) + 77, (1 << 61) + 5] {
                let time = DeviceTime::from_ticks(ticks, from);
                let near = time.ticks_at(to);
                let [below, at, above] =
                    [near.saturating_sub(1), near, near + 1].map(|t| DeviceTime::from_ticks(t, to));
                assert!(below < time || near == 0, "{time:?} {below:?}");
                assert!(time < above, "{time:?} {above:?}");
                assert_eq!(time.cmp(&at), at.cmp(&time).reverse());
                assert_eq!(time == at, time <= at && at <= time);
            }
        }
        assert_eq!(DeviceTime::from_ticks(16, 16e6), DeviceTime::from_ns(1000));
        assert_eq!(DeviceTime::from_ticks(7, f64::NAN), DeviceTime::from_ns(0));
    }

    #[test]
    fn times_move_by_durations() {
        let time = DeviceTime::from_ticks(32, 16e6);
        let later = time + Duration::from_micros(3);
        assert_eq!((later.ticks(), later.ns(), later.seconds()), (80, 5000, 5e-6));
        assert_eq!((later - time, time - later), (Duration::from_micros(3), Duration::ZERO));
        assert_eq!(later - Duration::from_micros(3), time);
        assert_eq!(time - Duration::from_secs(1), DeviceTime::from_ns(0));
        assert_eq!(later - DeviceTime::from_ns(1000), Duration::from_micros(4));
        assert_eq!(DeviceTime::from_ns(1_000_000_001).to_string(), "1.000000001 s");
    }
}
