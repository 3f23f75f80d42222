//! The block in the place of one that is not there in a rehearsal.

use crate::port::NumberedName;
use crate::value::ParameterValue;
use crate::{
    Block, BlockError, BlockFacts, Context, In, Item, MessageSpec, Out, PortVisitor, Ports, Work,
    copied_ns, keys,
};
use std::time::{Duration, Instant};

/// The time between two calls of a source that has a rate.
const STEP: Duration = Duration::from_millis(1);

/// Takes the place of a block that reads or writes outside of its graph, in a rehearsal
/// ([`BlockEffect`](crate::registry::BlockEffect)). Sources send zeros, sinks discard their items,
/// and messages change nothing.
///
/// # Stream inputs
/// - `in`: of a sink.
///
/// # Stream outputs
/// - `out`, or `out0`, `out1`, …: zeros. Tag on the first item: `rx_rate_hz`, if there is a rate.
#[derive(Debug)]
pub struct RehearsedBlock<T: Item> {
    input: Option<In<T>>,
    outputs: Vec<Out<T>>,
    is_numbered: bool,
    rate_hz: Option<f64>,
    end: Option<u64>,
    sent: u64,
    start: Option<Instant>,
    messages: Vec<MessageSpec>,
}

impl<T: Item> RehearsedBlock<T> {
    /// Makes a sink.
    #[must_use]
    pub fn sink() -> Self {
        Self { input: Some(In::new()), ..Self::numbered_source(0) }
    }

    /// Makes a source of one output, as fast as its readers.
    #[must_use]
    pub fn source() -> Self {
        Self { is_numbered: false, ..Self::numbered_source(1) }
    }

    /// Makes a source of several outputs, as fast as its slowest reader.
    #[must_use]
    pub fn numbered_source(outputs: usize) -> Self {
        Self {
            input: None,
            outputs: (0..outputs).map(|_| Out::new()).collect(),
            is_numbered: true,
            rate_hz: None,
            end: None,
            sent: 0,
            start: None,
            messages: Vec::new(),
        }
    }

    /// Lets a source send `rate_hz` items a second.
    #[must_use]
    pub fn at_rate(mut self, rate_hz: f64) -> Self {
        self.rate_hz = Some(rate_hz);
        self
    }

    /// Lets a source end after `items`; `None`: never.
    #[must_use]
    pub fn ending_after(mut self, items: Option<u64>) -> Self {
        self.end = items;
        self
    }

    /// Takes these messages, and ignores them.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<MessageSpec>) -> Self {
        self.messages = messages;
        self
    }

    /// Returns the items that a source may send by now.
    fn due(&mut self, now: Instant) -> u64 {
        let left = self.end.map_or(u64::MAX, |end| end - self.sent);
        let start = *self.start.get_or_insert(now);
        let passed = now.saturating_duration_since(start).as_secs_f64();
        // A saturating conversion: a float beyond the range gives the largest number.
        let due = self.rate_hz.map_or(u64::MAX, |rate_hz| (passed * rate_hz) as u64);
        due.saturating_sub(self.sent).min(left)
    }
}

impl<T: Item> Ports for RehearsedBlock<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        if let Some(input) = &mut self.input {
            ports.input("in", input);
        }
        for (number, output) in self.outputs.iter_mut().enumerate() {
            match self.is_numbered {
                true => ports.output(&NumberedName::new("out", number), output),
                false => ports.output("out", output),
            }
        }
    }
}

impl<T: Item> Block for RehearsedBlock<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        if let Some(input) = &mut self.input {
            let items = input.slice().len();
            input.consume(items);
            return Ok(Work::Continue);
        }
        let room = self.outputs.iter_mut().map(|out| out.slice_mut().len()).min().unwrap_or(0);
        let due = self.due(context.now);
        let items = room.min(usize::try_from(due).unwrap_or(usize::MAX));
        for output in &mut self.outputs {
            output.slice_mut()[..items].fill(T::zeroed());
            if let Some(rate_hz) = self.rate_hz.filter(|_| self.sent == 0 && items > 0) {
                output.tag(0, keys::RX_RATE_HZ, rate_hz);
            }
            output.produce(items);
        }
        self.sent += items as u64;
        if Some(self.sent) == self.end {
            return Ok(Work::Finished);
        }
        Ok(if self.rate_hz.is_some() && items < room { Work::Again(STEP) } else { Work::Continue })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>() / 2.0);
        facts.messages.extend_from_slice(&self.messages);
    }

    fn message(&mut self, _: &str, _: &ParameterValue) -> Result<(), BlockError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn a_source_sends_what_is_due_by_its_rate_and_ends() {
        let block = RehearsedBlock::<u8>::source().at_rate(1000.0).ending_after(Some(70));
        let mut mock = Mock::new(block);
        let start = Instant::now();
        let mut call = |ms| {
            let mut context = Context::at(start + Duration::from_millis(ms));
            let work = mock.block.work(&mut context).unwrap();
            (work, mock.take::<u8>("out").len())
        };
        assert_eq!(call(0), (Work::Again(STEP), 0));
        assert_eq!(call(50), (Work::Again(STEP), 50));
        assert_eq!(call(100), (Work::Finished, 20));
    }

    #[test]
    fn a_sink_takes_all_items_and_messages() {
        let spec = MessageSpec::new("event", crate::ParameterKind::Text, "a text");
        let mut mock = Mock::new(RehearsedBlock::<u8>::sink().with_messages(vec![spec]));
        mock.feed("in", &[1u8; 10]);
        mock.send("event", "text").unwrap();
        mock.end("in");
        mock.run().unwrap();
        assert!(mock.is_finished());
    }
}
