//! What is known of a recording while it is written, and its SigMF metadata: a capture for each
//! part that begins behind a gap or with other settings, an annotation for each gap and each other
//! tag (SigMF 1.0.0, sections "captures array" and "annotations array").

use super::fields::Fields;
use super::read;
use millstream_flow::{ShortText, Tag, TagDocument, TagTime, TagValue, keys};
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};

/// Captures and gaps whose memory is reserved; more of them cost an allocation each time their
/// number doubles.
const RESERVED: usize = 1024;

/// The most captures, the most gaps and the most annotations.
const MAX: usize = 1 << 20;

/// The settings of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Settings {
    freq_hz: Option<f64>,
    gain_db: Option<f64>,
    antenna: Option<ShortText>,
    bandwidth_hz: Option<f64>,
}

/// What tags say at one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    first_sample: u64,
    time: Option<TagTime>,
    utc: Option<TagTime>,
    /// Whether the stream begins anew: the user had stopped it.
    is_restart: bool,
    /// The settings from there on.
    settings: Settings,
    /// The description in the recording from which the samples come.
    document: Option<TagDocument>,
}

/// Samples that are missing before one.
#[derive(Clone, Copy, Debug)]
struct Loss {
    first_sample: u64,
    cause: Option<TagValue>,
    items: Option<u64>,
}

/// What is known of a recording.
#[derive(Debug)]
pub(super) struct RecordingNotes {
    pub datatype: &'static str,
    /// Samples per second, if no tag says it.
    pub given_hz: Option<f64>,
    pub hardware: Option<String>,
    pub description: Option<String>,
    /// When the first sample was received, by this machine's clock.
    pub began: SystemTime,
    rate_hz: Option<f64>,
    /// Samples for each sample of the recording from which they come.
    ratio: f64,
    global: Option<TagDocument>,
    segments: Vec<Segment>,
    losses: Vec<Loss>,
    annotations: Vec<Tag>,
    /// Whether tags were noted since the sink has taken it.
    pub is_new: bool,
}

impl RecordingNotes {
    pub fn new(datatype: &'static str, given_hz: Option<f64>) -> Self {
        let mut segments = Vec::with_capacity(RESERVED);
        segments.push(Segment::default());
        Self {
            datatype,
            given_hz,
            hardware: None,
            description: None,
            began: SystemTime::UNIX_EPOCH,
            rate_hz: None,
            ratio: 1.0,
            global: None,
            segments,
            losses: Vec::with_capacity(RESERVED),
            annotations: Vec::with_capacity(RESERVED),
            is_new: false,
        }
    }

    /// Notes a tag. Tags come in the order of their samples, and those of one in any order. Returns
    /// false if there is no room for it.
    pub fn note(&mut self, tag: Tag) -> bool {
        self.is_new = true;
        let at = tag.offset;
        match (tag.key, tag.value) {
            (keys::RX_RATE_HZ, value) => {
                let known = self.rate_hz;
                let rate_hz = value.as_f64().filter(|hz| *hz > 0.0 && hz.is_finite());
                self.rate_hz = known.or(rate_hz);
                if known.is_some() && rate_hz != known {
                    // A recording has one rate.
                    return self.annotate(tag);
                }
                self.segment(at, |segment| segment.is_restart = at > 0)
            }
            (keys::RX_TIME, TagValue::Time(time)) => {
                self.segment(at, |segment| segment.time = Some(time))
            }
            (keys::RX_UTC, TagValue::Time(time)) => {
                self.segment(at, |segment| segment.utc = Some(time))
            }
            (keys::RX_FREQ_HZ, hz) if hz.as_f64().is_some() => {
                self.segment(at, |segment| segment.settings.freq_hz = hz.as_f64())
            }
            (keys::RX_GAIN_DB, db) if db.as_f64().is_some() => {
                self.segment(at, |segment| segment.settings.gain_db = db.as_f64())
            }
            (keys::RX_ANTENNA, TagValue::Text(name)) => {
                self.segment(at, |segment| segment.settings.antenna = Some(name))
            }
            (keys::RX_BANDWIDTH_HZ, hz) if hz.as_f64().is_some() => {
                self.segment(at, |segment| segment.settings.bandwidth_hz = hz.as_f64())
            }
            (keys::CAPTURE, TagValue::Document(document)) => {
                self.segment(at, |segment| segment.document = Some(document))
            }
            (keys::RECORDING, TagValue::Document(document)) => {
                self.global = self.global.or(Some(document));
                true
            }
            (keys::ITEMS_PER_SAMPLE, ratio) => {
                self.ratio = ratio.as_f64().unwrap_or(1.0);
                true
            }
            (keys::LOSS_CAUSE, cause) => {
                self.loss(at, |loss| loss.cause.is_none(), |loss| loss.cause = Some(cause))
            }
            (keys::LOSS_ITEMS, TagValue::Count(items)) => {
                self.loss(at, |loss| loss.items.is_none(), |loss| loss.items = Some(items))
            }
            _ => self.annotate(tag),
        }
    }

    fn annotate(&mut self, tag: Tag) -> bool {
        let has_room = self.annotations.len() < MAX;
        if has_room {
            self.annotations.push(tag);
        }
        has_room
    }

    /// Changes the segment that begins at a sample, which is the last one or a new one.
    fn segment(&mut self, first_sample: u64, change: impl FnOnce(&mut Segment)) -> bool {
        let last = self.segments.last().copied().unwrap_or_default();
        if last.first_sample != first_sample {
            if self.segments.len() == MAX {
                return false;
            }
            self.segments.push(Segment {
                first_sample,
                settings: last.settings,
                ..Segment::default()
            });
        }
        if let Some(segment) = self.segments.last_mut() {
            change(segment);
        }
        true
    }

    /// Changes the first loss at a sample that lacks what a tag says, or a new one.
    fn loss(
        &mut self,
        first_sample: u64,
        lacks: impl Fn(&Loss) -> bool,
        change: impl FnOnce(&mut Loss),
    ) -> bool {
        let here = self.losses.iter().rev().take_while(|loss| loss.first_sample == first_sample);
        let from = self.losses.len() - here.count();
        let at = self.losses[from..].iter().position(lacks).map_or(self.losses.len(), |n| from + n);
        if at == self.losses.len() {
            if at == MAX {
                return false;
            }
            self.losses.push(Loss { first_sample, cause: None, items: None });
        }
        change(&mut self.losses[at]);
        // A gap begins a capture, also where no time is known.
        self.segment(first_sample, |_| ())
    }

    /// Returns samples per second.
    pub fn rate_hz(&self) -> Option<f64> {
        self.rate_hz.or(self.given_hz)
    }

    /// Returns the metadata of the first `samples`.
    pub fn metadata(&self, samples: u64) -> Value {
        let mut annotations = Vec::new();
        let captures = self.captures(samples, &mut annotations);
        annotations.extend(self.annotations.iter().map(|tag| self.annotation(tag)));
        let rates = self.rate_hz.zip(self.given_hz);
        if let Some((tagged, given)) = rates.filter(|(tagged, given)| tagged != given) {
            let comment =
                format!("rate_hz = {given} of the sink was not used: the stream has {tagged}");
            annotations.push(Value::from_iter([
                ("core:sample_start", Value::from(0)),
                ("core:label", "rate_hz".into()),
                ("core:comment", comment.into()),
            ]));
        }
        annotations.sort_by_key(|one| one["core:sample_start"].as_u64());
        Value::from_iter([
            ("global", self.global().into()),
            ("captures", Value::from(captures)),
            ("annotations", annotations.into()),
        ])
    }

    fn global(&self) -> Map<String, Value> {
        let mut global = object(self.global);
        // They describe the other file.
        for key in ["core:dataset", "core:sha512", "core:trailing_bytes", "core:metadata_only"] {
            global.remove(key);
        }
        scale(&mut global, "core:offset", self.ratio);
        let mut set = |key: &str, value: Value| global.insert(key.to_owned(), value);
        set("core:version", "1.0.0".into());
        set("core:datatype", self.datatype.into());
        set("core:recorder", concat!("millstream ", env!("CARGO_PKG_VERSION")).into());
        if let Some(hardware) = &self.hardware {
            set("core:hw", hardware.as_str().into());
        }
        if let Some(description) = &self.description {
            set("core:description", description.as_str().into());
        }
        if let Some(rate_hz) = self.rate_hz() {
            set("core:sample_rate", rate_hz.into());
        }
        let ours = Value::from_iter([
            ("name", Value::from("millstream")),
            ("version", "1.0.0".into()),
            ("optional", true.into()),
        ]);
        let extensions =
            global.entry("core:extensions").or_insert_with(|| Value::Array(Vec::new()));
        let is_new = |list: &&mut Vec<Value>| list.iter().all(|one| one["name"] != "millstream");
        if let Some(list) = extensions.as_array_mut().filter(is_new) {
            list.push(ours);
        }
        global
    }

    /// Returns the captures, and adds an annotation for each gap.
    fn captures(&self, samples: u64, gaps: &mut Vec<Value>) -> Vec<Value> {
        let mut captures: Vec<Value> = Vec::new();
        let mut losses = self.losses.iter().peekable();
        // The capture before with a known index, and what is lost since.
        let mut before: Option<(u64, u64)> = None;
        let mut lost = 0u64;
        for segment in &self.segments {
            let first = segment.first_sample;
            let begin = gaps.len();
            while let Some(loss) = losses.next_if(|loss| loss.first_sample <= first) {
                lost = lost.saturating_add(loss.items.unwrap_or(0));
                gaps.push(self.gap(loss));
            }
            let by_time = segment.time.zip(self.rate_hz()).and_then(|(time, hz)| time.to_ticks(hz));
            let mut index = by_time;
            if let (Some(at), Some((sample, known))) = (by_time, before) {
                let passed = known.saturating_add(first - sample);
                let counted = passed.saturating_add(lost);
                // The ledger counts whole samples, and the clock parts of them.
                if at.abs_diff(counted) <= 1 {
                    index = Some(counted);
                } else if segment.is_restart && at > counted {
                    gaps.push(missing(first, "stopped by the user", at - counted));
                } else if gaps.len() == begin && at > passed {
                    gaps.push(missing(first, "not recorded", at - passed));
                }
            }
            if let Some(index) = index {
                (before, lost) = (Some((first, index)), 0);
            }
            // None begins behind the last sample.
            if first < samples || first == 0 {
                captures.push(self.capture(segment, index));
            }
        }
        gaps.extend(losses.map(|loss| self.gap(loss)));
        captures
    }

    fn capture(&self, segment: &Segment, index: Option<u64>) -> Value {
        let mut capture = object(segment.document);
        let told = capture.get("core:datetime").and_then(Value::as_str).map(str::to_owned);
        capture.remove("core:header_bytes");
        if self.rate_hz().is_some() {
            capture.remove("core:global_index");
        }
        // Without a rate no tag can have the time.
        scale(&mut capture, "core:global_index", self.ratio);
        let mut set = |key: &str, value: Value| capture.insert(key.to_owned(), value);
        set("core:sample_start", segment.first_sample.into());
        if let Some(index) = index {
            set("core:global_index", index.into());
        }
        let Settings { freq_hz, gain_db, antenna, bandwidth_hz } = segment.settings;
        if let Some(hz) = freq_hz {
            set("core:frequency", hz.into());
        }
        if let Some(db) = gain_db {
            set("millstream:gain_db", db.into());
        }
        if let Some(name) = antenna {
            set("millstream:antenna", name.as_str().into());
        }
        if let Some(hz) = bandwidth_hz {
            set("millstream:bandwidth_hz", hz.into());
        }
        // A recording that is copied was not made now.
        let began = (segment.first_sample == 0 && self.global.is_none()).then_some(self.began);
        let time = segment.utc.and_then(|utc| {
            SystemTime::UNIX_EPOCH
                .checked_add(Duration::new(utc.seconds, utc.subsec_nanos()))
                .filter(|_| utc.seconds < 253_402_300_800)
        });
        if let Some(time) = time.or(began) {
            // The text stays as it was, if it still is the time.
            let same = told.and_then(|told| humantime::parse_rfc3339(&told).ok()) == Some(time);
            if !same {
                let precise = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let text = match precise.subsec_nanos() % 1000 {
                    0 => humantime::format_rfc3339_micros(time).to_string(),
                    _ => humantime::format_rfc3339_nanos(time).to_string(),
                };
                set("core:datetime", text.into());
            }
        }
        Value::Object(capture)
    }

    /// Returns the annotation of a gap.
    fn gap(&self, loss: &Loss) -> Value {
        let items = loss.items.unwrap_or(0);
        let label = loss.cause.map_or_else(|| "unknown".to_owned(), |cause| cause.to_string());
        let Value::Object(new) = missing(loss.first_sample, &label, items) else {
            return Value::Null;
        };
        let Some(TagValue::Document(document)) = loss.cause else { return Value::Object(new) };
        // What other programs have written stays; so does the comment, if the count is the same.
        let mut gap = object(Some(document));
        let same = read::missing_in(Fields::from(&gap)) == Ok(Some(items));
        gap.extend(new.into_iter().filter(|(key, _)| !same || key != "core:comment"));
        Value::Object(gap)
    }

    fn annotation(&self, tag: &Tag) -> Value {
        let start = Value::from(tag.offset);
        match (tag.key, tag.value) {
            (keys::ANNOTATION, TagValue::Document(document)) => {
                let mut annotation = object(Some(document));
                scale(&mut annotation, "core:sample_count", self.ratio);
                annotation.insert("core:sample_start".to_owned(), start);
                Value::Object(annotation)
            }
            (keys::ANNOTATION, value) => {
                let label = value.to_string().into();
                Value::from_iter([("core:sample_start", start), ("core:label", label)])
            }
            (key, value) => Value::from_iter([
                ("core:sample_start", start),
                ("core:label", key.name().into()),
                ("core:comment", value.to_string().into()),
            ]),
        }
    }
}

fn missing(first_sample: u64, label: &str, samples: u64) -> Value {
    Value::from_iter([
        ("core:sample_start", Value::from(first_sample)),
        ("core:sample_count", 0.into()),
        ("core:label", label.into()),
        ("core:comment", format!("{samples} samples missing before this one").into()),
        ("millstream:missing_samples", samples.into()),
    ])
}

/// Returns the object of a document.
fn object(document: Option<TagDocument>) -> Map<String, Value> {
    let json = document.and_then(|document| serde_json::from_str(document.json()).ok());
    match json {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// Multiplies a number of samples, to the nearest.
fn scale(object: &mut Map<String, Value>, key: &str, ratio: f64) {
    let count = object.get(key).and_then(Value::as_f64);
    if let Some(count) = count.filter(|_| ratio != 1.0) {
        object.insert(key.to_owned(), ((count * ratio).round() as u64).into());
    }
}
