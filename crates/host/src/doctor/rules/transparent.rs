//! Huge pages that the kernel makes by itself (Documentation/admin-guide/mm/transhuge.rst).

use crate::doctor::{Finding, Rule, Topic, View};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "transparent-huge-pages",
    topic: Topic::Memory,
    why: "khugepaged moves memory that is in use, and its user waits meanwhile",
    check,
};

const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";

fn check(view: &View) -> Vec<Finding> {
    match view.choice(FILE) {
        Some((choice, seen)) if choice == "always" => vec![
            Finding::minor("every process's memory may be moved under its hands")
                .seen([seen])
                .mend_by_write(FILE, "madvise"),
        ],
        Some((_, seen)) => vec![Finding::good("only where it is asked for").seen([seen])],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, RULE};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::Machine;

    #[test]
    fn always_is_too_often() {
        let found = Machine::new().with(FILE, "[always] madvise never\n").one(&RULE);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.mend.unwrap().command, format!("echo madvise > /{FILE}"));
        assert_eq!(Machine::new().with(FILE, "always [madvise] never\n").verdict(&RULE), Good);
        assert_eq!(Machine::new().with(FILE, "nonsense\n").verdict(&RULE), Absent);
        assert_eq!(Machine::new().verdict(&RULE), Absent);
    }
}
