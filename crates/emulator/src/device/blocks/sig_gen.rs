//! The signal generator (blocks section 2.3).

use super::BlockPacket;
use crate::antenna::Sc16;
use std::f64::consts::PI;

const STRIDE: u32 = 0x20;
const ENABLE: usize = 0;
const PACKET_SAMPLES: usize = 1;
const WAVEFORM: usize = 2;
const GAIN: usize = 3;
const CONSTANT: usize = 4;
const PHASE_INCREMENT: usize = 5;
const START_VECTOR: usize = 6;

const SINE: u32 = 1;
const NOISE: u32 = 2;

/// What the rotation in steps multiplies a vector with.
const ROTATION_GAIN: f64 = 1.164_435_344_782_938;
/// A phase increment of 1.0, which is half a turn.
const HALF_TURN: f64 = (1 << 13) as f64;
const GAIN_ONE: f64 = (1 << 15) as f64;

/// The numbers of the noise.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// The block.
#[derive(Debug)]
pub(crate) struct SigGen {
    ports: Box<[SigGenPort]>,
}

#[derive(Debug, Default)]
struct SigGenPort {
    /// The written values, by offset / 4.
    registers: [u32; STRIDE as usize / 4],
    /// The phase of the next sample of a sine, in increments.
    phase: u16,
    /// The state of the noise.
    noise: u64,
}

impl SigGen {
    /// Returns a block that is silent.
    pub fn new(ports: usize) -> Self {
        Self { ports: (0..ports).map(|_| SigGenPort::default()).collect() }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.ports.iter_mut().for_each(|port| *port = SigGenPort::default());
    }

    /// Stops all outputs.
    pub fn stop(&mut self) {
        self.ports.iter_mut().for_each(|port| port.registers[ENABLE] = 0);
    }

    /// Reads a register.
    pub fn read(&self, address: u32) -> u32 {
        let port = self.ports.get((address / STRIDE) as usize);
        port.map_or(0, |port| port.registers[(address % STRIDE) as usize / 4])
    }

    /// Writes a register.
    pub fn write(&mut self, address: u32, value: u32) {
        if let Some(port) = self.ports.get_mut((address / STRIDE) as usize) {
            port.registers[(address % STRIDE) as usize / 4] = value;
        }
    }

    /// Returns the packet at the head of output `port`.
    pub fn next_packet(&self, port: usize) -> Option<BlockPacket> {
        let registers = &self.ports[port].registers;
        let samples = registers[PACKET_SAMPLES] as usize & 0x3fff;
        let on = registers[ENABLE] & 1 != 0 && samples > 0;
        on.then_some(BlockPacket { bytes: 4 * samples, timestamp: None, eob: false })
    }

    /// Writes the next samples of output `port`.
    pub fn fill(&mut self, port: usize, out: &mut [Sc16]) {
        let port = &mut self.ports[port];
        out.iter_mut().for_each(|sample| *sample = port.sample());
    }
}

impl SigGenPort {
    fn sample(&mut self) -> Sc16 {
        let half = |word: u32| f64::from(word as u16 as i16);
        let word = |index: usize| self.registers[index];
        let gain = half(word(GAIN)) / GAIN_ONE;
        let (i, q) = match word(WAVEFORM) & 3 {
            SINE => {
                let start = word(START_VECTOR);
                let (x, y) = (half(start >> 16) * ROTATION_GAIN, half(start) * ROTATION_GAIN);
                let (sin, cos) = (f64::from(self.phase) / HALF_TURN * PI).sin_cos();
                // 16 bits of phase are whole turns, so that it wraps around.
                self.phase = self.phase.wrapping_add(word(PHASE_INCREMENT) as u16);
                (x * cos - y * sin, x * sin + y * cos)
            }
            NOISE => {
                // The generator of Knuth's MMIX, of which the upper bits are random.
                self.noise = self.noise.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
                (half((self.noise >> 32) as u32), half((self.noise >> 48) as u32))
            }
            _ => (half(word(CONSTANT) >> 16), half(word(CONSTANT))),
        };
        let bytes = |value: f64| ((value * gain).clamp(-32_768.0, 32_767.0) as i16).to_le_bytes();
        let ([a, b], [c, d]) = (bytes(i), bytes(q));
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts([a, b, c, d]: Sc16) -> (i16, i16) {
        (i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d]))
    }

    /// Returns samples of output 1 with these registers.
    fn samples(registers: &[(usize, u32)], count: usize) -> Vec<(i16, i16)> {
        let mut block = SigGen::new(2);
        for (index, value) in
            [(ENABLE, 1), (PACKET_SAMPLES, 100), (GAIN, 0x7fff)].iter().chain(registers)
        {
            block.write(STRIDE + 4 * *index as u32, *value);
        }
        assert_eq!(block.next_packet(0), None, "the other output is off");
        assert_eq!(block.next_packet(1).unwrap().bytes, 400);
        let mut out = vec![[0; 4]; count];
        block.fill(1, &mut out);
        out.into_iter().map(parts).collect()
    }

    #[test]
    fn a_sine_has_the_frequency_and_amplitude_of_its_registers() {
        // An eighth of a turn for each sample, and the amplitude 1000 / 1.164435.
        let sine = [(WAVEFORM, SINE), (PHASE_INCREMENT, 0x0800), (START_VECTOR, 859 << 16)];
        let got = samples(&sine, 9);
        let want = [(1000, 0), (707, 707), (0, 1000), (-707, 707), (-1000, 0)];
        for ((i, q), (x, y)) in got.iter().zip(want) {
            assert!((i - x).abs() <= 2 && (q - y).abs() <= 2, "{got:?}");
        }
        let backwards = [(WAVEFORM, SINE), (PHASE_INCREMENT, 0xF800), (START_VECTOR, 859 << 16)];
        assert!((samples(&backwards, 2)[1].1 + 707).abs() <= 2, "a negative frequency");
    }

    #[test]
    fn a_constant_is_scaled_and_noise_fills_the_range() {
        let half = [(GAIN, 0x4000), (CONSTANT, (1000 << 16) | 0xfc18)];
        assert_eq!(samples(&half, 3), [(500, -500); 3]);
        let noise = samples(&[(WAVEFORM, NOISE)], 10_000);
        let power: f64 = noise.iter().map(|one| f64::from(one.0).powi(2)).sum::<f64>() / 1e4;
        // Values from -1 to 1 that are all as likely.
        assert!((power.sqrt() / 32_768.0 - 3f64.sqrt().recip()).abs() < 0.02, "{}", power.sqrt());
        let joint: f64 = noise.iter().map(|one| f64::from(one.0) * f64::from(one.1)).sum();
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
        block.write(STRIDE, 1);
        assert_eq!(block.read(STRIDE), 0, "there is no second output");
    }
}
