//! The block of all sinks.

use crate::Outlet;
use crate::clock::ItemClock;
use crate::delivery::{Delivery, END_LOOK};
use crate::document::DocumentWriter;
use crate::publications::{MetricsInbox, Publications};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, In, Item, MessageSpec, ParameterKind, ParameterValue,
    Ports, Work,
};
use std::time::Duration;

/// The messages of a sink.
pub(crate) const MESSAGES: [MessageSpec; 1] =
    [MessageSpec::new("event", ParameterKind::Text, "a text to publish")];

/// Bytes of a message beside its data and label: numbers, times, keys, values.
const DOCUMENT_BYTES: usize = 512;
/// Reserved bytes for an event or a document of metrics; longer ones allocate.
const TEXT_BYTES: usize = 16 << 10;
/// Interval of looks for metrics and events while no item comes.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The settings of a sink.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// The sink's name in its messages.
    pub label: String,
    /// Items of a message; with 0, items are not published.
    pub items: usize,
    /// Whether tags are published.
    pub tags: bool,
    /// Items per second, for the times of messages; `None`: as the tag `rx_rate_hz` says.
    pub rate_hz: Option<f64>,
    /// The interval of metrics of the graph; zero for none.
    pub metrics_every: Duration,
    /// Bytes of the queue.
    pub queue_bytes: usize,
    /// How long the sink goes on after the graph's end, until all is acknowledged.
    pub linger: Duration,
}

/// Publishes items, tags, events and metrics as JSON.
///
/// A message has the sink's label, its own number (`seq`: a subscriber sees each drop as a gap),
/// the number of its first item, and that item's time by the device's clock where tags contain it.
/// The block never waits for the outlet: a message that finds no room in the queue is dropped and
/// counted.
///
/// Ports: `in`. Messages: `event`, a text to publish.
///
/// # Metrics
/// Those of a [`PublishLedger`](crate::PublishLedger): `offered`, `acknowledged`, one counter for
/// each [`crate::DropCause`]; `resent` and `connections`.
#[derive(Ports)]
pub struct PublishSink<T: Item> {
    /// Items.
    pub input: In<T>,
    options: PublishOptions,
    writer: DocumentWriter,
    delivery: Delivery,
    inbox: Option<MetricsInbox>,
    clock: ItemClock,
    /// Items whose tags have been read.
    seen: u64,
}

impl<T: Item + bytemuck::NoUninit> PublishSink<T> {
    /// Creates a sink to `outlet`, which `publications` lists.
    ///
    /// # Errors
    /// When the queue gets no memory.
    pub fn new(
        outlet: Box<dyn Outlet>,
        options: PublishOptions,
        publications: &Publications,
    ) -> Result<Self, BlockError> {
        let sizes = (options.queue_bytes, options.linger);
        let (delivery, inbox) =
            Delivery::new(outlet, sizes, (publications, options.metrics_every))?;
        let bytes = (options.items * size_of::<T>()).div_ceil(3) * 4 + DOCUMENT_BYTES;
        Ok(Self {
            input: In::with_min_items(options.items.max(1)),
            writer: DocumentWriter::new(&options.label, bytes.max(TEXT_BYTES)),
            clock: ItemClock::new(options.rate_hz),
            options,
            delivery,
            inbox,
            seen: 0,
        })
    }

    /// Publishes the tags before `index` that were not published yet, and keeps their times.
    fn pass_tags(&mut self, end: u64) {
        if self.seen >= end {
            return;
        }
        let from = std::mem::replace(&mut self.seen, end);
        let tags = self.input.tags().map(|(_, tag)| tag);
        for tag in tags.filter(|tag| (from..end).contains(&tag.offset)) {
            self.clock.read(&tag);
            if self.options.tags {
                let time = self.clock.time(tag.offset);
                let message = self.writer.tag(&tag, time);
                self.delivery.offer(message);
            }
        }
    }

    /// Publishes what came beside the items: metrics.
    fn pass_metrics(&mut self) {
        let Some(inbox) = &mut self.inbox else { return };
        let item = self.input.position();
        while let Some(metrics) = inbox.documents.pop() {
            let message = self.writer.metrics(item, self.clock.time(item), &metrics);
            self.delivery.offer(message);
            // It is freed where it was made.
            let _ = inbox.done.push(metrics);
        }
    }

    /// Publishes the items that are there; returns how many.
    fn pass_items(&mut self) -> usize {
        let (first, there) = (self.input.position(), self.input.slice().len());
        if self.options.items == 0 {
            self.pass_tags(first + there as u64);
            return there;
        }
        let mut done = 0;
        while done < there {
            let items = self.options.items.min(there - done);
            if items < self.options.items && !self.input.is_ended() {
                break;
            }
            let item = first + done as u64;
            self.pass_tags(item + 1);
            let bytes = bytemuck::cast_slice(&self.input.slice()[done..done + items]);
            let message = self.writer.packet(item, self.clock.time(item), bytes);
            self.delivery.offer(message);
            done += items;
        }
        self.pass_tags(first + done as u64);
        done
    }
}

impl<T: Item + bytemuck::NoUninit> Block for PublishSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        self.delivery.start()
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.pass_metrics();
        let items = self.pass_items();
        self.input.consume(items);
        if self.input.is_ended() && self.input.slice().is_empty() {
            let is_done = self.delivery.is_done();
            return Ok(if is_done { Work::Finished } else { Work::Again(END_LOOK) });
        }
        self.delivery.wake();
        let looks = self.inbox.is_some() && !self.input.is_ended();
        Ok(if looks { Work::Again(LOOK_EVERY) } else { Work::Continue })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.delivery.end();
        self.delivery.join()
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metrics.extend(self.delivery.metrics());
        facts.messages.extend(MESSAGES);
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let ParameterValue::Text(text) = value else {
            return Err(format!("{name} is `{value}`: expected text").into());
        };
        if self.delivery.is_ended() {
            return Err("the stream has ended: only what came before is still published".into());
        }
        let item = self.input.position();
        let message = self.writer.event(item, self.clock.time(item), text);
        self.delivery.offer(message);
        self.delivery.wake();
        Ok(())
    }
}

/// Items that a sink publishes.
pub(crate) trait PublishedItem: Item + bytemuck::NoUninit {}

impl<T: Item + bytemuck::NoUninit> PublishedItem for T {}

/// The parameters of all sinks.
#[derive(BlockParameters)]
pub(crate) struct SinkParameters {
    /// name of the stream in the messages
    #[parameter(default = "")]
    stream: String,
    /// items of a message; 0 publishes no items
    #[parameter(default = 188, most = 1 << 24)]
    items: usize,
    /// whether tags are published
    #[parameter(default = true)]
    tags: bool,
    /// items per second, for times; 0: as the tag rx_rate_hz says
    #[parameter(least = 0)]
    rate_hz: Option<f64>,
    /// interval of the graph's metrics, seconds; 0 for none
    #[parameter(default = 0.0, least = 0, most = 1e6)]
    metrics_s: f64,
    /// size of the queue, KiB
    #[parameter(default = 4096, least = 1, most = 1 << 22)]
    queue_kib: usize,
    /// longest wait for acknowledgements at the end, seconds
    #[parameter(default = 2.0, least = 0, most = 1e6)]
    linger_s: f64,
}

impl SinkParameters {
    pub(crate) fn make<T: PublishedItem>(
        self,
        outlet: impl Outlet + 'static,
        of: &Publications,
    ) -> Result<PublishSink<T>, BlockError> {
        let options = PublishOptions {
            label: self.stream,
            items: self.items,
            tags: self.tags,
            rate_hz: self.rate_hz,
            metrics_every: Duration::from_secs_f64(self.metrics_s),
            queue_bytes: self.queue_kib << 10,
            linger: Duration::from_secs_f64(self.linger_s),
        };
        PublishSink::new(Box::new(outlet), options, of)
    }

    /// Makes a sink that takes the messages, and publishes nothing.
    pub(crate) fn stand_in<T: Item>() -> RehearsedBlock<T> {
        RehearsedBlock::sink().with_messages(MESSAGES.to_vec())
    }
}
