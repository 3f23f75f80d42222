//! The streams of a run: outputs of its graph that clients can look at.

use crate::documents::{StreamInfo, StreamKind};
use crate::feed::StreamFeed;
use crate::shot::{ShotTap, Show, shots};
use millstream_flow::{Complex, Graph, GraphError, Item, ItemType, OutputTap};

/// What is known about a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamFacts {
    /// Items a second.
    pub rate_hz: Option<f64>,
    /// Frequency of the middle.
    pub centre_hz: Option<f64>,
    /// Ticks of the device's clock a second.
    pub ticks_hz: Option<f64>,
    /// Whether a clock that runs as fast as this machine's gives the times: then it is measured how
    /// far the stream is behind it.
    pub is_live: bool,
}

/// A stream that is no output of a graph: its program shows it the samples.
pub struct ShownSamples<T: Item> {
    tap: ShotTap<T>,
    position: u64,
}

impl<T: Item> ShownSamples<T> {
    /// Shows samples that directly follow the last ones. It never waits, allocates or locks.
    pub fn show(&mut self, samples: &[T]) {
        self.tap.produced(self.position, samples);
        self.position += samples.len() as u64;
    }
}

/// A type of complex samples.
pub trait ShownItem: Item {
    /// Its name in the protocol.
    const NAME: &'static str;
    /// How its values are shown.
    #[doc(hidden)]
    fn append(&self, values: &mut Vec<Complex<f32>>);
}

impl ShownItem for Complex<f32> {
    const NAME: &'static str = "fc32";

    fn append(&self, values: &mut Vec<Complex<f32>>) {
        (Show::FC32.append)(self, values);
    }
}

impl ShownItem for [i16; 2] {
    const NAME: &'static str = "sc16";

    fn append(&self, values: &mut Vec<Complex<f32>>) {
        (Show::SC16.append)(self, values);
    }
}

/// A function that appends the values of an item to a list.
pub type AppendValues<T> = fn(&T, &mut Vec<Complex<f32>>);

/// Streams for a server.
#[derive(Default)]
pub struct Streams(Vec<StreamFeed>);

/// Bytes of a `sc16` sample, little-endian.
impl ShownItem for [u8; 4] {
    const NAME: &'static str = "sc16";

    fn append(&self, values: &mut Vec<Complex<f32>>) {
        let [i0, i1, q0, q1] = *self;
        (Show::SC16.append)(&[[i0, i1], [q0, q1]].map(i16::from_le_bytes), values);
    }
}

impl Streams {
    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Taps an output of a graph that has complex samples; returns false if it has none.
    ///
    /// # Errors
    /// [`GraphError`] for an output that does not exist.
    pub fn spectrum(
        &mut self,
        graph: &mut Graph,
        output: &str,
        facts: StreamFacts,
    ) -> Result<bool, GraphError> {
        let item = graph.output_item(output)?;
        if item == ItemType::of::<[i16; 2]>() {
            graph.tap::<[i16; 2]>(output, self.samples(output, facts, 1.0))?;
        } else if item == ItemType::of::<Complex<f32>>() {
            graph.tap::<Complex<f32>>(output, self.samples(output, facts, 1.0))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds a stream of complex samples that is no output of a graph; levels are shown as if they
    /// were multiplied by `gain`.
    pub fn shown<T: ShownItem>(
        &mut self,
        name: &str,
        facts: StreamFacts,
        gain: f32,
    ) -> ShownSamples<T> {
        ShownSamples { tap: self.samples(name, facts, gain), position: 0 }
    }

    fn samples<T: ShownItem>(&mut self, name: &str, facts: StreamFacts, gain: f32) -> ShotTap<T> {
        let info = StreamInfo {
            stream: self.next(),
            name: name.to_owned(),
            kind: StreamKind::Spectrum,
            item: T::NAME,
            rate_hz: facts.rate_hz,
            centre_hz: facts.centre_hz,
            ticks_hz: facts.ticks_hz,
            levels: Vec::new(),
        };
        self.add(info, facts.is_live, (Show { values: 1, append: T::append }, gain))
    }

    /// Taps an output of a graph whose items have `values` real symbols each, which `append` adds
    /// to a list; returns false if its items are of another type. `levels` are the values that
    /// symbols should have.
    ///
    /// # Errors
    /// [`GraphError`] for an output that does not exist.
    pub fn symbols<T: Item>(
        &mut self,
        graph: &mut Graph,
        output: &str,
        levels: &[f32],
        (values, append): (usize, AppendValues<T>),
    ) -> Result<bool, GraphError> {
        if graph.output_item(output)? != ItemType::of::<T>() {
            return Ok(false);
        }
        let info = StreamInfo {
            stream: self.next(),
            name: output.to_owned(),
            kind: StreamKind::Symbols,
            item: "f32",
            rate_hz: None,
            centre_hz: None,
            ticks_hz: None,
            levels: levels.to_vec(),
        };
        graph.tap::<T>(output, self.add(info, false, (Show { values, append }, 1.0)))?;
        Ok(true)
    }

    fn next(&self) -> u16 {
        // More outputs than numbers do not fit in a machine.
        self.0.len() as u16
    }

    fn add<T: Item>(
        &mut self,
        info: StreamInfo,
        is_live: bool,
        show: (Show<T>, f32),
    ) -> ShotTap<T> {
        let (tap, source, behind) = shots::<T>(info.rate_hz.filter(|_| is_live), show);
        self.0.push(StreamFeed::new(info, Box::new(source), behind));
        tap
    }

    pub(crate) fn into_feeds(self) -> Vec<StreamFeed> {
        self.0
    }
}
