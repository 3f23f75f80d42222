//! The digital down-converter of one channel.

use super::registers::{Direction, Effect, Registers};
use super::shifter::Shifter;
use super::{PIECE, read, write};
use crate::antenna::Sc16;
use millstream_dsp::Sample;
use millstream_dsp::cic::CicDecimator;
use millstream_dsp::half_band::HalfBandDecimator;
use millstream_wire::regs::dsp::{DspMap, Rate};

/// The gain of the mixer.
const MIXER_GAIN: f32 = 2.0;

/// Taps of the half-band filters, first to last.
const TAPS: [usize; 3] = [47, 47, 63];

/// One channel of a DDC: its registers, and the filters of the burst in progress.
#[derive(Debug)]
pub(crate) struct Ddc {
    registers: Registers,
    shifter: Shifter,
    cic: CicDecimator,
    halfbands: [HalfBandDecimator; 3],
    halfbands_used: usize,
    /// Without filters that make the factor its samples are zeros.
    silent: bool,
    factor: usize,
    /// Inputs behind the last output of a silent block.
    phase: usize,
    samples: Box<[Sample]>,
    scratch: Box<[Sample]>,
    packed: Box<[Sc16]>,
}

impl Ddc {
    /// Returns a channel with these registers in the state after power-on.
    pub fn new(map: DspMap) -> Self {
        let mut ddc = Self {
            registers: Registers::new(map, Direction::Down),
            shifter: Shifter::new(),
            cic: CicDecimator::new(1),
            halfbands: TAPS.map(|taps| HalfBandDecimator::new(taps, PIECE)),
            halfbands_used: 0,
            silent: false,
            factor: 1,
            phase: 0,
            samples: vec![Sample::default(); PIECE].into(),
            scratch: vec![Sample::default(); PIECE].into(),
            packed: vec![Sc16::default(); PIECE].into(),
        };
        ddc.begin(1);
        ddc
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.registers.reset();
        self.shifter = Shifter::new();
        self.begin(1);
    }

    /// Returns the decimation of the next burst.
    pub fn factor(&self) -> u64 {
        self.registers.factor()
    }

    /// Writes the register at `offset`, with the time of the request if it has one. Returns whether
    /// a burst in progress must be closed; `None` where there is no register.
    pub fn write(&mut self, offset: u32, value: u32, time: Option<u64>) -> Option<bool> {
        let effect = self.registers.write(offset, value)?;
        if let Effect::Increment(increment) = effect {
            match time {
                Some(time) => self.shifter.set_at(time, increment),
                None => self.shifter.set(increment),
            }
        }
        Some(effect == Effect::CloseBurst)
    }

    /// Begins a burst with this decimation.
    pub fn begin(&mut self, factor: u64) {
        let rate = self.registers.rate(factor);
        self.factor = factor as usize;
        self.phase = 0;
        self.silent = rate.is_none();
        if let Some(rate) = rate {
            self.cic = CicDecimator::new(rate.cic);
            self.halfbands_used = rate.halfbands.into();
        }
        if self.registers.clears() {
            self.halfbands.iter_mut().for_each(HalfBandDecimator::clear);
        }
        self.shifter.restart();
    }

    /// Returns how the block treats what it would receive from `time` on: the cycles per input
    /// sample by which it shifts, and its gain, which is 0 without filters that make the factor.
    pub fn direct(&mut self, time: u64) -> (f64, f32) {
        let rate = self.registers.rate(self.factor as u64);
        let gain = |rate: Rate| {
            let one = Registers::scale_of(rate.ddc_scale());
            self.registers.scale() / one
        };
        (self.shifter.cycles_at(time), rate.map_or(0.0, gain))
    }

    /// Returns the cycles per input sample by which the block shifts now.
    pub fn shift_cycles(&self) -> f64 {
        self.shifter.cycles()
    }

    /// Processes at most [`PIECE`] samples, the first of which has the time `time`.
    pub fn process(&mut self, time: u64, input: &[Sc16]) -> &[Sc16] {
        if self.silent {
            let made = (self.phase + input.len()) / self.factor;
            self.phase = (self.phase + input.len()) % self.factor;
            self.packed[..made].fill(Sc16::default());
            return &self.packed[..made];
        }
        let mut count = input.len();
        let gain = MIXER_GAIN * self.registers.scale();
        if self.factor == 1 && gain == 1.0 && self.shifter.is_idle() {
            self.packed[..count].copy_from_slice(input);
            return &self.packed[..count];
        }
        read(input, &mut self.samples[..count]);
        self.shifter.process(time, &mut self.samples[..count], &mut self.scratch);
        count = self.cic.process(&mut self.samples[..count]);
        for halfband in &mut self.halfbands[..self.halfbands_used] {
            count = halfband.process(&self.samples[..count], &mut self.scratch);
            std::mem::swap(&mut self.samples, &mut self.scratch);
        }
        write(&self.samples[..count], gain, &mut self.packed);
        &self.packed[..count]
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_signals::{amplitude_at, packed, power_db, tone, unpacked};
    use super::*;
    use millstream_wire::regs::dsp as regs;

    fn ddc(factor: u32) -> Ddc {
        let mut ddc = Ddc::new(DspMap::DDC_V0);
        let rate = Rate::new(factor, 3, 255).unwrap();
        for (offset, value) in [
            (regs::DDC_RATE, rate.word()),
            (regs::INPUTS, factor),
            (regs::OUTPUTS, 1),
            (regs::SCALE, rate.ddc_scale()),
        ] {
            ddc.write(offset, value, None);
        }
        ddc.begin(factor.into());
        ddc
    }

    fn run(ddc: &mut Ddc, input: &[Sample], piece: usize) -> Vec<Sample> {
        let mut out = Vec::new();
        for (index, input) in packed(input).chunks(piece).enumerate() {
            out.extend_from_slice(ddc.process((index * piece) as u64, input));
        }
        unpacked(&out)
    }

    #[test]
    fn without_rate_change_and_shift_the_samples_pass_bit_by_bit() {
        let mut input = packed(&tone(0.123, 30_000.0, 1000));
        input[7] = [0, 0x80, 0xFF, 0x7F];
        let mut ddc = ddc(1);
        assert_eq!(ddc.process(0, &input), input);
        // A shift that is to come, and one that is over, are none meanwhile.
        ddc.write(regs::PHASE_INCREMENT, 1 << 30, Some(1500));
        assert_eq!(ddc.process(0, &input), input);
        assert_ne!(ddc.process(1000, &input), input);
    }

    #[test]
    fn a_tone_keeps_its_level_at_every_rate() {
        for factor in [1, 2, 3, 4, 5, 8, 16, 32, 100, 250, 255, 256, 1016, 1020] {
            let at = 0.01 / f64::from(factor);
            let input = tone(at, 10_000.0, factor as usize * 300);
            let out = run(&mut ddc(factor), &input, 1000);
            assert_eq!(out.len(), 300);
            let level = amplitude_at(&out[100..], 0.01);
            assert!((level / 10_000.0 - 1.0).abs() < 0.01, "{factor}: {level}");
        }
    }

    #[test]
    fn what_is_outside_of_the_band_does_not_fold_into_it() {
        for factor in [2, 4, 8, 16, 64] {
            // 1.2 and 3.3 bands away, from where it would fold to 0.2 and 0.3 of the rate.
            for band in [1.2, -1.3, 3.3] {
                let at = band / f64::from(factor);
                let input = tone(at, 20_000.0, factor as usize * 300);
                let out = run(&mut ddc(factor), &input, 4096);
                let level = power_db(&out[100..]) - 20.0 * 20_000f64.log10();
                assert!(level < -60.0, "{factor} {band}: {level} dB");
            }
        }
    }

    #[test]
    fn the_shift_moves_a_tone_up() {
        let mut ddc = ddc(4);
        ddc.write(regs::PHASE_INCREMENT, regs::phase_increment(1e6, 16e6), None);
        let out = run(&mut ddc, &tone(-1.1 / 16.0, 10_000.0, 4000), 4096);
        let level = amplitude_at(&out[100..], -0.1 / 4.0);
        assert!((level / 10_000.0 - 1.0).abs() < 0.01, "{level}");
    }

    #[test]
    fn without_a_scale_all_samples_are_zero() {
        let mut ddc = Ddc::new(DspMap::DDC_V0);
        assert_eq!(ddc.process(0, &packed(&tone(0.1, 1000.0, 10))), [[0; 4]; 10]);
    }

    #[test]
    fn filters_that_make_another_rate_give_zeros_in_the_right_number() {
        let mut ddc = ddc(16);
        ddc.begin(8);
        assert_eq!(run(&mut ddc, &tone(0.0, 1000.0, 84), 5), vec![Sample::default(); 10]);
    }

    #[test]
    fn the_beginning_of_a_burst_forgets_the_last_one() {
        let input = tone(0.003, 10_000.0, 3001);
        let mut ddc = ddc(6);
        ddc.write(regs::PHASE_INCREMENT, 0x0123_0000, None);
        ddc.begin(6);
        let first = run(&mut ddc, &input, 999);
        ddc.begin(6);
        assert_eq!(run(&mut ddc, &input, 999), first);
    }
}
