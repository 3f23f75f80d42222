//! Huge pages for frame memory (Documentation/admin-guide/mm/hugetlbpage.rst).

use crate::doctor::{Finding, Rule, Topic, View};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "huge-pages",
    topic: Topic::Memory,
    why: "frame memory in 4 KiB pages needs hundreds of times more address translations",
    check,
};

const FILE: &str = "proc/sys/vm/nr_hugepages";

/// 256 MiB in pages of 2 MiB: frame memory of a few interfaces.
const WANTED: i64 = 128;

fn check(view: &View) -> Vec<Finding> {
    let Some((pages, seen)) = view.number(FILE) else { return Vec::new() };
    let free = view.line("proc/meminfo", "HugePages_Free:");
    let size = view.line("proc/meminfo", "Hugepagesize:");
    let none_free = free.as_ref().is_some_and(|free| free.value == "0");
    let seen = [seen].into_iter().chain(free).chain(size);
    if pages > 0 && !none_free {
        return vec![Finding::good("huge pages are reserved and free").seen(seen)];
    }
    let says = match pages {
        0 => "no huge pages are reserved".to_owned(),
        _ => format!("all {pages} huge pages are taken"),
    };
    vec![Finding::costs(says).seen(seen).mend_by_write(FILE, (pages + WANTED).to_string())]
}

#[cfg(test)]
mod tests {
    use super::{FILE, RULE};
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    fn machine(pages: &str, free: u32) -> Machine {
        let info = format!("HugePages_Free:        {free}\nHugepagesize:       2048 kB\n");
        Machine::new().with(FILE, pages).with("proc/meminfo", &info)
    }

    #[test]
    fn none_or_none_free_costs() {
        let found = machine("0\n", 0).one(&RULE);
        assert_eq!((found.verdict, &*found.says), (Costs, "no huge pages are reserved"));
        assert_eq!(found.mend.unwrap().command, "sysctl -w vm.nr_hugepages=128");
        let found = machine("64\n", 0).one(&RULE);
        assert_eq!((found.verdict, &*found.says), (Costs, "all 64 huge pages are taken"));
        assert_eq!(machine("64\n", 60).verdict(&RULE), Good);
        assert_eq!(Machine::new().verdict(&RULE), Absent);
    }
}
