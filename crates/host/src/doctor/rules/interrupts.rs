//! Interrupts that may reach the stream's processors (Documentation, irq/irq-affinity.rst).

use crate::doctor::{Finding, MachineFiles, Verdict, Write};
use crate::packet_threads::device_irqs;
use millstream_cpu::CpuSet;

/// The rate of interrupts below which a stream seldom meets one: one in ten seconds.
const RARE_PER_SECOND: f64 = 0.1;

/// The same as a count since boot, when the uptime is unknown.
const RARE_TIMES: u64 = 10;

/// The rate from which interrupts take a noticeable share of the CPU.
const OFTEN_PER_SECOND: f64 = 100.0;

/// The effect of the mend on others.
const RISK: &str =
    "the other CPUs handle the device; programs placed near its interrupt are no longer near it";

/// An interrupt that has occurred on a stream CPU.
struct Rival {
    number: String,
    name: String,
    times: u64,
    /// The count on all CPUs.
    all_times: u64,
    /// The allowed CPUs; `None` when they are not reported, or cannot be chosen.
    affinity: Option<CpuSet>,
}

/// Checks which interrupts reach the stream's CPUs.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some(table) = view.read("proc/interrupts") else { return Vec::new() };
    let stream = view.stream_cpus();
    let stream_named = stream.named();
    // The interrupts of the stream's own card arrive as soon as it streams.
    let own: Vec<_> =
        view.interfaces().iter().flat_map(|name| device_irqs(view.root(), name)).collect();
    let rivals = rivals(view, &table.value, &stream).into_iter();
    let (rivals, rare): (Vec<_>, Vec<_>) =
        rivals.partition(|rival| own.contains(&rival.number) || !is_rare(view, rival));
    if rivals.is_empty() {
        let seldom = match rare.len() {
            0 => String::new(),
            count => format!(" often ({count} may come, less than once in ten seconds)"),
        };
        return vec![Finding::good(format!("no device interrupts {stream_named}{seldom}"))];
    }
    let rest: CpuSet = view.online().iter().filter(|cpu| !stream.contains(*cpu)).collect();
    let finding = |rival: Rival| {
        let seen = view.read(&format!("proc/irq/{}/effective_affinity_list", rival.number));
        let path = format!("proc/irq/{}/smp_affinity_list", rival.number);
        let seen: Vec<_> = seen.into_iter().chain(view.read(&path)).collect();
        let says = match rival.times {
            0 => format!("{} may interrupt the stream's {stream_named}", rival.name),
            1 => format!("{} interrupted the stream's {stream_named} once", rival.name),
            times => {
                format!("{} interrupted the stream's {stream_named} {times} times", rival.name)
            }
        };
        let about = format!("irq {}", rival.number);
        match rival.affinity.is_some() && !rest.is_empty() {
            true => Finding::of(weight(view, &rival, &own), says)
                .mend_by_writes(vec![Write { path, text: rest.to_string() }])
                .at_risk(RISK)
                .seen(seen)
                .about(about),
            false => {
                Finding::unknown(format!("{says}; it cannot be moved")).seen(seen).about(about)
            }
        }
    };
    rivals.into_iter().map(finding).collect()
}

fn is_rare(view: &MachineFiles, rival: &Rival) -> bool {
    let rate = view.per_second(rival.all_times);
    rate.map_or(rival.all_times < RARE_TIMES, |rate| rate < RARE_PER_SECOND)
}

fn weight(view: &MachineFiles, rival: &Rival, own: &[String]) -> Verdict {
    let rate = view.per_second(rival.all_times);
    let is_often = rate.is_none_or(|rate| rate >= OFTEN_PER_SECOND);
    if is_often || own.contains(&rival.number) { Verdict::Matters } else { Verdict::Minor }
}

/// Returns the interrupts of devices that are sent to stream CPUs now. Interrupts that only
/// occurred there earlier, and go elsewhere now, are left out.
fn rivals(view: &MachineFiles, table: &str, stream: &CpuSet) -> Vec<Rival> {
    let mut lines = table.lines();
    let cpus: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let list = |number: &str, file: &str| {
        view.read(&format!("proc/irq/{number}/{file}"))?.value.parse::<CpuSet>().ok()
    };
    let meets = |set: &CpuSet| set.iter().any(|cpu| stream.contains(cpu));
    let rival = |line: &str| {
        let (number, rest) = line.trim().split_once(':')?;
        number.parse::<u32>().ok()?;
        let fields: Vec<_> = rest.split_whitespace().collect();
        let counts = fields.iter().take(cpus.len()).map(|field| field.parse::<u64>().ok());
        let counts: Vec<u64> = counts.collect::<Option<_>>()?;
        let here = cpus.iter().zip(&counts).filter(|(cpu, _)| stream.contains(**cpu));
        let times = here.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times));
        let asked = list(number, "smp_affinity_list");
        let goes = list(number, "effective_affinity_list").or_else(|| asked.clone());
        let is_idle = counts.iter().all(|times| *times == 0);
        // An interrupt that was sent elsewhere may move only at its next occurrence.
        let may_come = asked.as_ref().is_none_or(meets) && goes.as_ref().is_none_or(meets);
        let is_rival = !is_idle && may_come;
        // The kernel does not move the interrupts of a queue per CPU (managed ones), and shows that
        // by the file's mode; root can open the file all the same.
        let file = format!("proc/irq/{number}/smp_affinity_list");
        let affinity = asked.filter(|_| view.is_for_writing(&file));
        let name = fields.last().copied().unwrap_or_default().to_owned();
        let all_times = counts.iter().fold(0, |sum: u64, times| sum.saturating_add(*times));
        is_rival.then(|| Rival { number: number.to_owned(), name, times, all_times, affinity })
    };
    lines.filter_map(rival).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    const TABLE: &str = "           CPU0       CPU1       \n\
        \u{20}24:          7         12  PCI-MSIX-0000:01:00.0   1-edge      eth0-rx-0\n\
        \u{20}25:          0          0  PCI-MSIX-0000:01:00.0   2-edge      eth0-rx-1\n\
        LOC:   37861013   42784007   Local timer interrupts\n";

    fn machine(goes: &str) -> TestMachine {
        TestMachine::with_two_cpus()
            .with("proc/interrupts", TABLE)
            .with("proc/irq/24/smp_affinity_list", "0-1\n")
            .with("proc/irq/24/effective_affinity_list", goes)
    }

    #[test]
    fn a_device_that_interrupts_the_stream_costs() {
        let found = machine("1\n").one(check);
        assert_eq!((found.verdict, found.subject.as_deref()), (Matters, Some("irq 24")));
        assert_eq!(found.says, "eth0-rx-0 interrupted the stream's CPU 1 12 times");
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, "echo 0 > /proc/irq/24/smp_affinity_list");
        assert!(mend.risk.is_some());
    }

    #[test]
    fn what_goes_elsewhere_now_is_good() {
        assert_eq!(machine("0\n").verdict(check), Good);
        assert_eq!(TestMachine::with_two_cpus().verdict(check), Absent);
    }

    #[test]
    fn without_an_affinity_nothing_can_be_done() {
        let machine = TestMachine::with_two_cpus().with("proc/interrupts", TABLE);
        assert_eq!(machine.verdict(check), Unknown);
    }

    #[test]
    fn what_was_sent_elsewhere_is_good_before_it_comes_again() {
        let sent = machine("1\n").with("proc/irq/24/smp_affinity_list", "0\n");
        assert_eq!(sent.verdict(check), Good);
    }

    #[test]
    fn one_that_the_kernel_keeps_where_it_is_cannot_be_sent() {
        let machine = machine("1\n");
        let file = machine.view().root().join("proc/irq/24/smp_affinity_list");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        std::fs::set_permissions(file, mode).unwrap();
        let found = machine.one(check);
        assert_eq!((found.verdict, found.mend), (Unknown, None));
    }

    #[test]
    fn a_table_that_makes_no_sense_blames_nobody() {
        let machine = TestMachine::with_two_cpus().with("proc/interrupts", "24: x\n: 3\nCPU0\n");
        assert_eq!(machine.verdict(check), Good);
    }

    #[test]
    fn one_that_came_once_costs_nothing() {
        let table = "  CPU0 CPU1\n 25: 0 1 IO-APIC 9-fasteoi ACPI:Ged\n";
        let machine = TestMachine::with_two_cpus()
            .with("proc/interrupts", table)
            .with("proc/irq/25/smp_affinity_list", "0-1\n");
        let found = machine.one(check);
        assert_eq!((found.verdict, found.mend), (Good, None), "{}", found.says);
        assert!(found.says.contains("1 may come, less than once in ten seconds"));
        let up = machine.with("proc/uptime", "5.00 1.00\n");
        assert_eq!(up.verdict(check), Minor, "once in five seconds");
    }

    #[test]
    fn what_comes_often_matters_and_so_does_the_streams_own_card() {
        let at = |seconds: &str| machine("1\n").with("proc/uptime", seconds);
        assert_eq!(at("0.10 0.00\n").verdict(check), Matters, "190 a second");
        assert_eq!(at("19.00 1.00\n").verdict(check), Minor, "one a second");
        assert_eq!(at("86400.00 1.00\n").verdict(check), Good, "19 in a day");
        let card = at("86400.00 1.00\n").with_eth0();
        let own = card.with("sys/class/net/eth0/device/msi_irqs/24", "msix\n");
        assert_eq!(own.verdict(check), Matters);
    }
}
