//! The streams of a run: outputs of its graph that clients can look at.

use crate::documents::{StreamInfo, StreamKind};
use crate::feed::StreamFeed;
use crate::shot::{Show, shots};
use millstream_flow::{Complex, Graph, GraphError, Item, ItemType};

/// What is known about a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamFacts {
    /// Items a second.
    pub rate_hz: Option<f64>,
    /// Frequency of the middle.
    pub centre_hz: Option<f64>,
    /// Ticks of the device's clock a second.
    pub ticks_hz: Option<f64>,
}

/// A function that appends the values of an item to a list.
pub type AppendValues<T> = fn(&T, &mut Vec<Complex<f32>>);

/// Streams for a server.
#[derive(Default)]
pub struct Streams(Vec<StreamFeed>);

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
        let info = |item| StreamInfo {
            stream: self.next(),
            name: output.to_owned(),
            kind: StreamKind::Spectrum,
            item,
            rate_hz: facts.rate_hz,
            centre_hz: facts.centre_hz,
            ticks_hz: facts.ticks_hz,
            levels: Vec::new(),
        };
        if item == ItemType::of::<[i16; 2]>() {
            self.tap(graph, info("sc16"), Show::SC16)?;
        } else if item == ItemType::of::<Complex<f32>>() {
            self.tap(graph, info("fc32"), Show::FC32)?;
        } else {
            return Ok(false);
        }
        Ok(true)
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
        self.tap(graph, info, Show { values, append })?;
        Ok(true)
    }

    fn next(&self) -> u16 {
        // More outputs than numbers do not fit in a machine.
        self.0.len() as u16
    }

    fn tap<T: Item>(
        &mut self,
        graph: &mut Graph,
        info: StreamInfo,
        show: Show<T>,
    ) -> Result<(), GraphError> {
        let (tap, source, behind) = shots::<T>(info.rate_hz, show);
        graph.tap::<T>(&info.name, tap)?;
        self.0.push(StreamFeed::new(info, Box::new(source), behind));
        Ok(())
    }

    pub(crate) fn into_feeds(self) -> Vec<StreamFeed> {
        self.0
    }
}
