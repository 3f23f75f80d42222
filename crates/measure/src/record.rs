//! The one format of results: the measurement, its settings and the machine. Every measurement
//! returns [`Measured`]s; with the machine's environment and its place in a run each is a
//! [`Record`], one line of JSON, which files, the store, comparisons and reports use alike.

use millstream_cpu::Environment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::explained::Explained;
use crate::{Failure, Observed};
use millstream_stats::Histogram;

/// The version of [`Record`] that this program writes.
pub const FORMAT: u32 = 1;

/// One sample of one measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measurement: `timer`, `udp`, `link`, `radio`, `irq`, or a benchmark's name.
    pub measurement: String,
    /// The series, of several that were measured together: `cpu 1`, `udp port, spin`; may be empty.
    #[serde(default)]
    pub series: String,
    /// All settings: interval, class, link.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The way of packets between both ends: `loopback`, `veth`, `bridge`, or the given interfaces;
    /// empty where none are exchanged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topology: String,
    /// The start time (RFC 3339).
    pub started: String,
    /// The duration, seconds.
    pub seconds: f64,
    /// The latencies, or the CPU times of a benchmark.
    pub observed: Observed,
    /// Named problems: deadlines missed, probes lost, blocks overrun.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Parts of the latency in the order of time; their sum is the latency, value by value.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Values above a threshold, with their causes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<Explained>,
    /// Other data of this kind of measurement.
    #[serde(default)]
    pub details: Map<String, Value>,
}

/// A part of a latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The two ends of the part, as `edge to raise`.
    pub name: String,
    /// The distribution of its duration.
    pub histogram: Histogram,
    /// The sum of all values, nanoseconds.
    pub total_ns: u64,
}

/// The observed activity of a load profile during a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSeen {
    /// CPU time of the load's processes divided by the elapsed time.
    pub cpu_share: f64,
    /// Interrupts of the machine a second.
    pub interrupts_per_s: f64,
    /// Context switches of the machine a second.
    pub switches_per_s: f64,
    /// The machine's load average (one minute) at the end.
    pub load_average: f64,
    /// Time that the hypervisor gave to others, share of all CPUs' time.
    pub steal_share: f64,
    /// The work of each worker, per second.
    pub work_per_s: BTreeMap<String, f64>,
    /// Share of all CPUs' time that neither the load nor the measurement took.
    #[serde(default)]
    pub others_cpu_share: f64,
    /// Packets a second through interfaces with hardware behind them and those that the plan names,
    /// including the measurement's own.
    #[serde(default)]
    pub hardware_packets_per_s: f64,
    /// Open terminals: logged-in users cause traffic and work.
    #[serde(default)]
    pub terminals: u32,
}

/// One sample with its place in a run and its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The run of the sample.
    pub run: String,
    /// The difference between the compared sides of a run: a kernel, an option; may be empty.
    #[serde(default)]
    pub variant: String,
    /// The number of the compared side, from 0, in the order of the plan.
    #[serde(default)]
    pub side: u32,
    /// The plan's name of the measurement.
    pub name: String,
    /// The load profile during it.
    pub load: String,
    /// The number of the fresh start of the program, or of the boot of the machine, from 0.
    pub restart: u32,
    /// The number of the sample within that start, from 0.
    pub sample: u32,
    /// The arguments of the program.
    #[serde(default)]
    pub command: Vec<String>,
    /// The result.
    pub measured: Measured,
    /// The observed activity of the load.
    #[serde(default)]
    pub load_seen: Option<LoadSeen>,
    /// The machine.
    pub environment: Environment,
}

/// The reason why a text is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The text has a wrong syntax or type.
    #[error("a line of the file is not a record of `millstream-lab lab`: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A later version wrote it.
    #[error(
        "the record has format {0}, but this program knows formats up to {FORMAT}: use a newer \
         millstream"
    )]
    Newer(u64),
    /// Without its machine a figure cannot be interpreted later.
    #[error(
        "the record does not describe the machine it was made on (field environment), so it is \
         refused"
    )]
    NoEnvironment,
    /// It has no latency.
    #[error("the record of {0} contains no latency, so it is refused")]
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
        serde_json::from_value::<Self>(value)?.checked()
    }

    /// Reads all records of a text: one a line, or a document of `--json` that has
    /// `results.records`.
    ///
    /// # Errors
    /// [`RecordError`], of the first line that is not a record.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, RecordError> {
        if let Ok(document) = serde_json::from_str::<Document>(text) {
            return document.records().map(|record| record.checked()).collect();
        }
        // The file also has the starts without a result.
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

    /// Returns the record as a line without its end.
    ///
    /// # Panics
    /// Never: every part of it can be written as JSON.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("maps have text as keys")
    }

    /// Returns the measurement, series and load: records with the same title can be compared.
    #[must_use]
    pub fn title(&self) -> String {
        let series = match self.measured.series.as_str() {
            "" => String::new(),
            series => format!(", {series}"),
        };
        format!("{}{series} | {}", self.name, self.load)
    }
}

/// The used part of a `--json` document of a measurement.
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

/// Results with samples.
#[derive(Debug, Clone, Deserialize)]
pub struct Results {
    /// The samples.
    pub records: Vec<Measured>,
}

impl Document {
    /// Returns the samples as records of a run of their own, named after the time of the first.
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

/// Returns the items, each once, in their order.
pub(crate) fn each_once<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut once, item| {
        if !once.contains(&item) {
            once.push(item);
        }
        once
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// Returns a record with these latencies.
    pub fn record(name: &str, values_ns: &[u64]) -> Record {
        let mut observed = Observed::default();
        (0..).zip(values_ns).for_each(|(n, value_ns)| observed.record(*value_ns, n));
        let measured = Measured {
            measurement: "timer".to_owned(),
            series: "cpu 1".to_owned(),
            parameters: Map::new(),
            topology: String::new(),
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
        assert!(text.contains("does not describe the machine"), "{text}");
        let text = refused(&|value| value["format"] = 2.into());
        assert!(text.contains("format 2, but this program knows formats up to 1"), "{text}");
        let text = refused(&|value| {
            value["measured"]["observed"]["histogram"]["classes_ns"] = Value::Array(Vec::new());
        });
        assert!(text.contains("no latency"), "{text}");
        assert!(
            Record::parse("{")
                .unwrap_err()
                .to_string()
                .starts_with("a line of the file is not a record")
        );
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
