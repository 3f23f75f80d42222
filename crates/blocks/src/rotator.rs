//! A shift in frequency.

use crate::Sample;
use crate::common::number;
use millstream_dsp::nco::Nco;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, ParameterKind, ParameterValue};
use millstream_flow::{Each, OneToOne};

/// Multiplies by `exp(j 2π shift n / rate)`. The phase is an integer, so no error accumulates over
/// hours.
///
/// # Messages
/// `shift_hz`: from the next item on, without a jump in phase.
#[derive(Debug)]
pub struct Rotator {
    nco: Nco,
    rate_hz: f64,
    shift_hz: f64,
}

impl Rotator {
    /// Creates a block that shifts samples at `rate_hz` up by `shift_hz`, from phase zero.
    ///
    /// # Errors
    /// A rate that is not positive.
    pub fn new(shift_hz: f64, rate_hz: f64) -> Result<Self, BlockError> {
        if rate_hz <= 0.0 {
            return Err(format!("rate_hz = {rate_hz}: expected more than zero").into());
        }
        Ok(Self { nco: Nco::from_hz(shift_hz, rate_hz), rate_hz, shift_hz })
    }
}

impl OneToOne for Rotator {
    type Input = Sample;
    type Output = Sample;

    fn run(&mut self, input: &[Sample], output: &mut [Sample]) {
        self.nco.rotate(input, output);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.band_shift_hz(self.shift_hz).ns_per_item(0.9).message(
            "shift_hz",
            ParameterKind::Number,
            "shift from the next item on, Hz",
        );
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.shift_hz = number(value)?;
        self.nco.retune_hz(self.shift_hz, self.rate_hz);
        Ok(())
    }
}

/// Shifts complex samples in frequency.
#[derive(BlockParameters)]
#[block(rotator, pure, example = "shift_hz = -250e3\nrate_hz = 1e6")]
struct RotatorParameters {
    /// frequency shift, Hz; positive is up
    shift_hz: f64,
    /// samples per second
    #[parameter(above = 0)]
    rate_hz: f64,
}

impl RotatorParameters {
    fn make(self) -> Result<Each<Rotator>, BlockError> {
        Ok(Each::new(Rotator::new(self.shift_hz, self.rate_hz)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use std::f64::consts::TAU;

    #[test]
    fn the_frequency_tag_follows_a_message() {
        use millstream_flow::{Tag, TagValue, keys};
        let mut mock = Mock::new(Each::new(Rotator::new(1e3, 10e3).unwrap()));
        mock.tag("in", 0, keys::RX_FREQ_HZ, 100e6);
        mock.feed("in", &[Sample::new(1.0, 0.0); 7]);
        mock.run().unwrap();
        mock.send("shift_hz", 1e3).unwrap();
        mock.feed("in", &[Sample::new(1.0, 0.0); 7]);
        mock.run().unwrap();
        mock.send("shift_hz", -500.0).unwrap();
        mock.feed("in", &[Sample::new(1.0, 0.0); 7]);
        mock.run().unwrap();
        let tag = |offset, hz| Tag { offset, key: keys::RX_FREQ_HZ, value: TagValue::Number(hz) };
        // A message that changes nothing adds none.
        assert_eq!(mock.take_tags("out"), [tag(0, 99.999e6), tag(14, 100.0005e6)]);
    }

    #[test]
    fn a_message_changes_the_tags_of_items_that_wait_and_of_no_others() {
        use millstream_flow::{Tag, TagValue, keys};
        const EVERY: u64 = 100;
        const ITEMS: u64 = 30_000;
        let mut most = 0;
        for calls in 1..6 {
            let mut mock = Mock::new(Each::new(Rotator::new(10.0, 10e3).unwrap()));
            let items = vec![Sample::new(1.0, 0.0); ITEMS as usize];
            mock.feed("in", &items);
            for offset in (0..ITEMS).step_by(EVERY as usize) {
                mock.tag("in", offset, keys::RX_FREQ_HZ, 1e6 + offset as f64);
            }
            // Nobody empties the output meanwhile.
            (0..calls).for_each(|_| assert!(mock.call().is_ok()));
            mock.send("shift_hz", 70.0).unwrap();
            mock.run().unwrap();
            let tags = mock.take_tags("out");
            let told = tags.iter().find(|tag| tag.value == TagValue::Number(1e6 - 70.0));
            let extra = tags.iter().find(|tag| tag.offset % EVERY != 0);
            let turn = extra.or(told).map(|tag| tag.offset).unwrap();
            let value = |offset: u64| {
                let shift_hz = if offset < turn { 10.0 } else { 70.0 };
                TagValue::Number(1e6 + (offset - offset % EVERY) as f64 - shift_hz)
            };
            let mut offsets: Vec<u64> = (0..ITEMS).step_by(EVERY as usize).chain([turn]).collect();
            offsets.sort_unstable();
            offsets.dedup();
            let tag = |offset| Tag { offset, key: keys::RX_FREQ_HZ, value: value(offset) };
            assert_eq!(tags, offsets.into_iter().map(tag).collect::<Vec<_>>(), "{calls} {turn}");
            most = most.max(turn);
        }
        assert!(most > EVERY);
    }

    #[test]
    fn retuning_goes_on_where_the_phase_was() {
        let mut mock = Mock::new(Each::new(Rotator::new(1e3, 10e3).unwrap()));
        mock.feed("in", &[Sample::new(1.0, 0.0); 7]);
        mock.run().unwrap();
        mock.block.process.message("shift_hz", &ParameterValue::Number(-500.0)).unwrap();
        mock.feed("in", &[Sample::new(1.0, 0.0); 7]);
        mock.run().unwrap();
        for (n, y) in mock.take::<Sample>("out").into_iter().enumerate() {
            let n = n as f64;
            let turn = if n < 7.0 { 0.1 * n } else { 0.7 - 0.05 * (n - 7.0) };
            let (sin, cos) = (TAU * turn).sin_cos();
            let close = (f64::from(y.re) - cos).hypot(f64::from(y.im) - sin) < 1e-6;
            assert!(close, "{n}: {y}");
        }
    }
}
