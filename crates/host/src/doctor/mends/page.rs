//! Tests that the page of the rules says what the rules say.

use super::{all, found, machine};
use crate::doctor::{DoctorRule, Finding, RULES, Topic};
use std::fmt::Write;
use std::path::Path;

const COLUMNS: usize = 120;

/// The first words of sentences that stand where other rules have a command.
const ADVICE: [&str; 3] = ["dedicate ", "end ", "give "];

/// The paragraphs before the rules.
const HEAD: [&str; 2] = [
    "This page lists the rules of `millstream host doctor`: why each looks, what it finds on a \
     machine that has the fault, and what to type there, as root. The guide [prepare the \
     host](../guides/prepare-the-host.md) explains the command. A test makes this page from the \
     rules: `cargo test -p millstream-host --lib mends::page` prints what it must contain.",
    "The commands are those for the machine of the example. On yours the interface, the CPU \
     and the numbers differ, and the doctor prints the right ones. `--apply` makes a fix with \
     a risk only if you name its rule. Rules of the topic `dpdk` are checked only if you name \
     them or their topic.",
];

/// Paragraphs of a page, in lines.
fn filled(text: &str) -> String {
    let (mut page, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match column {
            0 => {}
            column if column + 1 + length > COLUMNS => page.push('\n'),
            _ => page.push(' '),
        }
        page.push_str(word);
        column = page.len() - page.rfind('\n').map_or(0, |end| end + 1);
    }
    page + "\n"
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str() + "."
}

fn topics() -> [(Topic, &'static str); 6] {
    [
        (Topic::Cpu, "Processors"),
        (Topic::Scheduling, "Scheduling"),
        (Topic::Memory, "Memory"),
        (Topic::Network, "Network"),
        (Topic::Clock, "Clock"),
        (Topic::Dpdk, "DPDK"),
    ]
}

/// What a rule finds on the machines where it fires; equal advice once.
fn findings(rule: &DoctorRule) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (id, ill, by) in all() {
        if id == rule.id {
            let finding = found(&machine(ill), id, &by);
            if findings.iter().all(|known| known.says != finding.says) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn section(rule: &DoctorRule) -> String {
    let mut page = format!("\n### {}\n\n{}", rule.id, filled(&sentence(rule.why)));
    for finding in findings(rule) {
        let _ = write!(page, "\n{}", filled(&format!("Finding: {}.", finding.says)));
        let Some(mend) = finding.mend else {
            page.push_str("\nThe doctor knows no fix.\n");
            continue;
        };
        // Some rules have a sentence instead of a command.
        let is_advice = ADVICE.iter().any(|verb| mend.command.starts_with(verb));
        let _ = match is_advice || mend.command.len() + 4 > COLUMNS {
            true => write!(page, "\n{}", filled(&sentence(&mend.command))),
            false => write!(page, "\n    {}\n", mend.command),
        };
        if let Some(risk) = mend.risk {
            let _ = write!(page, "\n{}", filled(&format!("Risk: {risk}.")));
        }
    }
    page
}

#[test]
fn the_page_of_the_rules_is_made_from_the_rules() {
    let mut page = "# Rules of the doctor\n".to_owned();
    HEAD.iter().for_each(|paragraph| page += &format!("\n{}", filled(paragraph)));
    for (topic, heading) in topics() {
        let _ = write!(page, "\n## {heading} (`{}`)\n", topic.name());
        RULES.iter().filter(|rule| rule.topic == topic).for_each(|rule| page += &section(rule));
    }
    for rule in RULES {
        assert!(page.contains(&format!("### {}\n", rule.id)), "{} has no topic here", rule.id);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/doctor-rules.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{} must contain:\n{page}", path.display());
}
