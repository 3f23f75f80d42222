//! The equaliser.
//!
//! The field sync gives an estimate of the channel's impulse response. Without relevant echoes a
//! short transversal filter is designed from it, whose cost is small. With echoes a longer filter
//! removes precursors and decision feedback removes postcursors. Both then follow the channel by
//! the least-mean-square rule, a segment at a time. They are designed anew only when a field sync
//! shows that they no longer fit.

mod applied_taps;
mod channel;
mod design;
mod errors;
mod feedback;
mod forward;
mod quick_trellis;
mod turns;

use crate::field::{KNOWN_SYMBOLS, PRECODE_SYMBOLS, Parity, SEGMENT_SYNC, field_sync};
use crate::monitor::Monitor;
use crate::params::{DATA_POWER, SEGMENT_SYMBOLS, SYNC_LEVEL, SYNC_SYMBOLS};
use crate::segment::{Segment, SegmentHeader, SegmentKind};
use channel::NEAR;
pub use channel::{EARLY, Estimator, ImpulseResponse, LATE};
use design::{Designer, FEEDBACK, feedback_taps};
use errors::{ErrorWindow, differences, mean_square};
use feedback::Feedback;
use forward::{Errors, ForwardFilter};
use millstream_dsp::chunks::Chunks;

/// The start of the only group of forward taps if there are no echoes.
const STRAIGHT: isize = -(NEAR as isize);

/// Field syncs that the estimate of an echo-free channel averages, and the largest change, as a
/// share of its power, up to which it averages.
pub(super) const MEMORY: u32 = 4;
const CHANGED: f64 = 0.1;

/// Echoes matter if their mean square exceeds this share of the noise, or this value.
const ECHO_OVER_NOISE: f64 = 0.03;
const LEAST_ECHO: f64 = 0.02;

/// The factor by which feedback must reduce the error, where the error is above this mean square.
const FEEDBACK_GAIN: f64 = 1.06;
const SMALL_ERROR: f64 = 0.05;

/// Assumed share of the power of earlier symbols that wrong decisions leave.
const DOUBT: f64 = 0.02;

/// Step of the least-mean-square rule: the share of the error that a segment removes.
const STEP: f32 = 0.1;

/// Segments without adaptation after the taps have converged and the slopes of the error are at
/// most those of noise times this factor: the channel has not changed by more than a tenth of the
/// error.
const REST: u32 = 7;
const MOVING: f64 = 1.25;

/// Ratio of the error on known symbols to that on decided ones from which decisions count as wrong.
const LOST: f64 = 1.4;

/// Weight of a segment in the error powers.
const ERROR_WEIGHT: f64 = 1.0 / 256.0;
const DECIDED_WEIGHT: f64 = 1.0 / 32.0;
const SYNC_WEIGHT: f64 = 1.0 / 16.0;

/// Equalises segments, one segment late.
#[derive(Clone, Debug)]
pub struct Equalizer {
    forward: ForwardFilter,
    /// A filter on trial.
    trial: ForwardFilter,
    /// Whether there is feedback.
    has_feedback: bool,
    feedback: Box<Feedback>,
    /// Symbols: `EARLY` before the current segment, that segment, then the one just taken.
    symbols: Vec<f32>,
    /// The header of the current segment.
    current: Option<SegmentHeader>,
    estimator: Estimator,
    designer: Designer,
    /// The channel as of the last field sync, and its average.
    fresh: ImpulseResponse,
    channel: ImpulseResponse,
    fields: u32,
    error_power: f64,
    /// Recent mean square error of decided symbols, and of segment syncs.
    decided_error: f64,
    sync_error: f64,
    /// Remaining segments without adaptation.
    rest: u32,
    window: ErrorWindow,
    /// Whether symbols before the current segment have been decided.
    has_history: bool,
    /// Whether a field sync was used for training since the last report.
    has_news: bool,
}

impl Equalizer {
    /// Creates an equaliser that passes symbols unchanged until its first field sync.
    #[must_use]
    pub fn new() -> Self {
        Self {
            forward: ForwardFilter::straight(STRAIGHT),
            trial: ForwardFilter::straight(STRAIGHT),
            has_feedback: false,
            feedback: Box::new(Feedback::new()),
            symbols: vec![0.0; EARLY],
            current: None,
            estimator: Estimator::new(),
            designer: Designer::new(),
            fresh: ImpulseResponse::new(),
            channel: ImpulseResponse::new(),
            fields: 0,
            error_power: f64::NAN,
            decided_error: f64::NAN,
            sync_error: f64::NAN,
            rest: 0,
            window: ErrorWindow::default(),
            has_history: false,
            has_news: false,
        }
    }

    /// Reports to a monitor: the errors, and after a field sync the channel and the taps.
    pub fn report(&mut self, monitor: &Monitor) {
        if self.error_power.is_finite() {
            monitor.set_symbol_error_power(self.error_power);
        }
        if std::mem::take(&mut self.has_news) {
            monitor.set_snr(self.fresh.snr());
            let feedback = self.feedback.taps.iter().enumerate();
            let feedback = feedback.map(|(i, tap)| (FEEDBACK - i, *tap));
            let used = if self.has_feedback { FEEDBACK } else { 0 };
            monitor.taps.write(self.forward.taps(), feedback.take(used));
        }
    }

    /// Writes the last segment at the end of a stream, equalised as if silence followed; returns
    /// false if there is no segment.
    pub fn finish(&mut self, out: &mut Segment) -> bool {
        let Some(header) = self.current.take() else { return false };
        self.symbols.resize(EARLY + 2 * SEGMENT_SYMBOLS, 0.0);
        self.feedback.next_segment();
        out.set_header(header);
        self.equalize(out);
        true
    }

    /// Takes a segment; writes the previous one, equalised; returns false if there is no previous
    /// one.
    pub fn process(&mut self, segment: &Segment, out: &mut Segment) -> bool {
        if segment.restart() {
            self.current = None;
            self.symbols.clear();
            self.symbols.resize(EARLY, 0.0);
            self.fields = 0;
            self.has_feedback = false;
            self.has_history = false;
            self.feedback.restart();
        }
        self.symbols.extend_from_slice(&segment.symbols);
        let Some(header) = self.current.replace(segment.header()) else { return false };
        out.set_header(header);
        if self.has_feedback {
            self.feedback.next_segment();
        }
        // A presumed field sync, with which the lock bridges a missed one, is not used for
        // training.
        if let SegmentKind::FieldSync(parity) = header.kind() {
            if !header.presumed() {
                self.train(parity);
                self.has_news = true;
            }
        }
        self.equalize(out);
        self.symbols.drain(..SEGMENT_SYMBOLS);
        self.measure(out);
        true
    }

    fn equalize(&mut self, segment: &mut Segment) {
        let (kind, held) = (segment.kind(), segment.held());
        let symbols = &mut segment.symbols;
        self.forward.filter(&self.symbols, symbols);
        if !self.has_feedback {
            return;
        }
        match kind {
            SegmentKind::Data(_) => self.feedback.data(symbols),
            SegmentKind::FieldSync(parity) => self.feedback_on_sync(parity, symbols),
        }
        // Echoes of unknown symbols before the first segment would look like errors.
        if !held && self.has_history {
            self.adapt(symbols);
        }
        self.has_history = true;
    }

    /// Applies feedback to a field sync, which ends with symbols of two levels and the last ones of
    /// the previous segment.
    fn feedback_on_sync(&mut self, parity: Parity, symbols: &mut [f32; SEGMENT_SYMBOLS]) {
        let known = field_sync(parity);
        let before: [i16; PRECODE_SYMBOLS] =
            *self.feedback.before().last_chunk().expect("a longer row");
        let precode = SEGMENT_SYMBOLS - PRECODE_SYMBOLS;
        let trusted = self.has_history && self.trusts_decisions();
        self.feedback.known(symbols, &known[..KNOWN_SYMBOLS]);
        self.feedback.one_by_one(symbols, KNOWN_SYMBOLS, |n, y| match n {
            n if n < precode => SYNC_LEVEL.copysign(y),
            n => {
                if trusted {
                    f32::from(before[n - precode])
                } else {
                    nearest_level(y)
                }
            }
        });
    }

    /// Performs one step of the least-mean-square rule.
    fn adapt(&mut self, symbols: &[f32; SEGMENT_SYMBOLS]) {
        let mut errors = [0.0; SEGMENT_SYMBOLS];
        let power = f64::from(differences(symbols, self.feedback.decided(), &mut errors));
        self.window.take(power);
        self.decided_error += DECIDED_WEIGHT * (power - self.decided_error);
        let sync = errors[..SYNC_SYMBOLS].iter().map(|e| f64::from(e * e)).sum::<f64>();
        self.sync_error += SYNC_WEIGHT * (sync / SYNC_SYMBOLS as f64 - self.sync_error);
        if !self.trusts_decisions() {
            return;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let step = STEP / (DATA_POWER * SEGMENT_SYMBOLS as f32);
        let errors = Errors::new(errors.in_chunks().0.try_into().expect("whole pairs"));
        let forward = self.forward.adapt(&errors, step);
        let feedback = self.feedback.adapt(&errors, step);
        // If no part of the error belongs to a tap, its slope has the mean square of a sum of
        // independent products.
        let received = mean_square(&self.symbols[EARLY..EARLY + SEGMENT_SYMBOLS]);
        let slopes = forward.power / received + feedback.power / DATA_POWER;
        let by_noise = power * ((forward.taps + feedback.taps) * SEGMENT_SYMBOLS) as f64;
        let moving = f64::from(slopes) > MOVING * by_noise;
        self.rest = if moving || !self.window.is_settled() { 0 } else { REST };
    }

    /// Returns whether decisions are reliable. Wrong decisions hide errors, except those of the
    /// segment syncs, which are known.
    fn trusts_decisions(&self) -> bool {
        self.sync_error < (LOST * self.decided_error).max(SMALL_ERROR)
    }

    /// Trains on the current field sync.
    fn train(&mut self, parity: Parity) {
        if self.has_feedback && !self.is_lost(parity) {
            return;
        }
        let received = &self.symbols[EARLY..EARLY + SEGMENT_SYMBOLS];
        if !self.estimator.near(received, parity, &mut self.fresh) {
            return;
        }
        self.estimator.far(received, parity, &mut self.fresh);
        let least = (ECHO_OVER_NOISE * self.fresh.noise_power).max(LEAST_ECHO);
        if self.fresh.far_power() * f64::from(DATA_POWER) < least {
            if self.channel.change_to(&self.fresh) > CHANGED {
                self.fields = 0;
            }
            self.fields = (self.fields + 1).min(MEMORY);
            self.channel.follow(&self.fresh, 1.0 / self.fields as f32);
            self.fresh.follow(&self.channel, 1.0);
            self.fresh.drop_noise(self.fields);
            let Self { designer, fresh: channel, trial, .. } = self;
            let with = designer.short(channel, STRAIGHT, 0.0, trial);
            let without = designer.short(channel, STRAIGHT, 1.0, trial);
            if without < (FEEDBACK_GAIN * with).max(SMALL_ERROR) {
                std::mem::swap(&mut self.forward, &mut self.trial);
                self.has_feedback = false;
                return;
            }
        }
        self.fields = 0;
        self.begin_feedback();
    }

    /// Returns whether the taps no longer fit the channel, or are no longer needed.
    fn is_lost(&mut self, parity: Parity) -> bool {
        let mut symbols = [0.0; SEGMENT_SYMBOLS];
        self.forward.filter(&self.symbols, &mut symbols);
        let known = &field_sync(parity)[..KNOWN_SYMBOLS];
        self.feedback.known(&mut symbols, known);
        let errors = symbols.iter().zip(known);
        let power = errors.map(|(y, s)| f64::from((y - s) * (y - s))).sum::<f64>();
        power / KNOWN_SYMBOLS as f64 > (LOST * self.decided_error).max(SMALL_ERROR)
            || self.feedback.power() * f64::from(DATA_POWER) < LEAST_ECHO
    }

    fn begin_feedback(&mut self) {
        let error = self.designer.long(&self.fresh, DOUBT, &mut self.forward);
        if !error.is_finite() {
            return;
        }
        feedback_taps(&self.fresh, &self.forward, &mut self.feedback.taps);
        self.feedback.prune((0.002 * self.fresh.noise_power) as f32);
        if !std::mem::replace(&mut self.has_feedback, true) {
            self.feedback.restart();
        }
        (self.decided_error, self.sync_error) = (error, error);
        (self.rest, self.window) = (0, ErrorWindow::default());
        self.has_history = false;
    }

    fn measure(&mut self, segment: &Segment) {
        let errors = segment.symbols.iter().zip(SEGMENT_SYNC).map(|(y, s)| f64::from(y - s));
        let power = errors.map(|e| e * e).sum::<f64>() / SYNC_SYMBOLS as f64;
        if self.error_power.is_nan() {
            self.error_power = power;
        }
        self.error_power += ERROR_WEIGHT * (power - self.error_power);
    }
}

/// Returns the nearest of the eight levels.
fn nearest_level(y: f32) -> f32 {
    ((y + 7.0) / 2.0).round().clamp(0.0, 7.0) * 2.0 - 7.0
}

impl Default for Equalizer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
