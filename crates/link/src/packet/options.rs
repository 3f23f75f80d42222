//! The options of the `packet` link.

use crate::options::{OnOff, Parsed, maybe, number};
use crate::rights::RightsOptions;
use crate::{LinkError, Spec, options};

/// The kernel's way of sharing an interface's frames among the sockets of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fanout {
    pub id: u16,
    pub mode: u16,
}

const FANOUT: Parsed<Fanout> = Parsed {
    looks: "ID:hash|lb|cpu|qm",
    wants: "wants a number from 0 to 65535 and a way: 7:hash",
    read: fanout,
    write: |fanout| {
        let way = WAYS.iter().find(|(_, mode)| *mode == fanout.mode);
        format!("{}:{}", fanout.id, way.map_or("", |(word, _)| word))
    },
};

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct PacketOptions {
        /// slots of the receive ring: few fit into the CPU caches, many bridge longer pauses
        slots: Option<usize> = None, maybe(number("slots", 2..=65_536));
        /// transmit without the kernel's queueing discipline
        qdisc_bypass: bool = true, OnOff;
        /// divide the received frames among all links of this ID
        fanout: Option<Fanout> = None, maybe(FANOUT);
    }
}

impl PacketOptions {
    /// Reads the link's own options out of a spec, which also has those of the rights.
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        spec.interface()?;
        let (_, rest) = spec.split::<RightsOptions>()?;
        rest.read()
    }
}

/// The ways of sharing, by name.
const WAYS: [(&str, u16); 4] = [
    ("hash", libc::PACKET_FANOUT_HASH as u16),
    ("lb", libc::PACKET_FANOUT_LB as u16),
    ("cpu", libc::PACKET_FANOUT_CPU as u16),
    ("qm", libc::PACKET_FANOUT_QM as u16),
];

fn fanout(text: &str) -> Option<Fanout> {
    let (id, way) = text.split_once(':')?;
    let (_, mode) = WAYS.iter().find(|(word, _)| *word == way)?;
    Some(Fanout { id: id.parse().ok()?, mode: *mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PacketOptions, LinkError> {
        PacketOptions::from_spec(&Spec::parse(text)?)
    }

    #[test]
    fn every_option_is_understood() {
        let full = parse("packet:eth1,qdisc_bypass=off,fanout=7:cpu,rights=direct").unwrap();
        assert_eq!(full.fanout, Some(Fanout { id: 7, mode: libc::PACKET_FANOUT_CPU as u16 }));
        assert!(!full.qdisc_bypass && parse("packet:eth1").unwrap().qdisc_bypass);
        assert_eq!(parse("packet:eth1,slots=64").unwrap().slots, Some(64));
    }

    #[test]
    fn a_group_has_a_number_and_a_way() {
        let error = parse("packet:eth1,fanout=hash").unwrap_err().to_string();
        assert!(error.contains("wants a number from 0 to 65535 and a way: 7:hash"), "{error}");
    }
}
