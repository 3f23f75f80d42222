//! Faults in link strings: `…,fault=lose rx p=0.01 seed=7`, any number of them.

use std::time::Instant;

use super::rule::{FaultEffect, FaultRule, Select};
use super::switch::FaultSwitch;
use super::text::{ACTIONS, effect};
use crate::LinkError;
use crate::frame::FrameLink;
use crate::options::{BadOption, Line, Options};
use crate::port::Port;
use crate::spec::bad;

/// The option of link strings.
pub const OPTION: &str = "fault";

/// A fault of a link string.
#[derive(Debug, PartialEq)]
struct Fault {
    /// Whether it concerns received datagrams, not sent ones.
    receives: bool,
    effect: FaultEffect,
    select: Select,
}

fn parse(text: &str) -> Result<Fault, LinkError> {
    understand(text).map_err(|error| {
        let actions = ACTIONS.map(|(name, _)| name).join(", ");
        let keys = Select::NAMES.join(", ");
        let reason = format!(
            "{error}; write fault=ACTION rx|tx [KEY=VALUE ...]; actions: {actions}; keys that \
             select packets: {keys}"
        );
        bad(&format!("{OPTION}={text}"), &reason)
    })
}

fn understand(text: &str) -> Result<Fault, BadOption> {
    let mut line = Line::of(text.split_whitespace())?;
    let action = line.choice("fault", &ACTIONS.map(|(name, _)| (name, name)))?;
    let receives = line.choice("direction", &[("rx", true), ("tx", false)])?;
    let (effect, select) = (effect(action, &mut line)?, line.take()?);
    line.finish()?;
    Ok(Fault { receives, effect, select })
}

/// Checks that the faults can be understood.
pub(crate) fn check(texts: &[String]) -> Result<(), LinkError> {
    texts.iter().try_for_each(|text| parse(text).map(drop))
}

/// Returns the switches of both directions, with the rules of `texts`; their clocks start now.
fn switches(texts: &[String]) -> Result<(FaultSwitch, FaultSwitch), LinkError> {
    let start = Instant::now();
    let make = || FaultSwitch::new(move || start.elapsed().as_nanos() as u64);
    let (received, sent) = (make(), make());
    for text in texts {
        let Fault { receives, effect, select } = parse(text)?;
        let switch = if receives { &received } else { &sent };
        let added = switch.add(FaultRule::new(|_| true, effect).select(select));
        let option = format!("{OPTION}={text}");
        added.map_err(|error| bad(&option, &error.to_string()))?;
    }
    Ok((received, sent))
}

/// Adds faults to a frame link.
pub(crate) fn frames(
    inner: Box<dyn FrameLink>,
    texts: &[String],
) -> Result<Box<dyn FrameLink>, LinkError> {
    let (received, sent) = switches(texts)?;
    Ok(FaultSwitch::wrap_frames(inner, &received, &sent))
}

/// Adds faults to a port.
pub(crate) fn port(port: Port, texts: &[String]) -> Result<Port, LinkError> {
    let (received, sent) = switches(texts)?;
    let Port { local, rx, tx } = port;
    Ok(Port { local, rx: received.wrap_rx(rx), tx: sent.wrap_tx(tx) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_what_which_way_and_which() {
        let fault =
            parse("corrupt tx bits=3 from=8 to=16 p=0.5 seed=7 after_ms=2 for_ms=3").unwrap();
        let want = Select {
            probability: 0.5,
            seed: 7,
            from_ns: 2_000_000,
            for_ns: Some(3_000_000),
            ..Select::default()
        };
        let effect = FaultEffect::Corrupt { bits: 3, bytes: 8..16 };
        assert_eq!(fault, Fault { receives: false, effect, select: want });
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_what_is_accepted() {
        for (text, part) in [
            ("", "`fault` is missing"),
            ("loose rx", "`loose` is no fault; did you mean `lose`?"),
            ("lose", "`direction` is missing; give one of rx, tx"),
            ("lose to_host", "`to_host` is no direction"),
            ("lose rx p=2", "`p=2` wants a probability from 0 to 1"),
            ("delay rx", "`ms=` is missing: it has no default"),
            ("lose rx class=data", "`class=data` is not known; the options here are skip, every"),
            ("lose rx 5", "`5` is not of the form name=value"),
            ("corrupt rx from=9 to=9", "`from=9` must be less than to=9"),
        ] {
            let error = check(&[text.to_owned()]).unwrap_err().to_string();
            let (cause, rest) = error.split_once("; write ").unwrap();
            assert!(cause.contains(part), "{error}");
            assert!(rest.starts_with("fault=ACTION rx|tx") && rest.len() < 200, "{error}");
        }
    }
}
