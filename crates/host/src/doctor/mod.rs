//! The doctor: settings of this machine that hinder the stream or the deadline.
//!
//! A [`DoctorRule`] examines a [`MachineFiles`] (files below a root, so that recorded machines test
//! it) and returns [`Finding`]s: the evidence and its source, the verdict, the cost, and the
//! command that mends it. A rule changes nothing; [`apply`] does, through the journal.
//!
//! A new rule is a function in `rules/`, and one row in [`RULES`].

mod apply;
mod finding;
pub mod measure;
mod nic;
mod rules;
mod view;

#[cfg(test)]
mod machine;
#[cfg(test)]
mod mends;

pub use crate::journal::{Since, Undone};
pub use apply::{AppliedMends, ApplyError, Written, apply, left, noted, noted_by_root, plan, undo};
pub use finding::{Evidence, Finding, Mend, Verdict, Write};
pub use nic::DriverAnswers;
pub use view::{Focus, MachineFiles, RATE_HZ};

use serde::Serialize;

/// The topic of a rule; users select rules by topic, too.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Topic {
    /// Processors: their speed and their sharing.
    Cpu,
    /// The time until a thread gets its processor.
    Scheduling,
    /// Pages that may be missing when they are needed.
    Memory,
    /// From the network card to the socket.
    Network,
    /// The clock source.
    Clock,
    /// The requirements of DPDK; examined only on request.
    Dpdk,
}

impl Topic {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Scheduling => "scheduling",
            Self::Memory => "memory",
            Self::Network => "network",
            Self::Clock => "clock",
            Self::Dpdk => "dpdk",
        }
    }
}

/// A check of one setting.
#[derive(Debug)]
pub struct DoctorRule {
    /// The name, which never changes: `rt-throttling`.
    pub id: &'static str,
    /// The topic.
    pub topic: Topic,
    /// The reason for the check, one sentence.
    pub why: &'static str,
    /// Examines the machine. Empty: the machine has no such part.
    pub check: Check,
}

type Check = fn(&MachineFiles) -> Vec<Finding>;

const fn rule(topic: Topic, id: &'static str, check: Check) -> DoctorRule {
    DoctorRule { id, topic, why: "", check }
}

impl DoctorRule {
    const fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }
}

/// All rules, in the order of the report.
pub const RULES: &[DoctorRule] = &[
    rule(Topic::Cpu, "governor", rules::governor::check).because(
        "if the frequency follows the load, a CPU handles the first packets after a pause slowly",
    ),
    rule(Topic::Cpu, "idle-states", rules::idle_states::check).because(
        "a processor that sleeps deeply needs tens of microseconds to take the next packet",
    ),
    rule(Topic::Cpu, "smt-rivals", rules::smt::check)
        .because("a program on the other thread of a core takes half of its units and caches"),
    rule(Topic::Cpu, "isolation", rules::isolation::check).because(
        "every thread that may run on the stream's CPUs can delay it in the middle of a burst",
    ),
    rule(Topic::Cpu, "mitigations", rules::mitigations::check)
        .because("mitigations make every system call, interrupt and context switch slower"),
    rule(Topic::Cpu, "hypervisor-steal", rules::steal::check)
        .because("while the hypervisor runs another guest on this CPU, no packet is handled"),
    rule(Topic::Cpu, "load", rules::load::check)
        .because("threads of other programs take the CPUs that the stream needs"),
    rule(Topic::Scheduling, "rt-throttling", rules::rt_throttling::check)
        .because("a real-time thread that spins is stopped for the rest of every period"),
    rule(Topic::Scheduling, "rt-limit", rules::limits::priorities)
        .because("without a real-time priority any busy process delays the stream by a time slice"),
    rule(Topic::Scheduling, "preemption", rules::preemption::check).because(
        "a kernel that cannot be interrupted finishes what it does before it wakes the stream",
    ),
    rule(Topic::Scheduling, "timer-migration", rules::timer_migration::check)
        .because("a timer that fires on another CPU wakes the stream by one more interrupt"),
    rule(Topic::Scheduling, "watchdog", rules::watchdog::check)
        .because("the lockup watchdog interrupts every watched CPU every four seconds"),
    rule(Topic::Memory, "memlock", rules::limits::memory)
        .because("a page that is not in memory when it is needed stops a thread of the stream"),
    rule(Topic::Memory, "huge-pages", rules::huge_pages::check)
        .because("frame memory in 4 KiB pages needs hundreds of times more address translations"),
    rule(Topic::Memory, "transparent-huge-pages", rules::transparent::check)
        .because("khugepaged moves memory while a program uses it, and the program waits"),
    rule(Topic::Memory, "swap", rules::swap::check)
        .because("a page that was moved to disk takes milliseconds to read back"),
    rule(Topic::Memory, "same-page-merging", rules::same_pages::check)
        .because("a merged page must be copied before it can be written, and the scan takes a CPU"),
    rule(Topic::Memory, "numa", rules::numa::check)
        .because("memory of another node is half as fast, and the kernel stops threads to move it"),
    rule(Topic::Network, "receive-buffer", rules::socket_buffers::receive)
        .because("a receiver that is late by more than its socket holds loses packets"),
    rule(Topic::Network, "send-buffer", rules::socket_buffers::send)
        .because("a sender whose socket is full waits, and a transmit stream underflows"),
    rule(Topic::Network, "netdev-budget", rules::softnet::budget)
        .because("a soft interrupt that reaches its limit leaves frames in the ring"),
    rule(Topic::Network, "netdev-backlog", rules::softnet::backlog)
        .because("frames between processes of one machine are dropped when this queue is full"),
    rule(Topic::Network, "interrupts", rules::interrupts::check)
        .because("an interrupt, and the soft interrupt after it, stops the thread that runs there"),
    rule(Topic::Network, "interrupt-time", rules::interrupt_time::check)
        .because("while a CPU handles an interrupt, the thread of the stream on it stands still"),
    rule(Topic::Network, "irqbalance", rules::irqbalance::check)
        .because("irqbalance undoes every placement of interrupts within ten seconds"),
    rule(Topic::Network, "packet-priorities", rules::packet_thread_priorities::check).because(
        "a thread that carries packets waits for every real-time thread that is not below it",
    ),
    rule(Topic::Network, "receive-steering", rules::steering::check).because(
        "RPS passes frames to another CPU by an interrupt, which may hit a CPU of the stream",
    ),
    rule(Topic::Network, "ring-sizes", rules::cards::rings).because(
        "a ring that fills before its CPU empties it loses frames before any socket sees them",
    ),
    rule(Topic::Network, "queues", rules::cards::queues)
        .because("with one receive queue the stream waits behind all other packets"),
    rule(Topic::Network, "offloads", rules::cards::offloads).because(
        "batches of datagrams (GSO and GRO) are received several times faster than single ones",
    ),
    rule(Topic::Network, "coalescing", rules::cards::coalescing)
        .because("a card that waits for more frames before it interrupts delays every answer"),
    rule(Topic::Clock, "clock-source", rules::clock_source::check).because(
        "a clock that user space cannot read costs a system call, or an access to the chipset",
    ),
    rule(Topic::Dpdk, "dpdk-pages", rules::dpdk::pages::check)
        .because("without huge pages a device needs an address translation for each 4 KiB"),
    rule(Topic::Dpdk, "dpdk-iommu", rules::dpdk::iommu::check)
        .because("vfio-pci hands a device out only where an IOMMU keeps it from other memory"),
    rule(Topic::Dpdk, "dpdk-vfio", rules::dpdk::vfio::check)
        .because("vfio-pci is the driver that hands a device to a process"),
    rule(Topic::Dpdk, "dpdk-driver", rules::dpdk::driver::check)
        .because("DPDK drives a device itself, so the kernel must release it"),
    rule(Topic::Dpdk, "dpdk-link", rules::dpdk::link::check)
        .because("a port without a link neither sends nor receives, and DPDK waits for it"),
    rule(Topic::Dpdk, "dpdk-node", rules::dpdk::node::check).because(
        "a device on another memory node sends every byte over the link between processors",
    ),
];

/// Returns the findings of `rules`. A rule without a subject on this machine gives
/// [`Verdict::Absent`].
#[must_use]
pub fn examine<'a>(
    rules: impl IntoIterator<Item = &'a DoctorRule>,
    view: &MachineFiles,
) -> Vec<Finding> {
    let look = |rule: &'a DoctorRule| {
        let mut found = (rule.check)(view);
        if found.is_empty() {
            found.push(Finding::absent("this machine has nothing of the kind"));
        }
        for finding in &mut found {
            finding.rule = rule.id;
            finding.topic = rule.topic;
        }
        found
    };
    rules.into_iter().flat_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.id.chars().all(plain) && !rule.why.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn an_empty_machine_is_no_reason_to_fail_or_to_blame() {
        let root = tempfile::tempdir().unwrap();
        let view = MachineFiles::of(root.path(), Focus::default());
        let found = examine(RULES, &view);
        assert!(found.len() >= RULES.len());
        let blamed: Vec<_> = found.iter().filter(|f| f.verdict.costs()).collect();
        assert!(blamed.is_empty(), "{blamed:#?}");
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let view = MachineFiles::of(Path::new("/"), Focus::default());
        for finding in examine(RULES, &view) {
            assert!(!finding.says.is_empty(), "{finding:?}");
            assert!(!finding.verdict.costs() || !finding.evidence.is_empty());
        }
    }
}
