//! The receiver's view of a recording: spectrum, echoes, levels, taps, and its state over time.

use anyhow::Context;
use millstream_atsc::Sample;
use millstream_atsc::field::Parity;
use millstream_atsc::monitor::{LockState, Monitor, ReceiverStatus, StateChange};
use millstream_atsc::params::{SEGMENT_SYMBOLS, SYMBOL_RATE_HZ};
use millstream_atsc::rx::equalizer::{EARLY, Equalizer, Estimator, ImpulseResponse, LATE};
use millstream_atsc::rx::outer::{BlockDeinterleaver, correct, packet};
use millstream_atsc::rx::trellis_decoder::TrellisDecoder;
use millstream_atsc::rx::{FrontEnd, RxConfig};
use millstream_atsc::segment::{Segment, SegmentKind};
use millstream_blocks::power_spectrum::PowerSpectrum;
use millstream_blocks::sigmf::{Capture, SigmfRecording};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::window::Window;
use millstream_flow::blocks::SampleFormat;
use millstream_flow::{Process, SC16_SCALE};
use serde::Serialize;
use std::f64::consts::FRAC_2_PI;
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// Samples of a spectrum, and spectra averaged for one row; the rows are averaged, too.
const BINS: usize = 1024;
const AVERAGE: u32 = 64;

/// Samples read at once.
const BLOCK: usize = 16_384;

/// Cells of the picture of levels over time: columns over the whole recording, and rows from the
/// lowest to the highest level.
pub const COLUMNS: usize = 240;
/// See [`COLUMNS`].
pub const ROWS: usize = 160;
/// Levels from -`SPAN` to `SPAN`.
pub const SPAN: f32 = 10.0;

/// The lowest level of a reported echo.
const LEAST_ECHO_DB: f64 = -100.0;

/// The receiver's view of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct ReceptionReport {
    /// Length.
    pub seconds: f64,
    /// The receiver's status at the end.
    pub status: ReceiverStatus,
    /// Its changes of state.
    pub events: Vec<StateChange>,
    /// Frequency in Hz and power of a bin in dB of full scale.
    pub spectrum: Vec<(f64, f64)>,
    /// Delay in µs and level in dB of the strongest, before equalising; the least-squares estimate
    /// at the field syncs, its power averaged. Far echoes that do not stand out count as -100 dB.
    pub echoes: Vec<(f64, f64)>,
    /// Counts of equalised symbols: a row for each level from below, a column for each stretch of
    /// time.
    #[serde(skip)]
    pub levels: Vec<Vec<u32>>,
    /// Counts of equalised data symbols by level, in the last half of the recording.
    pub histogram: Vec<u32>,
    /// Taps by their position in symbols: of the filter, and of decision feedback.
    pub taps: [Vec<(f64, f64)>; 2],
    /// Time in s, modulation error ratio in dB, bytes corrected and packets lost since the point
    /// before.
    pub course: Vec<ReceptionMoment>,
}

/// The reception at one time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReceptionMoment {
    /// Time after the start.
    pub time_s: f64,
    /// Modulation error ratio; `None` without lock.
    pub mer_db: Option<f64>,
    /// Bytes corrected since the moment before.
    pub corrected_bytes: u64,
    /// Packets marked as damaged since the moment before.
    pub bad_packets: u64,
}

impl ReceptionReport {
    /// Receives the first `samples` of a recording. Reports to the receiver the missing samples
    /// that the metadata names.
    pub fn of(recording: &SigmfRecording, rate_hz: f64) -> anyhow::Result<Self> {
        let SigmfRecording { data: path, format, samples, .. } = recording;
        let file = || format!("cannot use the file {}", path.display());
        let source = File::open(path).with_context(file)?;
        let mut scope = Scope::new(rate_hz, *samples)?;
        let mut gaps = gaps(recording).into_iter().peekable();
        let source = source.take(samples.saturating_mul(format.sample_bytes() as u64));
        let mut source = BufReader::with_capacity(BLOCK * 8, source);
        let (mut bytes, mut block) = (Vec::new(), Vec::with_capacity(BLOCK));
        loop {
            if let Some((_, missing)) = gaps.next_if(|(at, _)| *at == scope.taken) {
                scope.miss(missing);
            }
            let until_gap = gaps.peek().map_or(u64::MAX, |(at, _)| at - scope.taken);
            bytes.clear();
            let limit = until_gap.min(BLOCK as u64) * format.sample_bytes() as u64;
            source.by_ref().take(limit).read_to_end(&mut bytes).with_context(file)?;
            if bytes.len() < format.sample_bytes() {
                return Ok(scope.finish());
            }
            block.clear();
            match format {
                SampleFormat::Sc16 => block.extend(bytes.in_chunks::<4>().0.iter().map(sc16)),
                _ => block.extend(bytes.in_chunks::<8>().0.iter().map(cf32)),
            }
            scope.take(&block);
        }
    }
}

/// Positions in the file before which samples are missing, and their number.
fn gaps(recording: &SigmfRecording) -> Vec<(u64, u64)> {
    let pairs = recording.captures.windows(2);
    let gap = |pair: &[Capture]| {
        let [before, after] = [pair[0], pair[1]];
        let missing = after.missing_since(&before)?;
        (after.first_sample > 0).then_some((after.first_sample, missing))
    };
    pairs.filter_map(gap).collect()
}

fn sc16([a, b, c, d]: &[u8; 4]) -> Sample {
    let part = |bytes| f32::from(i16::from_le_bytes(bytes)) * SC16_SCALE;
    Sample::new(part([*a, *b]), part([*c, *d]))
}

fn cf32(bytes: &[u8; 8]) -> Sample {
    let part = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    Sample::new(part(0), part(4))
}

/// The receiver with its probes.
struct Scope {
    rate_hz: f64,
    samples: u64,
    taken: u64,
    monitor: Arc<Monitor>,
    front_end: FrontEnd,
    view: View,
    spectrum: PowerSpectrum,
    rows: Vec<f32>,
    sums: Vec<f64>,
    spectra: u32,
    course: Vec<ReceptionMoment>,
    last: [u64; 2],
}

/// All stages behind the front end.
struct View {
    equalizer: Equalizer,
    equalized: Segment,
    trellis: TrellisDecoder,
    deinterleaver: BlockDeinterleaver,
    levels: Vec<Vec<u32>>,
    histogram: Vec<u32>,
    column: usize,
    /// The sum of the powers of the impulse responses found, by lag.
    echoes: Vec<f64>,
    estimator: Estimator,
    channel: ImpulseResponse,
}

impl Scope {
    fn new(rate_hz: f64, samples: u64) -> anyhow::Result<Self> {
        let monitor = Arc::new(Monitor::new());
        let window = Window::BlackmanHarris.periodic(BINS);
        let window = window.iter().map(|w| *w as f32).collect();
        Ok(Self {
            rate_hz,
            samples,
            taken: 0,
            front_end: FrontEnd::new(RxConfig { sample_rate_hz: rate_hz }, monitor.clone())?,
            monitor,
            view: View {
                equalizer: Equalizer::new(),
                equalized: Segment::new(SegmentKind::Data(0), false, &[0.0; SEGMENT_SYMBOLS]),
                trellis: TrellisDecoder::new(),
                deinterleaver: BlockDeinterleaver::new(),
                levels: vec![vec![0; COLUMNS]; ROWS],
                histogram: vec![0; ROWS],
                column: 0,
                echoes: vec![0.0; EARLY + LATE],
                estimator: Estimator::new(),
                channel: ImpulseResponse::new(),
            },
            spectrum: PowerSpectrum::new(window, AVERAGE),
            rows: vec![0.0; BINS],
            sums: vec![0.0; BINS],
            spectra: 0,
            course: Vec::new(),
            last: [0; 2],
        })
    }

    fn take(&mut self, samples: &[Sample]) {
        for frames in samples.chunks_exact(BINS) {
            if self.spectrum.process(frames, &mut self.rows).1 > 0 {
                let power = |db: &f32| 10f64.powf(f64::from(*db) / 10.0);
                self.sums.iter_mut().zip(&self.rows).for_each(|(sum, db)| *sum += power(db));
                self.spectra += 1;
            }
        }
        let Self { front_end, view, monitor, .. } = self;
        view.column = (self.taken * COLUMNS as u64 / self.samples) as usize;
        front_end.process(samples, &mut |segment| view.see(segment, monitor));
        self.taken += samples.len() as u64;
        let status = self.monitor.status();
        let now = [status.corrected_bytes, status.uncorrected_packets];
        let [corrected_bytes, bad_packets] = [now[0] - self.last[0], now[1] - self.last[1]];
        let locked = status.state == LockState::Locked;
        let mer_db = status.mer_db.filter(|_| locked);
        let time_s = self.taken as f64 / self.rate_hz;
        self.course.push(ReceptionMoment { time_s, mer_db, corrected_bytes, bad_packets });
        self.last = now;
    }

    fn miss(&mut self, samples: u64) {
        let Self { front_end, view, monitor, .. } = self;
        front_end.gap(samples, &mut |segment| view.see(segment, monitor));
    }

    fn finish(self) -> ReceptionReport {
        let db = |power: f64| 10.0 * power.max(1e-20).log10();
        let spectra = f64::from(self.spectra.max(1));
        let hz = |bin: usize| (bin as f64 - (BINS / 2) as f64) * self.rate_hz / BINS as f64;
        let spectrum = self.sums.iter().enumerate().map(|(bin, sum)| (hz(bin), db(sum / spectra)));
        let View { levels, histogram, echoes, .. } = self.view;
        let most = echoes.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let delay_us = |lag: usize| (lag as f64 - EARLY as f64) / SYMBOL_RATE_HZ * 1e6;
        let level = |power: f64| db(power / most).max(LEAST_ECHO_DB);
        let echoes = echoes.iter().enumerate().map(|(lag, x)| (delay_us(lag), level(*x)));
        ReceptionReport {
            seconds: self.taken as f64 / self.rate_hz,
            status: self.monitor.status(),
            events: self.monitor.events_since(0),
            spectrum: spectrum.collect(),
            echoes: echoes.collect(),
            levels,
            histogram,
            taps: taps(&self.monitor),
            course: self.course,
        }
    }
}

/// Adds the powers of a response: the responses of an echo that moves (Doppler) cancel each other.
fn add_powers(sums: &mut [f64], response: &[f64]) {
    sums.iter_mut().zip(powers(response)).for_each(|(sum, power)| *sum += power);
}

/// Powers by lag of a response that was measured on the real parts of a single sideband.
///
/// In the real part, that sideband makes every echo ring as 1 over every odd number of symbols, by
/// as much as its phase is off. The analytic signal of the response has the whole echo in any
/// phase; a raised cosine over the band leaves a peak of about three symbols to either side and
/// almost nothing beyond.
fn powers(response: &[f64]) -> Vec<f64> {
    let quadrature = |n: usize| -> f64 {
        let odd = (n + 1) % 2;
        let places = response.iter().enumerate().skip(odd).step_by(2);
        places.map(|(k, x)| x / (n as f64 - k as f64)).sum::<f64>() * FRAC_2_PI
    };
    let turned: Vec<f64> = (0..response.len()).map(quadrature).collect();
    let at = |row: &[f64], lag: usize| row.get(lag).copied().unwrap_or(0.0);
    let narrowed = |row: &[f64], lag: usize| {
        let before = lag.checked_sub(2).map_or(0.0, |lag| at(row, lag));
        0.5 * at(row, lag) - 0.25 * (before + at(row, lag + 2))
    };
    let power = |lag| narrowed(response, lag).powi(2) + narrowed(&turned, lag).powi(2);
    (0..response.len()).map(power).collect()
}

/// The non-zero taps by their position in symbols; echoes that feedback removes come later.
fn taps(monitor: &Monitor) -> [Vec<(f64, f64)>; 2] {
    let taps = monitor.equalizer_taps();
    let row = |first: i32, taps: &[f32]| -> Vec<(f64, f64)> {
        let places = (first..).map(f64::from);
        let taps = places.zip(taps).filter(|(_, tap)| **tap != 0.0);
        taps.map(|(place, tap)| (place, f64::from(*tap))).collect()
    };
    [row(taps.first_forward, &taps.forward), row(1, &taps.feedback)]
}

impl View {
    fn see(&mut self, segment: &Segment, monitor: &Monitor) {
        if let SegmentKind::FieldSync(parity) = segment.kind() {
            if !segment.held() {
                self.find_echoes(segment, parity);
            }
        }
        let Self { equalizer, equalized, .. } = self;
        if !equalizer.process(segment, equalized) {
            return;
        }
        self.equalizer.report(monitor);
        let is_late = self.column >= COLUMNS / 2;
        for symbol in self.equalized.symbols {
            let row = ((symbol + SPAN) / (2.0 * SPAN) * ROWS as f32) as i32;
            if let Some(cells) = self.levels.get_mut(row.max(0) as usize) {
                cells[self.column.min(COLUMNS - 1)] += 1;
                if is_late {
                    self.histogram[row.max(0) as usize] += 1;
                }
            }
        }
        let Self { equalized, trellis, deinterleaver, .. } = self;
        trellis.process(equalized, &mut |block| {
            if let Some(mut codeword) = deinterleaver.process(block) {
                correct(&mut codeword, monitor);
                let _ = packet(&codeword, monitor);
            }
        });
    }

    fn find_echoes(&mut self, segment: &Segment, parity: Parity) {
        let Self { estimator, channel, echoes, .. } = self;
        if estimator.near(&segment.symbols, parity, channel)
            && estimator.far(&segment.symbols, parity, channel)
        {
            let taps: Vec<f64> = channel.taps().iter().map(|tap| f64::from(*tap)).collect();
            add_powers(echoes, &taps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    /// What the real part of a single sideband shows of an echo of this phase at lag 300.
    fn ringing(phase: f64) -> Vec<f64> {
        let at = |lag: usize| match lag as f64 - 300.0 {
            0.0 => phase.cos(),
            n if n % 2.0 != 0.0 => -phase.sin() * FRAC_2_PI / n,
            _ => 0.0,
        };
        (0..EARLY + LATE).map(at).collect()
    }

    #[test]
    fn an_echo_has_its_power_whatever_its_phase_and_rings_no_more() {
        for phase in [0.0f64, 1.0, FRAC_PI_2] {
            let powers = powers(&ringing(phase));
            assert!((powers[300] - 0.25).abs() < 0.01, "{phase}: {}", powers[300]);
            assert!(powers[320] < 0.25e-4 && powers[250] < 0.25e-4, "{phase}");
        }
    }

    #[test]
    fn an_echo_that_moves_has_the_power_of_one_that_rests() {
        let mut sums = vec![0.0; EARLY + LATE];
        for field in 0..16 {
            add_powers(&mut sums, &ringing(f64::from(field) / 4.0 * FRAC_PI_2));
        }
        assert!((sums[300] / 16.0 - 0.25).abs() < 0.01, "{}", sums[300]);
    }

    #[test]
    fn gaps_are_where_time_goes_on_faster_than_the_file() {
        let capture = |first_sample, global_index| Capture {
            first_sample,
            global_index,
            ..Capture::default()
        };
        let recording = SigmfRecording {
            data: "x".into(),
            format: SampleFormat::Sc16,
            rate_hz: None,
            samples: 1000,
            captures: vec![
                capture(0, Some(70)),
                capture(100, Some(170)),
                capture(200, Some(300)),
                capture(300, None),
            ],
            annotations: Vec::new(),
            global: None,
        };
        assert_eq!(gaps(&recording), [(200, 30)]);
    }
}
