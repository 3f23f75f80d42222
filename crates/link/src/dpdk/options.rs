//! The options of the `dpdk` link; what is not ours is the driver's.

use super::device::Device;
use crate::spec::bad;
use crate::{LinkError, Spec};

/// What a link string may say behind `dpdk:`.
pub const OPTIONS_HELP: &str = "DEVICE first (a PCI address as in 0000:03:00.0, or memif0, vhost0, \
     virtio_user0, ring0, af_xdp0, af_packet0, tap0, pcap0, null0), then mtu=BYTES, queues=N, \
     ring=N (descriptors of a queue), full=drop|wait (when a memory port's peer is slow), \
     checksums=on|off (leave them to the device where it can), huge=auto|on|off (huge pages), \
     memory_mib=N (without them), unsafe_uio=on|off; all others go to DPDK's driver, such as \
     role=server|client, socket=PATH, iface=NAME, zero-copy=no|trust-peer (memif: nothing is \
     copied, and the peer can write into all of DPDK's memory here)";

/// The options, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DpdkOptions {
    pub device: Device,
    /// Largest IP packet, bytes; none: as the device has it, or 9000 in memory.
    pub mtu: Option<u16>,
    pub queues: u16,
    /// None: as many as the driver suggests.
    pub ring: Option<u16>,
    /// A frame that finds the peer's ring full waits.
    pub wait: bool,
    pub checksums: bool,
    /// None: where there are free ones.
    pub huge: Option<bool>,
    pub memory_mib: usize,
    pub unsafe_uio: bool,
    /// The driver's own arguments, as written.
    pub driver: Vec<(String, String)>,
}

impl DpdkOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        let Some(target) = &spec.target else {
            return Err(bad("dpdk", "names no device: write dpdk:DEVICE", OPTIONS_HELP));
        };
        let Some(device) = Device::parse(target) else {
            let reason =
                format!("is neither a PCI address nor a port in software ({})", Device::known());
            return Err(bad(target, &reason, OPTIONS_HELP));
        };
        let mut parsed = Self {
            device,
            mtu: None,
            queues: 1,
            ring: None,
            wait: false,
            checksums: true,
            huge: None,
            memory_mib: 2048,
            unsafe_uio: false,
            driver: Vec::new(),
        };
        for field in spec.fields(OPTIONS_HELP) {
            match field.name {
                "mtu" => parsed.mtu = Some(field.number("bytes", 68..=16_000)?),
                "queues" => parsed.queues = field.number("queues", 1..=16)?,
                "ring" => parsed.ring = Some(field.number("descriptors", 64..=16_384)?),
                "full" => parsed.wait = field.one_of(&[("drop", false), ("wait", true)])?,
                "checksums" => parsed.checksums = field.on_off()?,
                "huge" if field.value == "auto" => parsed.huge = None,
                "huge" => parsed.huge = Some(field.on_off()?),
                "memory_mib" => parsed.memory_mib = field.number("MiB", 64..=1 << 20)?,
                "unsafe_uio" => parsed.unsafe_uio = field.on_off()?,
                "zero-copy" if field.value == "trust-peer" => {
                    parsed.driver.push(("zero-copy".to_owned(), "yes".to_owned()));
                }
                "zero-copy" if field.value == "yes" => {
                    return Err(bad(
                        "zero-copy=yes",
                        "lets the peer write into all of DPDK's memory in this process, while it is \
                     used: write zero-copy=trust-peer for a peer that may",
                        OPTIONS_HELP,
                    ));
                }
                _ => parsed.driver.push((field.name.to_owned(), field.value.to_owned())),
            }
        }
        Ok(parsed)
    }

    /// An argument of the driver's, if it was given.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let found = self.driver.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DpdkOptions, LinkError> {
        DpdkOptions::from_spec(&Spec::parse(text, OPTIONS_HELP)?)
    }

    #[test]
    fn what_is_not_ours_goes_to_the_driver() {
        let text = "dpdk:memif0,role=server,mtu=1500,queues=2,ring=256,full=wait,huge=off,id=7";
        let parsed = parse(text).unwrap();
        assert_eq!((parsed.mtu, parsed.queues, parsed.ring), (Some(1500), 2, Some(256)));
        assert!(parsed.wait && parsed.huge == Some(false) && !parsed.unsafe_uio);
        assert_eq!(parsed.argument("role"), Some("server"));
        assert_eq!(parsed.driver.len(), 2);
    }

    #[test]
    fn memory_is_left_to_a_peer_only_if_it_is_said_in_so_many_words() {
        let error = parse("dpdk:memif0,zero-copy=yes").unwrap_err().to_string();
        assert!(error.contains("lets the peer write into all of DPDK's memory"), "{error}");
        assert!(error.contains("zero-copy=trust-peer"), "{error}");
        let parsed = parse("dpdk:memif0,zero-copy=trust-peer").unwrap();
        assert_eq!(parsed.argument("zero-copy"), Some("yes"), "as the driver calls it");
        assert_eq!(parse("dpdk:memif0").unwrap().argument("zero-copy"), None);
    }

    #[test]
    fn a_bad_option_names_itself_and_what_is_wanted() {
        for (text, reason) in [
            ("mtu=20000", "\"mtu=20000\": wants bytes from 68 to 16000"),
            ("full=maybe", "\"full=maybe\": wants one of: drop, wait"),
            ("huge=2", "\"huge=2\": wants on or off"),
        ] {
            let error = parse(&format!("dpdk:ring0,{text}")).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
