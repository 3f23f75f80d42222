//! Items out of a graph, into a program with a loop of its own.

use super::{Graph, GraphError};
use crate::block::{Block, BlockError, Context, Work};
use crate::facts::{BlockFacts, copied_ns};
use crate::item::Item;
use crate::port::{In, InputPort, Out, OutputPort, PortVisitor, Ports};
use crate::tag::{Tag, keys};
use millstream_ring::{Doorbell, RingOptions};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that wait for the program at most, about.
const WAITING_BYTES: usize = 1 << 20;

/// Reserved tags of one item.
const TAGS: usize = 16;

/// The time until a sink that found no room looks again.
const FULL_STEP: Duration = Duration::from_millis(1);

impl Graph {
    /// Lets the program take the items of an output, `block.port`, where it likes, without a block
    /// of its own. The graph waits for the program while about a mebibyte of items waits.
    ///
    /// ```
    /// use millstream_flow::blocks::{Head, NullSource};
    /// use millstream_flow::{Graph, Plan};
    /// use std::time::Duration;
    ///
    /// let mut graph = Graph::new();
    /// graph.add("zeros", NullSource::<f32>::new())?;
    /// graph.add("first", Head::<f32>::new(1000))?;
    /// graph.chain(&["zeros", "first"])?;
    /// let mut items = graph.pull::<f32>("first")?;
    /// let running = graph.start(&Plan::default())?;
    /// let (mut buffer, mut total) = ([0.0; 256], 0);
    /// loop {
    ///     let read = items.recv(&mut buffer, Duration::from_secs(1))?;
    ///     total += read.items;
    ///     if read.is_ended {
    ///         break;
    ///     }
    ///     assert!(read.items > 0, "nothing came for a second");
    /// }
    /// running.wait()?;
    /// assert_eq!(total, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect): there is no such output, or its items are others.
    /// [`GraphError::Ring`] and [`GraphError::Pull`] when the kernel refuses memory or a wake-up.
    pub fn pull<T: Item>(&mut self, output: &str) -> Result<PullReader<T>, GraphError> {
        let name = format!("pull_{}", output.replace('.', "_"));
        let bell = Doorbell::new()
            .map_err(|source| GraphError::Pull { output: output.to_owned(), source })?;
        let shared = Arc::new(Shared { bell, is_whole: AtomicBool::new(false) });
        let mut way_out = Out::<T>::new();
        let items = WAITING_BYTES.div_ceil(size_of::<T>().max(1));
        let ends = OutputPort::open(&mut way_out, &RingOptions::items(items));
        let ends = ends.map_err(|source| GraphError::Ring { output: output.to_owned(), source })?;
        let mut input = In::<T>::new();
        for end in ends {
            input.attach(end);
        }
        let sink = PullSink { input: In::new(), way_out, shared: Arc::clone(&shared) };
        self.add(&name, sink)?;
        self.connect(output, &name)?;
        Ok(PullReader { input, shared, tags: Vec::with_capacity(TAGS) })
    }
}

/// What the sink and its reader share.
struct Shared {
    bell: Doorbell,
    /// The stream came to its end. Stored before the ring closes, which orders it.
    is_whole: AtomicBool,
}

/// Passes items and tags to a ring outside of the graph.
struct PullSink<T: Item> {
    input: In<T>,
    /// Not a port of the graph.
    way_out: Out<T>,
    shared: Arc<Shared>,
}

impl<T: Item> Ports for PullSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("in", &mut self.input);
    }
}

impl<T: Item> Block for PullSink<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let Self { input, way_out, shared } = self;
        if way_out.view().is_some_and(|view| view.is_abandoned()) {
            return Ok(Work::Finished);
        }
        let (items, room) = (input.slice(), way_out.slice_mut());
        let count = items.len().min(room.len());
        room[..count].copy_from_slice(&items[..count]);
        let is_full = count < items.len();
        for (index, tag) in input.tags().take_while(|(index, _)| *index < count) {
            way_out.tag(index, tag.key, tag.value);
        }
        input.consume(count);
        way_out.produce(count);
        if count > 0 {
            shared.bell.nudge();
        }
        Ok(if is_full { Work::Again(FULL_STEP) } else { Work::Continue })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.shared.is_whole.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>());
    }
}

impl<T: Item> Drop for PullSink<T> {
    fn drop(&mut self) {
        OutputPort::close(&mut self.way_out);
        self.shared.bell.ring();
    }
}

/// The items of an output, for one thread of the program; from [`Graph::pull`]. When it is dropped,
/// the graph goes on without it.
pub struct PullReader<T: Item> {
    input: In<T>,
    shared: Arc<Shared>,
    /// The tags on the first item of the last read.
    tags: Vec<Tag>,
}

/// What [`PullReader::recv`] read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PullRead {
    /// The number of items in the buffer. None after a time-out, and perhaps at the end.
    pub items: usize,
    /// The number of items that are missing before the first, by its tags `loss_items`.
    pub missing: u64,
    /// Whether the stream has ended: no item will come any more.
    pub is_ended: bool,
}

/// Why no more items can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The graph was dropped, or a block failed.
    #[error(
        "the graph ended before the stream did: a block failed, or the running graph was \
         dropped; `RunningGraph::wait` returns the error"
    )]
    Broken,
    /// The kernel refused the wait.
    #[error("cannot wait for items: {0}")]
    Wait(#[from] io::Error),
}

impl<T: Item> PullReader<T> {
    /// Copies the next items into the buffer: as many as are there, but none behind the next item
    /// with a tag, which is the first item of a later read. Waits for the first item until
    /// `timeout` has passed; then it returns no item, and the stream has not ended: a loop that
    /// does not look at this goes on for ever. A buffer without room gets nothing, at once.
    ///
    /// # Errors
    /// [`PullError::Broken`] when all items of a graph that failed have been read.
    pub fn recv(&mut self, buffer: &mut [T], timeout: Duration) -> Result<PullRead, PullError> {
        let until = Instant::now().checked_add(timeout);
        self.tags.clear();
        if buffer.is_empty() {
            return Ok(PullRead::default());
        }
        loop {
            let seen = self.input.slice().len();
            if seen > 0 {
                return Ok(self.take(buffer, seen));
            }
            if self.input.is_ended() {
                let is_whole = self.shared.is_whole.load(Ordering::Relaxed);
                let ended = PullRead { is_ended: true, ..PullRead::default() };
                return if is_whole { Ok(ended) } else { Err(PullError::Broken) };
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(PullRead::default());
            }
            let input = &self.input;
            let look = || !input.slice().is_empty() || input.is_ended();
            self.shared.bell.wait_unless(look, &[], left)?;
        }
    }

    /// Returns the tags on the first item of the last read.
    #[must_use]
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Takes items of the first `seen`, which are there.
    fn take(&mut self, buffer: &mut [T], seen: usize) -> PullRead {
        self.input.fetch_tags();
        let mut items = seen.min(buffer.len());
        let mut missing = 0u64;
        for (index, tag) in self.input.tags() {
            if index > 0 {
                items = items.min(index);
                break;
            }
            self.tags.push(tag);
            if tag.key == keys::LOSS_ITEMS {
                missing = missing.saturating_add(tag.value.as_count().unwrap_or(0));
            }
        }
        buffer[..items].copy_from_slice(&self.input.slice()[..items]);
        self.input.consume(items);
        PullRead { items, missing, is_ended: false }
    }
}
