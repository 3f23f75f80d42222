//! The options of the `packet` link.

use crate::options::{OnOff, Parsed, Words, maybe, number};
use crate::rights::RightsOptions;
use crate::spec::bad;
use crate::{LinkError, Spec, options};

/// The kind of receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingKind {
    Auto,
    V2,
    V3,
}

/// The kind of transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransmitKind {
    Auto,
    Ring,
    Batch,
}

/// The kernel's way of sharing an interface's frames among the sockets of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fanout {
    pub id: u16,
    pub mode: u16,
}

const BLOCK_BYTES: Parsed<usize> = Parsed {
    looks: "BYTES",
    wants: "wants a power of two from 131072 to 67108864 bytes",
    read: |text| {
        let fits = |bytes: &usize| bytes.is_power_of_two() && (1 << 17..=1 << 26).contains(bytes);
        text.parse().ok().filter(fits)
    },
    write: usize::to_string,
};

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
        /// receive ring: v2 has a slot for each frame (low latency), v3 has blocks (less memory)
        ring: RingKind = RingKind::Auto, Words(&[
            ("auto", RingKind::Auto),
            ("v2", RingKind::V2),
            ("v3", RingKind::V3),
        ]);
        /// slots of ring=v2: few fit into the CPU caches, many bridge longer pauses
        slots: Option<usize> = None, maybe(number("slots", 2..=65_536));
        /// size of a block of ring=v3
        block_bytes: Option<usize> = None, maybe(BLOCK_BYTES);
        /// number of blocks of ring=v3
        blocks: Option<usize> = None, maybe(number("blocks", 2..=65_536));
        /// milliseconds after which ring=v3 passes on a block that is not full
        retire_ms: u32 = 1, number("milliseconds", 1..=1000);
        /// transmit with a ring shared with the kernel, or with sendmmsg
        transmit as "tx": TransmitKind = TransmitKind::Auto, Words(&[
            ("auto", TransmitKind::Auto),
            ("ring", TransmitKind::Ring),
            ("batch", TransmitKind::Batch),
        ]);
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
        rest.read::<Self>()?.check()
    }

    fn check(self) -> Result<Self, LinkError> {
        let blocks = self.block_bytes.is_some() || self.blocks.is_some();
        let (option, reason) = match self.ring {
            RingKind::V3 if self.slots.is_some() => ("slots", "belongs to ring=v2"),
            RingKind::Auto | RingKind::V2 if blocks => ("block_bytes, blocks", "belong to ring=v3"),
            _ => return Ok(self),
        };
        Err(bad(option, reason))
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
        let plain = parse("packet:eth1").unwrap();
        assert_eq!((plain.ring, plain.transmit), (RingKind::Auto, TransmitKind::Auto));
        let full = "packet:eth1,ring=v3,block_bytes=262144,blocks=8,retire_ms=5,tx=ring,\
                    qdisc_bypass=off,fanout=7:cpu,rights=direct";
        let full = parse(full).unwrap();
        assert_eq!((full.block_bytes, full.blocks, full.retire_ms), (Some(262_144), Some(8), 5));
        assert_eq!(full.fanout, Some(Fanout { id: 7, mode: libc::PACKET_FANOUT_CPU as u16 }));
        assert!(!full.qdisc_bypass && full.transmit == TransmitKind::Ring);
        assert_eq!(parse("packet:eth1,slots=64").unwrap().slots, Some(64));
    }

    #[test]
    fn a_bad_option_names_itself_and_the_choices() {
        for (text, reason) in [
            ("packet", "names no interface: write packet:INTERFACE"),
            ("packet:eth1,ring=v1", "\"ring=v1\": wants one of: auto, v2, v3"),
            ("packet:eth1,block_bytes=200000,ring=v3", "wants a power of two"),
            ("packet:eth1,blocks=9", "belong to ring=v3"),
            ("packet:eth1,slots=64,ring=v3", "belongs to ring=v2"),
            ("packet:eth1,slots=1", "wants slots"),
            ("packet:eth1,fanout=hash", "wants a number from 0 to 65535 and a way: 7:hash"),
            ("packet:eth1,rights=root", "wants one of: auto, direct, broker"),
            ("packet:eth1,warp=9", "\"warp=9\": is not known"),
        ] {
            let error = crate::check_options(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            // A user who knows the option needs no list of all.
            let one_is_wrong = reason.contains("wants ") && text != "packet";
            assert_ne!(error.contains("this link: ring, slots"), one_is_wrong, "{error}");
        }
    }
}
