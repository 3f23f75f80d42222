//! What a rule found.

use super::Topic;
use serde::Serialize;

/// What it means for a stream.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The stream loses samples by it, or does not run at all.
    Fails,
    /// It costs the stream something that can be measured, all the time or again and again.
    Matters,
    /// It costs little or seldom, or only beside others that run there.
    Minor,
    /// The machine does not tell, or it depends on what is not known.
    Unknown,
    /// As it should be.
    Good,
    /// The machine has nothing of the kind.
    Absent,
}

impl Verdict {
    /// Whether it stands in the way at all.
    #[must_use]
    pub fn costs(self) -> bool {
        matches!(self, Self::Fails | Self::Matters | Self::Minor)
    }

    /// Whether it is a reason to call the machine unfit.
    #[must_use]
    pub fn is_serious(self) -> bool {
        matches!(self, Self::Fails | Self::Matters)
    }

    /// For people.
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

/// What was read.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Evidence {
    /// Where: `/proc/sys/net/core/rmem_max`, or the request that was made.
    pub path: String,
    /// What stood there.
    pub value: String,
}

/// One file and what to write into it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Write {
    /// Below the root of the view: `proc/sys/vm/swappiness`.
    pub path: String,
    /// The new content.
    pub text: String,
}

/// How to mend it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Mend {
    /// What to type, as root; it lasts until the next boot unless it says otherwise.
    pub command: String,
    /// The same as writes; none where more than files is needed.
    pub writes: Vec<Write>,
    /// What it may do to others; none where it is done without being asked for by name.
    pub risk: Option<&'static str>,
}

/// One thing found.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The rule, set by [`super::examine`].
    pub rule: &'static str,
    /// Its topic, set by [`super::examine`].
    pub topic: Topic,
    /// The interface, CPU or the like, where there may be several.
    pub subject: Option<String>,
    /// What it means.
    pub verdict: Verdict,
    /// In words, one line.
    pub says: String,
    /// What was read.
    pub evidence: Vec<Evidence>,
    /// What it costs, with its unit and how that is known.
    pub cost: Option<String>,
    /// How to mend it.
    pub mend: Option<Mend>,
}

impl Finding {
    /// With a verdict that depends on what was read.
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

    /// It is as it should be.
    pub fn good(says: impl Into<String>) -> Self {
        Self::of(Verdict::Good, says)
    }

    /// The stream loses samples by it, or does not run at all.
    pub fn fails(says: impl Into<String>) -> Self {
        Self::of(Verdict::Fails, says)
    }

    /// It costs the stream something all the time or again and again.
    pub fn matters(says: impl Into<String>) -> Self {
        Self::of(Verdict::Matters, says)
    }

    /// It costs little or seldom, or only beside others that run there.
    pub fn minor(says: impl Into<String>) -> Self {
        Self::of(Verdict::Minor, says)
    }

    /// It cannot be told.
    pub fn unknown(says: impl Into<String>) -> Self {
        Self::of(Verdict::Unknown, says)
    }

    /// There is nothing of the kind.
    pub fn absent(says: impl Into<String>) -> Self {
        Self::of(Verdict::Absent, says)
    }

    /// What it is about, where a rule finds several.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds what was read.
    #[must_use]
    pub fn seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// What it costs.
    #[must_use]
    pub fn cost(mut self, cost: impl Into<String>) -> Self {
        self.cost = Some(cost.into());
        self
    }

    /// Mended by one write of `text` into the file at `path`.
    #[must_use]
    pub fn mend_by_write(self, path: &str, text: impl Into<String>) -> Self {
        self.mend_by_writes(vec![Write { path: path.to_owned(), text: text.into() }])
    }

    /// Mended by several writes. Files below `/proc/sys` are told as sysctl(8).
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

    /// Mended by a command that is left to people.
    #[must_use]
    pub fn mend_by_hand(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(Mend { command: command.into(), writes: Vec::new(), risk: None });
        self
    }

    /// What mending it may do to others: it is done only when asked for by name.
    #[must_use]
    pub fn at_risk(mut self, risk: &'static str) -> Self {
        if let Some(mend) = &mut self.mend {
            mend.risk = Some(risk);
        }
        self
    }

    /// Whether `--apply` can mend it without anybody else.
    #[must_use]
    pub fn is_appliable(&self) -> bool {
        self.verdict.costs() && self.mend.as_ref().is_some_and(|mend| !mend.writes.is_empty())
    }
}
