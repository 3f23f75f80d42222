//! Decides how a thread without work waits: spin, yield its core, or sleep in the kernel.
//!
//! Spinning answers at once and burns the core; sleeping frees it and costs a wake-up. The time of
//! the next work is unknown, so an idle thread spins for at most about the cost of a wake-up, then
//! yields, then sleeps; and when that was in vain several times in a row, it sleeps at once.
//!
//! ```text
//!            found none        after `spin_ns`      after `yield_ns` more
//!   eager ─────▶ spin ───────────▶ yield ───────────────▶ sleep
//!   calm  ────────────────────────────────────────────────▶ sleep at once
//!
//!   eager ──▶ calm when CHANGES more idle times were long than were short, and back likewise;
//!   an idle time is long when it outlasts spinning and yielding together
//! ```
//!
//! The resulting bounds, for any load:
//!
//! - Delay: new work is seen after one poll while spinning, after one time slice of each thread
//!   that shares the core while yielding, and after one wake-up of the kernel when asleep. Never
//!   later.
//! - Waste: spinning and yielding in vain take at most `CHANGES` × (`spin_ns` + `yield_ns`) after
//!   the load has fallen, and nothing from then on.
//!
//! Pure logic: the time is an argument.

/// Excess of idle times of one kind over the other that changes the state.
pub const CHANGES: u8 = 4;

/// The longest times of spinning and yielding before sleeping. Their sum is about the cost of a
/// wake-up, or somewhat more: then the worst case costs twice the optimum with foresight
/// (competitive snoopy caching, Karlin 1988).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitLimits {
    /// Longest spin in one idle time, nanoseconds.
    pub spin_ns: u64,
    /// Longest time of yielding after that, nanoseconds.
    pub yield_ns: u64,
}

impl Default for WaitLimits {
    fn default() -> Self {
        Self { spin_ns: 20_000, yield_ns: 30_000 }
    }
}

/// The next step of a thread before it polls for work again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Idle {
    /// Poll again at once.
    Spin,
    /// Yield to other threads of this core, then poll again.
    Yield,
    /// Sleep until woken.
    Sleep,
}

/// The wait policy of one thread, which learns from its own idle times.
#[derive(Clone, Debug)]
pub struct Governor {
    limits: WaitLimits,
    eager: bool,
    /// Short idle times minus long ones, from 0 to `CHANGES`; the state changes at the ends.
    score: u8,
    idle_since_ns: Option<u64>,
}

impl Governor {
    /// Makes an eager governor, because a thread starts when there is work.
    #[must_use]
    pub fn new(limits: WaitLimits) -> Self {
        Self { limits, eager: true, score: CHANGES, idle_since_ns: None }
    }

    /// Returns the next step while there is no work. Times count from any fixed moment.
    pub fn idle(&mut self, now_ns: u64) -> Idle {
        let since = *self.idle_since_ns.get_or_insert(now_ns);
        let idle_ns = now_ns.saturating_sub(since);
        let WaitLimits { spin_ns, yield_ns } = self.limits;
        match self.eager {
            true if idle_ns < spin_ns => Idle::Spin,
            true if idle_ns < spin_ns.saturating_add(yield_ns) => Idle::Yield,
            _ => Idle::Sleep,
        }
    }

    /// Ends the idle time, because there is work now or the wait is abandoned, and learns from its
    /// length. Cheap, and without effect, when there was none.
    pub fn busy(&mut self, now_ns: u64) {
        if let Some(since) = self.idle_since_ns.take() {
            self.learn(now_ns.saturating_sub(since));
        }
    }

    fn learn(&mut self, idle_ns: u64) {
        let short = idle_ns < self.limits.spin_ns.saturating_add(self.limits.yield_ns);
        self.score = if short { (self.score + 1).min(CHANGES) } else { self.score.max(1) - 1 };
        match self.score {
            0 => self.eager = false,
            CHANGES => self.eager = true,
            _ => {}
        }
    }

    /// Returns the learnt state in one word, to be stored between waits.
    pub(crate) fn habit(&self) -> u32 {
        u32::from(self.eager) << 8 | u32::from(self.score)
    }

    /// Makes a governor with a stored state.
    pub(crate) fn with_habit(limits: WaitLimits, habit: u32) -> Self {
        Self { limits, eager: habit >> 8 != 0, score: habit as u8, idle_since_ns: None }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The cost of a simulated second of one thread.
    #[derive(Debug)]
    struct Outcome {
        /// Share of the core that it used, working or not.
        cpu: f64,
        /// Longest delay from an arrival to its detection, where the thread was idle before.
        delay_max_ns: u64,
        sleeps: u32,
    }

    const SPIN_NS: u64 = 50;
    const YIELD_NS: u64 = 500;
    /// A wake-up: the time until the thread runs again, and its CPU time.
    const WAKE_NS: u64 = 12_000;
    const WAKE_CPU_NS: u64 = 4_000;

    /// Simulates a second in which work of `service_ns` comes every `period_ns`.
    fn simulate(governor: &mut Governor, service_ns: u64, period_ns: u64) -> Outcome {
        let (mut now, mut used, mut arrival) = (0, 0, period_ns);
        let mut outcome = Outcome { cpu: 0.0, delay_max_ns: 0, sleeps: 0 };
        let mut was_idle = false;
        while now < 1_000_000_000 {
            if arrival <= now {
                governor.busy(now);
                if was_idle {
                    outcome.delay_max_ns = outcome.delay_max_ns.max(now - arrival);
                }
                (now, used, was_idle) = (now + service_ns, used + service_ns, false);
                arrival += period_ns;
                continue;
            }
            was_idle = true;
            let (passed, cost) = match governor.idle(now) {
                Idle::Spin => (SPIN_NS, SPIN_NS),
                Idle::Yield => (YIELD_NS, YIELD_NS),
                Idle::Sleep => {
                    outcome.sleeps += 1;
                    (arrival - now + WAKE_NS, WAKE_CPU_NS)
                }
            };
            (now, used) = (now + passed, used + cost);
        }
        outcome.cpu = used as f64 / now as f64;
        outcome
    }

    #[test]
    fn at_1_percent_it_sleeps_and_costs_next_to_nothing_more() {
        let outcome = simulate(&mut Governor::new(WaitLimits::default()), 10_000, 1_000_000);
        assert!(outcome.cpu < 0.015, "{outcome:?}");
        assert!(outcome.delay_max_ns <= WAKE_NS, "{outcome:?}");
        assert!(outcome.sleeps >= 980, "{outcome:?}");
    }

    #[test]
    fn at_10_percent_it_sleeps_too() {
        let outcome = simulate(&mut Governor::new(WaitLimits::default()), 10_000, 100_000);
        assert!(outcome.cpu < 0.15, "{outcome:?}");
        assert!(outcome.delay_max_ns <= WAKE_NS, "{outcome:?}");
    }

    #[test]
    fn when_work_comes_quickly_it_spins_and_answers_at_once() {
        let outcome = simulate(&mut Governor::new(WaitLimits::default()), 10_000, 25_000);
        assert!(outcome.delay_max_ns <= SPIN_NS, "{outcome:?}");
        assert_eq!(outcome.sleeps, 0, "{outcome:?}");
    }

    #[test]
    fn at_100_percent_it_only_works() {
        let mut governor = Governor::new(WaitLimits::default());
        let outcome = simulate(&mut governor, 10_000, 10_000);
        assert!(outcome.cpu > 0.999 && outcome.sleeps == 0, "{outcome:?}");
        assert!(governor.eager);
    }

    #[test]
    fn what_it_wastes_after_the_load_has_fallen_is_bounded() {
        let limits = WaitLimits::default();
        let mut governor = Governor::new(limits);
        simulate(&mut governor, 10_000, 25_000);
        assert!(governor.eager);
        let (mut now, mut wasted) = (2_000_000_000, 0);
        governor.busy(now);
        for _ in 0..100 {
            while governor.idle(now) != Idle::Sleep {
                (now, wasted) = (now + SPIN_NS, wasted + SPIN_NS);
            }
            now += 1_000_000;
            governor.busy(now);
        }
        let bound = u64::from(CHANGES) * (limits.spin_ns + limits.yield_ns);
        assert!(wasted > 0 && wasted <= bound, "{wasted} ns");
        assert!(!governor.eager);
    }

    #[test]
    fn a_change_of_mind_takes_several_idle_times_of_one_kind() {
        let mut governor = Governor::new(WaitLimits { spin_ns: 10, yield_ns: 10 });
        let mut now = 0;
        let mut idle = |governor: &mut Governor, ns: u64| {
            governor.idle(now);
            now += ns;
            governor.busy(now);
            governor.eager
        };
        for _ in 0..50 {
            assert!(idle(&mut governor, 5) && idle(&mut governor, 500), "one long one is nothing");
        }
        let minds: Vec<_> = (0..5).map(|_| idle(&mut governor, 500)).collect();
        assert_eq!(minds, [true, true, false, false, false]);
        for _ in 0..50 {
            assert!(!idle(&mut governor, 5) && !idle(&mut governor, 500), "nor a short one");
        }
        let minds: Vec<_> = (0..5).map(|_| idle(&mut governor, 5)).collect();
        assert_eq!(minds, [false, false, false, true, true]);
    }

    #[test]
    fn it_spins_then_yields_then_sleeps() {
        let mut governor = Governor::new(WaitLimits { spin_ns: 10, yield_ns: 10 });
        let steps: Vec<_> = [100, 109, 110, 119, 120].map(|now| governor.idle(now)).into();
        assert_eq!(steps, [Idle::Spin, Idle::Spin, Idle::Yield, Idle::Yield, Idle::Sleep]);
    }

    #[test]
    fn a_habit_survives_being_put_away() {
        let mut governor = Governor::new(WaitLimits { spin_ns: 0, yield_ns: 0 });
        for now in [0, 10, 20, 30, 40] {
            let same = Governor::with_habit(governor.limits, governor.habit());
            assert_eq!((same.eager, same.score), (governor.eager, governor.score));
            governor.idle(now);
            governor.busy(now + 5);
        }
        assert!(!governor.eager);
    }
}
