//! Huge pages for frame memory (Documentation/admin-guide/mm/hugetlbpage.rst).

use crate::doctor::{Finding, MachineFiles};

/// The effect of the mend on the rest of the machine.
pub const RISK: &str = "no other program can use this memory any more";

const FILE: &str = "proc/sys/vm/nr_hugepages";

/// Frame memory of a few interfaces, KiB.
const WANTED_KB: i64 = 256 << 10;

/// The size of a page where the machine does not report it, KiB.
const PAGE_KB: i64 = 2048;

/// Checks whether there are huge pages for frame memory.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some((pages, seen)) = view.number(FILE) else { return Vec::new() };
    let free = view.line("proc/meminfo", "HugePages_Free:");
    let size = view.line("proc/meminfo", "Hugepagesize:");
    let none_free = free.as_ref().is_some_and(|free| free.value == "0");
    let page_kb = size.as_ref().and_then(|size| size.value.split(' ').next()?.parse().ok());
    let page_kb: i64 = page_kb.filter(|kb| *kb > 0).unwrap_or(PAGE_KB);
    let wanted = (WANTED_KB / page_kb).max(1);
    let seen = [seen].into_iter().chain(free).chain(size);
    if pages > 0 && !none_free {
        return vec![Finding::good("huge pages are reserved and free").seen(seen)];
    }
    let says = match pages {
        0 => "no huge pages are reserved".to_owned(),
        _ => format!("all {pages} huge pages are taken"),
    };
    // The stream itself may use the pages: a demand for as many again, each time, would never end.
    vec![match pages < wanted {
        true => {
            Finding::minor(says).seen(seen).mend_by_write(FILE, wanted.to_string()).at_risk(RISK)
        }
        false => Finding::unknown(format!("{says}; another program may need more"))
            .seen(seen)
            .mend_by_hand(format!("sysctl -w vm.nr_hugepages={}", pages.saturating_add(wanted))),
    }]
}

#[cfg(test)]
mod tests {
    use super::{FILE, check};
    use crate::doctor::Verdict::{Absent, Good, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    fn machine(pages: &str, free: u32) -> TestMachine {
        let info = format!("HugePages_Free:        {free}\nHugepagesize:       2048 kB\n");
        TestMachine::new().with(FILE, pages).with("proc/meminfo", &info)
    }

    #[test]
    fn none_or_none_free_costs() {
        let found = machine("0\n", 0).one(check);
        assert_eq!((found.verdict, &*found.says), (Minor, "no huge pages are reserved"));
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, "sysctl -w vm.nr_hugepages=128");
        assert!(mend.risk.is_some());
        let found = machine("64\n", 0).one(check);
        assert_eq!((found.verdict, &*found.says), (Minor, "all 64 huge pages are taken"));
        assert_eq!(machine("64\n", 60).verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }

    #[test]
    fn the_amount_is_a_target_and_not_added_each_time() {
        assert_eq!(machine("64\n", 0).one(check).mend.unwrap().writes[0].text, "128");
        // All of these are in use, too.
        let taken = machine("128\n", 0).one(check);
        assert_eq!((taken.verdict, taken.is_appliable()), (Unknown, false));
        assert_eq!(taken.mend.unwrap().command, "sysctl -w vm.nr_hugepages=256");
    }

    #[test]
    fn the_amount_is_the_same_in_pages_of_any_size() {
        let giant = "HugePages_Free:        0\nHugepagesize:    1048576 kB\n";
        let machine = TestMachine::new().with(FILE, "0\n").with("proc/meminfo", giant);
        assert_eq!(machine.one(check).mend.unwrap().writes[0].text, "1", "not 128 GiB");
    }
}
