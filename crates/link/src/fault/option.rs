//! Faults in link strings: `…,fault=lose rx p=0.01 seed=7`, any number of them.

use std::time::Instant;

use super::rule::{FaultEffect, FaultRule, Select};
use super::switch::FaultSwitch;
use super::text::{ACTIONS, Keys, choose, effect, select};
use crate::LinkError;
use crate::frame::FrameLink;
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
    understand(text).map_err(|reason| {
        let actions = ACTIONS.join(", ");
        let reason = format!(
            "{reason}; write fault=ACTION rx|tx [KEY=VALUE ...]; actions: {actions}; keys that \
             select packets: skip, every, count, p, seed, after_ms, for_ms"
        );
        bad(&format!("{OPTION}={text}"), &reason)
    })
}

fn understand(text: &str) -> Result<Fault, String> {
    let mut words = text.split_whitespace();
    let action = words.next().ok_or("it is empty")?;
    if !ACTIONS.contains(&action) {
        return Err(format!("`{action}` is not the name of a fault"));
    }
    let receives = choose("direction", words.next(), &[("rx", true), ("tx", false)])?;
    let mut keys = Keys::new(words)?;
    let effect = effect(action, &mut keys)?;
    let mut select = select(&mut keys)?;
    select.from_ns = keys.ms("after_ms")?.unwrap_or(0);
    if let Some(ns) = keys.ms("for_ms")? {
        select.until_ns = select.from_ns + ns;
    }
    keys.finish()?;
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
            until_ns: 5_000_000,
            ..Select::default()
        };
        let effect = FaultEffect::Corrupt { bits: 3, bytes: 8..16 };
        assert_eq!(fault, Fault { receives: false, effect, select: want });
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_what_is_accepted() {
        for (text, part) in [
            ("", "it is empty"),
            ("loose rx", "`loose` is not the name of a fault"),
            ("lose", "the direction is missing"),
            ("lose to_host", "there is no direction `to_host`"),
            ("lose rx p=2", "a probability from 0 to 1"),
            ("delay rx", "the fault needs `ms=`"),
            ("lose rx class=data", "this fault has no key `class`"),
        ] {
            let error = check(&[text.to_owned()]).unwrap_err().to_string();
            let (cause, rest) = error.split_once("; write ").unwrap();
            assert!(cause.contains(part), "{error}");
            assert!(rest.starts_with("fault=ACTION rx|tx") && rest.len() < 200, "{error}");
        }
    }
}
