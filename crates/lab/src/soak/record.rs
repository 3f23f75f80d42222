//! The record of a soak: a file, so that a soak can be run in parts.

use super::books::SoakAccount;
use super::growth::Growth;
use super::round::RoundPlan;
use super::watch::{Holdings, Series};
use crate::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The form of the file.
const FORM: u32 = 2;

/// Complaints that are kept with their words.
const COMPLAINTS_MAX: usize = 100;

/// A soak so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SoakRecord {
    /// The form of this record.
    form: u32,
    /// The seed of its rounds.
    pub seed: u64,
    /// The text in the names of its faults.
    #[serde(default)]
    pub only: String,
    /// The links of its rounds, in turn; none before the first part.
    #[serde(default)]
    pub links: Vec<String>,
    /// Rounds done: the number of the next one.
    pub rounds: u64,
    /// Time of the rounds, seconds.
    pub seconds: f64,
    /// The results by fault; `none` has the rounds without one.
    pub faults: BTreeMap<String, FaultTally>,
    /// The first complaints.
    pub complaints: Vec<Complaint>,
    /// The number of all.
    pub complaint_count: u64,
    /// The processes that have carried it out, in order.
    pub parts: Vec<SoakPart>,
}

/// The streams of all rounds with one fault.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FaultTally {
    /// Rounds.
    pub rounds: u64,
    /// Streams.
    pub streams: u64,
    /// Packets that the fault hit.
    pub hits: u64,
    /// Samples that should have come, or that the streams accepted.
    pub expected: u64,
    /// Samples that came, or were transmitted.
    pub delivered: u64,
    /// Samples lost, by direction and cause.
    pub lost: BTreeMap<String, u64>,
    /// Samples that a channel dropped for the sake of another.
    pub alignment: u64,
    /// Streams during which the machine was too busy: what depends on time was not judged.
    #[serde(default)]
    pub starved: u64,
    /// Complaints.
    pub complaints: u64,
    /// The longest round, seconds.
    pub longest_s: f64,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Complaint {
    /// The round.
    pub round: u64,
    /// What the round did.
    pub what: String,
    /// What is wrong.
    pub text: String,
}

/// What one process carried out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SoakPart {
    /// Its begin, RFC 3339.
    pub began: String,
    /// The version and the build of the program.
    pub version: String,
    /// Its first round.
    pub first_round: u64,
    /// Its rounds.
    pub rounds: u64,
    /// Time of its rounds, seconds.
    pub seconds: f64,
    /// This process and its radios.
    pub processes: Vec<ProcessRecord>,
}

/// What a process held after each round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessRecord {
    /// Its name.
    pub name: String,
    /// Memory, KiB.
    pub rss_kib: Series,
    /// Open descriptors.
    pub descriptors: Series,
    /// Threads.
    pub threads: Series,
}

/// Whether something of a process grew.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProcessVerdict {
    /// The process.
    pub name: String,
    /// Memory after the first round and after the newest one, KiB.
    pub rss_kib: (u64, u64),
    /// The slope of its memory; `None` where the rounds are too few.
    pub growth: Option<Growth>,
    /// What grew, in words.
    pub grew: Vec<String>,
}

impl SoakRecord {
    /// A soak that has not begun, of the faults whose names contain `only`.
    #[must_use]
    pub fn new(seed: u64, only: &str) -> Self {
        Self {
            form: FORM,
            seed,
            only: only.to_owned(),
            links: Vec::new(),
            rounds: 0,
            seconds: 0.0,
            faults: BTreeMap::new(),
            complaints: Vec::new(),
            complaint_count: 0,
            parts: Vec::new(),
        }
    }

    /// Reads the text of a file; the reason in words where it is no record.
    pub(super) fn of_text(text: &str) -> Result<Self, String> {
        let record: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match record.form {
            FORM => Ok(record),
            other => Err(format!("its form is {other}, expected {FORM}")),
        }
    }

    /// The text of a file.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts have a JSON form")
    }

    /// Begins a part over these links with a round.
    pub fn begin(&mut self, began: String, version: String, links: Vec<String>, round: u64) {
        self.links = links;
        let part = SoakPart { began, version, first_round: round, ..SoakPart::default() };
        self.parts.push(part);
    }

    /// Adds a round of the newest part over a link, and what each process held after it.
    ///
    /// # Panics
    /// When no part has begun.
    pub fn add(
        &mut self,
        plan: &RoundPlan,
        link: &str,
        outcome: &super::RoundOutcome,
        seconds: f64,
        held: &[(&str, Holdings)],
    ) {
        let part = self.parts.last_mut().expect("a part has begun");
        self.rounds += 1;
        self.seconds += seconds;
        part.rounds += 1;
        part.seconds += seconds;
        for (name, holdings) in held {
            part.process(name).push(*holdings);
        }
        let tally = self.faults.entry(plan.fault_name().to_owned()).or_default();
        tally.rounds += 1;
        tally.longest_s = tally.longest_s.max(seconds);
        tally.complaints += outcome.complaints.len() as u64;
        outcome.accounts.iter().for_each(|account| tally.add(account));
        let text = format!("{link}: {plan}");
        for complaint in &outcome.complaints {
            self.complain(plan.number, &text, complaint.clone());
        }
    }

    fn complain(&mut self, round: u64, what: &str, text: String) {
        self.complaint_count += 1;
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(Complaint { round, what: what.to_owned(), text });
        }
    }

    /// Judges the processes of each part.
    #[must_use]
    pub fn verdicts(&self) -> Vec<ProcessVerdict> {
        let of_part =
            |part: &SoakPart| part.processes.iter().map(ProcessVerdict::of).collect::<Vec<_>>();
        self.parts.iter().flat_map(of_part).collect()
    }
}

impl SoakPart {
    fn process(&mut self, name: &str) -> &mut ProcessRecord {
        let at = self.processes.iter().position(|process| process.name == name);
        let at = at.unwrap_or_else(|| {
            let new = ProcessRecord { name: name.to_owned(), ..ProcessRecord::default() };
            self.processes.push(new);
            self.processes.len() - 1
        });
        &mut self.processes[at]
    }
}

impl ProcessRecord {
    fn push(&mut self, holdings: Holdings) {
        self.rss_kib.push(holdings.rss_kib);
        self.descriptors.push(holdings.descriptors);
        self.threads.push(holdings.threads);
    }
}

impl FaultTally {
    fn add(&mut self, account: &SoakAccount) {
        self.hits += account.hits;
        self.starved += u64::from(account.cpu_wait.is_starved());
        for (direction, books) in account.books() {
            self.streams += 1;
            self.expected = self.expected.wrapping_add(books.expected);
            self.delivered = self.delivered.wrapping_add(books.delivered);
            self.alignment += books.alignment;
            let way = match direction {
                Direction::Rx => "rx",
                Direction::Tx => "tx",
            };
            for (cause, samples) in &books.lost {
                *self.lost.entry(format!("{way} {cause}")).or_default() += samples;
            }
        }
    }

    /// Samples lost by any cause.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }
}

impl ProcessVerdict {
    fn of(process: &ProcessRecord) -> Self {
        let growth = Growth::of(&process.rss_kib);
        let mut grew = Vec::new();
        if growth.is_some_and(|growth| growth.is_growth()) {
            grew.push("memory".to_owned());
        }
        for (series, what) in [(&process.descriptors, "descriptors"), (&process.threads, "threads")]
        {
            if series.has_risen() {
                let first = series.first().unwrap_or(0);
                grew.push(format!("{what} (from {first} to {})", series.newest));
            }
        }
        let rss_kib = (process.rss_kib.first().unwrap_or(0), process.rss_kib.newest);
        Self { name: process.name.clone(), rss_kib, growth, grew }
    }
}

impl std::fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { way, channels, rate_hz, packet_samples, streams, .. } = self;
        write!(
            f,
            "{}, {channels} channel{} of {} kS/s in packets of {packet_samples}, {streams} \
             stream{}, fault: {}",
            way.name(),
            if *channels == 1 { "" } else { "s" },
            rate_hz / 1e3,
            if *streams == 1 { "" } else { "s" },
            self.fault_name()
        )
    }
}

#[cfg(test)]
mod tests;
