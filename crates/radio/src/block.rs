//! The receive streamer as a flowgraph source: `radio_rx` in graph files.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use millstream_flow::registry::{BlockType, Kind, Parameters, Registry};
use millstream_flow::{Block, BlockError, Context, Counter, Item, Metric, Out, PortVisitor, Work};
use num_complex::Complex32;

use crate::{Cause, Device, DeviceArgs, Ledger, RxArgs, RxError, RxEvent, RxMetadata, RxStreamer};

/// Gaps that wait for whoever listens; more are counted in the ledger all the same.
const GAPS_WAITING_MAX: usize = 4096;

/// How many samples are received at once where there is no room for them.
const SPILL_SAMPLES: usize = 4096;

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

/// Why samples are missing somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// What happened to the stream.
    Stream(RxEvent),
    /// There was no room for so many samples behind the source.
    Full {
        /// Samples missing, exactly.
        samples: u64,
    },
}

/// Where a recording goes on after missing samples, or begins. Several that begin at one sample
/// say that several things happened before it; the last one has its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Samples delivered before it.
    pub first_sample: u64,
    /// Time of its first sample, ticks, where the device tells.
    pub time_ticks: Option<u64>,
    /// Why samples are missing before it; nothing at the beginning.
    pub gap: Option<Gap>,
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
    gap: Option<Gap>,
    /// Where samples go that there is no room for; empty when those wait.
    spill: Vec<T>,
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
            gap: None,
            spill: Vec::new(),
            metrics: Metrics::default(),
        };
        (source, segments)
    }

    /// When there is no room behind this source, samples are lost here and counted as
    /// [`Cause::ConsumerFull`], at once and exactly. Otherwise they wait, at last in the device,
    /// which has to stop when its buffer is full.
    pub fn without_waiting(mut self) -> Self
    where
        T: Default,
    {
        self.spill = vec![T::default(); SPILL_SAMPLES];
        self.out = Out::with_min_items(0);
        self
    }

    /// Notes what one `recv` brought. True when the stream has ended.
    fn account(&mut self, meta: RxMetadata, spilled: bool) -> bool {
        match meta.event {
            RxEvent::None | RxEvent::Timeout => {}
            event => {
                self.metrics.gaps.add(1);
                self.missing(Gap::Stream(event));
            }
        }
        if spilled && meta.samples > 0 {
            self.spilled(meta.samples as u64);
        } else if meta.samples > 0 {
            if self.delivered == 0 || self.gap.is_some() {
                self.tell(meta.time_ticks);
            }
            self.delivered += meta.samples as u64;
            self.out.produce(meta.samples);
        }
        self.stream.as_ref().is_none_or(|stream| !stream.is_running())
    }

    /// Samples came for which there was no room.
    fn spilled(&mut self, samples: u64) {
        if let Some(stream) = &mut self.stream {
            stream.refuse(samples);
        }
        match &mut self.gap {
            Some(Gap::Full { samples: missing }) => *missing += samples,
            _ => {
                self.metrics.gaps.add(1);
                self.missing(Gap::Full { samples });
            }
        }
    }

    /// Notes a gap; one before it at the same place is told on its own.
    fn missing(&mut self, gap: Gap) {
        if self.gap.is_some() {
            self.tell(None);
        }
        self.gap = Some(gap);
    }

    /// Nobody has to listen, and a full list costs no more than its entry.
    fn tell(&mut self, time_ticks: Option<u64>) {
        let segment = Segment { first_sample: self.delivered, time_ticks, gap: self.gap.take() };
        let _ = self.segments.try_send(segment);
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
        let room = self.out.slice_mut();
        let spills = room.is_empty() && !self.spill.is_empty();
        let place = if spills { &mut self.spill[..] } else { room };
        let meta = T::recv(stream, place, context.may_block)?;
        let ended = self.account(meta, spills);
        if let Some(stream) = &self.stream {
            self.metrics.follow_stream(stream);
        }
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        if self.gap.is_some() {
            self.tell(None);
        }
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
