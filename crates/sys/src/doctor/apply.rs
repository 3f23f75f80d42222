//! Mending what rules found, and taking that back.

use super::{Finding, Mend, Write};
use crate::journal::{self, JournalError, Kept};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the journal of what was mended.
const NAME: &str = "doctor";

/// What was done about one finding.
#[derive(Debug, Serialize)]
pub struct Applied {
    /// The rule.
    pub rule: &'static str,
    /// Files that were written.
    pub written: Vec<Write>,
    /// Why the rest was not.
    pub error: Option<String>,
}

/// What was put back, or why not.
#[derive(Debug, Serialize)]
pub struct Undone {
    /// What it was before: `/proc/sys/vm/swappiness (60)`.
    pub what: String,
    /// Whether it is so again; no: somebody else has changed it since, or it is gone.
    pub put_back: bool,
    /// Why it is not, where that failed.
    pub error: Option<String>,
}

/// Why nothing could be put back.
#[derive(Debug, thiserror::Error)]
#[error("cannot follow the journal in {}: {source}", folder.display())]
pub struct ApplyError {
    folder: PathBuf,
    source: io::Error,
}

/// Mends what can be mended by writing files, until [`undo`]: every finding whose mend has no risk,
/// and those of the rules in `named`. The journal is in `folder`; none: [`journal::folder`].
#[must_use]
pub fn apply(
    root: &Path,
    folder: Option<&Path>,
    findings: &[Finding],
    named: &[&str],
) -> Vec<Applied> {
    let kept = open(folder).0;
    let is_meant = |finding: &Finding| {
        let risky = finding.mend.as_ref().is_some_and(|mend| mend.risk.is_some());
        finding.is_appliable() && (!risky || named.contains(&finding.rule))
    };
    let meant = findings.iter().filter(|finding| is_meant(finding));
    let done = meant.filter_map(|finding| {
        let mend = finding.mend.as_ref()?;
        let (written, error) = write(root, &kept, mend);
        Some(Applied { rule: finding.rule, written, error: error.map(|error| error.to_string()) })
    });
    done.collect()
}

fn write(root: &Path, kept: &Kept, mend: &Mend) -> (Vec<Write>, Option<JournalError>) {
    let mut written = Vec::new();
    for one in &mend.writes {
        if let Err(error) = kept.write(&root.join(&one.path), &one.text) {
            return (written, Some(error));
        }
        written.push(one.clone());
    }
    (written, None)
}

/// Puts everything back that [`apply`] changed, by this process or any before it.
///
/// # Errors
/// [`ApplyError`] when the journal cannot be read.
pub fn undo(folder: Option<&Path>) -> Result<Vec<Undone>, ApplyError> {
    let (kept, folder) = open(folder);
    let fates = kept.undo().map_err(|source| ApplyError { folder, source })?;
    let undone = fates.into_iter().map(|fate| Undone {
        what: fate.what,
        put_back: matches!(fate.outcome, Ok(true)),
        error: fate.outcome.err().map(|error| error.to_string()),
    });
    Ok(undone.collect())
}

fn open(folder: Option<&Path>) -> (Kept, PathBuf) {
    let folder = folder.map_or_else(journal::folder, Path::to_owned);
    (Kept::open_in(&folder, NAME), folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::machine::Machine;
    use crate::doctor::{RULES, Verdict, examine};
    use std::fs;

    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

    fn ill() -> Machine {
        Machine::with_two_cpus()
            .with(RUNTIME, "950000\n")
            .with("proc/swaps", "Filename\n/dev/sda2\n")
            .with(SWAPPINESS, "60\n")
    }

    #[test]
    fn what_is_safe_is_mended_and_put_back_byte_for_byte() {
        let (machine, journals) = (ill(), tempfile::tempdir().unwrap());
        let (view, folder) = (machine.view(), Some(journals.path()));
        let found = examine(RULES.iter().copied(), &view);
        let done = apply(view.root(), folder, &found, &[]);
        let rules: Vec<_> = done.iter().map(|one| (one.rule, one.error.is_none())).collect();
        assert_eq!(rules, [("swap", true)], "not what is risky");
        let read = |path: &str| fs::read_to_string(view.root().join(path)).unwrap();
        assert_eq!((read(SWAPPINESS), read(RUNTIME)), ("1\n".into(), "950000\n".into()));
        let again = examine(RULES.iter().copied(), &view);
        let swap = again.iter().find(|finding| finding.rule == "swap").unwrap();
        assert_eq!(swap.verdict, Verdict::Good);
        let undone = undo(folder).unwrap();
        assert!(undone.len() == 1 && undone[0].put_back, "{undone:?}");
        assert_eq!(read(SWAPPINESS), "60\n");
        assert!(undo(folder).unwrap().is_empty());
    }

    #[test]
    fn what_is_risky_is_done_when_it_is_named() {
        let (machine, journals) = (ill(), tempfile::tempdir().unwrap());
        let view = machine.view();
        let found = examine(RULES.iter().copied(), &view);
        let done = apply(view.root(), Some(journals.path()), &found, &["rt-throttling"]);
        assert!(done.iter().any(|one| one.rule == "rt-throttling" && one.error.is_none()));
        assert_eq!(fs::read_to_string(view.root().join(RUNTIME)).unwrap(), "-1\n");
    }

    #[test]
    fn what_cannot_be_written_says_so_and_changes_nothing() {
        let machine = Machine::new().with(THP, "[always] madvise never\n");
        let (view, journals) = (machine.view(), tempfile::tempdir().unwrap());
        let found = examine(RULES.iter().copied(), &view);
        fs::remove_file(view.root().join(THP)).unwrap();
        let done = apply(view.root(), Some(journals.path()), &found, &[]);
        assert!(done[0].error.as_ref().unwrap().contains("transparent_hugepage"), "{done:?}");
        assert!(undo(Some(journals.path())).unwrap().is_empty());
    }
}
