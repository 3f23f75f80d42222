//! A channel that receives a scene.

use super::Scene;
use super::file::Station;
use super::signal::Signal;
use crate::Error;
use crate::antenna::Sc16;
use crate::converter::PIECE;
use crate::front_end::{Receiver, Reception};
use millstream_dsp::Sample;
use millstream_dsp::nco::Nco;

/// The stations, and the front end that receives them.
pub(crate) struct SceneReceiver {
    stations: Vec<(Station, Signal)>,
    front_end: Receiver,
    rate_hz: f64,
    sum: Box<[Sample]>,
    signal: Box<[Sample]>,
    shifted: Box<[Sample]>,
    packed: Box<[Sc16]>,
}

impl SceneReceiver {
    /// Opens the files of a scene; `seed` is that of the noise, `bits` those of the converter.
    pub fn open(scene: &Scene, seed: u64, bits: u32) -> Result<Self, Error> {
        let open = |station: &Station| Ok((station.clone(), Signal::open(station)?));
        let samples = || vec![Sample::default(); PIECE].into_boxed_slice();
        Ok(Self {
            stations: scene.stations.iter().map(open).collect::<Result<_, Error>>()?,
            front_end: Receiver::new(seed, bits),
            rate_hz: 1.0,
            sum: samples(),
            signal: samples(),
            shifted: samples(),
            packed: vec![Sc16::default(); PIECE].into(),
        })
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        self.rate_hz = rate_hz;
        self.front_end.prepare(rate_hz);
        self.stations.iter_mut().for_each(|(_, signal)| signal.prepare(rate_hz));
    }

    /// Writes at most [`PIECE`] samples, the first of the time `time` in samples of the prepared
    /// rate.
    pub fn fill(&mut self, reception: &Reception, time: u64, out: &mut [Sc16]) {
        let Self { sum, signal, shifted, .. } = self;
        let (sum, signal) = (&mut sum[..out.len()], &mut signal[..out.len()]);
        let shifted = &mut shifted[..out.len()];
        sum.fill(Sample::default());
        for (station, content) in &mut self.stations {
            let offset_hz = station.frequency_hz - reception.lo_hz;
            if offset_hz.abs() > self.rate_hz / 2.0 + content.reach_hz() {
                continue;
            }
            let mut carrier = Nco::from_hz(offset_hz, self.rate_hz);
            let phase = carrier.step().wrapping_mul(time);
            carrier.set_phase(phase as f64 / 2f64.powi(64));
            if content.fill(time, signal, &mut self.packed) {
                carrier.rotate(signal, shifted);
            } else if offset_hz.abs() < self.rate_hz / 2.0 {
                carrier.exponential(shifted);
            } else {
                continue;
            }
            let level_db = station.level_dbm + station.loss_db(reception.antenna);
            let amplitude = 10f64.powf(level_db / 20.0) as f32;
            sum.iter_mut().zip(&*shifted).for_each(|(sum, one)| *sum += one * amplitude);
        }
        self.front_end.convert(reception, time, sum, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::converter::test_signals::{amplitude_at, unpacked};
    use millstream_wire::regs::front_end::RxAntenna;

    const RATE_HZ: f64 = 10e6;

    fn level_db(reception: &Reception, offset_hz: f64) -> f64 {
        let text = "[[station]]\nkind = \"tone\"\nfrequency = 1e9\nlevel = -50\nantenna = \"RX2\"";
        let mut receiver = SceneReceiver::open(&Scene::parse(text).unwrap(), 1, 12).unwrap();
        receiver.prepare(RATE_HZ);
        let mut out = vec![[0; 4]; PIECE];
        receiver.fill(reception, 1 << 40, &mut out);
        20.0 * (amplitude_at(&unpacked(&out), offset_hz / RATE_HZ) / 32_768.0).log10()
    }

    #[test]
    fn a_station_appears_where_it_lies_from_the_oscillator_with_the_level_of_the_gain() {
        let antenna = Some(RxAntenna::Rx2);
        let at = |lo_hz, gain_db| Reception { lo_hz, gain_db, bandwidth_hz: 56e6, antenna };
        for (lo_hz, gain_db, offset_hz, level) in
            [(0.999e9, 40.0, 1e6, -10.0), (1.003e9, 30.0, -3e6, -20.0), (1e9, 40.0, 0.0, -10.0)]
        {
            let got = level_db(&at(lo_hz, gain_db), offset_hz);
            assert!((got - level).abs() < 0.2, "{lo_hz} {gain_db}: {got}");
        }
        assert!(level_db(&at(0.994e9, 40.0), -4e6) < -60.0, "it does not fold into the band");
    }

    #[test]
    fn a_wrong_antenna_receives_40_db_less() {
        for antenna in [None, Some(RxAntenna::TxRx)] {
            let reception =
                Reception { lo_hz: 0.999e9, gain_db: 70.0, bandwidth_hz: 56e6, antenna };
            let got = level_db(&reception, 1e6);
            assert!((got + 20.0).abs() < 0.5, "{antenna:?}: {got}");
        }
    }
}
