//! The priorities of the kernel's packet threads, compared with the thread that waits for packets
//! (sched(7); Documentation/networking/napi.rst).

use crate::doctor::{Evidence, Finding, MachineFiles};
use crate::packet_threads::{PacketThread, PacketThreadKind, of_interfaces};
use millstream_cpu::CpuSet;

/// Checks whether the kernel's threads that carry packets, at once or deferred, have higher
/// priorities than the stream's thread.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let stream = view.stream_cpus();
    let near = |one: &PacketThread| {
        let allowed: CpuSet = one.thread.allowed.parse().unwrap_or_default();
        allowed.iter().any(|cpu| stream.contains(cpu))
    };
    let all: Vec<_> = of_interfaces(view.root(), &view.interfaces());
    let (put_off, carriers): (Vec<_>, Vec<_>) =
        all.into_iter().filter(near).partition(|one| one.kind == PacketThreadKind::Soft);
    [of_carriers(view, &carriers), of_put_off(view, &put_off)].into_iter().flatten().collect()
}

/// Checks the threads that every packet passes.
fn of_carriers(view: &MachineFiles, carriers: &[PacketThread]) -> Option<Finding> {
    let inverted = inverted(view, carriers);
    let count = carriers.len();
    let class = view.class();
    Some(match (count, inverted.is_empty()) {
        (0, _) => return None,
        (_, true) => Finding::good(format!("{count} threads of the network are above {class}"))
            .seen(carriers.iter().map(seen)),
        (_, false) => Finding::matters(format!(
            "{} of {count} threads of the network are not above {class}, which waits for them",
            inverted.len()
        ))
        .cost(
            "with a busy thread of a priority in between, p99 of round trips was 8 times as \
             long (host_placements.py)",
        )
        .mend_by_hand(raise(view, &inverted))
        .seen(inverted.iter().map(|one| seen(one))),
    })
}

/// Checks the threads that packets pass when soft interrupts are deferred.
fn of_put_off(view: &MachineFiles, put_off: &[PacketThread]) -> Option<Finding> {
    let inverted = inverted(view, put_off);
    let class = view.class();
    Some(match (put_off.is_empty(), inverted.is_empty()) {
        (true, _) => return None,
        (false, true) => Finding::good(format!("ksoftirqd (deferred packets) is above {class}")),
        (false, false) => Finding::unknown(format!(
            "ksoftirqd, which handles deferred packets, is not above {class}"
        ))
        .mend_by_hand(raise(view, &inverted))
        .seen(inverted.iter().map(|one| seen(one))),
    })
}

fn inverted<'a>(view: &MachineFiles, threads: &'a [PacketThread]) -> Vec<&'a PacketThread> {
    threads.iter().filter(|one| one.is_inverted(view.class())).collect()
}

fn seen(one: &PacketThread) -> Evidence {
    let millstream_cpu::threads::ThreadInfo { tid, name, class, allowed, .. } = &one.thread;
    Evidence {
        path: format!("/proc/{tid}/stat"),
        value: format!("{name}: {class} on CPUs {allowed}"),
    }
}

fn raise(view: &MachineFiles, threads: &[&PacketThread]) -> String {
    let priority = view.class().priority().saturating_add(1).min(99);
    let command = |one: &&PacketThread| format!("chrt -f -p {priority} {}", one.thread.tid);
    threads.iter().map(command).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Unknown};
    use crate::doctor::machine::TestMachine;

    /// Returns a machine with a thread; priority 0 is the ordinary class.
    fn machine(name: &str, priority: u8, cpus: &str) -> TestMachine {
        let policy = u8::from(priority > 0);
        let stat = format!("12 ({name}) S {} {priority} {policy} 0\n", vec!["0"; 36].join(" "));
        let status = format!(
            "Cpus_allowed_list:\t{cpus}\nvoluntary_ctxt_switches:\t1\n\
             nonvoluntary_ctxt_switches:\t2\n"
        );
        TestMachine::with_two_cpus()
            .with_eth0()
            .with("proc/12/comm", name)
            .with("proc/12/stat", &stat)
            .with("proc/12/status", &status)
    }

    #[test]
    fn a_thread_that_carries_packets_below_the_stream_costs() {
        let found = machine("napi/eth0-8193", 40, "1").one(check);
        assert_eq!(found.verdict, Matters);
        assert!(found.says.starts_with("1 of 1 threads of the network are not above fifo:50"));
        assert_eq!(found.mend.unwrap().command, "chrt -f -p 51 12");
        assert_eq!(found.evidence[0].value, "napi/eth0-8193: fifo:40 on CPUs 1");
        let interrupt = machine("irq/24-eth0-rx-0", 50, "0-1");
        assert_eq!(interrupt.verdict(check), Matters, "an equal one waits, too");
    }

    #[test]
    fn one_above_it_or_elsewhere_is_none_of_its_business() {
        assert_eq!(machine("napi/eth0-8193", 60, "1").verdict(check), Good);
        assert_eq!(machine("napi/eth0-8193", 40, "0").verdict(check), Absent);
        assert_eq!(machine("napi/eth1-8193", 40, "1").verdict(check), Absent);
        assert_eq!(TestMachine::with_two_cpus().verdict(check), Absent);
    }

    #[test]
    fn what_is_put_off_may_wait() {
        let found = machine("ksoftirqd/1", 0, "1").one(check);
        assert_eq!((found.verdict, found.cost), (Unknown, None));
        assert_eq!(machine("ksoftirqd/1", 51, "1").verdict(check), Good);
    }
}
