//! Huge pages that the kernel makes by itself (Documentation/admin-guide/mm/transhuge.rst).

use crate::doctor::{DoctorRule, Finding, MachineFiles, Topic};

/// See the file's head.
pub const RULE: DoctorRule = DoctorRule {
    id: "transparent-huge-pages",
    topic: Topic::Memory,
    why: "khugepaged moves memory that is in use, and its user waits meanwhile",
    check,
};

const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";

fn check(view: &MachineFiles) -> Vec<Finding> {
    match view.choice(FILE) {
        Some((choice, seen)) if choice == "always" => vec![
            Finding::minor("the kernel may move every process's memory while it is in use")
                .seen([seen])
                .mend_by_write(FILE, "madvise"),
        ],
        Some((_, seen)) => vec![Finding::good("only where a program requests it").seen([seen])],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, RULE};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn always_is_too_often() {
        let found = TestMachine::new().with(FILE, "[always] madvise never\n").one(&RULE);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.mend.unwrap().command, format!("echo madvise > /{FILE}"));
        assert_eq!(TestMachine::new().with(FILE, "always [madvise] never\n").verdict(&RULE), Good);
        assert_eq!(TestMachine::new().with(FILE, "nonsense\n").verdict(&RULE), Absent);
        assert_eq!(TestMachine::new().verdict(&RULE), Absent);
    }
}
