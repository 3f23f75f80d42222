//! The options of the `packet` link.

use crate::rights::RightsOptions;
use crate::{LinkError, Spec};

/// What a link string may say behind `packet:INTERFACE`.
pub const OPTIONS_HELP: &str = "ring=auto|v2|v3 (receive ring: slots for latency, blocks for \
     memory), slots=N (of ring=v2: few stay in the caches, many outlast pauses), block_bytes=N, \
     blocks=N, retire_ms=N (of ring=v3), tx=auto|ring|batch (mmap ring or \
     sendmmsg), qdisc_bypass=on|off, fanout=ID:hash|lb|cpu|qm (share the interface with other \
     links of this ID), rights=auto|direct|broker (who opens sockets), broker=PATH";

/// Which receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingKind {
    Auto,
    V2,
    V3,
}

/// How frames are transmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransmitKind {
    Auto,
    Ring,
    Batch,
}

/// How the kernel shares an interface's frames among the sockets of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fanout {
    pub id: u16,
    pub mode: u16,
}

/// The options, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PacketOptions {
    pub interface: String,
    pub ring: RingKind,
    pub slots: Option<usize>,
    pub block_bytes: Option<usize>,
    pub blocks: Option<usize>,
    pub retire_ms: u32,
    pub transmit: TransmitKind,
    pub qdisc_bypass: bool,
    pub fanout: Option<Fanout>,
    pub rights: RightsOptions,
}

impl PacketOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        let interface = spec.target.clone().ok_or_else(|| LinkError::BadOption {
            option: "packet".to_owned(),
            reason: "wants an interface: packet:eth1".to_owned(),
            help: OPTIONS_HELP,
        })?;
        let mut parsed = Self {
            interface,
            ring: RingKind::Auto,
            slots: None,
            block_bytes: None,
            blocks: None,
            retire_ms: 1,
            transmit: TransmitKind::Auto,
            qdisc_bypass: true,
            fanout: None,
            rights: RightsOptions::default(),
        };
        for field in spec.fields(OPTIONS_HELP) {
            match field.name {
                "ring" => {
                    let kinds =
                        [("auto", RingKind::Auto), ("v2", RingKind::V2), ("v3", RingKind::V3)];
                    parsed.ring = field.one_of(&kinds)?;
                }
                "slots" => parsed.slots = Some(field.number("slots", 2..=65_536)?),
                "block_bytes" => {
                    let bytes = field.number("bytes", 1 << 17..=1 << 26)?;
                    if !usize::is_power_of_two(bytes) {
                        return Err(field.refuse("wants a power of two"));
                    }
                    parsed.block_bytes = Some(bytes);
                }
                "blocks" => parsed.blocks = Some(field.number("blocks", 2..=65_536)?),
                "retire_ms" => parsed.retire_ms = field.number("milliseconds", 1..=1000)?,
                "tx" => {
                    let kinds = [
                        ("auto", TransmitKind::Auto),
                        ("ring", TransmitKind::Ring),
                        ("batch", TransmitKind::Batch),
                    ];
                    parsed.transmit = field.one_of(&kinds)?;
                }
                "qdisc_bypass" => parsed.qdisc_bypass = field.on_off()?,
                "fanout" => {
                    parsed.fanout = Some(fanout(field.value).ok_or_else(|| {
                        field.refuse("wants a number from 0 to 65535 and a way: 7:hash")
                    })?)
                }
                name if parsed.rights.take(name, field.value, OPTIONS_HELP)? => {}
                _ => return Err(field.unknown()),
            }
        }
        parsed.check()
    }

    fn check(self) -> Result<Self, LinkError> {
        let blocks = self.block_bytes.is_some() || self.blocks.is_some();
        let (option, reason) = match self.ring {
            RingKind::V3 if self.slots.is_some() => ("slots", "belongs to ring=v2"),
            RingKind::Auto | RingKind::V2 if blocks => ("block_bytes, blocks", "belong to ring=v3"),
            _ => return Ok(self),
        };
        let (option, reason) = (option.to_owned(), reason.to_owned());
        Err(LinkError::BadOption { option, reason, help: OPTIONS_HELP })
    }
}

fn fanout(text: &str) -> Option<Fanout> {
    let (id, way) = text.split_once(':')?;
    let mode = match way {
        "hash" => libc::PACKET_FANOUT_HASH,
        "lb" => libc::PACKET_FANOUT_LB,
        "cpu" => libc::PACKET_FANOUT_CPU,
        "qm" => libc::PACKET_FANOUT_QM,
        _ => return None,
    };
    Some(Fanout { id: id.parse().ok()?, mode: mode as u16 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PacketOptions, LinkError> {
        PacketOptions::from_spec(&Spec::parse(text, OPTIONS_HELP)?)
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
            ("packet", "wants an interface: packet:eth1"),
            ("packet:eth1,ring=v1", "\"ring=v1\": wants one of: auto, v2, v3"),
            ("packet:eth1,block_bytes=200000,ring=v3", "wants a power of two"),
            ("packet:eth1,blocks=9", "belong to ring=v3"),
            ("packet:eth1,slots=64,ring=v3", "belongs to ring=v2"),
            ("packet:eth1,slots=1", "wants slots"),
            ("packet:eth1,fanout=hash", "wants a number from 0 to 65535 and a way: 7:hash"),
            ("packet:eth1,rights=root", "wants auto, direct or broker"),
            ("packet:eth1,warp=9", "\"warp=9\": is not known"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            // Whoever knows the option needs no list of all.
            let one_is_wrong = reason.contains("wants ") && text != "packet";
            assert_ne!(error.contains("this link: ring, slots"), one_is_wrong, "{error}");
        }
    }
}
