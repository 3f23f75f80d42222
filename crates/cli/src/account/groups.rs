//! Losses of one kind at one place, told together: a bad cable gives thousands.

use super::FoundLoss;
use std::fmt::Write;

/// Losses of the same kind, flow and place.
struct LossGroup {
    kind: &'static str,
    flow: Option<usize>,
    hop: &'static str,
    until: &'static str,
    certainty: &'static str,
    losses: u64,
    packets: u64,
    samples: Option<u64>,
    /// When the first and the last were seen.
    times_s: Option<(f64, f64)>,
    /// What shows the first, and what to do.
    evidence: Vec<String>,
    remedies: Vec<String>,
}

/// All losses so far, by groups in the order of their first ones.
#[derive(Default)]
pub struct LossGroups(Vec<LossGroup>);

impl LossGroups {
    /// Adds a loss.
    pub fn add(&mut self, loss: &FoundLoss) {
        let FoundLoss { kind, flow, hop, until, certainty, packets, samples, at_s, .. } = *loss;
        let key = (kind, flow, hop, until, certainty);
        let is_same = |group: &&mut LossGroup| {
            key == (group.kind, group.flow, group.hop, group.until, group.certainty)
        };
        if let Some(group) = self.0.iter_mut().find(is_same) {
            group.losses += 1;
            group.packets += packets;
            group.samples = group.samples.zip(samples).map(|(sum, samples)| sum + samples);
            // Some become known later than losses behind them.
            if let (Some((first_s, last_s)), Some(at_s)) = (&mut group.times_s, at_s) {
                (*first_s, *last_s) = (first_s.min(at_s), last_s.max(at_s));
            }
            return;
        }
        let times_s = at_s.map(|at_s| (at_s, at_s));
        let (evidence, remedies) = (loss.evidence.clone(), loss.remedies.clone());
        self.0.push(LossGroup {
            kind,
            flow,
            hop,
            until,
            certainty,
            losses: 1,
            packets,
            samples,
            times_s,
            evidence,
            remedies,
        });
    }

    /// A line for each group.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        self.0.iter().map(LossGroup::line)
    }

    /// The groups with what shows them and what to do; whole lines.
    pub fn text(&self) -> String {
        self.0.iter().map(LossGroup::text).collect()
    }
}

impl LossGroup {
    /// When, how much and where.
    fn line(&self) -> String {
        let at = self.times_s.map_or("loss".to_owned(), |(first_s, _)| format!("{first_s:.6} s"));
        let flow = self.flow.map_or(String::new(), |flow| format!("flow {flow}: "));
        let until = match (self.losses, self.times_s) {
            (1, _) => String::new(),
            (losses, Some((_, last_s))) => format!(" {losses} times until {last_s:.6} s"),
            (losses, None) => format!(" {losses} times"),
        };
        format!("{at:<13}{flow}{}{until}, at: {}", self.what(), self.place())
    }

    fn text(&self) -> String {
        let mut text = self.line() + "\n";
        if self.losses > 1 && !self.evidence.is_empty() {
            text += "             of the first:\n";
        }
        for sentence in &self.evidence {
            let _ = writeln!(text, "             {sentence}");
        }
        for remedy in &self.remedies {
            let _ = writeln!(text, "             do: {remedy}");
        }
        text
    }

    fn what(&self) -> String {
        let samples = self.samples.map_or(String::new(), |samples| format!(" ({samples} samples)"));
        match self.kind {
            "lost" => format!("{} packets{samples} lost", self.packets),
            "not_captured" => format!("{} packets{samples} not captured", self.packets),
            "not_sent" => self.samples.map_or("samples not sent".to_owned(), |samples| {
                format!("{samples} samples not sent")
            }),
            "late_data" => "samples came to the radio too late".to_owned(),
            other => other.replace('_', " "),
        }
    }

    /// The hop, as well as it is known.
    fn place(&self) -> String {
        match self.certainty {
            "between" => format!("somewhere from {} to {}", told(self.hop), told(self.until)),
            "perhaps" => format!("perhaps {}", told(self.hop)),
            _ => told(self.hop).to_owned(),
        }
    }
}

/// Returns the words for a hop of this name.
fn told(hop: &str) -> &str {
    match hop {
        "radio" => "the radio",
        "wire" => "the wire: cable, switch or the far end's card",
        "card" => "the ring of this host's card",
        "backlog" => "the backlog of a CPU",
        "stack" => "the kernel's IPv4 and UDP layers",
        "socket" => "the buffer of the program's socket",
        "program" => "the program",
        "send_queue" => "the queueing discipline or driver on the way out",
        other => other,
    }
}
