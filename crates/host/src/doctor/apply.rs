//! Applies the mends of findings, and undoes them.

use super::{Finding, Mend};
use crate::journal::{self, PersistentChanges, Since, Undone};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the journal of mends.
const NAME: &str = "doctor";

/// One file and its content before and after.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Written {
    /// Below the root of the view: `proc/sys/vm/swappiness`.
    pub path: String,
    /// The content before, of alternatives the chosen one; `None` where it cannot be read.
    pub before: Option<String>,
    /// The content after.
    pub text: String,
}

/// The mends of one finding, done or planned.
#[derive(Debug, Serialize)]
pub struct AppliedMends {
    /// The rule.
    pub rule: &'static str,
    /// The subject of the finding, where there may be several.
    pub subject: Option<String>,
    /// Files that were written.
    pub written: Vec<Written>,
    /// The reason why the rest was not written.
    pub error: Option<String>,
}

/// The reason why nothing could be put back.
#[derive(Debug, thiserror::Error)]
#[error("cannot follow the journal in {}: {source}", folder.display())]
pub struct ApplyError {
    folder: PathBuf,
    source: io::Error,
}

/// Returns what [`apply`] would write. Changes nothing.
#[must_use]
pub fn plan(root: &Path, findings: &[Finding], named: &[&str]) -> Vec<AppliedMends> {
    let is_meant = |finding: &&Finding| {
        let risky = finding.mend.as_ref().is_some_and(|mend| mend.risk.is_some());
        finding.is_appliable() && (!risky || named.contains(&finding.rule))
    };
    let planned = findings.iter().filter(is_meant).filter_map(|finding| {
        let written = writes(root, finding.mend.as_ref()?);
        Some(AppliedMends {
            rule: finding.rule,
            subject: finding.subject.clone(),
            written,
            error: None,
        })
    });
    planned.collect()
}

fn writes(root: &Path, mend: &Mend) -> Vec<Written> {
    let written = mend.writes.iter().map(|write| {
        let before = fs::read_to_string(root.join(&write.path)).ok();
        let before = before.map(|text| journal::chosen(&text).trim().to_owned());
        Written { path: write.path.clone(), before, text: write.text.clone() }
    });
    written.collect()
}

/// Mends by writing files, until [`undo`]: every finding whose mend has no risk, and those of the
/// rules in `named`. The journal of a machine below another root than `/` is below that root, too,
/// and no file outside it is written.
#[must_use]
pub fn apply(root: &Path, findings: &[Finding], named: &[&str]) -> Vec<AppliedMends> {
    let kept = open(root).0;
    let mut planned = plan(root, findings, named);
    for one in &mut planned {
        let fails = |write: &Written| kept.write(&root.join(&write.path), &write.text).err();
        let failed = one.written.iter().enumerate().find_map(|(at, one)| Some((at, fails(one)?)));
        if let Some((done, error)) = failed {
            one.written.truncate(done);
            one.error = Some(error.to_string());
        }
    }
    planned
}

/// Returns the findings with a cost and a mend that were not attempted.
pub fn left<'a>(findings: &'a [Finding], done: &[AppliedMends]) -> Vec<&'a Finding> {
    let is_left = |finding: &&Finding| {
        let is_it = |one: &AppliedMends| one.rule == finding.rule && one.subject == finding.subject;
        finding.verdict.costs() && finding.mend.is_some() && !done.iter().any(is_it)
    };
    findings.iter().filter(is_left).collect()
}

/// Puts back all changes of [`apply`], by this process or any before it.
///
/// # Errors
/// [`ApplyError`] when the journal cannot be read.
pub fn undo(root: &Path, since: Since) -> Result<Vec<Undone>, ApplyError> {
    let (kept, folder) = open(root);
    kept.undo(since).map_err(|source| ApplyError { folder, source })
}

/// Returns the settings that [`undo`] would put back, with their old values:
/// `/proc/sys/vm/swappiness (60)`.
///
/// # Errors
/// [`ApplyError`] when the journal cannot be read.
pub fn noted(root: &Path) -> Result<Vec<String>, ApplyError> {
    let (kept, folder) = open(root);
    kept.open_changes().map_err(|source| ApplyError { folder, source })
}

/// Returns the journal of root's changes of this machine, where there is one and this user is not
/// root: this user may not follow it.
#[must_use]
pub fn noted_by_root(root: &Path) -> Option<PathBuf> {
    let is_other = root == Path::new("/") && !rustix::process::geteuid().is_root();
    let file = PersistentChanges::open_in(journal::FOLDER_OF_ROOT.as_ref(), NAME).file();
    (is_other && file.exists()).then_some(file)
}

fn open(root: &Path) -> (PersistentChanges, PathBuf) {
    let is_here = root == Path::new("/");
    let folder = if is_here { journal::folder() } else { root.join("run/millstream") };
    (PersistentChanges::below(root, &folder, NAME), folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::doctor::machine::TestMachine;
    use crate::doctor::{RULES, examine};
    use std::fs;

    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

    fn ill() -> TestMachine {
        TestMachine::with_two_cpus()
            .with(RUNTIME, "950000\n")
            .with("proc/swaps", "Filename\n/dev/sda2\n")
            .with(SWAPPINESS, "60\n")
    }

    #[test]
    fn what_is_safe_is_mended_and_put_back_byte_for_byte() {
        let machine = ill();
        let view = machine.view();
        let found = examine(RULES, &view);
        let done = apply(view.root(), &found, &[]);
        let rules: Vec<_> = done.iter().map(|one| (one.rule, one.error.is_none())).collect();
        assert_eq!(rules, [("swap", true)], "not what is risky");
        let read = |path: &str| fs::read_to_string(view.root().join(path)).unwrap();
        assert_eq!((read(SWAPPINESS), read(RUNTIME)), ("1\n".into(), "950000\n".into()));
        let again = examine(RULES, &view);
        let swap = again.iter().find(|finding| finding.rule == "swap").unwrap();
        assert_eq!(swap.verdict, Verdict::Good);
        let undone = undo(view.root(), Since::Left).unwrap();
        assert!(undone.len() == 1 && undone[0].put_back, "{undone:?}");
        assert_eq!(read(SWAPPINESS), "60\n");
        assert!(undo(view.root(), Since::Left).unwrap().is_empty());
    }

    #[test]
    fn what_is_risky_is_done_when_it_is_named() {
        let machine = ill();
        let view = machine.view();
        let found = examine(RULES, &view);
        let done = apply(view.root(), &found, &["rt-throttling"]);
        assert!(done.iter().any(|one| one.rule == "rt-throttling" && one.error.is_none()));
        assert_eq!(fs::read_to_string(view.root().join(RUNTIME)).unwrap(), "-1\n");
    }

    #[test]
    fn what_cannot_be_written_says_so_and_changes_nothing() {
        let machine = TestMachine::new().with(THP, "[always] madvise never\n");
        let view = machine.view();
        let found = examine(RULES, &view);
        fs::remove_file(view.root().join(THP)).unwrap();
        let done = apply(view.root(), &found, &[]);
        assert!(done[0].error.as_ref().unwrap().contains("transparent_hugepage"), "{done:?}");
        assert!(undo(view.root(), Since::Left).unwrap().is_empty());
    }

    #[test]
    fn nothing_outside_a_recorded_machine_is_written() {
        let (machine, outside) = (ill(), tempfile::tempdir().unwrap());
        let (view, live) = (machine.view(), outside.path().join("swappiness"));
        fs::write(&live, "60\n").unwrap();
        let found = examine(RULES, &view);
        let recorded = view.root().join(SWAPPINESS);
        fs::remove_file(&recorded).unwrap();
        std::os::unix::fs::symlink(&live, &recorded).unwrap();
        let done = apply(view.root(), &found, &[]);
        assert!(done[0].error.as_ref().unwrap().contains("the path leaves "), "{done:?}");
        assert_eq!(fs::read_to_string(&live).unwrap(), "60\n");
        // A recorded machine's journal came with it.
        let journals = view.root().join("run/millstream");
        fs::create_dir_all(&journals).unwrap();
        let what = r#"{"path":"/proc/sys/vm/swappiness","before":"1","text":"2","after":null}"#;
        let line = format!(r#"{{"begin":{{"id":0,"file":{what}}}}}"#);
        fs::write(journals.join("doctor.kept"), line + "\n").unwrap();
        let undone = undo(view.root(), Since::Left).unwrap();
        let error = undone[0].error.as_ref().unwrap();
        assert!(error.contains("the path leaves ") && undone.len() == 1, "{undone:?}");
        assert_eq!(fs::read_to_string(&live).unwrap(), "60\n");
        // The path to the journal may be missing, too.
        fs::remove_dir_all(view.root().join("run")).unwrap();
        std::os::unix::fs::symlink(outside.path(), view.root().join("run")).unwrap();
        assert!(
            undo(view.root(), Since::Left).unwrap_err().to_string().contains("the path leaves ")
        );
    }

    #[test]
    fn what_is_left_is_told_for_each_finding_of_a_rule() {
        let mended = Finding::minor("memory moves").mend_by_write(SWAPPINESS, "0");
        let left_over = Finding::matters("on another node").about("eth1").mend_by_hand("shield");
        let good = Finding::good("on the same node").about("eth2");
        let machine = ill();
        let found = [mended, left_over, good];
        let done = apply(machine.view().root(), &found, &[]);
        assert!(done.len() == 1 && done[0].error.is_none(), "{done:?}");
        let subjects: Vec<_> = left(&found, &done).into_iter().map(|one| &one.subject).collect();
        assert_eq!(subjects, [&Some("eth1".to_owned())]);
    }

    #[test]
    fn a_plan_says_what_would_be_written_and_writes_nothing() {
        let machine = ill().with(THP, "[always] madvise never\n");
        let view = machine.view();
        let found = examine(RULES, &view);
        let planned = plan(view.root(), &found, &["rt-throttling"]);
        let write = |path: &str, before: &str, text: &str| Written {
            path: path.to_owned(),
            before: Some(before.to_owned()),
            text: text.to_owned(),
        };
        let writes: Vec<_> = planned.iter().flat_map(|one| one.written.clone()).collect();
        let expected = [
            write(RUNTIME, "950000", "-1"),
            write(THP, "always", "madvise"),
            write(SWAPPINESS, "60", "1"),
        ];
        assert_eq!(writes, expected);
        let read = |path: &str| fs::read_to_string(view.root().join(path)).unwrap();
        assert_eq!((read(SWAPPINESS), read(RUNTIME)), ("60\n".into(), "950000\n".into()));
        assert!(noted(view.root()).unwrap().is_empty() && !view.root().join("run").exists());
        let done = apply(view.root(), &found, &["rt-throttling"]);
        let writes: Vec<_> = done.into_iter().flat_map(|one| one.written).collect();
        assert_eq!(writes, expected, "it does what it says");
        assert_eq!(noted(view.root()).unwrap().len(), 3);
    }
}
