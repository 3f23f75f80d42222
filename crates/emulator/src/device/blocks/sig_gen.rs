//! The signal generator.

use super::{BlockPacket, StreamBlock};
use crate::antenna::{Sc16, sc16};
use crate::generation::Generation;
use millstream_wire::regs::sig_gen::{self as regs, waveform};
use std::f64::consts::PI;

/// The numbers of the noise.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// The block.
#[derive(Debug)]
pub(crate) struct SigGen {
    ports: Box<[SigGenPort]>,
}

#[derive(Debug)]
struct SigGenPort {
    /// The written values, by offset / 4.
    registers: [u32; regs::BANK as usize / 4],
    /// The phase of the next sample of a sine, in increments.
    phase: u16,
    /// The state of the noise.
    noise: u64,
}

impl SigGen {
    /// Returns a block that is silent.
    pub fn new(ports: usize) -> Self {
        Self { ports: (0..ports).map(|_| SigGenPort::new()).collect() }
    }
}

impl StreamBlock for SigGen {
    fn reset(&mut self) {
        self.ports.iter_mut().for_each(|port| *port = SigGenPort::new());
    }

    fn stop(&mut self) {
        self.ports.iter_mut().for_each(|port| *port.word_mut(regs::ENABLE) = 0);
    }

    fn read(&self, address: u32, _: &Generation) -> u32 {
        let port = self.ports.get((address / regs::BANK) as usize);
        port.map_or(0, |port| port.word(address % regs::BANK))
    }

    fn write(&mut self, address: u32, value: u32) {
        if let Some(port) = self.ports.get_mut((address / regs::BANK) as usize) {
            *port.word_mut(address % regs::BANK) = value;
        }
    }

    fn next_packet(&self, port: usize) -> Option<BlockPacket> {
        let port = &self.ports[port];
        let samples = port.word(regs::PACKET_SAMPLES) & regs::PACKET_SAMPLES_MAX;
        let on = port.word(regs::ENABLE) & 1 != 0 && samples > 0;
        on.then_some(BlockPacket {
            bytes: 4 * samples as usize,
            announced: None,
            timestamp: None,
            eob: false,
        })
    }

    fn fill(&mut self, port: usize, _: usize, out: &mut [Sc16]) {
        let port = &mut self.ports[port];
        out.iter_mut().for_each(|sample| *sample = port.sample());
    }
}

impl SigGenPort {
    /// Returns the state after power-on.
    fn new() -> Self {
        let mut port = Self { registers: Default::default(), phase: 0, noise: 0 };
        (*port.word_mut(regs::PACKET_SAMPLES), *port.word_mut(regs::GAIN)) = (16, 0x7fff);
        port
    }

    fn word(&self, offset: u32) -> u32 {
        self.registers[offset as usize / 4]
    }

    fn word_mut(&mut self, offset: u32) -> &mut u32 {
        &mut self.registers[offset as usize / 4]
    }

    fn sample(&mut self) -> Sc16 {
        let half = |word: u32| f64::from(word as u16 as i16);
        let word = |offset| self.word(offset);
        let gain = half(word(regs::GAIN)) / regs::GAIN_ONE;
        let (i, q) = match word(regs::WAVEFORM) & 3 {
            waveform::SINE => {
                let start = word(regs::START_VECTOR);
                let (x, y) =
                    (half(start >> 16) * regs::ROTATION_GAIN, half(start) * regs::ROTATION_GAIN);
                let (sin, cos) = (f64::from(self.phase) / regs::HALF_TURN * PI).sin_cos();
                // 16 bits of phase are whole turns, so that it wraps around.
                self.phase = self.phase.wrapping_add(word(regs::PHASE_INCREMENT) as u16);
                (x * cos - y * sin, x * sin + y * cos)
            }
            waveform::NOISE => {
                // The generator of Knuth's MMIX, of which the upper bits are random.
                self.noise = self.noise.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
                (half((self.noise >> 32) as u32), half((self.noise >> 48) as u32))
            }
            _ => (half(word(regs::CONSTANT) >> 16), half(word(regs::CONSTANT))),
        };
        let part = |value: f64| (value * gain).round().clamp(-32_768.0, 32_767.0) as i16;
        sc16(part(i), part(q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns samples of output 1 with these registers.
    fn samples(registers: &[(u32, u32)], count: usize) -> Vec<[i16; 2]> {
        let mut block = SigGen::new(2);
        for (offset, value) in
            [(regs::ENABLE, 1), (regs::PACKET_SAMPLES, 100), (regs::GAIN, 0x7fff)]
                .iter()
                .chain(registers)
        {
            block.write(regs::BANK + offset, *value);
        }
        assert_eq!(block.next_packet(0), None, "the other output is off");
        assert_eq!(block.next_packet(1).unwrap().bytes, 400);
        let mut out = vec![[0; 4]; count];
        block.fill(1, 0, &mut out);
        out.into_iter().map(crate::antenna::parts).collect()
    }

    #[test]
    fn a_sine_has_the_frequency_and_amplitude_of_its_registers() {
        // An eighth of a turn for each sample, and the amplitude 1000 / 1.164435.
        let sine = [
            (regs::WAVEFORM, waveform::SINE),
            (regs::PHASE_INCREMENT, 0x0800),
            (regs::START_VECTOR, 859 << 16),
        ];
        let got = samples(&sine, 9);
        let want = [(1000, 0), (707, 707), (0, 1000), (-707, 707), (-1000, 0)];
        for ([i, q], (x, y)) in got.iter().zip(want) {
            assert!((i - x).abs() <= 2 && (q - y).abs() <= 2, "{got:?}");
        }
        let backwards = [
            (regs::WAVEFORM, waveform::SINE),
            (regs::PHASE_INCREMENT, 0xF800),
            (regs::START_VECTOR, 859 << 16),
        ];
        assert!((samples(&backwards, 2)[1][1] + 707).abs() <= 2, "a negative frequency");
    }

    #[test]
    fn a_constant_is_scaled_and_noise_fills_the_range() {
        let half = [(regs::GAIN, 0x4000), (regs::CONSTANT, (1000 << 16) | 0xfc18)];
        assert_eq!(samples(&half, 3), [[500, -500]; 3]);
        let noise = samples(&[(regs::WAVEFORM, waveform::NOISE)], 10_000);
        let power: f64 = noise.iter().map(|one| f64::from(one[0]).powi(2)).sum::<f64>() / 1e4;
        // Values from -1 to 1 that are all as likely.
        assert!((power.sqrt() / 32_768.0 - 3f64.sqrt().recip()).abs() < 0.02, "{}", power.sqrt());
        let joint: f64 = noise.iter().map(|one| f64::from(one[0]) * f64::from(one[1])).sum();
        assert!((joint / 1e4 / power).abs() < 0.05, "the parts are independent");
    }

    #[test]
    fn it_makes_packets_only_while_it_is_on_and_they_have_samples() {
        let mut block = SigGen::new(1);
        block.write(4, 9);
        assert_eq!(block.next_packet(0), None);
        block.write(0, 1);
        assert_eq!(block.next_packet(0).unwrap().bytes, 36);
        block.write(4, 0x4000);
        assert_eq!(block.next_packet(0), None, "14 bits of length");
        block.write(regs::BANK, 1);
        let generation = crate::UhdGeneration::Auto.row();
        assert_eq!(block.read(regs::BANK, generation), 0, "there is no second output");
    }
}
