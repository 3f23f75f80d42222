//! Huge pages for DPDK's buffers (Documentation/admin-guide/mm/hugetlbpage.rst).

use crate::doctor::{Finding, Rule, Topic, View};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "dpdk-pages",
    topic: Topic::Dpdk,
    why: "a device that sees one page at a time needs a translation for each 4 KiB",
    check,
};

/// What a link or two take: 256 MiB in pages of 2 MiB.
const WANTED: i64 = 128;

const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

fn check(view: &View) -> Vec<Finding> {
    let count = |file: &str| view.number(&format!("{POOL}/{file}"));
    let (Some((all, seen)), Some((free, free_seen))) =
        (count("nr_hugepages"), count("free_hugepages"))
    else {
        return Vec::new();
    };
    let finding = match free {
        WANTED.. => Finding::good(format!("{free} huge pages are free")),
        _ => Finding::costs(format!("{free} huge pages are free: DPDK does without"))
            .mend_by_write("proc/sys/vm/nr_hugepages", (all + 2 * WANTED).to_string()),
    };
    vec![finding.seen([seen, free_seen])]
}

#[cfg(test)]
mod tests {
    use super::{POOL, RULE};
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    #[test]
    fn some_have_to_be_free() {
        let with = |all: &str, free: &str| {
            let file = |name: &str| format!("{POOL}/{name}");
            Machine::new().with(&file("nr_hugepages"), all).with(&file("free_hugepages"), free)
        };
        assert_eq!(with("512\n", "512\n").verdict(&RULE), Good);
        let taken = with("100\n", "4\n").one(&RULE);
        assert_eq!(taken.verdict, Costs);
        assert_eq!(taken.mend.unwrap().command, "sysctl -w vm.nr_hugepages=356");
        assert_eq!(Machine::new().verdict(&RULE), Absent);
    }
}
