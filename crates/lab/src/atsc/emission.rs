//! The cost of the transmitter, and the quality of its signal.

use super::{AtscError, Recording};
use millstream_atsc::Sample;
use millstream_atsc::params::SYMBOL_RATE_HZ;
use millstream_atsc::tx::quality::{mask_room_db, modulation_error_ratio_db};
use millstream_atsc::tx::{Impairments, TestSignal, TxConfig};
use millstream_cpu::usage;
use millstream_stats::Summary;
use serde::Serialize;
use std::time::Instant;

/// Samples made at once: they fit the caches.
const BLOCK: usize = 8192;

/// Symbols that the modulation error ratio covers, after the first ones, which lack neighbours.
const SYMBOLS: usize = 4000;
const LEAD_SYMBOLS: usize = 2000;

/// Length of the signal that is compared with the mask, seconds.
const MASK_S: f64 = 0.1;

/// One sample rate.
#[derive(Clone, Debug, Serialize)]
pub struct Emission {
    /// Samples a second.
    pub rate_hz: f64,
    /// Signal time over time by the clock, on one thread.
    pub real_time: Summary,
    /// CPU seconds for a second of signal.
    pub cpu_s_per_signal_s: Summary,
    /// Modulation error ratio of its own output, dB.
    pub mer_db: f64,
    /// Room to the mask of 47 CFR 73.622(h) where it is narrowest, dB; `None` where the rate does
    /// not reach beyond the channel.
    pub mask_room_db: Option<f64>,
}

impl Emission {
    /// Transmits `seconds` of random packets `repeats` times.
    ///
    /// # Errors
    /// [`AtscError::Signal`] when the rate carries no signal.
    pub fn of(rate_hz: f64, seconds: f64, repeats: usize) -> Result<Self, AtscError> {
        let none = Impairments::default();
        let recording = Recording { rate_hz, seconds, seed: 1, impairments: none.clone() };
        let config = TxConfig { sample_rate_hz: rate_hz, ..TxConfig::default() };
        let mut signal = TestSignal::new(config, &none, recording.seed)?;
        let mut packets = recording.packets();
        let mut generate = |samples: &mut [Sample]| {
            signal.generate(&mut |packet| packets.next_packet(packet), samples);
        };
        let mut first = vec![Sample::default(); (MASK_S * rate_hz) as usize];
        generate(&mut first);
        let mut block = vec![Sample::default(); BLOCK];
        let blocks = recording.samples().div_ceil(BLOCK as u64);
        let signal_s = (blocks * BLOCK as u64) as f64 / rate_hz;
        let (mut real_time, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..repeats.max(1) {
            let (start, before) = (Instant::now(), usage::process_cpu_time());
            (0..blocks).for_each(|_| generate(&mut block));
            let took = usage::process_cpu_time().saturating_sub(before).as_secs_f64();
            real_time.push(signal_s / start.elapsed().as_secs_f64());
            cpu.push(took / signal_s);
        }
        let summary = |figures: &[f64]| Summary::of(figures).expect("there is a repetition");
        let symbols = LEAD_SYMBOLS..LEAD_SYMBOLS + SYMBOLS;
        let enough = (2.0 * symbols.end as f64 / SYMBOL_RATE_HZ * rate_hz) as usize;
        Ok(Self {
            rate_hz,
            real_time: summary(&real_time),
            cpu_s_per_signal_s: summary(&cpu),
            mer_db: modulation_error_ratio_db(&first[..enough.min(first.len())], rate_hz, symbols),
            mask_room_db: Some(mask_room_db(&first, rate_hz)).filter(|room| room.is_finite()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_transmitter_has_its_figures_and_a_wrong_rate_a_reason() {
        let found = Emission::of(25e6, 0.01, 2).unwrap();
        assert!(found.mer_db > 50.0 && found.mask_room_db.unwrap() > 3.0, "{found:?}");
        assert_eq!(found.real_time.count, 2);
        let error = Emission::of(1e6, 0.01, 1).unwrap_err().to_string();
        assert!(error.contains("an ATSC channel cannot be transmitted"), "{error}");
    }
}
