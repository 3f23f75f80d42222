//! Findings as text: one line a finding, and the important ones with their remedies.

use super::why;
use crate::output::Join;
use millstream_host::doctor::{Evidence, Finding, Verdict};
use std::fmt::Write;

/// Colours, which are left out where the text is printed to no terminal.
fn paint(text: &str, code: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Width of the column of rules.
const RULE_COLUMNS: usize = 24;

/// The findings by topic, in the order of the rules.
pub fn draw(findings: &[Finding], evidence: bool) -> String {
    let mut text = String::new();
    let (mut topic, mut told) = (None, None);
    for finding in findings {
        if topic != Some(finding.topic) {
            topic = Some(finding.topic);
            let _ = writeln!(text, "\n{}", paint(finding.topic.name(), "1"));
        }
        text += &line(finding);
        // Prints the reason of a rule once, if it has several findings.
        let is_new = told != Some(finding.rule);
        told = finding.verdict.costs().then_some(finding.rule);
        text += &details(finding, evidence, is_new);
    }
    text
}

/// Draws findings of any topic, with their remedies.
pub fn draw_first(findings: &[&Finding]) -> String {
    let mut text = format!("\n{}\n", paint("first of all", "1"));
    for finding in findings {
        text += &line(finding);
        if let Some(mend) = &finding.mend {
            text += &row("mend", &paint(&mend.command, "36"));
        }
    }
    text
}

fn line(finding: &Finding) -> String {
    let (sign, code) = match finding.verdict {
        Verdict::Fails => ("✘", "1;31"),
        Verdict::Matters => ("!", "31"),
        Verdict::Minor => ("-", "35"),
        Verdict::Unknown => ("?", "33"),
        Verdict::Good => ("✔", "32"),
        Verdict::Absent => ("·", "2"),
    };
    let sign = paint(&format!("{sign} {:<9}", finding.verdict.name()), code);
    let subject =
        finding.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
    format!("  {sign}  {:<RULE_COLUMNS$}{subject}{}\n", finding.rule, finding.says)
}

fn details(finding: &Finding, evidence: bool, reason: bool) -> String {
    let stands_in_the_way = finding.verdict.costs();
    let mut rows: Vec<(&str, String)> = Vec::new();
    if stands_in_the_way && reason {
        rows.push(("why", why(finding).to_owned()));
    }
    if evidence || stands_in_the_way {
        rows.extend(finding.evidence.iter().map(|seen| ("read", read(seen))));
    }
    rows.extend(finding.cost.iter().map(|cost| ("cost", cost.clone())));
    if let Some(mend) = &finding.mend {
        rows.push(("mend", paint(&mend.command, "36")));
        rows.extend(mend.risk.iter().map(|risk| ("risk", (*risk).to_owned())));
    }
    rows.iter().map(|(name, text)| row(name, text)).collect()
}

fn row(name: &str, text: &str) -> String {
    let indent = " ".repeat(RULE_COLUMNS + 15);
    format!("{indent}{}  {text}\n", paint(name, "2"))
}

fn read(seen: &Evidence) -> String {
    const LONG: usize = 60;
    let value = seen.value.split_whitespace().join(" ");
    let short: String = value.chars().take(LONG).collect();
    let more = if short.len() < value.len() { "…" } else { "" };
    format!("{} = {short}{more}", seen.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_host::doctor::Topic;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn finding() -> Finding {
        let seen = Evidence { path: "/proc/x".into(), value: "1\n 2".into() };
        let mut finding = Finding::matters("it is 1").about("eth0").seen([seen]).cost("2 ms");
        finding = finding.mend_by_write("proc/sys/vm/x", "0").at_risk("none");
        (finding.rule, finding.topic) = ("swap", Topic::Memory);
        finding
    }

    #[test]
    fn what_costs_is_told_with_its_evidence_and_mend() {
        let text = plain(&draw(&[finding()], false));
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines[1], "memory");
        assert!(lines[2].starts_with("! matters    swap ") && lines[2].ends_with("eth0: it is 1"));
        assert!(lines[3].starts_with("why  a page that was moved to disk"));
        let rest = ["read  /proc/x = 1 2", "cost  2 ms", "mend  sysctl -w vm.x=0", "risk  none"];
        assert_eq!(lines[4..], rest);
    }

    #[test]
    fn the_reason_of_a_rule_is_told_once() {
        let text = plain(&draw(&[finding(), finding()], false));
        assert_eq!((text.matches("why").count(), text.matches("mend").count()), (1, 2), "{text}");
    }

    #[test]
    fn what_matters_most_comes_first_in_a_line_and_its_mend() {
        let text = plain(&draw_first(&[&finding(), &finding()]));
        let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (5, "first of all", lines[4]), "{text}");
        assert_eq!(lines[2], "mend  sysctl -w vm.x=0");
    }

    #[test]
    fn what_is_good_is_one_line_without_colours() {
        let seen = Evidence { path: "/proc/x".into(), value: "1".repeat(99) };
        let good = Finding::good("fine").seen([seen]);
        let text = plain(&draw(std::slice::from_ref(&good), false));
        assert!(text.lines().count() == 3 && !text.contains('\x1b'), "{text}");
        let text = draw(&[good], true);
        assert!(text.contains("1…\n") && text.contains("\x1b[32m✔ good     \x1b[0m"), "{text}");
    }
}
