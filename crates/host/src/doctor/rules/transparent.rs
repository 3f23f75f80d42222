//! Huge pages that the kernel makes by itself (Documentation/admin-guide/mm/transhuge.rst).

use crate::doctor::{Finding, MachineFiles};

const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// Checks whether the kernel makes huge pages out of a program's memory while it runs.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
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
    use super::{FILE, check};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn always_is_too_often() {
        let found = TestMachine::new().with(FILE, "[always] madvise never\n").one(check);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.mend.unwrap().command, format!("echo madvise > /{FILE}"));
        assert_eq!(TestMachine::new().with(FILE, "always [madvise] never\n").verdict(check), Good);
        assert_eq!(TestMachine::new().with(FILE, "nonsense\n").verdict(check), Absent);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
