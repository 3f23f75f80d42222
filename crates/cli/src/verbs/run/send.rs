//! `--send`: messages to blocks while their graph runs.

use millstream_flow::{Graph, GraphError, ParameterValue, RunningGraph};
use std::str::FromStr;
use std::time::Duration;

/// A message and its time: `2s:gain.factor=0.5`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sending {
    after: Duration,
    block: String,
    message: String,
    text: String,
}

impl FromStr for Sending {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (after, rest) = text.split_once(':')?;
            let (target, value) = rest.split_once('=')?;
            let (block, message) = target.trim().split_once('.')?;
            Some((after, block, message, value.trim()))
        };
        let (after, block, message, value) = parts().ok_or(
            "write AFTER:BLOCK.MESSAGE=VALUE, for example 2s:gain.factor=0.5; `millstream graph \
             blocks TYPE` lists the messages of a block",
        )?;
        let after = humantime::parse_duration(after.trim()).map_err(|error| {
            format!("`{after}` is not a time after the start, such as 2s: {error}")
        })?;
        let [block, message, text] = [block, message, value].map(str::to_owned);
        Ok(Self { after, block, message, text })
    }
}

/// The messages to be sent, the next first.
pub struct Outbox(Vec<(Sending, ParameterValue)>);

impl Outbox {
    /// Checks the messages against the blocks of `graph`, before it starts.
    pub fn new(sendings: &[Sending], graph: &Graph) -> Result<Self, GraphError> {
        let read = |sending: &Sending| {
            let Sending { block, message, text, .. } = sending;
            Ok((sending.clone(), graph.read_message(block, message, text)?))
        };
        let mut all = sendings.iter().map(read).collect::<Result<Vec<_>, GraphError>>()?;
        all.sort_by_key(|(sending, _)| sending.after);
        Ok(Self(all))
    }

    /// Sends the messages that are due; returns the result of each.
    pub fn step(&mut self, elapsed: Duration, running: &RunningGraph) -> Vec<String> {
        let due = self.0.partition_point(|(sending, _)| sending.after <= elapsed);
        let send = |(Sending { block, message, .. }, value): (Sending, ParameterValue)| {
            let what = format!("{block}.{message} = {value}");
            match running.send(&block, &message, value) {
                Ok(()) => format!("sent {what}"),
                Err(error) => format!("not sent, {what}: {error}"),
            }
        };
        self.0.drain(..due).map(send).collect()
    }

    /// The messages that the graph's end left unsent.
    pub fn left(&self) -> Vec<String> {
        let left = |(Sending { after, block, message, .. }, value): &(Sending, ParameterValue)| {
            let after = humantime::format_duration(*after);
            format!("not sent, {block}.{message} = {value}: the graph ended before {after}")
        };
        self.0.iter().map(left).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sending_is_a_time_a_message_and_a_value() {
        let sending = |text: &str| text.parse::<Sending>();
        let expected = Sending {
            after: Duration::from_millis(1500),
            block: "gain".into(),
            message: "factor".into(),
            text: "[1, -2.5]".into(),
        };
        assert_eq!(sending("1s500ms : gain.factor = [1, -2.5]"), Ok(expected));
        let error = sending("soon:gain.factor=1").unwrap_err();
        assert!(error.starts_with("`soon` is not a time after the start, such as 2s: "), "{error}");
        for text in ["", "2s", "2s:gain", "2s:gain.factor", "gain.factor=1", "2s:gain=1"] {
            assert!(
                sending(text).unwrap_err().contains("write AFTER:BLOCK.MESSAGE=VALUE"),
                "{text}"
            );
        }
    }
}
