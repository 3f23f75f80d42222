//! Messages from clients and to them.

use crate::documents::{Event, Hello, ServerStatus, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest message from a client, bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;

/// How values of a line are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum ValueFormat {
    /// Steps of a fixed size.
    #[default]
    U8 = 0,
    /// Levels in dB.
    F32 = 1,
}

/// A message from a client.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ClientMessage {
    /// Send lines of a stream.
    Subscribe {
        stream: u16,
        bins: Option<u32>,
        points: Option<u32>,
        lines_per_s: Option<f64>,
        average: Option<u16>,
        #[serde(default)]
        format: ValueFormat,
    },
    /// Send no more lines of it.
    Unsubscribe { stream: u16 },
    /// Set something.
    Control { id: u64, target: String, name: String, value: Value },
}

/// A message to a client.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerMessage<'a> {
    /// What does not change, or seldom.
    Hello {
        protocol: &'static str,
        version: &'static str,
        /// Identifies this run of the program.
        run: &'a str,
        /// Whether clients may set something.
        control: bool,
        started_unix_s: f64,
        #[serde(flatten)]
        hello: Hello,
    },
    /// The state.
    Status {
        seq: u64,
        server: ServerStatus,
        #[serde(flatten)]
        status: Status,
    },
    /// What has happened.
    Events { events: Vec<Event> },
    /// The answer to a wish.
    Reply { id: u64, ok: bool, text: &'a str },
    /// A message was of no use.
    Error { text: &'a str },
}

impl ServerMessage<'_> {
    /// Its JSON.
    pub fn document(&self) -> Value {
        serde_json::to_value(self).expect("our structs have fields with names that are text")
    }
}

/// A valid wish for lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wish {
    /// Bins of a line, or points.
    pub bins: usize,
    pub average: usize,
    pub lines_per_s: f64,
    pub format: ValueFormat,
}

impl ClientMessage {
    /// Parses a message; an error says what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| {
            format!(
                "this is no message: {error}; an example is {{\"type\": \"subscribe\", \"stream\": \
                 0, \"bins\": 1024, \"lines_per_s\": 30}}"
            )
        })
    }
}

impl Wish {
    /// Checks a wish for lines of a spectrum.
    pub fn of_lines(
        bins: Option<u32>,
        average: Option<u16>,
        lines_per_s: Option<f64>,
        format: ValueFormat,
    ) -> Result<Self, String> {
        let (bins, average) = (bins.unwrap_or(1024), average.unwrap_or(1));
        if !(64..=16384).contains(&bins) || !bins.is_power_of_two() {
            return Err(format!("bins is {bins}, but must be a power of two from 64 to 16384"));
        }
        if !(1..=16).contains(&average) {
            return Err(format!("average is {average}, but must be from 1 to 16"));
        }
        let lines_per_s = checked_rate(lines_per_s.unwrap_or(30.0))?;
        Ok(Self { bins: bins as usize, average: average.into(), lines_per_s, format })
    }

    /// Checks a wish for symbols.
    pub fn of_points(points: Option<u32>, lines_per_s: Option<f64>) -> Result<Self, String> {
        let points = points.unwrap_or(1024);
        if !(16..=4096).contains(&points) {
            return Err(format!("points is {points}, but must be from 16 to 4096"));
        }
        let lines_per_s = checked_rate(lines_per_s.unwrap_or(5.0))?;
        Ok(Self { bins: points as usize, average: 1, lines_per_s, format: ValueFormat::F32 })
    }

    /// Items that a line needs.
    pub fn items(&self) -> usize {
        self.bins * self.average
    }
}

fn checked_rate(lines_per_s: f64) -> Result<f64, String> {
    if (0.1..=60.0).contains(&lines_per_s) {
        return Ok(lines_per_s);
    }
    Err(format!("lines_per_s is {lines_per_s}, but must be from 0.1 to 60"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_page_are_messages() {
        let page = include_str!("../../../docs/reference/web-protocol.md");
        let messages: Vec<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `{\"type\"")?.split('`').next())
            .map(|rest| ClientMessage::parse(&format!("{{\"type\"{rest}")).unwrap())
            .collect();
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[2], ClientMessage::Unsubscribe { stream: 0 });
    }

    #[test]
    fn a_wrong_message_is_explained() {
        for wrong in ["", "x", "[]", "{}", "{\"type\":\"fly\"}", "{\"type\":\"subscribe\"}"] {
            let error = ClientMessage::parse(wrong).unwrap_err();
            assert!(error.contains("an example is {\"type\": \"subscribe\""), "{error}");
        }
        // Nesting ends before the stack does.
        let deep = format!("{{\"type\":\"control\",\"value\":{}", "[".repeat(4000));
        assert!(ClientMessage::parse(&deep).is_err());
    }

    #[test]
    fn wishes_have_limits() {
        let lines = |bins, average, rate| Wish::of_lines(bins, average, rate, ValueFormat::U8);
        assert_eq!(lines(None, None, None).unwrap().items(), 1024);
        assert_eq!(lines(Some(4096), Some(16), Some(60.0)).unwrap().items(), 65_536);
        for bins in [0, 32, 1000, 32768, u32::MAX] {
            assert!(lines(Some(bins), None, None).unwrap_err().contains("power of two"), "{bins}");
        }
        for rate in [0.0, -1.0, 61.0, f64::NAN, f64::INFINITY] {
            assert!(lines(None, None, Some(rate)).is_err(), "{rate}");
        }
        assert!(lines(None, Some(0), None).is_err() && lines(None, Some(17), None).is_err());
        assert!(Wish::of_points(Some(15), None).is_err());
        assert_eq!(Wish::of_points(None, None).unwrap().bins, 1024);
    }
}
