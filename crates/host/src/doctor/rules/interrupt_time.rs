//! The time that interrupts take on the stream's processors (proc_stat(5)).

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};

/// The share of a CPU from which the time matters, 0 to 1: what comes then comes in pieces of many
/// microseconds.
const MATTERS: f64 = 0.05;
/// The share that a stream notices only when it needs the whole CPU.
const MINOR: f64 = 0.005;

/// The shares of a CPU's time since boot, 0 to 1.
struct Shares {
    hard: f64,
    soft: f64,
}

/// Checks the share of their time that the stream's CPUs handle interrupts.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let stream = view.stream_cpus();
    let busiest = stream
        .iter()
        .filter_map(|cpu| {
            let line = view.line("proc/stat", &format!("cpu{cpu} "))?;
            Some((cpu, shares(&line.value)?, line))
        })
        .max_by(|(_, a, _), (_, b, _)| (a.hard + a.soft).total_cmp(&(b.hard + b.soft)));
    let Some((cpu, Shares { hard, soft }, line)) = busiest else { return Vec::new() };
    // Without CONFIG_IRQ_TIME_ACCOUNTING the kernel adds the time of interrupts to what they
    // interrupt.
    let all = view.line("proc/stat", "cpu ").and_then(|line| shares(&line.value));
    let says = if all.is_some_and(|all| all.hard > 0.0) {
        format!(
            "interrupts took {:.2} % of the time of CPU {cpu} since boot, and soft interrupts \
             {:.2} %",
            hard * 1e2,
            soft * 1e2
        )
    } else {
        format!(
            "soft interrupts took {:.2} % of the time of CPU {cpu} since boot; this kernel does \
             not count the time of interrupts",
            soft * 1e2
        )
    };
    let share = hard + soft;
    let finding = match share {
        share if share < MINOR => Finding::good(says),
        share => {
            let weight = if share >= MATTERS { Verdict::Matters } else { Verdict::Minor };
            Finding::of(weight, says)
                .cost(format!("{:.1} ms in each second, in pieces of any length", share * 1e3))
                .mend_by_hand(
                    "send interrupts and packets to other CPUs: see the rules interrupts and \
                     receive-steering, or use millstream host shield",
                )
        }
    };
    let value = format!("irq {:.2} %, softirq {:.2} %", hard * 1e2, soft * 1e2);
    vec![finding.seen([Evidence { value, ..line }])]
}

/// Reads a CPU's times: user, nice, system, idle, iowait, irq, softirq, steal. Guest time, which
/// follows, is in user time already.
fn shares(times: &str) -> Option<Shares> {
    let fields: Option<Vec<u64>> =
        times.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
    let fields = fields.filter(|fields| fields.len() == 8)?;
    let all = fields.iter().fold(0u64, |sum, field| sum.saturating_add(*field));
    let share = |at: usize| fields[at] as f64 / all as f64;
    (all > 0).then(|| Shares { hard: share(5), soft: share(6) })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;

    fn machine(cpu1: &str) -> TestMachine {
        let stat = format!("cpu  1 1 1 1 1 900 900 1\ncpu0 1 1 1 1 1 900 900 1\ncpu1 {cpu1}\n");
        TestMachine::with_two_cpus().with("proc/stat", &stat)
    }

    #[test]
    fn the_time_on_the_streams_cpu_counts_and_no_other() {
        // The stream's CPU is 1.
        let found = machine("50 0 40 900 0 2 8 0 0 0").one(check);
        assert_eq!(found.verdict, Minor, "{}", found.says);
        assert_eq!(
            found.says,
            "interrupts took 0.20 % of the time of CPU 1 since boot, and soft interrupts 0.80 %"
        );
        assert_eq!(found.cost.as_deref(), Some("10.0 ms in each second, in pieces of any length"));
        assert_eq!(machine("0 0 0 999 0 0 1 0 0 0").verdict(check), Good);
        assert_eq!(machine("0 0 0 900 0 50 50 0").verdict(check), Matters);
    }

    #[test]
    fn a_kernel_that_does_not_count_interrupts_is_not_praised_for_it() {
        let stat = "cpu  1 1 1 1 1 0 5 1\ncpu0 1 1 1 1 1 0 5 1\ncpu1 0 0 0 999 0 0 1 0\n";
        let found = TestMachine::with_two_cpus().with("proc/stat", stat).one(check);
        assert_eq!(
            found.says,
            "soft interrupts took 0.10 % of the time of CPU 1 since boot; this kernel does not \
             count the time of interrupts"
        );
    }

    #[test]
    fn times_that_make_no_sense_blame_nobody() {
        for times in ["", "0 0 0 0 0 0 0 0", "1 2 x 4 5 6 7 8", "1 2 3"] {
            assert_eq!(machine(times).verdict(check), Absent, "{times}");
        }
    }
}
