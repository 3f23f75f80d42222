//! A rate limit: a token bucket.

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A bucket that gets tokens at a steady rate, up to a largest number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limiter {
    /// Time between two tokens.
    every_ns: u64,
    /// The largest number of tokens.
    burst: u64,
    /// The time at which the bucket would be empty if no more tokens were taken.
    level_ns: u64,
}

impl Limiter {
    /// Creates a full bucket of `burst` tokens, which gets `per_second` more each second.
    pub(super) fn new(per_second: u64, burst: u64) -> Limiter {
        Limiter { every_ns: SECOND_NS / per_second, burst, level_ns: 0 }
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        let full = now_ns.saturating_sub(self.every_ns * (self.burst - 1));
        let level = self.level_ns.max(full);
        if level > now_ns {
            return false;
        }
        self.level_ns = level + self.every_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut limiter = Limiter::new(10, 5);
        let start = 7 * SECOND_NS;
        let passed = |limiter: &mut Limiter, now| (0..100).filter(|_| limiter.take(now)).count();
        assert_eq!(passed(&mut limiter, start), 5);
        assert_eq!(passed(&mut limiter, start + SECOND_NS / 10 - 1), 0);
        assert_eq!(passed(&mut limiter, start + SECOND_NS / 10), 1);
        assert_eq!(passed(&mut limiter, start + 100 * SECOND_NS), 5);
    }
}
