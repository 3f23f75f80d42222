//! The server's side of a stream: asks for samples when a client is due, and makes lines of them.

use crate::behind::Delays;
use crate::board::Board;
use crate::documents::{Event, LatencyStatus, StreamInfo, StreamKind};
use crate::frame::{FLAG_GAP, FLAG_TICKS, FrameHeader, encode_values};
use crate::message::{ValueFormat, Wish};
use crate::shot::{SampleSource, Samples};
use millstream_dsp::levels::Levels;
use millstream_flow::{TagTime, TagValue, keys};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first and the longest pause between two looks for an answer.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));
/// Losses that are remembered for the flags of lines.
const LOSSES_KEPT: usize = 1024;

/// A stream with its end at the block.
pub(crate) struct StreamFeed {
    pub info: StreamInfo,
    source: Box<dyn SampleSource>,
    behind: Arc<Delays>,
    samples: Samples,
    asked: Option<OpenQuestion>,
    levels: HashMap<usize, Levels>,
    /// Lines of the present samples, by bins, transforms and format.
    lines: Vec<(LineKey, Arc<Vec<u8>>)>,
    losses: VecDeque<u64>,
    /// A gap whose tags are coming, and the last known time.
    gap: Option<Event>,
    time: Option<(u64, TagTime)>,
    /// The share of the last line.
    pub share: f32,
}

/// Bins, transforms and format of a line.
type LineKey = (usize, usize, ValueFormat);

/// A question to the stream.
struct OpenQuestion {
    look_at: Instant,
    pause: Duration,
}

impl StreamFeed {
    pub fn new(info: StreamInfo, source: Box<dyn SampleSource>, behind: Arc<Delays>) -> Self {
        Self {
            info,
            source,
            behind,
            samples: Samples::default(),
            asked: None,
            levels: HashMap::new(),
            lines: Vec::new(),
            losses: VecDeque::new(),
            gap: None,
            time: None,
            share: 0.0,
        }
    }

    /// Asks the stream for `items` items, if no question is open.
    pub fn ask(&mut self, items: usize, now: Instant) {
        if self.asked.is_none() && self.source.ask(items) {
            let rate = self.info.rate_hz.filter(|rate| *rate > 0.0);
            let takes = rate.map_or(0.0, |rate| (items as f64 / rate).min(60.0));
            let look_at = now + Duration::from_secs_f64(takes) + LOOK.0;
            self.asked = Some(OpenQuestion { look_at, pause: LOOK.0 });
        }
    }

    /// When to look for an answer, if a question is open.
    pub fn look_at(&self) -> Option<Instant> {
        self.asked.as_ref().map(|asked| asked.look_at)
    }

    /// Looks for the answer; true if new samples are there.
    pub fn look(&mut self, now: Instant) -> bool {
        let Some(asked) = &mut self.asked else { return false };
        if now < asked.look_at {
            return false;
        }
        if self.source.answer(&mut self.samples) {
            self.asked = None;
            self.lines.clear();
            return true;
        }
        asked.pause = (asked.pause * 2).min(LOOK.1);
        asked.look_at = now + asked.pause;
        false
    }

    /// Returns the header and the values of a line of the present samples for a subscription whose
    /// last line ended at item `last_end`; `None` if there are too few samples.
    pub fn line(
        &mut self,
        wish: &Wish,
        last_end: Option<u64>,
    ) -> Option<(FrameHeader, Arc<Vec<u8>>)> {
        let items = wish.items();
        if self.samples.values.len() < items {
            return None;
        }
        let values = self.values(wish);
        let first = self.samples.first;
        let passed = last_end.map(|last| (first + items as u64).saturating_sub(last));
        let by_rate = self.info.rate_hz.map(|rate| (rate / wish.lines_per_s) as u64);
        let passed = passed.or(by_rate).unwrap_or(0).max(items as u64);
        let share = items as f32 / passed as f32;
        self.share = share;
        let gap = last_end
            .is_some_and(|last| self.losses.iter().any(|loss| (last..=first).contains(loss)));
        let ticks = self.ticks();
        let flags = if gap { FLAG_GAP } else { 0 } | ticks.map_or(0, |_| FLAG_TICKS);
        let is_line = self.info.kind == StreamKind::Spectrum;
        let components = if self.info.item == "f32" { 1 } else { 2 };
        let header = FrameHeader {
            kind: if is_line { 1 } else { 2 },
            flags,
            stream: self.info.stream,
            average: if is_line { wish.average as u16 } else { components },
            seq: 0,
            bins: wish.bins as u32,
            ticks: ticks.unwrap_or(0),
            item: first,
            centre_hz: self.samples.centre_hz.or(self.info.centre_hz).unwrap_or(0.0),
            span_hz: self.info.rate_hz.unwrap_or(1.0),
            share,
            dropped: 0,
            unix_s: self.samples.unix_s,
        };
        Some((header, values))
    }

    fn values(&mut self, wish: &Wish) -> Arc<Vec<u8>> {
        let key = (wish.bins, wish.average, wish.format);
        if let Some((_, values)) = self.lines.iter().find(|line| line.0 == key) {
            return Arc::clone(values);
        }
        let mut values = Vec::with_capacity(wish.bins * 2);
        match self.info.kind {
            StreamKind::Spectrum => {
                let levels = self.levels.entry(wish.bins).or_insert_with(|| Levels::new(wish.bins));
                let spectra = self.samples.values.chunks_exact(wish.bins).take(wish.average);
                spectra.for_each(|samples| levels.add(samples));
                levels.take(&mut values);
            }
            StreamKind::Symbols => {
                let points = &self.samples.values[..wish.bins];
                match self.info.item {
                    "f32" => values.extend(points.iter().map(|point| point.re)),
                    _ => values.extend(points.iter().flat_map(|point| [point.re, point.im])),
                }
            }
        }
        let values = Arc::new(encode_values(wish.format, &values));
        self.lines.push((key, Arc::clone(&values)));
        values
    }

    /// The device's time of the first of the present samples.
    fn ticks(&self) -> Option<u64> {
        let ((item, time), ticks_hz) = (self.samples.anchor?, self.info.ticks_hz?);
        let ahead = (self.samples.first - item) as f64 * ticks_hz / self.info.rate_hz?;
        Some(time.to_ticks(ticks_hz)?.wrapping_add(ahead.round() as u64))
    }

    /// Takes the tags of the stream and publishes their events.
    pub fn take_tags(&mut self, board: &Board) {
        let mut is_quiet = true;
        while let Some(tag) = self.source.tag() {
            is_quiet = false;
            match (tag.key, tag.value) {
                (keys::LOSS_CAUSE, value) => {
                    let Some(cause) = value.as_text() else { continue };
                    if !self.is_gap_at(tag.offset) {
                        self.end_gap(board);
                        self.remember(tag.offset);
                    }
                    let name = self.info.name.clone();
                    let (stream, item) = (Some(self.info.stream), Some(tag.offset));
                    let gap = self.gap.get_or_insert_with(|| Event {
                        kind: "gap",
                        name,
                        stream,
                        item,
                        ..Event::default()
                    });
                    gap.lost.entry(cause.to_owned()).or_insert(0);
                    // The number follows in a tag of its own.
                    cause.clone_into(&mut gap.text);
                }
                (keys::LOSS_ITEMS, TagValue::Count(items)) => {
                    if let Some(gap) = &mut self.gap {
                        *gap.lost.entry(gap.text.clone()).or_insert(0) += items;
                    }
                }
                (keys::RX_TIME, TagValue::Time(time)) => self.time = Some((tag.offset, time)),
                (keys::RX_RATE_HZ, rate_hz) => {
                    self.remember(tag.offset);
                    self.set_rate(rate_hz.as_f64(), board);
                }
                (keys::RX_FREQ_HZ, hz) => self.set_centre(hz.as_f64(), board),
                (keys::CLOCK_SPEED, speed) => {
                    let text = format!(
                        "the radio's clock runs {speed} times as fast as this machine's: delays \
                         are not shown"
                    );
                    board.note("note", &self.info.name, text);
                }
                (keys::ANNOTATION, value) => {
                    let Some(text) = value.as_text() else { continue };
                    let (stream, item) = (Some(self.info.stream), Some(tag.offset));
                    let (name, text) = (self.info.name.clone(), text.to_owned());
                    let kind = "annotation";
                    board.event(Event { kind, name, stream, item, text, ..Event::default() });
                }
                _ => (),
            }
        }
        if is_quiet {
            // All its tags are there.
            self.end_gap(board);
        }
    }

    /// Tells clients of another rate.
    fn set_rate(&mut self, rate_hz: Option<f64>, board: &Board) {
        if rate_hz == self.info.rate_hz || rate_hz.is_none_or(|rate_hz| rate_hz <= 0.0) {
            return;
        }
        self.info.rate_hz = rate_hz;
        let place = usize::from(self.info.stream);
        board.change(|hello| {
            if let Some(stream) = hello.streams.get_mut(place) {
                stream.rate_hz = rate_hz;
            }
        });
    }

    /// Tells clients of another frequency.
    fn set_centre(&mut self, centre_hz: Option<f64>, board: &Board) {
        if centre_hz == self.info.centre_hz || centre_hz.is_none() {
            return;
        }
        self.info.centre_hz = centre_hz;
        let place = usize::from(self.info.stream);
        board.change(|hello| {
            if let Some(stream) = hello.streams.get_mut(place) {
                stream.centre_hz = centre_hz;
            }
        });
    }

    fn is_gap_at(&self, item: u64) -> bool {
        self.gap.as_ref().is_some_and(|gap| gap.item == Some(item))
    }

    fn end_gap(&mut self, board: &Board) {
        let Some(mut gap) = self.gap.take() else { return };
        let items = gap.lost.values().sum();
        gap.items = Some(items);
        let causes: Vec<_> = gap.lost.iter().map(|(cause, n)| format!("{cause} {n}")).collect();
        gap.text = format!("{items} items lost: {}", causes.join(", "));
        let time = self.time.filter(|(item, _)| Some(*item) == gap.item);
        gap.ticks = time.zip(self.info.ticks_hz).and_then(|((_, time), hz)| time.to_ticks(hz));
        board.event(gap);
    }

    fn remember(&mut self, item: u64) {
        if self.losses.len() == LOSSES_KEPT {
            self.losses.pop_front();
        }
        self.losses.push_back(item);
    }

    /// The delays of this stream, if its times are known.
    pub fn latency(&self) -> Option<LatencyStatus> {
        let about = "how far the host is behind the radio, beyond the fastest samples of the last \
                     20 s";
        let named = ("behind", &*self.info.name, about);
        (self.behind.count() > 0).then(|| LatencyStatus::of(named, &self.behind))
    }
}
