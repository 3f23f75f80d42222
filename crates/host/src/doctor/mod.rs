//! The doctor: settings of this machine that hinder the stream or the deadline.
//!
//! A [`DoctorRule`] examines a [`MachineFiles`] (files below a root, so that recorded machines test
//! it) and returns [`Finding`]s: the evidence and its source, the verdict, the cost, and the
//! command that mends it. A rule changes nothing; [`apply`] does, through the journal.
//!
//! A new rule is one file in `rules/` with a `RULE`, and one line in [`RULES`].

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

pub use crate::journal::Since;
pub use apply::{
    AppliedMends, ApplyError, Undone, Written, apply, left, noted, noted_by_root, plan, undo,
};
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
    pub check: fn(&MachineFiles) -> Vec<Finding>,
}

/// All rules, in the order of the report.
pub const RULES: &[&DoctorRule] = &[
    &rules::governor::RULE,
    &rules::idle_states::RULE,
    &rules::smt::RULE,
    &rules::isolation::RULE,
    &rules::mitigations::RULE,
    &rules::steal::RULE,
    &rules::rt_throttling::RULE,
    &rules::rt_limit::RULE,
    &rules::preemption::RULE,
    &rules::timer_migration::RULE,
    &rules::watchdog::RULE,
    &rules::memlock::RULE,
    &rules::huge_pages::RULE,
    &rules::transparent::RULE,
    &rules::swap::RULE,
    &rules::same_pages::RULE,
    &rules::numa::RULE,
    &rules::socket_buffers::RECEIVE,
    &rules::socket_buffers::SEND,
    &rules::budget::RULE,
    &rules::backlog::RULE,
    &rules::interrupts::RULE,
    &rules::irqbalance::RULE,
    &rules::packet_priorities::RULE,
    &rules::steering::RULE,
    &rules::rings::RULE,
    &rules::queues::RULE,
    &rules::offloads::RULE,
    &rules::coalescing::RULE,
    &rules::clock_source::RULE,
    &rules::dpdk::pages::RULE,
    &rules::dpdk::iommu::RULE,
    &rules::dpdk::vfio::RULE,
    &rules::dpdk::driver::RULE,
    &rules::dpdk::link::RULE,
    &rules::dpdk::node::RULE,
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
        let found = examine(RULES.iter().copied(), &view);
        assert!(found.len() >= RULES.len());
        let blamed: Vec<_> = found.iter().filter(|f| f.verdict.costs()).collect();
        assert!(blamed.is_empty(), "{blamed:#?}");
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let view = MachineFiles::of(Path::new("/"), Focus::default());
        for finding in examine(RULES.iter().copied(), &view) {
            assert!(!finding.says.is_empty(), "{finding:?}");
            assert!(!finding.verdict.costs() || !finding.evidence.is_empty());
        }
    }
}
