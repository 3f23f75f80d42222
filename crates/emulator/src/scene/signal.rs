//! The signals of stations, at a middle frequency of 0 and with a power of 1.

use super::file::{Station, StationKind};
use crate::Error;
use crate::antenna::{Antenna, NoiseAntenna, Sc16, atsc_antenna, parts, recording};
use millstream_dsp::Sample;
use millstream_dsp::arbitrary::ArbitraryResampler;
use std::f64::consts::TAU;

/// Full scale of the samples of antennas.
const FULL: f32 = 32_767.0;
/// The samples of noise that are made at once, and repeated.
const NOISE_SAMPLES: usize = 1 << 16;
/// The share of its rate that noise takes up behind a resampler.
const NOISE_SHARE: f64 = 0.9;
/// The entries of tables of a cycle.
const TABLE_BITS: u32 = 14;
const WAVE_LEN: usize = 1 << TABLE_BITS;
const WAVE_ENTRIES: f64 = WAVE_LEN as f64;
/// The largest ratio of one resampler.
const RATIO_MAX: f64 = 200.0;
/// The samples that are read from an antenna at once.
const CHUNK: usize = 1024;

/// A signal.
pub(super) enum Signal {
    /// The carrier alone.
    Tone,
    /// Samples over and over.
    Loop {
        bandwidth_hz: f64,
        samples: Vec<Sample>,
    },
    Fm(Fm),
    /// Samples at the rate of the radio, by a factor.
    Live(Box<dyn Antenna>, f32),
    Recording(Box<Recording>),
}

impl Signal {
    /// Opens the signal of a station.
    pub fn open(station: &Station) -> Result<Self, Error> {
        Ok(match &station.kind {
            StationKind::Tone => Self::Tone,
            StationKind::Noise { bandwidth_hz } => {
                Self::Loop { bandwidth_hz: *bandwidth_hz, samples: Vec::new() }
            }
            StationKind::Fm { deviation_hz, audio_hz } => {
                Self::Fm(Fm::new(*deviation_hz, *audio_hz))
            }
            StationKind::Atsc { file } => {
                let (antenna, rms) = atsc_antenna(&file.display().to_string())?;
                Self::Live(antenna, 1.0 / (rms * FULL))
            }
            StationKind::Recording { file } => {
                let (antenna, rate_hz) = recording(file)?;
                Self::Recording(Box::new(Recording::new(antenna, rate_hz)))
            }
        })
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        match self {
            Self::Tone => {}
            Self::Loop { bandwidth_hz, samples } => *samples = noise(*bandwidth_hz, rate_hz),
            Self::Fm(fm) => fm.prepare(rate_hz),
            Self::Live(antenna, _) => antenna.prepare(rate_hz),
            Self::Recording(recording) => recording.prepare(rate_hz),
        }
    }

    /// Returns half of the width that it takes up, Hz.
    pub fn reach_hz(&self) -> f64 {
        match self {
            Self::Tone => 0.0,
            Self::Loop { bandwidth_hz, .. } => bandwidth_hz / 2.0,
            Self::Fm(fm) => fm.deviation_hz + 2.0 * fm.audio_hz,
            Self::Live(..) => 3e6,
            Self::Recording(recording) => recording.rate_hz / 2.0,
        }
    }

    /// Writes the samples from `time` on; false for a bare carrier, of which it writes none.
    pub fn fill(&mut self, time: u64, out: &mut [Sample], scratch: &mut [Sc16]) -> bool {
        match self {
            Self::Tone => return false,
            Self::Loop { samples, .. } => {
                let start = (time % samples.len() as u64) as usize;
                let endless = samples[start..].iter().chain(samples.iter().cycle());
                out.iter_mut().zip(endless).for_each(|(out, sample)| *out = *sample);
            }
            Self::Fm(fm) => fm.fill(time, out),
            Self::Live(antenna, gain) => {
                let scratch = &mut scratch[..out.len()];
                antenna.fill(time, scratch);
                unpack(scratch, *gain, out);
            }
            Self::Recording(recording) => recording.fill(time, out),
        }
        true
    }
}

fn unpack(samples: &[Sc16], gain: f32, out: &mut [Sample]) {
    for (sample, out) in samples.iter().zip(out) {
        let [i, q] = parts(*sample).map(f32::from);
        *out = Sample::new(i * gain, q * gain);
    }
}

/// Returns noise of power 1 within a band; what lies beyond half the rate is left out.
fn noise(bandwidth_hz: f64, rate_hz: f64) -> Vec<Sample> {
    // Noise much wider than the samples is white in them.
    let own_hz = (bandwidth_hz / NOISE_SHARE).clamp(rate_hz / RATIO_MAX, 4.0 * rate_hz);
    // A quarter of full scale stays within 16 bits.
    let antenna = Box::new(NoiseAntenna::new(0.25, 1));
    let mut source = Recording::new(antenna, own_hz);
    source.prepare(rate_hz);
    let mut samples = vec![Sample::default(); NOISE_SAMPLES];
    source.fill(0, &mut samples);
    let power = samples.iter().map(|one| one.norm_sqr()).sum::<f32>() / samples.len() as f32;
    let within = (rate_hz / bandwidth_hz).min(1.0) as f32;
    let gain = (within / power.max(f32::MIN_POSITIVE)).sqrt();
    samples.iter_mut().for_each(|sample| *sample *= gain);
    samples
}

/// A carrier modulated by a tone, a function of time.
pub(super) struct Fm {
    deviation_hz: f64,
    audio_hz: f64,
    /// The phase of the carrier in cycles, by the phase of the tone.
    phases: Box<[f64]>,
    wave: Box<[Sample]>,
    audio_step: u64,
}

impl Fm {
    fn new(deviation_hz: f64, audio_hz: f64) -> Self {
        let cycle = |k: u64| TAU * k as f64 / (1_u64 << TABLE_BITS) as f64;
        let index = deviation_hz / audio_hz / TAU;
        let phase = |k| index * cycle(k).sin();
        let wave = |k| Sample::new(cycle(k).cos() as f32, cycle(k).sin() as f32);
        let phases = (0..=1 << TABLE_BITS).map(phase).collect();
        let wave = (0..1 << TABLE_BITS).map(wave).collect();
        Self { deviation_hz, audio_hz, phases, wave, audio_step: 0 }
    }

    fn prepare(&mut self, rate_hz: f64) {
        self.audio_step = ((self.audio_hz / rate_hz).rem_euclid(1.0) * 2f64.powi(64)) as u64;
    }

    fn fill(&self, time: u64, out: &mut [Sample]) {
        let mut audio = time.wrapping_mul(self.audio_step);
        for out in out {
            let at = (audio >> (64 - TABLE_BITS)) as usize;
            let part = (audio << TABLE_BITS >> 40) as f64 / 16_777_216.0;
            let phase = self.phases[at] + (self.phases[at + 1] - self.phases[at]) * part;
            *out = self.wave[(phase * WAVE_ENTRIES) as i64 as usize & (WAVE_LEN - 1)];
            audio = audio.wrapping_add(self.audio_step);
        }
    }
}

/// Samples of an antenna of another rate than the radio's.
pub(super) struct Recording {
    antenna: Box<dyn Antenna>,
    rate_hz: f64,
    radio_hz: f64,
    /// One behind the other.
    resamplers: Vec<ArbitraryResampler>,
    /// The samples between them that the next one has not taken.
    between: Vec<Vec<Sample>>,
    packed: Box<[Sc16]>,
    /// Position in the antenna, and the time of the next output.
    position: u64,
    next: Option<u64>,
}

impl Recording {
    fn new(antenna: Box<dyn Antenna>, rate_hz: f64) -> Self {
        let (resamplers, between) = (Vec::new(), Vec::new());
        let packed = vec![Sc16::default(); CHUNK].into();
        let (radio_hz, position, next) = (rate_hz, 0, None);
        Self { antenna, rate_hz, radio_hz, resamplers, between, packed, position, next }
    }

    fn prepare(&mut self, radio_hz: f64) {
        self.antenna.prepare(self.rate_hz);
        self.radio_hz = radio_hz;
        self.next = None;
    }

    /// Moves to `time`.
    fn seek(&mut self, time: u64) {
        let ratio = (self.radio_hz / self.rate_hz).clamp(RATIO_MAX.powi(-2), RATIO_MAX.powi(2));
        let two = !(RATIO_MAX.recip()..=RATIO_MAX).contains(&ratio);
        let ratios = if two { vec![ratio.sqrt(); 2] } else { vec![ratio] };
        self.resamplers = ratios.iter().map(|one| ArbitraryResampler::new(*one, 2)).collect();
        self.between = vec![Vec::new(); ratios.len()];
        self.position = (time as f64 / ratio) as u64;
    }

    fn fill(&mut self, time: u64, out: &mut [Sample]) {
        if self.next != Some(time) {
            self.seek(time);
        }
        self.next = Some(time.wrapping_add(out.len() as u64));
        let mut made = 0;
        while made < out.len() {
            self.read();
            made += self.resample(&mut out[made..]);
        }
    }

    /// Reads samples for the first resampler, unless it still has some.
    fn read(&mut self) {
        if self.between[0].len() < CHUNK {
            self.antenna.fill(self.position, &mut self.packed);
            self.position += CHUNK as u64;
            let start = self.between[0].len();
            self.between[0].resize(start + CHUNK, Sample::default());
            unpack(&self.packed, 1.0 / FULL, &mut self.between[0][start..]);
        }
    }

    fn resample(&mut self, out: &mut [Sample]) -> usize {
        let last = self.resamplers.len() - 1;
        for stage in 0..last {
            let mut piece = [Sample::default(); CHUNK];
            if self.between[stage + 1].len() < CHUNK {
                let (taken, made) =
                    self.resamplers[stage].process(&self.between[stage], &mut piece);
                self.between[stage].drain(..taken);
                self.between[stage + 1].extend_from_slice(&piece[..made]);
            }
        }
        let (taken, made) = self.resamplers[last].process(&self.between[last], out);
        self.between[last].drain(..taken);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::converter::test_signals::{amplitude_at, power_db, tone};

    const RATE_HZ: f64 = 10e6;

    fn samples(mut signal: Signal, time: u64, count: usize) -> Vec<Sample> {
        signal.prepare(RATE_HZ);
        let (mut out, mut scratch) = (vec![Sample::default(); count], vec![[0; 4]; count]);
        assert!(signal.fill(time, &mut out, &mut scratch));
        out
    }

    #[test]
    fn a_band_of_noise_has_its_width_and_a_power_of_one() {
        let noise = Signal::Loop { bandwidth_hz: 1e6, samples: Vec::new() };
        let out = samples(noise, 12_345, 60_000);
        assert!(power_db(&out).abs() < 0.2, "{}", power_db(&out));
        let density = |hz: f64| {
            let parts = out.chunks(1000).map(|part| amplitude_at(part, hz / RATE_HZ).powi(2));
            10.0 * (parts.sum::<f64>() / 60.0).log10()
        };
        // A power of 1 in 100 bins of 10 kHz.
        assert!((density(300e3) + 20.0).abs() < 1.5, "{}", density(300e3));
        assert!(density(700e3) < -40.0, "{}", density(700e3));
    }

    #[test]
    fn a_frequency_modulated_carrier_stays_within_its_deviation() {
        let out = samples(Signal::Fm(Fm::new(75e3, 1e3)), 0, 20_000);
        assert!(power_db(&out).abs() < 0.01);
        let far = out.windows(2).map(|pair| f64::from((pair[1] * pair[0].conj()).arg()));
        let most = far.fold(0.0, f64::max) / TAU * RATE_HZ;
        assert!((most - 75e3).abs() < 1.5e3, "{most}");
    }

    #[test]
    fn the_frequency_of_a_carrier_is_right_however_far_it_deviates() {
        let (deviation_hz, time) = (1e8 + RATE_HZ / 4.0, RATE_HZ as u64 / 8);
        let out = samples(Signal::Fm(Fm::new(deviation_hz, 1.0)), time, 100);
        let want = deviation_hz / RATE_HZ * (TAU / 8.0).cos();
        for pair in out.windows(2) {
            let got = f64::from((pair[1] * pair[0].conj()).arg()) / TAU;
            let apart = (got - want).rem_euclid(1.0);
            assert!(apart.min(1.0 - apart) < 0.05, "{got} for {want}");
        }
    }

    /// A tone at a share of whatever rate the antenna has.
    struct Share(f64);

    impl Antenna for Share {
        fn prepare(&mut self, _: f64) {}
        fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
            let all = tone(self.0, 16_000.0, tick as usize + out.len());
            out.copy_from_slice(&crate::converter::test_signals::packed(&all[tick as usize..]));
        }
    }

    #[test]
    fn a_recording_of_any_rate_keeps_its_frequencies() {
        for own_hz in [20e3, 400e3, 10e6, 25e6] {
            let recording = Recording::new(Box::new(Share(0.05)), own_hz);
            let count = if own_hz < 1e5 { 200_000 } else { 20_000 };
            let out = samples(Signal::Recording(Box::new(recording)), 0, count);
            let level = amplitude_at(&out[count / 2..], 0.05 * own_hz / RATE_HZ);
            assert!((level * 32_767.0 / 16_000.0 - 1.0).abs() < 0.02, "{own_hz}: {level}");
        }
    }
}
