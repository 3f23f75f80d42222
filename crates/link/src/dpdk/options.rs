//! The options of the `dpdk` link; unknown ones are passed to the driver.

use super::device::DeviceName;
use crate::options::{OnOff, Opt, OptionValues, Options, Words, auto, maybe, number};
use crate::spec::bad;
use crate::{LinkError, Spec, options};

/// The reason why a driver's argument is not passed on.
const TRUST: &str = "lets the peer write into all of DPDK's memory in this process: write \
     zero-copy=trust-peer for a peer that may";

options! {
    /// The options that the link itself reads; all others go to the driver.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct OwnOptions {
        /// size of the largest IP packet; default: that of the device, or 9000 in memory
        mtu: Option<u16> = None, maybe(number("bytes", 68..=16_000));
        /// number of queues in each direction
        queues: u16 = 1, number("queues", 1..=16);
        /// descriptors of each queue; default: as many as the driver suggests
        ring: Option<u16> = None, maybe(number("descriptors", 64..=16_384));
        /// drop frames, or wait, while the receiver of shared memory is slow
        wait as "full": bool = false, Words(&[("drop", false), ("wait", true)]);
        /// let the card calculate UDP checksums if it can
        checksums: bool = true, OnOff;
        /// whether to use huge pages; auto: if enough are free
        huge: Option<bool> = None, auto(OnOff);
        /// MiB of address space for buffers without huge pages
        memory_mib: usize = 2048, number("MiB", 64..=1 << 20);
        /// accept a device that can write to any memory (no IOMMU)
        unsafe_uio: bool = false, OnOff;
    }
}

/// The options, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DpdkOptions {
    pub device: DeviceName,
    pub own: OwnOptions,
    /// The driver's own arguments, as written.
    pub driver: Vec<(String, String)>,
}

/// Describes the options: ours, and those of drivers that we read. All others go to DPDK's driver
/// unchanged.
pub(super) fn describe() -> Vec<Opt> {
    let of_driver = |name, values, about| Opt {
        name,
        values: OptionValues::Text(values),
        default: None,
        about,
    };
    let mut all = OwnOptions::describe();
    all.extend([
        of_driver("role", "server|client", "memif: the server makes the socket"),
        of_driver("socket", "PATH", "memif: path of the socket that connects both"),
        of_driver(
            "zero-copy",
            "no|trust-peer",
            "memif: nothing is copied, and the peer can write into all of DPDK's memory here",
        ),
    ]);
    all
}

impl DpdkOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        let Some(target) = &spec.target else {
            let missing = super::LINK.missing.map(|missing| format!("; {missing}"));
            let missing = missing.unwrap_or_default();
            return Err(bad("dpdk", &format!("names no device: write dpdk:DEVICE{missing}")));
        };
        let Some(device) = DeviceName::parse(target) else {
            return Err(bad(target, &unknown(target, spec)));
        };
        let (own, rest) = spec.split()?;
        let mut driver = rest.options;
        for (name, value) in &mut driver {
            match (name.as_str(), value.as_str()) {
                ("zero-copy", "trust-peer") => "yes".clone_into(value),
                ("zero-copy", "yes") => return Err(bad("zero-copy=yes", TRUST)),
                _ => {}
            }
        }
        Ok(Self { device, own, driver })
    }

    /// Returns an argument of the driver, if it was given.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let found = self.driver.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns the reason why a device's name is refused.
fn unknown(target: &str, spec: &Spec) -> String {
    let known = DeviceName::known();
    let mut reason = format!("is neither a PCI address nor a port in software ({known})");
    if let Some(link) = DeviceName::replacement(target) {
        let given = spec.options.iter().find(|(name, _)| name == "iface");
        let interface = given.map_or("INTERFACE", |(_, value)| value);
        reason += &format!("; for an interface of the kernel use {link}:{interface}");
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DpdkOptions, LinkError> {
        DpdkOptions::from_spec(&Spec::parse(text)?)
    }

    #[test]
    fn what_is_not_ours_goes_to_the_driver() {
        let text = "dpdk:memif0,role=server,mtu=1500,queues=2,ring=256,full=wait,huge=off,id=7";
        let parsed = parse(text).unwrap();
        assert_eq!(
            (parsed.own.mtu, parsed.own.queues, parsed.own.ring),
            (Some(1500), 2, Some(256))
        );
        assert!(parsed.own.wait && parsed.own.huge == Some(false) && !parsed.own.unsafe_uio);
        assert_eq!(parsed.argument("role"), Some("server"));
        assert_eq!(parsed.driver.len(), 2);
    }

    #[test]
    fn ports_on_the_kernels_interfaces_name_the_links_that_replace_them() {
        let known = "is neither a PCI address nor a port in software (memif, vhost, virtio_user, \
                     ring)";
        for (text, end) in [
            ("dpdk:af_packet0", "; for an interface of the kernel use packet:INTERFACE"),
            ("dpdk:net_af_xdp3,iface=eth1", "; for an interface of the kernel use xdp:eth1"),
            ("dpdk:tap0", ""),
            ("dpdk:pcap0,rx_pcap=a.pcap", ""),
            ("dpdk:null0", ""),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("{known}{end}")), "{error}");
        }
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
}
