//! The options of the `xdp` link.

use crate::options::{OnOff, Parsed, Words, auto, maybe, number};
use crate::rights::RightsOptions;
use crate::spec::bad;
use crate::{LinkError, Spec, options};

/// The way in which frames pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum XdpMode {
    Auto,
    ZeroCopy,
    Native,
    Generic,
}

const MODES: Words<XdpMode> = Words(&[
    ("auto", XdpMode::Auto),
    ("zero-copy", XdpMode::ZeroCopy),
    ("native", XdpMode::Native),
    ("generic", XdpMode::Generic),
]);

/// First and last queue. `None`: all.
type Queues = Option<(u32, u32)>;

const QUEUES: Parsed<Queues> = Parsed {
    looks: "all|0-3|0",
    wants: "wants all, one queue as in 0, or a range as in 0-3",
    read: queues,
    write: |queues| match queues {
        None => "all".to_owned(),
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first}-{last}"),
    },
};

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct XdpOptions {
        /// where XDP runs: in the driver (zero-copy, native), or behind it (generic)
        mode: XdpMode = XdpMode::Auto, MODES;
        /// queues of the interface from which the link receives
        queues: Queues = None, QUEUES;
        /// sets the number of queues of the interface while the link is open
        channels: Option<u32> = None, maybe(number("queues", 1..=256));
        /// number of queues that transmit; the packets of one flow stay on one queue
        tx_queues: usize = 1, number("queues", 1..=64);
        /// receive buffers of each queue; auto: as many as fit into the CPU caches
        buffers: Option<usize> = None, auto(number("chunks", 64..=65_536));
        /// size of a buffer: 2048, 4096, or with unaligned=on any multiple of 64 between them;
        /// auto: by the MTU
        chunk: Option<u32> = None, auto(number("bytes", 2048..=4096));
        /// buffers may have any size
        unaligned: bool = false, OnOff;
        /// call the kernel only if it needs a wake-up (need_wakeup)
        wakeup: bool = true, OnOff;
        /// microseconds for which the kernel polls the card (preferred busy polling)
        busy_poll_us: u32 = 0, number("microseconds", 0..=1_000_000);
        /// most frames that one poll takes
        busy_poll_budget: u32 = 64, number("frames", 1..=65_535);
        /// most frames per second of each queue; more are dropped and counted; 0: no limit
        rate_max_hz as "rate_max_pps": u32 = 0, number("frames", 0..=1_000_000_000);
        /// whether the buffers are in huge pages
        huge: bool = false, OnOff;
    }
}

impl XdpOptions {
    /// Reads the link's own options out of a spec, which also has those of the rights.
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        spec.interface()?;
        let (_, rest) = spec.split::<RightsOptions>()?;
        let parsed: Self = rest.read()?;
        parsed.check_chunk()?;
        Ok(parsed)
    }

    fn check_chunk(&self) -> Result<(), LinkError> {
        let Some(chunk) = self.chunk else { return Ok(()) };
        let reason = match self.unaligned {
            false if !chunk.is_power_of_two() => {
                "wants 2048 or 4096: the kernel takes no other sizes in aligned mode"
            }
            true if chunk % 64 != 0 => "wants a multiple of 64",
            _ => return Ok(()),
        };
        Err(bad(&format!("chunk={chunk}"), reason))
    }
}

fn queues(text: &str) -> Option<Queues> {
    if text == "all" {
        return Some(None);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parse = |text: &str| text.parse::<u32>().ok().filter(|queue| *queue < 256);
    let (first, last) = (parse(first)?, parse(last)?);
    (first <= last).then_some(Some((first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<XdpOptions, LinkError> {
        XdpOptions::from_spec(&Spec::parse(text)?)
    }

    #[test]
    fn everything_has_a_default_but_the_interface() {
        let plain = parse("xdp:veth0").unwrap();
        assert_eq!((plain.mode, plain.queues, plain.chunk), (XdpMode::Auto, None, None));
        assert!(plain.wakeup && !plain.unaligned && !plain.huge);
    }

    #[test]
    fn every_option_is_read() {
        let text = "xdp:eth1,mode=native,queues=1-3,channels=4,tx_queues=2,chunk=3008,unaligned=on,\
                    buffers=500,wakeup=off,huge=on,busy_poll_us=20,busy_poll_budget=16,\
                    rate_max_pps=1000";
        let expected = XdpOptions {
            mode: XdpMode::Native,
            queues: Some((1, 3)),
            channels: Some(4),
            tx_queues: 2,
            buffers: Some(500),
            chunk: Some(3008),
            unaligned: true,
            wakeup: false,
            busy_poll_us: 20,
            busy_poll_budget: 16,
            rate_max_hz: 1000,
            huge: true,
        };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn queues_are_a_range_and_chunks_what_the_kernel_takes() {
        for (text, reason) in [
            ("queues=3-1", "\"queues=3-1\": wants all, one queue"),
            ("chunk=3000", "\"chunk=3000\": wants 2048 or 4096"),
            ("chunk=3000,unaligned=on", "\"chunk=3000\": wants a multiple of 64"),
        ] {
            let error = parse(&format!("xdp:veth0,{text}")).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
