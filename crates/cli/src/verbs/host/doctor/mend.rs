//! `millstream host doctor --apply` and `--undo`.

use crate::output::{Report, count};
use anyhow::bail;
use millstream_host::doctor::{self, AppliedMends, Finding, Since, Undone, Written};
use std::fmt::Write;
use std::path::Path;

crate::results! {
    /// The fixes of `--apply`.
    struct AppliedFixes {
        /// Each finding that was fixed, or would be.
        applied: Vec<AppliedMends>,
        /// Whether nothing was written.
        dry_run: bool,
    }

    /// What `--undo` restored.
    struct UndoneFixes {
        /// Each setting.
        undone: Vec<Undone>,
    }

    /// What `--undo --dry-run` would restore.
    struct NotedFixes {
        /// Each setting.
        would_undo: Vec<String>,
        /// True.
        dry_run: bool,
    }
}

/// A finding in a line: `interrupts (irq 24)`.
fn title(rule: &str, subject: Option<&String>) -> String {
    subject.map_or_else(|| rule.to_owned(), |subject| format!("{rule} ({subject})"))
}

/// Succeeds when all intended changes are made.
pub fn apply(
    root: &Path,
    found: &[Finding],
    named: &[&str],
    is_dry: bool,
) -> anyhow::Result<Report> {
    let done = if is_dry { doctor::plan } else { doctor::apply }(root, found, named);
    let mut text = String::new();
    for AppliedMends { rule, subject, written, error } in &done {
        let title = title(rule, subject.as_ref());
        for Written { path, before, text: after } in written {
            let before = before.as_deref().unwrap_or("(unreadable)");
            let _ = writeln!(text, "{title}: /{path}: {before} -> {after}");
        }
        if let Some(error) = error {
            let _ = writeln!(text, "{title}: {error}");
        }
    }
    for finding in doctor::left(found, &done) {
        let Some(mend) = &finding.mend else { continue };
        let how = match mend.risk {
            Some(risk) if finding.is_appliable() => {
                format!("name the rule to apply it: {risk}")
            }
            _ => mend.command.clone(),
        };
        let title = title(finding.rule, finding.subject.as_ref());
        let _ = writeln!(text, "{title}: not changed: {how}");
    }
    let failed = done.iter().filter(|one| one.error.is_some()).count();
    let written: usize = done.iter().map(|one| one.written.len()).sum();
    text += match (is_dry, written) {
        (_, 0) if failed == 0 => "nothing to change\n",
        (true, _) => "nothing was changed: this was a dry run\n",
        (false, 0) => "",
        (false, _) => "`millstream host doctor --undo` puts it back; so does a reboot\n",
    };
    let failure = (failed > 0).then(|| {
        format!("{} could not be fixed: see the reasons above", count(failed as u64, "finding"))
    });
    Ok(Report::of(text, &AppliedFixes { applied: done, dry_run: is_dry }).failing(failure))
}

/// Succeeds when everything is as it was.
pub fn undo(root: &Path, since: Since, is_dry: bool) -> anyhow::Result<Report> {
    if let Some(file) = doctor::noted_by_root(root) {
        bail!(
            "root changed these settings (noted in {}), and only root can restore them: run `sudo \
             millstream host doctor --undo`",
            file.display()
        );
    }
    if is_dry {
        return would_undo(root);
    }
    let undone = doctor::undo(root, since)?;
    let mut text = String::new();
    for one in &undone {
        let _ = match one {
            Undone { what, error: Some(error), .. } => writeln!(text, "{what}: {error}"),
            Undone { what, put_back: true, .. } => writeln!(text, "put back: {what}"),
            Undone { what, .. } => {
                writeln!(text, "not put back, because others changed it: {what}")
            }
        };
    }
    if undone.is_empty() {
        text += "nothing to undo\n";
    }
    let failed = undone.iter().filter(|one| one.error.is_some()).count();
    let left = undone.iter().filter(|one| one.error.is_none() && !one.put_back).count();
    let failure = match (failed, left) {
        (0, 0) => None,
        (0, left) => Some(format!(
            "others have changed {} since; the journal keeps them: undo again when these programs \
             have ended (a shield restores its changes), or add --force",
            count(left as u64, "setting")
        )),
        (failed, _) => Some(format!("{} could not be put back", count(failed as u64, "setting"))),
    };
    Ok(Report::of(text, &UndoneFixes { undone }).failing(failure))
}

fn would_undo(root: &Path) -> anyhow::Result<Report> {
    let noted = doctor::noted(root)?;
    let mut text = String::new();
    for what in &noted {
        let _ = writeln!(text, "would be put back: {what}");
    }
    text += if noted.is_empty() { "nothing to undo\n" } else { "nothing was changed\n" };
    Ok(Report::of(text, &NotedFixes { would_undo: noted, dry_run: true }))
}
