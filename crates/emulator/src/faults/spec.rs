//! Faults as text.

use super::FaultError;
use super::class::{Class, PacketDirection};
use super::machine::{FaultKind, SpokenProtocol};
use millstream_link::fault::text::{ACTIONS, Keys, choose, effect, needed, select};
use millstream_link::fault::{FaultEffect, FaultRule, Select};
use millstream_wire::chdr::Width;

/// The accepted forms, for help.
pub const FAULT_FORMS: &str = "A packet fault is written ACTION DIRECTION CLASS [KEY=VALUE ...]. \
    ACTION is lose, duplicate [copies=1], reorder [packets=1], delay ms=N, corrupt [bits=1] \
    [from=BYTE] [to=BYTE] or truncate bytes=N. DIRECTION is to_host or to_device. CLASS is any, \
    data, status (credit reports), command, init, resync, control, request, ack, management or \
    discovery. The keys skip=N every=N count=N p=CHANCE seed=N after_ms=N for_ms=N epid=N select \
    packets. A device fault is stall ms=N, reboot [silent_ms=1000], rpc_down ms=N or clock_jump \
    ticks=N, each with [at_tick=TIME].";

/// The first words of device faults.
const DEVICE_ACTIONS: [&str; 4] = ["stall", "reboot", "rpc_down", "clock_jump"];

/// The silence of a reboot without a given length, nanoseconds.
const REBOOT_NS: u64 = 1_000_000_000;

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
    /// The selection of packets, without its times, which begin when the fault is added.
    pub select: Select,
    pub after_ns: u64,
    pub for_ns: Option<u64>,
}

impl Packets {
    /// Returns the rule, for all packets of the class at this CHDR width, whose control packets are
    /// of this protocol.
    pub fn into_rule(self, width: Width, protocol: SpokenProtocol) -> FaultRule {
        let Self { class, epid, effect, .. } = self;
        FaultRule::new(move |datagram| class.has(datagram, epid, width, protocol.get()), effect)
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
    understand(text).map_err(|reason| FaultError::Spec { text: text.to_owned(), reason })
}

fn understand(text: &str) -> Result<Fault, String> {
    let mut words = text.split_whitespace();
    let action = words.next().ok_or("it is empty")?;
    if let Some(kind) = device_action(action) {
        let mut keys = Keys::new(words)?;
        let fault = Fault::Device { kind: kind(&mut keys)?, at_tick: keys.number("at_tick", 0)? };
        keys.finish()?;
        return Ok(fault);
    }
    if !ACTIONS.contains(&action) {
        let actions = [&ACTIONS[..], &DEVICE_ACTIONS].concat().join(", ");
        return Err(format!("`{action}` is not the name of a fault; give one of {actions}"));
    }
    let direction = choose("direction", words.next(), &PacketDirection::NAMES)?;
    let class = choose("class", words.next(), &Class::NAMES)?;
    let mut keys = Keys::new(words)?;
    let packets = Packets {
        direction,
        class,
        epid: keys.take("epid", "an endpoint id, 0 to 65535", |value| value.parse().ok())?,
        effect: effect(action, &mut keys)?,
        select: select(&mut keys)?,
        after_ns: keys.ms("after_ms")?.unwrap_or(0),
        for_ns: keys.ms("for_ms")?,
    };
    keys.finish()?;
    Ok(Fault::Packets(packets))
}

/// Reads the arguments of a device action.
type ReadKind = fn(&mut Keys<'_>) -> Result<FaultKind, String>;

fn device_action(action: &str) -> Option<ReadKind> {
    Some(match action {
        "stall" => |keys| Ok(FaultKind::Stall { ns: needed("ms", keys.ms("ms")?)? }),
        "reboot" => {
            |keys| Ok(FaultKind::Reboot { silent_ns: keys.ms("silent_ms")?.unwrap_or(REBOOT_NS) })
        }
        "rpc_down" => |keys| Ok(FaultKind::RpcDown { ns: needed("ms", keys.ms("ms")?)? }),
        "clock_jump" => |keys| {
            let wants = "a whole number, which may be negative";
            let ticks = keys.take("ticks", wants, |value| value.parse().ok())?;
            Ok(FaultKind::Jump { ticks: needed("ticks", ticks)? })
        },
        _ => return None,
    })
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
            ..Select::default()
        };
        let want = Packets {
            direction: PacketDirection::ToDevice,
            class: Class::Data,
            epid: Some(9),
            effect: FaultEffect::Corrupt { bits: 3, bytes: 8..16 },
            select,
            after_ns: 1_500_000,
            for_ns: Some(20_000_000),
        };
        assert_eq!(packets, want);
    }

    #[test]
    fn a_device_fault_strikes_at_once_or_at_a_time() {
        let device = |kind, at_tick| Ok(Fault::Device { kind, at_tick });
        assert_eq!(parse("stall ms=50"), device(FaultKind::Stall { ns: 50_000_000 }, None));
        let want = device(FaultKind::Reboot { silent_ns: REBOOT_NS }, Some(77));
        assert_eq!(parse("reboot at_tick=77"), want);
        assert_eq!(parse("clock_jump ticks=-3"), device(FaultKind::Jump { ticks: -3 }, None));
        assert_eq!(parse("rpc_down ms=0.5"), device(FaultKind::RpcDown { ns: 500_000 }, None));
    }

    #[test]
    fn every_class_and_direction_is_understood_and_in_the_help() {
        for (name, class) in Class::NAMES {
            for (way, direction) in PacketDirection::NAMES {
                let fault = parse(&format!("lose {way} {name}")).unwrap();
                let Fault::Packets(packets) = fault else { panic!("{name}") };
                assert_eq!((packets.class, packets.direction), (class, direction));
                assert!(FAULT_FORMS.contains(name) && FAULT_FORMS.contains(way));
            }
        }
        let actions = ACTIONS.iter().chain(&DEVICE_ACTIONS);
        assert!(actions.clone().all(|action| FAULT_FORMS.contains(action)));
        let of_device = |action: &&&str| device_action(action).is_some();
        assert_eq!(actions.filter(of_device).count(), DEVICE_ACTIONS.len());
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_what_is_expected_there() {
        for (text, part) in [
            ("", "it is empty"),
            (
                "loose to_host data",
                "`loose` is not the name of a fault; give one of lose, duplicate, reorder",
            ),
            ("lose", "the direction is missing; give one of to_host, to_device;"),
            ("lose to_hst data", "there is no direction `to_hst`; give one of to_host, to_device;"),
            ("lose to_host", "the class is missing; give one of any, data, status"),
            ("lose to_host samples", "there is no class `samples`; give one of any, data, status"),
            ("lose to_host data 5", "`5` is not of the form key=value"),
            ("lose to_host data count=0", "`count=0` wants a whole number from 1 on"),
            ("lose to_host data count=1 count=2", "`count` is given twice"),
            ("lose to_host data ms=5", "this fault has no key `ms`"),
            ("lose to_host data p=1.5", "a probability from 0 to 1"),
            ("lose to_host data p=nan", "a probability from 0 to 1"),
            ("lose to_host data epid=70000", "an endpoint id, 0 to 65535"),
            ("delay to_host data", "the fault needs `ms=`"),
            ("delay to_host data ms=inf", "milliseconds from 0 to 3600000"),
            ("truncate to_host data", "the fault needs `bytes=`"),
            ("corrupt to_host data from=9 to=9", "from=9 must be less than to=9"),
            ("stall", "the fault needs `ms=`"),
            ("stall ms=5 count=3", "this fault has no key `count`; its keys are ms, at_tick;"),
            ("clock_jump ticks=much", "which may be negative"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.starts_with(&format!("cannot use fault `{text}`: ")), "{error}");
            assert!(
                error.ends_with("; `millstream sim fault add --help` lists all forms"),
                "{error}"
            );
            assert!(error.len() < 250 && !error.contains('\n'), "{}: {error}", error.len());
        }
    }
}
