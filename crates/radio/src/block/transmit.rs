//! The sink of transmit channels.

use std::time::{Duration, Instant};

use millstream_flow::port::NumberedName;
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, PortVisitor, Ports, Work};
use millstream_wire::chdr::SC16_LEN;

use super::metrics::TransmitMetrics;
use crate::tx::{TX_CHANNELS_MAX, TxDelay};
use crate::{Device, RadioError, StreamSample, TxError, TxLedger, TxMetadata, TxStreamer};

/// When the first sample of a sink leaves the antenna.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum TransmitStart {
    /// As soon as it reaches the device.
    #[default]
    AtOnce,
    /// At the device's time, ticks.
    At(u64),
    /// This long after the first sample reaches the sink, by the device's clock.
    After(Duration),
}

/// The outcome of one call.
enum Progress {
    /// There is nothing to send.
    Starved,
    /// There may be more to send.
    Sent,
    /// The burst has ended.
    Over,
}

/// Transmits samples on one or several channels of a radio, as one burst: it begins with the first
/// sample, and ends with the last one before the input ends.
///
/// A graph that is too slow costs underflows, which the metrics count: the device then transmits
/// the next samples later than it should, or drops them as late when the burst has a start time.
///
/// # Stream inputs
/// - `in`, or for several channels `in0`, `in1`, …: the samples of each. All channels take the same
///   number, so the slowest input decides. Full scale is 1 for floats.
///
/// # Metrics
/// `accepted`, `transmitted`, `in_flight`, `unknown` and one counter for each [`crate::TxCause`],
/// which balance at the end; `packets`, `underflows`, `lates` (packets), `burst_acks`, `stalls` and
/// `hostile`; `transmit_delay_s`, the time from sending the last samples with an outcome to the
/// radio's report of it ([`TxDelay`]).
pub struct RadioSink<T: StreamSample> {
    inputs: Vec<In<T>>,
    stream: Option<TxStreamer>,
    /// Holds the claim; declared after the stream, so that it is dropped last.
    _device: Device,
    start: TransmitStart,
    begun: bool,
    delay: TxDelay,
    metrics: TransmitMetrics,
}

impl<T: StreamSample> RadioSink<T> {
    /// Returns a sink of a stream of `device`.
    pub fn new(device: Device, stream: TxStreamer, start: TransmitStart) -> Self {
        let channels = stream.members();
        let delay = TxDelay::new(channels[0].credit_window_bytes() / SC16_LEN as u64);
        Self {
            // One sample stays until the next one, or the end.
            inputs: channels.iter().map(|_| In::with_min_items(2)).collect(),
            stream: Some(stream),
            _device: device,
            start,
            begun: false,
            delay,
            metrics: TransmitMetrics::default(),
        }
    }

    /// Sends what is there on every input, except the last sample: it leaves with the end of the
    /// burst, once an input has ended.
    fn send(&mut self, timeout: Duration) -> Result<Progress, TxError> {
        let Some(stream) = &mut self.stream else { return Ok(Progress::Over) };
        let mut slices: [&[T]; TX_CHANNELS_MAX] = [&[]; TX_CHANNELS_MAX];
        let mut count = usize::MAX;
        for (slice, input) in slices.iter_mut().zip(&self.inputs) {
            *slice = input.slice();
            count = count.min(slice.len());
        }
        let is_last = |input: &In<T>| input.is_ended() && input.slice().len() == count;
        let end_of_burst = self.inputs.iter().any(is_last);
        if end_of_burst && count == 0 && !stream.is_in_burst() {
            return Ok(Progress::Over);
        }
        let wanted = if end_of_burst { count } else { count.saturating_sub(1) };
        if wanted == 0 && !end_of_burst {
            return Ok(Progress::Starved);
        }
        let slices = &mut slices[..self.inputs.len()];
        slices.iter_mut().for_each(|slice| *slice = &slice[..wanted]);
        let time_ticks = if self.begun { None } else { self.start.ticks(stream)? };
        let meta = TxMetadata { time_ticks, end_of_burst };
        let sent = stream.send_all(slices, meta, timeout)?;
        self.begun |= sent.samples > 0;
        self.inputs.iter_mut().for_each(|input| input.consume(sent.samples));
        Ok(if sent.end_of_burst { Progress::Over } else { Progress::Sent })
    }

    /// Publishes the state of the stream.
    fn follow(&mut self) -> Result<(), TxError> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        // The counters have every event.
        while stream.poll_event()?.is_some() {}
        self.metrics.follow_ledger(&stream.ledger());
        let first = stream.members()[0].ledger();
        if let Some(delay) = self.delay.follow(first, Instant::now()) {
            self.metrics.transmit_delay_s.set(delay.as_secs_f64());
        }
        self.metrics.follow_counters(&stream.counters());
        Ok(())
    }
}

impl TransmitStart {
    fn ticks(self, stream: &TxStreamer) -> Result<Option<u64>, RadioError> {
        Ok(match self {
            Self::AtOnce => None,
            Self::At(ticks) => Some(ticks),
            Self::After(lead) => {
                let lead = (lead.as_secs_f64() * stream.rate().ticks_hz).round() as u64;
                Some(stream.time_ticks()?.wrapping_add(lead))
            }
        })
    }
}

impl<T: StreamSample> Ports for RadioSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        visit(&mut self.inputs, ports);
    }
}

/// Shows the inputs of a sink: a single one has no number.
pub(super) fn visit<T: StreamSample>(inputs: &mut [In<T>], ports: &mut dyn PortVisitor) {
    if let [only] = inputs {
        return ports.input("in", only);
    }
    for (number, input) in inputs.iter_mut().enumerate() {
        ports.input(&NumberedName::new("in", number), input);
    }
}

impl<T: StreamSample> Block for RadioSink<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let progress = self.send(context.may_block)?;
        self.follow()?;
        Ok(match progress {
            Progress::Starved => Work::Continue,
            Progress::Sent => Work::Again(Duration::ZERO),
            Progress::Over => Work::Finished,
        })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.follow()?;
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        stream.end(None);
        self.metrics.follow_ledger(&stream.ledger());
        Ok(stream.ledgers().try_for_each(TxLedger::balance)?)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metrics.extend(self.metrics.list());
    }
}
