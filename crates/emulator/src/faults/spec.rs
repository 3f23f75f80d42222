//! Faults as text.

use super::FaultError;
use super::class::{Class, PacketDirection};
use super::machine::{FaultKind, SpokenProtocol};
use millstream_link::fault::text::{ACTIONS, EffectKeys, MS, effect, needed};
use millstream_link::fault::{FaultEffect, FaultRule, Select};
use millstream_link::options;
use millstream_link::options::{BadOption, Line, Opt, Options, Parsed, maybe, number};
use millstream_wire::chdr::Width;

/// The words of device faults, each with its keys.
const DEVICE_ACTIONS: [(&str, &[&str]); 4] = [
    ("stall", &["ms", "at_tick"]),
    ("reboot", &["silent_ms", "at_tick"]),
    ("rpc_down", &["ms", "at_tick"]),
    ("clock_jump", &["ticks", "at_tick"]),
];

/// A number of ticks forward or back.
const TICKS: Parsed<i64> = Parsed {
    looks: "TICKS",
    wants: "wants a whole number, which may be negative",
    read: |text| text.parse().ok(),
    write: i64::to_string,
};

options! {
    struct DeviceKeys {
        /// its length, milliseconds; required
        ns as "ms": Option<u64> = None, maybe(MS);
        /// silence before it starts again, milliseconds
        silent_ns as "silent_ms": u64 = 1_000_000_000, MS;
        /// how far the device's time jumps; required
        ticks: Option<i64> = None, maybe(TICKS);
        /// device time at which it happens; at once without it
        at_tick: Option<u64> = None, maybe(number("ticks", 0..=u64::MAX));
    }
}

options! {
    struct PacketKeys {
        /// only packets to this endpoint
        epid: Option<u16> = None, maybe(number("an endpoint", 0..=u16::MAX));
    }
}

/// Returns the accepted forms, for help.
pub fn fault_forms() -> String {
    fn names<T>(all: &[(&'static str, T)]) -> String {
        all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
    let list = |actions: &[(&str, &[&str])], keys: Vec<Opt>| {
        let one = |(name, of): &(&str, &[&str])| format!("{name} {}", Opt::help_of(&keys, of));
        actions.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    let select = [Select::describe(), PacketKeys::describe()].concat();
    format!(
        "A packet fault is written ACTION DIRECTION CLASS [KEY=VALUE ...]. ACTION, with its own \
         keys: {}. DIRECTION: {}. CLASS: {}. Keys that select packets: {}. A device fault is \
         written ACTION [KEY=VALUE ...]: {}.",
        list(&ACTIONS, EffectKeys::describe()),
        names(&PacketDirection::NAMES),
        names(&Class::NAMES),
        select.iter().map(Opt::help).collect::<Vec<_>>().join(", "),
        list(&DEVICE_ACTIONS, DeviceKeys::describe()),
    )
}

/// A parsed fault.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    Packets(Packets),
    Device { kind: FaultKind, at_tick: Option<u64> },
}

/// A fault of packets.
#[derive(Debug, PartialEq)]
pub(super) struct Packets {
    pub direction: PacketDirection,
    pub class: Class,
    pub epid: Option<u16>,
    pub effect: FaultEffect,
    /// The selection of packets; its time begins when the fault is added.
    pub select: Select,
}

impl Packets {
    /// Returns the rule, for all packets of the class at this CHDR width, whose control packets are
    /// of this protocol.
    pub fn into_rule(self, width: Width, protocol: SpokenProtocol) -> FaultRule {
        let Self { class, epid, effect, select, .. } = self;
        let has = move |datagram: &[u8]| class.has(datagram, epid, width, protocol.get());
        FaultRule::new(has, effect).select(select)
    }
}

/// Checks the text of a fault.
///
/// # Errors
/// [`FaultError::Spec`].
pub(crate) fn check(text: &str) -> Result<(), FaultError> {
    parse(text).map(drop)
}

/// Parses a fault.
pub(super) fn parse(text: &str) -> Result<Fault, FaultError> {
    let error =
        |error: BadOption| FaultError::Spec { text: text.to_owned(), reason: error.to_string() };
    understand(text).map_err(error)
}

fn understand(text: &str) -> Result<Fault, BadOption> {
    let mut line = Line::of(text.split_whitespace())?;
    let actions = [&ACTIONS[..], &DEVICE_ACTIONS].concat();
    let actions: Vec<_> = actions.iter().map(|&(name, keys)| (name, (name, keys))).collect();
    let (action, keys) = line.choice("fault", &actions)?;
    let fault = if DEVICE_ACTIONS.contains(&(action, keys)) {
        let DeviceKeys { ns, silent_ns, ticks, at_tick } = line.take_of(keys)?;
        let kind = match action {
            "stall" => FaultKind::Stall { ns: needed("ms", ns)? },
            "rpc_down" => FaultKind::RpcDown { ns: needed("ms", ns)? },
            "clock_jump" => FaultKind::Jump { ticks: needed("ticks", ticks)? },
            _ => FaultKind::Reboot { silent_ns },
        };
        Fault::Device { kind, at_tick }
    } else {
        Fault::Packets(Packets {
            direction: line.choice("direction", &PacketDirection::NAMES)?,
            class: line.choice("class", &Class::NAMES)?,
            epid: line.take::<PacketKeys>()?.epid,
            effect: effect(action, &mut line)?,
            select: line.take()?,
        })
    };
    line.finish()?;
    Ok(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fault_says_what_which_and_when() {
        let text = " corrupt to_device  data bits=3 from=8 to=16 every=1000 skip=5 count=2 p=0.5 \
            seed=7 after_ms=1.5 for_ms=20 epid=9 ";
        let Fault::Packets(packets) = parse(text).unwrap() else { panic!("{text}") };
        let select = Select {
            skip: 5,
            every: 1000,
            count: Some(2),
            probability: 0.5,
            seed: 7,
            from_ns: 1_500_000,
            for_ns: Some(20_000_000),
        };
        let want = Packets {
            direction: PacketDirection::ToDevice,
            class: Class::Data,
            epid: Some(9),
            effect: FaultEffect::Corrupt { bits: 3, bytes: 8..16 },
            select,
        };
        assert_eq!(packets, want);
    }

    #[test]
    fn a_device_fault_strikes_at_once_or_at_a_time() {
        let device = |kind, at_tick| Ok(Fault::Device { kind, at_tick });
        assert_eq!(parse("stall ms=50"), device(FaultKind::Stall { ns: 50_000_000 }, None));
        let want = device(FaultKind::Reboot { silent_ns: 1_000_000_000 }, Some(77));
        assert_eq!(parse("reboot at_tick=77"), want);
        assert_eq!(parse("clock_jump ticks=-3"), device(FaultKind::Jump { ticks: -3 }, None));
        assert_eq!(parse("rpc_down ms=0.5"), device(FaultKind::RpcDown { ns: 500_000 }, None));
    }

    #[test]
    fn every_class_and_direction_is_understood_and_in_the_help() {
        let forms = fault_forms();
        for (name, class) in Class::NAMES {
            for (way, direction) in PacketDirection::NAMES {
                let fault = parse(&format!("lose {way} {name}")).unwrap();
                let Fault::Packets(packets) = fault else { panic!("{name}") };
                assert_eq!((packets.class, packets.direction), (class, direction));
                assert!(forms.contains(name) && forms.contains(way));
            }
        }
        let page = include_str!("../../../../docs/reference/options.md");
        for (action, keys) in [&ACTIONS[..], &DEVICE_ACTIONS].concat() {
            assert!(forms.contains(action) && page.contains(action), "{action}");
            for key in keys {
                let written = format!("{key}=");
                assert!(forms.contains(&written) && page.contains(&written), "{action} {written}");
            }
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_what_is_expected_there() {
        for (text, part) in [
            ("", "`fault` is missing; give one of lose, duplicate"),
            (
                "loose to_host data",
                "`loose` is no fault; did you mean `lose`? give one of lose, duplicate, reorder",
            ),
            ("lose", "`direction` is missing; give one of to_host, to_device;"),
            ("lose to_hst data", "`to_hst` is no direction; did you mean `to_host`? give one of"),
            ("lose to_host", "`class` is missing; give one of any, data, status"),
            ("lose to_host samples", "`samples` is no class; give one of any, data, status"),
            ("lose to_host data 5", "`5` is not of the form name=value"),
            ("lose to_host data count=0", "`count=0` wants packets from 1 on"),
            ("lose to_host data count=1 count=2", "`count=2` is given twice"),
            ("lose to_host data ms=5", "`ms=5` is not known; the options here are epid, skip"),
            ("lose to_host data p=1.5", "a probability from 0 to 1"),
            ("lose to_host data p=nan", "a probability from 0 to 1"),
            ("lose to_host data epid=70000", "wants an endpoint from 0 to 65535"),
            ("delay to_host data", "`ms=` is missing: it has no default"),
            ("delay to_host data ms=inf", "milliseconds from 0 to 3600000"),
            ("truncate to_host data", "`bytes=` is missing"),
            ("corrupt to_host data from=9 to=9", "`from=9` must be less than to=9"),
            ("stall", "`ms=` is missing"),
            ("stall ms=5 count=3", "`count=3` is not known; the options here are ms, at_tick;"),
            ("clock_jump ticks=much", "which may be negative"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.starts_with(&format!("cannot use fault `{text}`: ")), "{error}");
            assert!(
                error.ends_with("; `millstream sim fault add --help` lists all forms"),
                "{error}"
            );
            assert!(error.len() < 260 && !error.contains('\n'), "{}: {error}", error.len());
        }
    }
}
