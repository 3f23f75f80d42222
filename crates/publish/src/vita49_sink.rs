//! Samples in packets of VITA 49.2 to several receivers.

use crate::Outlet;
use crate::clock::ItemClock;
use crate::delivery::{Delivery, END_LOOK};
use crate::publications::Publications;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, In, Ports, Tag, TagTime, Work, keys,
};
use millstream_wire::vita49::{
    CONTEXT_LEN, ContextRepr, DATA_HEADER_LEN, Epoch, PrologueRepr, emit_data_header, emit_samples,
};
use std::time::Duration;

/// What receivers are told about the samples.
#[derive(Clone, Debug)]
pub struct Vita49Options {
    /// The number of the stream.
    pub stream: u32,
    /// The epoch of the radio's clock.
    pub epoch: Epoch,
    /// Samples of a packet; the last one before a gap can have fewer.
    pub samples: usize,
    /// Samples per second.
    pub rate_hz: f64,
    /// Bandwidth, Hz.
    pub bandwidth_hz: f64,
    /// The frequency in the middle of the band, Hz; `None` if it is not known.
    pub frequency_hz: Option<f64>,
    /// Gain, dB; `None` if it is not known.
    pub gain_db: Option<f64>,
    /// The interval of context packets, in time of the stream.
    pub context_every: Duration,
    /// Bytes of each receiver's queue.
    pub queue_bytes: usize,
    /// How long the block goes on after the graph's end, until all is sent.
    pub linger: Duration,
}

/// Sends samples to several receivers, in packets of signal data and their context by VITA 49.2, in
/// the profile of DIFI. Each receiver has a queue, a thread and a ledger of its own, so one that is
/// slow loses packets, and no other notices.
///
/// A gap in the stream shows in the timestamps. Before the first packet behind it a context packet
/// with the same timestamp has the indicator of lost samples, and the count of data packets leaves
/// out a number. A packet that the queue of a receiver does not take leaves a number out, too, for
/// this receiver alone.
///
/// Ports: `in`.
#[derive(Ports)]
pub struct Vita49Sink {
    /// Samples.
    pub input: In<[i16; 2]>,
    options: Vita49Options,
    deliveries: Vec<Delivery>,
    clock: ItemClock,
    packet: Vec<u8>,
    /// The numbers of the next data packet and of the next context packet.
    data_count: u8,
    context_count: u8,
    /// The item from which on a context packet is due.
    context_due: u64,
    is_changed: bool,
    is_after_loss: bool,
    /// Items whose tags have been read.
    seen: u64,
}

impl Vita49Sink {
    /// Creates a block that sends to `receivers`, which `publications` lists in their order.
    ///
    /// # Errors
    /// Options that do not fit into a packet; when a queue gets no memory.
    pub fn new(
        receivers: Vec<Box<dyn Outlet>>,
        options: Vita49Options,
        publications: &Publications,
    ) -> Result<Self, BlockError> {
        let bytes = (DATA_HEADER_LEN + 4 * options.samples).max(CONTEXT_LEN);
        let sizes = (options.queue_bytes, options.linger);
        let delivery = |outlet| Ok(Delivery::new(outlet, sizes, (publications, Duration::ZERO))?.0);
        let deliveries = receivers.into_iter().map(delivery).collect::<Result<_, BlockError>>()?;
        let mut sink = Self {
            input: In::with_min_items(options.samples.max(1)),
            deliveries,
            clock: ItemClock::new(Some(options.rate_hz)),
            packet: vec![0; bytes],
            data_count: 0,
            context_count: 0,
            context_due: 0,
            is_changed: true,
            is_after_loss: false,
            seen: 0,
            options,
        };
        // What cannot be said is refused here, not while samples flow.
        let start = sink.prologue(0, TagTime::default());
        sink.context().emit(&start, &mut sink.packet).map_err(cannot)?;
        emit_data_header(&start, sink.options.samples, &mut sink.packet).map_err(cannot)?;
        Ok(sink)
    }

    fn prologue(&self, count: u8, time: TagTime) -> PrologueRepr {
        let picoseconds = (u128::from(time.fraction) * 1_000_000_000_000) >> 64;
        PrologueRepr {
            stream: self.options.stream,
            count,
            epoch: self.options.epoch,
            // The field has 32 bits, which a clock that counts from 1970 fills in 2106.
            seconds: time.seconds as u32,
            picoseconds: picoseconds as u64,
        }
    }

    fn context(&self) -> ContextRepr {
        ContextRepr {
            is_changed: self.is_changed,
            bandwidth_hz: self.options.bandwidth_hz,
            frequency_hz: self.options.frequency_hz,
            gain_db: self.options.gain_db,
            rate_hz: self.options.rate_hz,
            is_after_loss: self.is_after_loss,
        }
    }

    fn offer(&mut self, bytes: usize) {
        let packet = &self.packet[..bytes];
        self.deliveries.iter_mut().for_each(|delivery| delivery.offer(packet));
    }

    /// Reads the tags before item `end`.
    fn read_tags(&mut self, end: u64) {
        let from = self.seen;
        self.seen = end.max(from);
        let tags = self.input.tags().map(|(_, tag)| tag);
        for tag in tags.filter(|tag| (from..end).contains(&tag.offset)) {
            self.clock.read(&tag);
            self.is_after_loss |= is_loss(&tag);
        }
    }

    /// Returns the items from `item` to the next one with a new time or a loss before it.
    fn until_mark(&self, item: u64) -> u64 {
        let marks = self.input.tags().map(|(_, tag)| tag);
        let mut marks = marks.filter(|tag| is_loss(tag) || tag.key == keys::RX_TIME);
        marks.find(|tag| tag.offset > item).map_or(u64::MAX, |tag| tag.offset - item)
    }

    /// Sends a context packet, if one is due at item `item`, whose time is `time`.
    fn send_context(&mut self, item: u64, time: TagTime) -> Result<(), BlockError> {
        if item < self.context_due && !self.is_after_loss {
            return Ok(());
        }
        let prologue = self.prologue(self.context_count, time);
        let bytes = self.context().emit(&prologue, &mut self.packet).map_err(cannot)?;
        self.offer(bytes);
        self.context_count = self.context_count.wrapping_add(1);
        if self.is_after_loss {
            self.data_count = self.data_count.wrapping_add(1);
        }
        (self.is_changed, self.is_after_loss) = (false, false);
        let interval = self.options.context_every.as_secs_f64() * self.options.rate_hz;
        self.context_due = item.saturating_add((interval as u64).max(1));
        Ok(())
    }

    /// Sends the samples that are there; returns their number.
    fn send(&mut self) -> Result<usize, BlockError> {
        let (first, there) = (self.input.position(), self.input.slice().len());
        let mut done = 0;
        while done < there {
            let item = first + done as u64;
            let marked = usize::try_from(self.until_mark(item)).unwrap_or(usize::MAX);
            let count = self.options.samples.min(there - done).min(marked);
            if count < self.options.samples.min(marked) && !self.input.is_ended() {
                break;
            }
            self.read_tags(item + 1);
            // A stream without times counts from zero.
            let time = self.clock.time(item);
            let time = time.unwrap_or_else(|| TagTime::from_ticks(item, self.options.rate_hz));
            self.send_context(item, time)?;
            let prologue = self.prologue(self.data_count, time);
            let head = emit_data_header(&prologue, count, &mut self.packet).map_err(cannot)?;
            let samples = &self.input.slice()[done..done + count];
            emit_samples(samples, &mut self.packet[head..]);
            self.offer(head + 4 * count);
            self.data_count = self.data_count.wrapping_add(1);
            done += count;
        }
        Ok(done)
    }
}

fn cannot(error: millstream_wire::Error) -> BlockError {
    format!(
        "the stream does not fit into packets of VITA 49.2: {error}; check frequency, rate, gain, \
         and the samples of a packet"
    )
    .into()
}

/// Whether samples are missing before the item of a tag.
fn is_loss(tag: &Tag) -> bool {
    tag.key == keys::LOSS_CAUSE || tag.key == keys::LOSS_ITEMS
}

impl Block for Vita49Sink {
    fn start(&mut self) -> Result<(), BlockError> {
        self.deliveries.iter_mut().try_for_each(Delivery::start)
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let samples = self.send()?;
        self.input.consume(samples);
        if self.input.is_ended() && self.input.slice().is_empty() {
            // Each ends by itself, so all are asked.
            let left = self
                .deliveries
                .iter_mut()
                .filter_map(|delivery| (!delivery.is_done()).then_some(()));
            let is_done = left.count() == 0;
            return Ok(if is_done { Work::Finished } else { Work::Again(END_LOOK) });
        }
        self.deliveries.iter().for_each(Delivery::wake);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.deliveries.iter_mut().for_each(Delivery::end);
        self.deliveries.iter_mut().try_for_each(Delivery::join)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        // Each receiver has a ledger of its own, in the publications.
        facts.metrics.extend(
            self.deliveries
                .first()
                .filter(|_| self.deliveries.len() == 1)
                .map_or_else(Vec::new, Delivery::metrics),
        );
    }
}
