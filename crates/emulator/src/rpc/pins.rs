//! The sources of the front panel connector's pins: stored, and without effect.

use super::values::{strings, text};
use rmpv::Value;

/// The one bank of pins that an E320 has, and the pins in it.
const BANK: &str = "FP0";
const PINS: usize = 8;
/// The possible sources of a pin: the radio of either channel, or the processor.
const SOURCES: [&str; 3] = ["RFA", "RFB", "PS"];

/// The source of each pin, as an index into [`SOURCES`].
#[derive(Debug, Default)]
pub(super) struct Pins([usize; PINS]);

impl Pins {
    /// Returns the banks of pins.
    pub fn banks() -> Value {
        strings(&[BANK])
    }

    /// Returns the possible sources of a pin of the bank in the first argument.
    pub fn sources(args: &[Value]) -> Result<Value, String> {
        bank(args).map(|()| strings(&SOURCES))
    }

    /// Returns the source of each pin of the bank.
    pub fn get(&self, args: &[Value]) -> Result<Value, String> {
        bank(args).map(|()| strings(&self.0.map(|source| SOURCES[source])))
    }

    /// Sets a source for each pin.
    pub fn set(&mut self, args: &[Value]) -> Result<Value, String> {
        bank(args)?;
        let wanted = args.get(1).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let index = |source: &Value| SOURCES.iter().position(|one| source.as_str() == Some(one));
        let sources = wanted.iter().map(index).collect::<Option<Vec<_>>>();
        let sources = sources.and_then(|sources| sources.try_into().ok()).ok_or_else(|| {
            format!("argument 1 must be a list of {PINS} sources, each of them one of {SOURCES:?}")
        })?;
        self.0 = sources;
        Ok(Value::Nil)
    }
}

fn bank(args: &[Value]) -> Result<(), String> {
    match text(args, 0)? {
        BANK => Ok(()),
        other => Err(format!("there is no bank {other}; there is {BANK}")),
    }
}
