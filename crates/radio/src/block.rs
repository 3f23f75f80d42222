//! The receive streamer as a flowgraph source: `radio_rx` in graph files.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use millstream_flow::registry::{BlockType, Kind, Parameters, Registry};
use millstream_flow::{Block, BlockError, Context, Counter, Item, Metric, Out, PortVisitor, Work};
use num_complex::Complex32;

use crate::{Cause, Device, DeviceArgs, Ledger, RxArgs, RxError, RxEvent, RxMetadata, RxStreamer};

/// Gaps that wait for whoever listens; more are counted in the ledger all the same.
const GAPS_WAITING_MAX: usize = 4096;

/// An item that a receive stream can produce.
pub trait WireSample: Item {
    /// Receives into a slice of such items, see [`RxStreamer::recv`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv`].
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError>;
}

impl WireSample for Complex32 {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv(out, timeout)
    }
}

impl WireSample for [i16; 2] {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv_sc16(out, timeout)
    }
}

/// Where a recording goes on after missing samples, or begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Samples delivered before it.
    pub first_sample: u64,
    /// Time of its first sample, ticks, where the device tells.
    pub time_ticks: Option<u64>,
    /// Why samples are missing before it; [`RxEvent::None`] at the beginning.
    pub event: RxEvent,
}

/// Samples of one receive channel.
///
/// # Stream outputs
/// - `out`: the samples, contiguous but for what the metrics count as lost.
///
/// # Metrics
/// `expected`, `delivered` and one counter for each [`Cause`], which balance at the end;
/// `packets`, `gaps`, `overruns`, `duplicates`, `hostile`.
pub struct RadioSource<T: WireSample> {
    /// The samples.
    pub out: Out<T>,
    stream: Option<RxStreamer>,
    /// Keeps the claim; after the stream in order, so that it goes last.
    _device: Device,
    samples: Option<u64>,
    delivered: u64,
    segments: SyncSender<Segment>,
    gap: RxEvent,
    metrics: Metrics,
}

/// The published counters; the ledger's causes in their own order.
#[derive(Default)]
struct Metrics {
    expected: Counter,
    delivered: Counter,
    lost: [Counter; Cause::ALL.len()],
    packets: Counter,
    gaps: Counter,
    overruns: Counter,
    duplicates: Counter,
    hostile: Counter,
}

/// Lets `counter` follow a total that another place keeps.
fn follow(counter: &Counter, total: u64) {
    counter.add(total.saturating_sub(counter.get()));
}

impl Metrics {
    fn follow_ledger(&self, ledger: &Ledger) {
        follow(&self.expected, ledger.expected);
        follow(&self.delivered, ledger.delivered);
        for (counter, (_, lost)) in self.lost.iter().zip(ledger.losses()) {
            follow(counter, lost);
        }
    }

    fn follow_stream(&self, stream: &RxStreamer) {
        let counters = stream.counters();
        self.follow_ledger(stream.ledger());
        follow(&self.packets, counters.packets);
        follow(&self.overruns, counters.overruns);
        follow(&self.duplicates, counters.duplicates);
        let hostile = counters.foreign + counters.malformed + counters.misaddressed;
        follow(&self.hostile, hostile + counters.unexpected);
    }
}

impl<T: WireSample> RadioSource<T> {
    /// A source of `samples` samples (without end when `None`) from a stream of `device`, and the
    /// list of its segments.
    pub fn new(
        device: Device,
        stream: RxStreamer,
        samples: Option<u64>,
    ) -> (Self, Receiver<Segment>) {
        let (sender, segments) = sync_channel(GAPS_WAITING_MAX);
        let source = Self {
            out: Out::new(),
            stream: Some(stream),
            _device: device,
            samples,
            delivered: 0,
            segments: sender,
            gap: RxEvent::None,
            metrics: Metrics::default(),
        };
        (source, segments)
    }

    /// Notes what one `recv` brought. True when the stream has ended.
    fn account(&mut self, meta: RxMetadata) -> bool {
        match meta.event {
            RxEvent::None | RxEvent::Timeout => {}
            event => {
                self.metrics.gaps.add(1);
                self.gap = event;
            }
        }
        let begins = self.delivered == 0 || self.gap != RxEvent::None;
        if meta.samples > 0 && begins {
            let (first_sample, event) = (self.delivered, std::mem::take(&mut self.gap));
            // Nobody has to listen, and a full list costs no more than its entry.
            let _ = self.segments.try_send(Segment {
                first_sample,
                time_ticks: meta.time_ticks,
                event,
            });
        }
        self.delivered += meta.samples as u64;
        self.out.produce(meta.samples);
        self.stream.as_ref().is_none_or(|stream| !stream.is_running())
    }
}

impl<T: WireSample> Block for RadioSource<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.output("out", &mut self.out);
    }

    fn start(&mut self) -> Result<(), BlockError> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        match self.samples {
            Some(samples) => stream.start_finite(samples, None)?,
            None => stream.start_continuous(None)?,
        }
        Ok(())
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let Some(stream) = &mut self.stream else { return Ok(Work::Finished) };
        let meta = T::recv(stream, self.out.slice_mut(), context.may_block)?;
        self.metrics.follow_stream(stream);
        let ended = self.account(meta);
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        if let Some(stream) = self.stream.take() {
            self.metrics.follow_stream(&stream);
            let ledger = stream.finish();
            self.metrics.follow_ledger(&ledger);
            ledger.balance()?;
        }
        Ok(())
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        let metrics = &self.metrics;
        let mut list = vec![
            ("expected", Metric::from(&metrics.expected)),
            ("delivered", Metric::from(&metrics.delivered)),
            ("packets", Metric::from(&metrics.packets)),
            ("gaps", Metric::from(&metrics.gaps)),
            ("overruns", Metric::from(&metrics.overruns)),
            ("duplicates", Metric::from(&metrics.duplicates)),
            ("hostile", Metric::from(&metrics.hostile)),
        ];
        let causes = Cause::ALL.iter().zip(&metrics.lost);
        list.extend(causes.map(|(cause, counter)| (cause.name(), Metric::from(counter))));
        list
    }
}

/// Adds `radio_rx` to the types that graph files may use.
pub fn register(registry: &mut Registry) {
    registry.register(
        BlockType::new("radio_rx", "Samples of one receive channel of a networked radio.")
            .required("args", Kind::Text, "the device: addr=IPV4[,rpc_port=N][,link=LINK]")
            .required("rate_hz", Kind::Number, "sample rate, Hz")
            .optional("channel", 0i64, "receive channel, from 0")
            .optional("samples", 0i64, "how many samples; 0 for no end")
            .factory(open),
    );
}

fn open(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    let args: DeviceArgs = parameters.text("args").parse()?;
    let channel = usize::try_from(parameters.integer("channel"))
        .map_err(|_| parameters.wrong("channel", "0 or more"))?;
    let samples = u64::try_from(parameters.integer("samples"))
        .map_err(|_| parameters.wrong("samples", "0 or more"))?;
    let mut device = Device::open(args)?;
    device.set_rate(parameters.number("rate_hz"))?;
    let stream = device.rx_stream(RxArgs::new(channel))?;
    let samples = Some(samples).filter(|samples| *samples > 0);
    Ok(Box::new(RadioSource::<Complex32>::new(device, stream, samples).0))
}
