//! The buffer law: a buffer must hold the samples that the clock consumes or produces during the
//! worst-case latency. Rate × latency = buffer; any two give the third.
//!
//! ```
//! use millstream_lab::buffer;
//!
//! // A transmit FIFO of 64k samples at 250 MS/s covers 262 µs.
//! assert_eq!((buffer::slack_s(65_536, 250e6) * 1e6).floor(), 262.0);
//! assert!(buffer::holds(65_536, 250e6, 80e-6));
//! assert!(!buffer::holds(65_536, 250e6, 300e-6));
//! ```

use millstream_stats::Histogram;

/// Samples that cover `latency_s` at `rate_hz`.
pub fn samples_for(latency_s: f64, rate_hz: f64) -> u64 {
    // Decimal inputs are not exact in binary: a product slightly above a whole number is that
    // number.
    (latency_s * rate_hz * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64
}

/// The time that `samples` last at `rate_hz`, seconds.
pub fn slack_s(samples: u64, rate_hz: f64) -> f64 {
    samples as f64 / rate_hz
}

/// The highest rate at which `samples` cover `latency_s`, Hz.
pub fn rate_max_hz(samples: u64, latency_s: f64) -> f64 {
    samples as f64 / latency_s
}

/// Whether `samples` cover `latency_s` at `rate_hz`.
pub fn holds(samples: u64, rate_hz: f64, latency_s: f64) -> bool {
    samples >= samples_for(latency_s, rate_hz)
}

/// The reason why a histogram gives no buffer size.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizingError {
    /// A probability is between 0 and 1.
    #[error("--probability is {probability}: give more than 0 and less than 1")]
    NoProbability {
        /// The requested value.
        probability: f64,
    },
    /// The rarest measured event is more likely than the requested one.
    #[error(
        "{count} measured latencies are too few to find one in {wanted:.0}: measure at least \
         {wanted:.0}, or give a probability of at least {reachable:.1e}"
    )]
    TooFew {
        /// Latencies measured.
        count: u64,
        /// The requested rarity: one latency in this many exceeds the buffer.
        wanted: f64,
        /// The smallest probability that this histogram supports.
        reachable: f64,
    },
}

/// The smallest buffer, in samples, that at most a share `probability` of the measured latencies
/// exceeds at `rate_hz`, and the latency that it covers, nanoseconds.
///
/// Nothing is extrapolated: a probability below one in the number of measured latencies is an
/// error. The latency is the upper edge of a histogram's class, so the answer errs on the large
/// side by at most [`millstream_stats::RESOLUTION`].
///
/// # Errors
/// [`SizingError`].
pub fn samples_for_probability(
    latencies: &Histogram,
    probability: f64,
    rate_hz: f64,
) -> Result<(u64, u64), SizingError> {
    if !(probability > 0.0 && probability < 1.0) {
        return Err(SizingError::NoProbability { probability });
    }
    let (count, wanted) = (latencies.count(), (1.0 / probability).ceil());
    if (count as f64) < wanted {
        let reachable = 1.0 / count.max(1) as f64;
        return Err(SizingError::TooFew { count, wanted, reachable });
    }
    let latency_ns = latencies.quantile_ns(1.0 - probability);
    Ok((samples_for(latency_ns as f64 / 1e9, rate_hz), latency_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_talks_figures_come_out() {
        // 64k samples per channel, 4 bytes each, on an N320 at 250 MS/s; 80 µs with DPDK and
        // 300 µs through the kernel.
        assert_eq!(65_536 * 4, 256 * 1024);
        let slack_us = slack_s(65_536, 250e6) * 1e6;
        assert!((slack_us - 262.144).abs() < 1e-9, "{slack_us}");
        assert_eq!(samples_for(80e-6, 250e6), 20_000);
        assert_eq!(samples_for(300e-6, 250e6), 75_000);
        assert!(holds(65_536, 250e6, 80e-6) && !holds(65_536, 250e6, 300e-6));
    }

    #[test]
    fn any_two_of_rate_latency_and_buffer_give_the_third() {
        for rate_hz in [1e3, 6.25e6, 61.44e6, 245.76e6] {
            for samples in [1, 362, 65_536, 1 << 30] {
                let slack = slack_s(samples, rate_hz);
                assert_eq!(samples_for(slack, rate_hz), samples, "{rate_hz} {samples}");
                assert!((rate_max_hz(samples, slack) / rate_hz - 1.0).abs() < 1e-12);
                assert!(holds(samples, rate_hz, slack));
                assert!(!holds(samples, rate_hz, slack * 1.001 + 1.0 / rate_hz));
            }
        }
    }

    #[test]
    fn a_histogram_and_a_probability_give_a_buffer() {
        let mut latencies = Histogram::default();
        (0..990).for_each(|_| latencies.record(50_000));
        (0..10).for_each(|_| latencies.record(400_000));
        let (samples, latency_ns) = samples_for_probability(&latencies, 0.02, 1e6).unwrap();
        assert!((50_000..51_000).contains(&latency_ns), "{latency_ns}");
        assert_eq!(samples, latency_ns.div_ceil(1_000));
        let (samples, _) = samples_for_probability(&latencies, 0.005, 1e6).unwrap();
        assert!((400..=407).contains(&samples), "{samples}");
    }

    #[test]
    fn what_was_not_measured_is_not_promised() {
        let mut latencies = Histogram::default();
        (0..1000).for_each(|_| latencies.record(1));
        let ask = |p| samples_for_probability(&latencies, p, 1e6).unwrap_err().to_string();
        let text = "1000 measured latencies are too few to find one in 1000000: measure at least \
             1000000, or give a probability of at least 1.0e-3";
        assert_eq!(ask(1e-6), text);
        assert_eq!(ask(0.0), "--probability is 0: give more than 0 and less than 1");
        assert!(ask(f64::NAN).contains("--probability is NaN: give"));
    }
}
