//! Huge pages for DPDK's buffers (Documentation/admin-guide/mm/hugetlbpage.rst).

use crate::doctor::rules::huge_pages::RISK;
use crate::doctor::{Finding, MachineFiles};

/// The pages that one or two links use: 256 MiB in pages of 2 MiB.
const WANTED: i64 = 128;

/// The pages to reserve, for the links and for others.
const RESERVED: i64 = 2 * WANTED;

const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

/// Checks whether there are huge pages for DPDK's buffers.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let count = |file: &str| view.number(&format!("{POOL}/{file}"));
    let (Some((all, seen)), Some((free, free_seen))) =
        (count("nr_hugepages"), count("free_hugepages"))
    else {
        return Vec::new();
    };
    // A fixed amount: the DPDK process in question may itself use the pages.
    let finding = match free {
        WANTED.. => Finding::good(format!("{free} huge pages are free")),
        _ if all < RESERVED => Finding::matters(format!("{free} of {all} huge pages are free"))
            .mend_by_write("proc/sys/vm/nr_hugepages", RESERVED.to_string())
            .at_risk(RISK),
        _ => {
            let more = all.saturating_add(WANTED);
            Finding::unknown(format!("{free} of {all} huge pages are free; DPDK may have the rest"))
                .mend_by_hand(format!("sysctl -w vm.nr_hugepages={more}"))
        }
    };
    vec![finding.seen([seen, free_seen])]
}

#[cfg(test)]
mod tests {
    use super::{POOL, check};
    use crate::doctor::Verdict::{Absent, Good, Matters, Unknown};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn some_have_to_be_free() {
        let with = |all: &str, free: &str| {
            let file = |name: &str| format!("{POOL}/{name}");
            TestMachine::new().with(&file("nr_hugepages"), all).with(&file("free_hugepages"), free)
        };
        assert_eq!(with("512\n", "512\n").verdict(check), Good);
        let taken = with("100\n", "4\n").one(check);
        assert_eq!(taken.verdict, Matters);
        assert_eq!(taken.mend.unwrap().command, "sysctl -w vm.nr_hugepages=256");
        let more = with("256\n", "4\n").one(check);
        assert_eq!((more.verdict, more.is_appliable()), (Unknown, false), "not more each time");
        assert_eq!(more.mend.unwrap().command, "sysctl -w vm.nr_hugepages=384");
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
