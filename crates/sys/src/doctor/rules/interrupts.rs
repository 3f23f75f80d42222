//! Which interrupts may come to the stream's processors (Documentation, irq/irq-affinity.rst).

use crate::cpu_set::CpuSet;
use crate::doctor::{Finding, Rule, Topic, View, Write};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "interrupts",
    topic: Topic::Network,
    why: "an interrupt, and the soft interrupt behind it, stops whatever thread is there",
    check,
};

/// An interrupt that has come to a stream CPU.
struct Rival {
    number: String,
    name: String,
    times: u64,
    /// Where it may come; none where that is not told, or not to be chosen.
    affinity: Option<CpuSet>,
}

fn check(view: &View) -> Vec<Finding> {
    let Some(table) = view.read("proc/interrupts") else { return Vec::new() };
    let stream = view.stream_cpus();
    let rivals: Vec<_> = rivals(view, &table.value, &stream);
    if rivals.is_empty() {
        return vec![Finding::good(format!("no device interrupts CPUs {stream}"))];
    }
    let rest: CpuSet = view.online().iter().filter(|cpu| !stream.contains(*cpu)).collect();
    let finding = |rival: Rival| {
        let seen = view.read(&format!("proc/irq/{}/effective_affinity_list", rival.number));
        let path = format!("proc/irq/{}/smp_affinity_list", rival.number);
        let seen: Vec<_> = seen.into_iter().chain(view.read(&path)).collect();
        let says = match rival.times {
            0 => format!("{} is sent to the stream's CPUs {stream}", rival.name),
            times => format!("{} came {times} times to the stream's CPUs {stream}", rival.name),
        };
        let about = format!("irq {}", rival.number);
        match rival.affinity.is_some() && !rest.is_empty() {
            true => Finding::costs(says)
                .mend_by_writes(vec![Write { path, text: rest.to_string() }])
                .seen(seen)
                .about(about),
            false => Finding::unknown(format!("{says}; where it goes cannot be chosen"))
                .seen(seen)
                .about(about),
        }
    };
    rivals.into_iter().map(finding).collect()
}

/// Interrupts of devices that are sent to stream CPUs now. Those that merely came there once, and
/// go elsewhere now, are left out.
fn rivals(view: &View, table: &str, stream: &CpuSet) -> Vec<Rival> {
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
        let times = here.map(|(_, times)| times).sum();
        let asked = list(number, "smp_affinity_list");
        let goes = list(number, "effective_affinity_list").or_else(|| asked.clone());
        let is_idle = counts.iter().all(|times| *times == 0);
        // One that is sent elsewhere may move only when it comes the next time.
        let may_come = asked.as_ref().is_none_or(meets) && goes.as_ref().is_none_or(meets);
        let is_rival = !is_idle && may_come;
        // The kernel keeps those of a queue on each CPU where they are (managed ones), and says so
        // by the file's mode; with root's rights it opens all the same.
        let file = format!("proc/irq/{number}/smp_affinity_list");
        let affinity = asked.filter(|_| view.is_for_writing(&file));
        let name = fields.last().copied().unwrap_or_default().to_owned();
        is_rival.then(|| Rival { number: number.to_owned(), name, times, affinity })
    };
    lines.filter_map(rival).collect()
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::doctor::Verdict::{Absent, Costs, Good, Unknown};
    use crate::doctor::machine::Machine;

    const TABLE: &str = "           CPU0       CPU1       \n\
        \u{20}24:          7         12  PCI-MSIX-0000:01:00.0   1-edge      eth0-rx-0\n\
        \u{20}25:          0          0  PCI-MSIX-0000:01:00.0   2-edge      eth0-rx-1\n\
        LOC:   37861013   42784007   Local timer interrupts\n";

    fn machine(goes: &str) -> Machine {
        Machine::with_two_cpus()
            .with("proc/interrupts", TABLE)
            .with("proc/irq/24/smp_affinity_list", "0-1\n")
            .with("proc/irq/24/effective_affinity_list", goes)
    }

    #[test]
    fn a_device_that_interrupts_the_stream_costs() {
        let found = machine("1\n").one(&RULE);
        assert_eq!((found.verdict, found.subject.as_deref()), (Costs, Some("irq 24")));
        assert_eq!(found.says, "eth0-rx-0 came 12 times to the stream's CPUs 1");
        assert_eq!(found.mend.unwrap().command, "echo 0 > /proc/irq/24/smp_affinity_list");
    }

    #[test]
    fn what_goes_elsewhere_now_is_good() {
        assert_eq!(machine("0\n").verdict(&RULE), Good);
        assert_eq!(Machine::with_two_cpus().verdict(&RULE), Absent);
    }

    #[test]
    fn without_an_affinity_nothing_can_be_done() {
        let machine = Machine::with_two_cpus().with("proc/interrupts", TABLE);
        assert_eq!(machine.verdict(&RULE), Unknown);
    }

    #[test]
    fn what_was_sent_elsewhere_is_good_before_it_comes_again() {
        let sent = machine("1\n").with("proc/irq/24/smp_affinity_list", "0\n");
        assert_eq!(sent.verdict(&RULE), Good);
    }

    #[test]
    fn one_that_the_kernel_keeps_where_it_is_cannot_be_sent() {
        let machine = machine("1\n");
        let file = machine.view().root().join("proc/irq/24/smp_affinity_list");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        std::fs::set_permissions(file, mode).unwrap();
        let found = machine.one(&RULE);
        assert_eq!((found.verdict, found.mend), (Unknown, None));
    }

    #[test]
    fn a_table_that_makes_no_sense_blames_nobody() {
        let machine = Machine::with_two_cpus().with("proc/interrupts", "24: x\n: 3\nCPU0\n");
        assert_eq!(machine.verdict(&RULE), Good);
    }
}
