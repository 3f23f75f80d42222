//! Another station on a channel nearby.

use super::impairment_error::{SPACING_HZ, least_rate_hz};
use super::{ImpairmentError, Numbered, Transmitter, TxConfig};
use crate::Sample;
use millstream_dsp::impair::{FrequencyShift, Impair, amplitude};

/// A neighbour: its distance in channels, and its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjacent {
    /// Distance in channels of 6 MHz, negative for lower frequencies.
    pub channels: i32,
    /// Its power over the wanted signal's, dB.
    pub level_db: f64,
}

/// Adds the neighbour's signal: 8-VSB with packets of its own.
#[derive(Debug)]
pub(super) struct AdjacentChannel {
    transmitter: Transmitter,
    packets: Numbered,
    shift: FrequencyShift,
    block: Vec<Sample>,
}

impl AdjacentChannel {
    /// Creates the neighbour of a signal of `config`.
    pub(super) fn new(
        adjacent: Adjacent,
        config: TxConfig,
        seed: u64,
    ) -> Result<Self, ImpairmentError> {
        let Adjacent { channels, level_db } = adjacent;
        let rate_hz = config.sample_rate_hz;
        if rate_hz < least_rate_hz(channels) {
            return Err(ImpairmentError::Adjacent { channels, rate_hz });
        }
        let rms = config.rms * amplitude(level_db) as f32;
        Ok(Self {
            transmitter: Transmitter::new(TxConfig { rms, ..config })?,
            packets: Numbered::new(seed),
            shift: FrequencyShift::new(f64::from(channels) * SPACING_HZ, rate_hz),
            block: vec![Sample::default(); 1024],
        })
    }
}

impl Impair for AdjacentChannel {
    fn apply(&mut self, samples: &mut [Sample]) {
        let Self { transmitter, packets, shift, block } = self;
        for samples in samples.chunks_mut(block.len()) {
            let block = &mut block[..samples.len()];
            transmitter.generate(&mut |packet| packets.next_packet(packet), block);
            shift.apply(block);
            samples.iter_mut().zip(block).for_each(|(sample, other)| *sample += *other);
        }
    }
}
