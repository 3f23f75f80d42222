//! The findings of rules.

use super::Topic;
use serde::Serialize;

/// The effect of a finding on a stream.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The stream loses samples, or does not run at all.
    Fails,
    /// The stream has a measurable cost, all the time or repeatedly.
    Matters,
    /// The cost is small or rare, or appears only together with other processes.
    Minor,
    /// The machine does not report it, or it depends on unknown facts.
    Unknown,
    /// The setting is correct.
    Good,
    /// The machine has no such part.
    Absent,
}

impl Verdict {
    /// Returns whether the finding has any cost.
    #[must_use]
    pub fn costs(self) -> bool {
        matches!(self, Self::Fails | Self::Matters | Self::Minor)
    }

    /// Returns the word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Matters => "matters",
            Self::Minor => "minor",
            Self::Unknown => "unknown",
            Self::Good => "good",
            Self::Absent => "absent",
        }
    }
}

/// A file or answer that a rule read.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Evidence {
    /// The path, `/proc/sys/net/core/rmem_max`, or the request.
    pub path: String,
    /// The content.
    pub value: String,
}

/// A file and its new content.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Write {
    /// Below the root of the view: `proc/sys/vm/swappiness`.
    pub path: String,
    /// The new content.
    pub text: String,
}

/// The mend of a finding.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Mend {
    /// The command to type, as root; its effect lasts until the next boot unless it says otherwise.
    pub command: String,
    /// The same as writes; empty where files do not suffice.
    pub writes: Vec<Write>,
    /// The possible effect on other work; `None` when the mend needs no request by name.
    pub risk: Option<&'static str>,
}

/// One result of a rule.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The rule, set by [`super::examine`].
    pub rule: &'static str,
    /// Its topic, set by [`super::examine`].
    pub topic: Topic,
    /// The interface, CPU or the like, where there may be several.
    pub subject: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The finding in words, one line.
    pub says: String,
    /// The files and answers that were read.
    pub evidence: Vec<Evidence>,
    /// The cost, with its unit and its source.
    pub cost: Option<String>,
    /// The mend.
    pub mend: Option<Mend>,
}

impl Finding {
    /// Returns a finding with a verdict that depends on the evidence.
    pub fn of(verdict: Verdict, says: impl Into<String>) -> Self {
        Self {
            rule: "",
            topic: Topic::Cpu,
            subject: None,
            verdict,
            says: says.into(),
            evidence: Vec::new(),
            cost: None,
            mend: None,
        }
    }

    /// Returns a finding of a correct setting.
    pub fn good(says: impl Into<String>) -> Self {
        Self::of(Verdict::Good, says)
    }

    /// Returns a finding by which the stream loses samples, or does not run at all.
    pub fn fails(says: impl Into<String>) -> Self {
        Self::of(Verdict::Fails, says)
    }

    /// Returns a finding with a cost all the time or repeatedly.
    pub fn matters(says: impl Into<String>) -> Self {
        Self::of(Verdict::Matters, says)
    }

    /// Returns a finding with a small or rare cost, or one that appears only together with other
    /// processes.
    pub fn minor(says: impl Into<String>) -> Self {
        Self::of(Verdict::Minor, says)
    }

    /// Returns a finding that cannot be decided.
    pub fn unknown(says: impl Into<String>) -> Self {
        Self::of(Verdict::Unknown, says)
    }

    /// Returns a finding of a part that the machine does not have.
    pub fn absent(says: impl Into<String>) -> Self {
        Self::of(Verdict::Absent, says)
    }

    /// Sets the subject, for rules with several findings.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds evidence.
    #[must_use]
    pub fn seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// Sets the cost.
    #[must_use]
    pub fn cost(mut self, cost: impl Into<String>) -> Self {
        self.cost = Some(cost.into());
        self
    }

    /// Sets the mend: one write of `text` into the file at `path`.
    #[must_use]
    pub fn mend_by_write(self, path: &str, text: impl Into<String>) -> Self {
        self.mend_by_writes(vec![Write { path: path.to_owned(), text: text.into() }])
    }

    /// Sets the mend: several writes. The command for files below `/proc/sys` is sysctl(8).
    #[must_use]
    pub fn mend_by_writes(mut self, writes: Vec<Write>) -> Self {
        let command = |write: &Write| match write.path.strip_prefix("proc/sys/") {
            Some(name) => format!("sysctl -w {}={}", name.replace('/', "."), write.text),
            None => format!("echo {} > /{}", write.text, write.path),
        };
        let commands: Vec<_> = writes.iter().map(command).collect();
        self.mend = Some(Mend { command: commands.join("; "), writes, risk: None });
        self
    }

    /// Sets the mend: a command that the user types.
    #[must_use]
    pub fn mend_by_hand(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(Mend { command: command.into(), writes: Vec::new(), risk: None });
        self
    }

    /// Sets the risk of the mend to other work: it needs a request by name.
    #[must_use]
    pub fn at_risk(mut self, risk: &'static str) -> Self {
        if let Some(mend) = &mut self.mend {
            mend.risk = Some(risk);
        }
        self
    }

    /// Returns whether `--apply` can mend it alone.
    #[must_use]
    pub fn is_appliable(&self) -> bool {
        self.verdict.costs() && self.mend.as_ref().is_some_and(|mend| !mend.writes.is_empty())
    }
}
