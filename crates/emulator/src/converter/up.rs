//! The digital up-converter of one channel.

use super::registers::{Direction, Effect, Registers};
use super::shifter::Shifter;
use super::{PIECE, read, write};
use crate::antenna::Sc16;
use millstream_dsp::Sample;
use millstream_dsp::cic::CicInterpolator;
use millstream_dsp::half_band::HalfBandInterpolator;
use millstream_wire::regs::dsp::DspMap;

const TAPS: usize = 47;

/// One channel of a DUC: its registers, and the filters of the burst in progress.
#[derive(Debug)]
pub(crate) struct Duc {
    registers: Registers,
    shifter: Shifter,
    halfbands: [HalfBandInterpolator; 3],
    cic: CicInterpolator,
    halfbands_used: usize,
    silent: bool,
    factor: usize,
    /// The time of the next packet, in a burst whose end has not come.
    next: Option<NextTime>,
    samples: Box<[Sample]>,
    scratch: Box<[Sample]>,
    packed: Box<[Sc16]>,
}

/// What a DUC knows of the times of a burst.
#[derive(Debug, Clone, Copy)]
struct NextTime {
    time: u64,
    /// Whether all packets so far had a time: the next one has none otherwise.
    timed: bool,
    factor: u64,
    /// The rate has changed: the burst ends with its next packet.
    closes: bool,
}

impl Duc {
    /// Returns a channel with these registers in the state after power-on.
    pub fn new(map: DspMap) -> Self {
        let mut duc = Self {
            registers: Registers::new(map, Direction::Up),
            shifter: Shifter::new(),
            halfbands: [TAPS; 3].map(|taps| HalfBandInterpolator::new(taps, PIECE)),
            cic: CicInterpolator::new(1),
            halfbands_used: 0,
            silent: false,
            factor: 1,
            next: None,
            samples: vec![Sample::default(); PIECE].into(),
            scratch: vec![Sample::default(); PIECE].into(),
            packed: vec![Sc16::default(); PIECE].into(),
        };
        duc.begin(1);
        duc
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.registers.reset();
        self.shifter = Shifter::new();
        self.next = None;
    }

    /// Forgets the burst whose end has not come.
    pub fn end_burst(&mut self) {
        self.next = None;
    }

    /// Returns the time with which a packet leaves that came with `time`.
    ///
    /// As in hardware only the first packet of a burst gives its time; the DUC counts from there
    /// until it sees the end of the burst, whatever comes in between and however much later.
    pub fn time_of(&mut self, time: Option<u64>, samples: u64, eob: bool) -> Option<u64> {
        let first = NextTime {
            time: time.unwrap_or(0),
            timed: time.is_some(),
            factor: self.factor(),
            closes: false,
        };
        let now = self.next.unwrap_or(first);
        let left = !(eob || now.closes);
        self.next = left.then(|| NextTime {
            time: now.time.wrapping_add(samples.wrapping_mul(now.factor)),
            timed: now.timed && time.is_some(),
            ..now
        });
        now.timed.then_some(now.time)
    }

    /// Returns the interpolation of the next burst.
    pub fn factor(&self) -> u64 {
        self.registers.factor()
    }

    /// Writes the register at `offset`, with the time of the request if it has one; `None` where
    /// there is no register.
    pub fn write(&mut self, offset: u32, value: u32, time: Option<u64>) -> Option<()> {
        match (self.registers.write(offset, value)?, time) {
            (Effect::Increment(increment), Some(time)) => self.shifter.set_at(time, increment),
            (Effect::Increment(increment), None) => {
                self.shifter.set(increment);
                self.shifter.restart();
            }
            (Effect::CloseBurst, _) => {
                self.next.iter_mut().for_each(|next| next.closes = true);
            }
            (Effect::None, _) => {}
        }
        Some(())
    }

    /// Begins a burst with this interpolation.
    pub fn begin(&mut self, factor: u64) {
        let rate = self.registers.rate(factor);
        self.factor = factor as usize;
        self.silent = rate.is_none();
        if let Some(rate) = rate {
            self.cic = CicInterpolator::new(rate.cic);
            self.halfbands_used = rate.halfbands.into();
        }
        if self.registers.clears() {
            self.halfbands.iter_mut().for_each(HalfBandInterpolator::clear);
        }
        self.shifter.restart();
    }

    /// Passes the samples that `input` becomes to `emit`, in pieces; the first has the time `time`,
    /// and `emit` gets the number of samples before each piece.
    pub fn process(&mut self, time: u64, input: &[Sc16], mut emit: impl FnMut(u64, &[Sc16])) {
        let mut done = 0;
        for input in input.chunks((PIECE / self.factor).max(1)) {
            let count = input.len() * self.factor;
            if self.silent {
                self.packed[..count].fill(Sc16::default());
            } else {
                self.fill(time.wrapping_add(done), input);
            }
            emit(done, &self.packed[..count]);
            done += count as u64;
        }
    }

    fn fill(&mut self, time: u64, input: &[Sc16]) {
        let mut count = input.len();
        read(input, &mut self.samples);
        for halfband in &mut self.halfbands[..self.halfbands_used] {
            halfband.process(&self.samples[..count], &mut self.scratch[..2 * count]);
            std::mem::swap(&mut self.samples, &mut self.scratch);
            count *= 2;
        }
        let made = input.len() * self.factor;
        self.cic.process(&self.samples[..count], &mut self.scratch[..made]);
        std::mem::swap(&mut self.samples, &mut self.scratch);
        self.shifter.process(time, &mut self.samples[..made], &mut self.scratch);
        write(&self.samples[..made], self.registers.scale(), &mut self.packed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_signals::{amplitude_at, packed, tone, unpacked};
    use super::*;
    use millstream_wire::regs::dsp::{self as regs, Rate};

    fn duc(factor: u32) -> Duc {
        let mut duc = Duc::new(DspMap::DUC_V0);
        let rate = Rate::new(factor, 3, 255).unwrap();
        for (offset, value) in [
            (regs::DUC_RATE, rate.word()),
            (regs::OUTPUTS, factor),
            (regs::SCALE, rate.duc_scale()),
        ] {
            duc.write(offset, value, None);
        }
        duc.begin(factor.into());
        duc
    }

    fn run(duc: &mut Duc, input: &[Sample]) -> Vec<Sample> {
        let mut out = Vec::new();
        duc.process(0, &packed(input), |before, piece| {
            assert_eq!(before, out.len() as u64);
            out.extend_from_slice(piece);
        });
        unpacked(&out)
    }

    /// As in the recorded exchanges 50 to 53.
    #[test]
    fn the_times_of_a_burst_are_counted_from_its_first_until_its_end_is_seen() {
        let mut duc = duc(4);
        let mut out = |packets: &[(Option<u64>, bool)]| {
            let time = |&(time, eob)| duc.time_of(time, 100, eob);
            packets.iter().map(time).collect::<Vec<_>>()
        };
        let burst = out(&[(Some(1000), false), (Some(9), false), (Some(5000), true)]);
        assert_eq!(burst, [Some(1000), Some(1400), Some(1800)], "other times are not used");
        let lost_end = out(&[(Some(10_000), false), (Some(10_400), false)]);
        assert_eq!(lost_end, [Some(10_000), Some(10_400)]);
        let behind = out(&[(Some(50_000), false), (Some(50_400), true), (Some(60_000), true)]);
        assert_eq!(behind, [Some(10_800), Some(11_200), Some(60_000)]);
        let first_only = out(&[(Some(70_000), false), (None, false), (None, false), (None, true)]);
        assert_eq!(first_only, [Some(70_000), Some(70_400), None, None]);
        assert_eq!(out(&[(None, false), (Some(1), true)]), [None, None]);
    }

    #[test]
    fn without_rate_change_and_shift_the_samples_pass_bit_by_bit() {
        let input = packed(&tone(0.123, 30_000.0, 10_000));
        let mut out = Vec::new();
        duc(1).process(0, &input, |_, piece| out.extend_from_slice(piece));
        assert_eq!(out, input);
    }

    #[test]
    fn a_tone_keeps_its_level_at_every_rate_and_is_shifted_up() {
        for factor in [1, 2, 3, 4, 5, 8, 16, 32, 100, 255, 256, 1016, 1020] {
            let mut duc = duc(factor);
            duc.write(regs::PHASE_INCREMENT, 0x1000_0000, None);
            let out = run(&mut duc, &tone(0.01, 10_000.0, 300));
            assert_eq!(out.len(), 300 * factor as usize);
            let after = 100 * factor as usize;
            let level = amplitude_at(&out[after..], 1.0 / 16.0 + 0.01 / f64::from(factor));
            assert!((level / 10_000.0 - 1.0).abs() < 0.01, "{factor}: {level}");
        }
    }

    #[test]
    fn without_a_scale_all_samples_are_zero() {
        let mut duc = Duc::new(DspMap::DUC_V0);
        assert_eq!(run(&mut duc, &tone(0.1, 1000.0, 10)), vec![Sample::default(); 10]);
    }
}
