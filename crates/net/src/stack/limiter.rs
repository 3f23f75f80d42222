//! A limit to how often something is done: a bucket of tokens.

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// Tokens that come at a steady rate and are kept up to a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limiter {
    /// Time between two tokens.
    every_ns: u64,
    /// Tokens that are kept.
    burst: u64,
    /// When the bucket would be empty if nothing more came.
    level_ns: u64,
}

impl Limiter {
    /// A full bucket of `burst` tokens, that gets `per_second` more.
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
