//! The part of every second in which real-time threads may not run
//! (Documentation/scheduler/sched-rt-group.rst).

use crate::doctor::{Finding, MachineFiles};

const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";

/// Checks whether real-time threads are stopped for a part of every period.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some((runtime_us, runtime)) = view.number(RUNTIME) else { return Vec::new() };
    let (period_us, period) =
        view.number(PERIOD).map_or((1_000_000, None), |(us, seen)| (us, Some(seen)));
    let seen = [runtime].into_iter().chain(period);
    if runtime_us < 0 || runtime_us >= period_us {
        return vec![Finding::good("real-time threads are never stopped").seen(seen)];
    }
    let lost_ms = (period_us - runtime_us) as f64 / 1e3;
    let period_ms = period_us as f64 / 1e3;
    vec![
        // A thread that sleeps between packets, as with every wait mode but `spin`, is never
        // throttled.
        Finding::minor("a real-time thread that spins is stopped")
            .seen(seen)
            .cost(format!("{lost_ms:.0} ms in every {period_ms:.0} ms, for threads that spin"))
            .mend_by_write(RUNTIME, "-1")
            .at_risk("then a real-time thread that never sleeps leaves others no time on its CPU"),
    ]
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, RUNTIME, check};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn the_default_costs_50_ms_a_second() {
        let found =
            TestMachine::new().with(RUNTIME, "950000\n").with(PERIOD, "1000000\n").one(check);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.cost.unwrap(), "50 ms in every 1000 ms, for threads that spin");
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, "sysctl -w kernel.sched_rt_runtime_us=-1");
        assert!(mend.risk.is_some());
    }

    #[test]
    fn without_a_limit_it_is_good() {
        for text in ["-1\n", "1000000\n"] {
            assert_eq!(TestMachine::new().with(RUNTIME, text).verdict(check), Good);
        }
        assert_eq!(TestMachine::new().verdict(check), Absent);
        assert_eq!(TestMachine::new().with(RUNTIME, "much\n").verdict(check), Absent);
    }
}
