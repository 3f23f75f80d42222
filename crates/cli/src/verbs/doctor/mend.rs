//! `millstream doctor --apply` and `--undo`.

use crate::output::Report;
use millstream_sys::doctor::{self, Applied, Finding};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// A finding in a line: `interrupts (irq 24)`.
fn title(rule: &str, subject: Option<&String>) -> String {
    subject.map_or_else(|| rule.to_owned(), |subject| format!("{rule} ({subject})"))
}

/// Succeeds when all that was meant is done.
pub fn apply(root: &Path, found: &[Finding], named: &[&str]) -> anyhow::Result<Report> {
    let done = doctor::apply(root, found, named);
    let mut text = String::new();
    for Applied { rule, subject, written, error } in &done {
        let title = title(rule, subject.as_ref());
        for write in written {
            let _ = writeln!(text, "{title}: /{} = {}", write.path, write.text);
        }
        if let Some(error) = error {
            let _ = writeln!(text, "{title}: {error}");
        }
    }
    for finding in doctor::left(found, &done) {
        let Some(mend) = &finding.mend else { continue };
        let how = match mend.risk {
            Some(risk) if finding.is_appliable() => {
                format!("name the rule to have it done: {risk}")
            }
            _ => mend.command.clone(),
        };
        let title = title(finding.rule, finding.subject.as_ref());
        let _ = writeln!(text, "{title}: left to you: {how}");
    }
    let failed = done.iter().filter(|one| one.error.is_some()).count();
    let written: usize = done.iter().map(|one| one.written.len()).sum();
    match written {
        0 if failed == 0 => text += "nothing was to be changed\n",
        0 => {}
        _ => text += "`millstream doctor --undo` puts it back; a reboot does, too\n",
    }
    let failure = (failed > 0).then(|| format!("{failed} findings could not be mended"));
    Ok(Report { text, results: json!({ "applied": done }), failure })
}

/// Succeeds when all is as it was, or has been changed by somebody else since.
pub fn undo(root: &Path) -> anyhow::Result<Report> {
    let undone = doctor::undo(root)?;
    let mut text = String::new();
    for one in &undone {
        let _ = match &one.error {
            Some(error) => writeln!(text, "{}: {error}", one.what),
            None if one.put_back => writeln!(text, "put back: {}", one.what),
            None => writeln!(text, "left alone, it has changed since: {}", one.what),
        };
    }
    if undone.is_empty() {
        text += "nothing is to be put back\n";
    }
    let failed = undone.iter().filter(|one| one.error.is_some()).count();
    let failure = (failed > 0).then(|| format!("{failed} settings could not be put back"));
    Ok(Report { text, results: json!({ "undone": undone }), failure })
}
