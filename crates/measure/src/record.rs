//! The one format of results: what was measured, how, and on which machine. Every measurement
//! gives [`Measured`]s; with the machine's record and its place in a run each is a [`Record`], one
//! line of JSON, which files, the store, comparisons and reports take alike.

use millstream_cpu::Environment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::explained::Explained;
use crate::{Failure, Histogram, Observed};

/// The version of [`Record`] that is written here.
pub const FORMAT: u32 = 1;

/// One sample of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was measured: `timer`, `udp`, `link`, `radio`, `irq`.
    pub measurement: String,
    /// Which of several that were measured together: `cpu 1`, `udp port, spin`; may be empty.
    #[serde(default)]
    pub series: String,
    /// Everything that was chosen: interval, class, link.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// When it began (RFC 3339).
    pub started: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The latencies.
    pub observed: Observed,
    /// Named troubles: deadlines missed, probes lost, blocks overrun.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Parts of the latency in the order of time, which sum to it value by value.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Values above a threshold of which the cause was looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<Explained>,
    /// Whatever else belongs to this kind of measurement.
    #[serde(default)]
    pub details: Map<String, Value>,
}

/// A part of a latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// From where to where, as `edge to raise`.
    pub name: String,
    /// How long it took.
    pub histogram: Histogram,
    /// All of them together, nanoseconds.
    pub total_ns: u64,
}

/// What a load profile was seen to do beside a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSeen {
    /// CPU time of the load's processes over time.
    pub cpu_share: f64,
    /// Interrupts of the machine a second.
    pub interrupts_per_s: f64,
    /// Context switches of the machine a second.
    pub switches_per_s: f64,
    /// The machine's load average (one minute) at the end.
    pub load_average: f64,
    /// Time that the hypervisor gave to others, share of all CPUs' time.
    pub steal_share: f64,
    /// What each worker did, a second.
    pub work_per_s: BTreeMap<String, f64>,
    /// Share of all CPUs' time that neither the load nor the measurement took.
    #[serde(default)]
    pub others_cpu_share: f64,
    /// Packets a second through interfaces with hardware behind them and those that the plan names,
    /// the measurement's own too.
    #[serde(default)]
    pub hardware_packets_per_s: f64,
    /// Terminals that were open: who is logged in makes traffic and work.
    #[serde(default)]
    pub terminals: u32,
}

/// One sample with its place in a run and its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The run that it belongs to.
    pub run: String,
    /// What differs between the compared sides of a run: a kernel, an option; may be empty.
    #[serde(default)]
    pub variant: String,
    /// Which of the compared sides that is, from 0, in the order that they were given.
    #[serde(default)]
    pub side: u32,
    /// The plan's name of the measurement.
    pub name: String,
    /// The load profile beside it.
    pub load: String,
    /// Which fresh start of the program, or boot of the machine, from 0.
    pub restart: u32,
    /// Which sample of that start, from 0.
    pub sample: u32,
    /// What was started.
    #[serde(default)]
    pub command: Vec<String>,
    /// The result.
    pub measured: Measured,
    /// What the load was seen to do.
    #[serde(default)]
    pub load_seen: Option<LoadSeen>,
    /// The machine.
    pub environment: Environment,
}

/// Why a text is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It cannot be read.
    #[error("this is no record: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It was made by a later version.
    #[error("the record has format {0}, newer than {FORMAT}: read it with a newer millstream")]
    Newer(u64),
    /// Nobody can say later what a figure means without its machine.
    #[error("the record does not say on which machine it was made (environment): not accepted")]
    NoEnvironment,
    /// It holds nothing.
    #[error("the record of {0} holds no latency: not accepted")]
    Empty(String),
}

impl Record {
    /// Reads one line.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn parse(line: &str) -> Result<Self, RecordError> {
        let value: Value = serde_json::from_str(line)?;
        let format = value["format"].as_u64().unwrap_or(0);
        if format > u64::from(FORMAT) {
            return Err(RecordError::Newer(format));
        }
        if !value["environment"]["kernel_release"].is_string() {
            return Err(RecordError::NoEnvironment);
        }
        let record: Self = serde_json::from_value(value)?;
        if record.measured.observed.histogram.count() == 0 {
            return Err(RecordError::Empty(record.title()));
        }
        Ok(record)
    }

    /// All records of a text: one a line, or a document of `--json` that has `results.records`.
    ///
    /// # Errors
    /// [`RecordError`], of the first line that is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, RecordError> {
        if let Ok(document) = serde_json::from_str::<Document>(text) {
            return document.records().map(|record| record.checked()).collect();
        }
        // Starts that gave nothing stand beside them.
        let is_record = |line: &&str| !line.trim().is_empty() && Failure::of_line(line).is_none();
        text.lines().filter(is_record).map(Self::parse).collect()
    }

    fn checked(self) -> Result<Self, RecordError> {
        if self.environment.kernel_release.is_none() {
            return Err(RecordError::NoEnvironment);
        }
        if self.measured.observed.histogram.count() == 0 {
            return Err(RecordError::Empty(self.title()));
        }
        Ok(self)
    }

    /// The record as a line without its end.
    ///
    /// # Panics
    /// Never: every part of it can be written as JSON.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("maps have text as keys")
    }

    /// Which measurement, series and load: what may be compared with each other.
    #[must_use]
    pub fn title(&self) -> String {
        let series = match self.measured.series.as_str() {
            "" => String::new(),
            series => format!(", {series}"),
        };
        format!("{}{series} | {}", self.name, self.load)
    }
}

/// The part of a `--json` document of `latency` that matters here.
#[derive(Debug, Clone, Deserialize)]
pub struct Document {
    /// The command line.
    #[serde(default)]
    pub command: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// The verb's results.
    pub results: Results,
}

/// Results that hold samples.
#[derive(Debug, Clone, Deserialize)]
pub struct Results {
    /// The samples.
    pub records: Vec<Measured>,
}

impl Document {
    /// The samples as records of a run of their own, named after the time of the first.
    pub fn records(self) -> impl Iterator<Item = Record> {
        let Self { command, environment, results } = self;
        let run = environment.timestamp.clone();
        let mut seen = BTreeMap::new();
        results.records.into_iter().map(move |measured| {
            let sample = seen.entry(measured.series.clone()).or_insert(0);
            *sample += 1;
            Record {
                format: FORMAT,
                run: run.clone(),
                variant: String::new(),
                side: 0,
                name: measured.measurement.clone(),
                load: "as found".to_owned(),
                restart: 0,
                sample: *sample - 1,
                command: command.clone(),
                measured,
                load_seen: None,
                environment: environment.clone(),
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// A record that holds these latencies.
    pub fn record(name: &str, values_ns: &[u64]) -> Record {
        let mut observed = Observed::default();
        (0..).zip(values_ns).for_each(|(n, value_ns)| observed.record(*value_ns, n));
        let measured = Measured {
            measurement: "timer".to_owned(),
            series: "cpu 1".to_owned(),
            parameters: Map::new(),
            started: "2026-11-22T14:00:00Z".to_owned(),
            seconds: 1.0,
            observed,
            counters: BTreeMap::new(),
            stages: Vec::new(),
            outliers: Vec::new(),
            details: Map::new(),
        };
        Record {
            format: FORMAT,
            run: "r1".to_owned(),
            variant: String::new(),
            side: 0,
            name: name.to_owned(),
            load: "idle".to_owned(),
            restart: 0,
            sample: 0,
            command: Vec::new(),
            measured,
            load_seen: None,
            environment: Environment::read(Path::new("/"), "2026-11-22T14:00:00Z"),
        }
    }

    #[test]
    fn a_record_is_a_line_that_reads_back_the_same() {
        let record = record("timer", &[5, 1_000_003]);
        let line = record.to_line();
        assert!(!line.contains('\n'));
        assert_eq!(Record::parse(&line).unwrap(), record);
        assert_eq!(Record::parse_all(&format!("{line}\n\n{line}\n")).unwrap().len(), 2);
        assert_eq!(record.title(), "timer, cpu 1 | idle");
    }

    #[test]
    fn a_record_without_its_machine_or_of_a_later_format_is_refused() {
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut value = serde_json::to_value(record("timer", &[1])).unwrap();
            change(&mut value);
            Record::parse(&value.to_string()).unwrap_err().to_string()
        };
        let text = refused(&|value| value["environment"] = Value::Null);
        assert!(text.contains("on which machine"), "{text}");
        let text = refused(&|value| value["format"] = 2.into());
        assert!(text.contains("format 2, newer than 1"), "{text}");
        let text = refused(&|value| {
            value["measured"]["observed"]["histogram"]["classes_ns"] = Value::Array(Vec::new());
        });
        assert!(text.contains("no latency"), "{text}");
        assert!(Record::parse("{").unwrap_err().to_string().starts_with("this is no record"));
    }

    #[test]
    fn the_document_of_a_measurement_is_records_too() {
        let record = record("timer", &[1, 2]);
        let document = serde_json::json!({
            "command": ["millstream", "latency", "timer"],
            "environment": record.environment,
            "results": { "records": [record.measured, record.measured] },
        });
        let records = Record::parse_all(&document.to_string()).unwrap();
        assert_eq!(records.iter().map(|record| record.sample).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(records[0].command, ["millstream", "latency", "timer"]);
    }
}
