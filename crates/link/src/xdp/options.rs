//! The options of the `xdp` link.

use crate::rights::RightsOptions;
use crate::spec::{Field, bad};
use crate::{LinkError, Spec};

/// What a link string may say behind `xdp:`.
pub const OPTIONS_HELP: &str = "INTERFACE first, then mode=auto|zero-copy|native|generic, \
     queues=all|0-3|0 (those to serve), channels=N (queues that the interface shall have), \
     tx_queues=N (of those served, to transmit on; a flow keeps to one), \
     buffers=auto|N (to receive into, of each queue; auto: as many as stay in the caches), \
     chunk=auto|2048|4096 (bytes of a buffer; any multiple of 64 from 2048 to 4096 with \
     unaligned=on), unaligned=on|off, wakeup=on|off (need_wakeup), busy_poll_us=N (preferred \
     busy polling), busy_poll_budget=N, rate_max_pps=N (frames per second and queue; more are \
     dropped and counted), huge=on|off (huge pages), rights=auto|direct|broker, \
     broker=PATH (socket of `millstream host grant`)";

/// How frames should pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Auto,
    ZeroCopy,
    Native,
    Generic,
}

/// The options, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct XdpOptions {
    pub interface: String,
    pub mode: Wanted,
    /// First and last queue; none: all.
    pub queues: Option<(u32, u32)>,
    /// How many the interface shall have; none: as it has.
    pub channels: Option<u32>,
    /// How many of them transmit.
    pub tx_queues: usize,
    /// Chunks of the receive ring of each queue; none: by their size.
    pub buffers: Option<usize>,
    /// Bytes; none: by the MTU.
    pub chunk: Option<u32>,
    pub unaligned: bool,
    pub wakeup: bool,
    pub busy_poll_us: u32,
    pub busy_poll_budget: u32,
    pub rate_max_hz: u32,
    pub huge: bool,
    pub rights: RightsOptions,
}

impl XdpOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        let Some(interface) = spec.target.clone() else {
            return Err(bad("xdp", "names no interface: write xdp:INTERFACE", OPTIONS_HELP));
        };
        let mut parsed = Self {
            interface,
            mode: Wanted::Auto,
            queues: None,
            channels: None,
            tx_queues: 1,
            buffers: None,
            chunk: None,
            unaligned: false,
            wakeup: true,
            busy_poll_us: 0,
            busy_poll_budget: 64,
            rate_max_hz: 0,
            huge: false,
            rights: RightsOptions::default(),
        };
        for field in spec.fields(OPTIONS_HELP) {
            parsed.take(&field)?;
        }
        parsed.check_chunk()?;
        Ok(parsed)
    }

    fn take(&mut self, field: &Field<'_>) -> Result<(), LinkError> {
        match field.name {
            "mode" => self.mode = field.one_of(&MODES)?,
            "queues" => self.queues = queues(field)?,
            "channels" => self.channels = Some(field.number("queues", 1..=256)?),
            "tx_queues" => self.tx_queues = field.number("queues", 1..=64)?,
            "buffers" if field.value == "auto" => self.buffers = None,
            "buffers" => self.buffers = Some(field.number("chunks", 64..=65_536)?),
            "chunk" if field.value == "auto" => self.chunk = None,
            "chunk" => self.chunk = Some(field.number("bytes", 2048..=4096)?),
            "unaligned" => self.unaligned = field.on_off()?,
            "wakeup" => self.wakeup = field.on_off()?,
            "huge" => self.huge = field.on_off()?,
            "busy_poll_us" => self.busy_poll_us = field.number("microseconds", 0..=1_000_000)?,
            "busy_poll_budget" => self.busy_poll_budget = field.number("frames", 1..=65_535)?,
            "rate_max_pps" => self.rate_max_hz = field.number("frames", 0..=1_000_000_000)?,
            _ if self.rights.take(field.name, field.value, OPTIONS_HELP)? => {}
            _ => return Err(field.unknown()),
        }
        Ok(())
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
        Err(bad(&format!("chunk={chunk}"), reason, OPTIONS_HELP))
    }
}

const MODES: [(&str, Wanted); 4] = [
    ("auto", Wanted::Auto),
    ("zero-copy", Wanted::ZeroCopy),
    ("native", Wanted::Native),
    ("generic", Wanted::Generic),
];

fn queues(field: &Field<'_>) -> Result<Option<(u32, u32)>, LinkError> {
    if field.value == "all" {
        return Ok(None);
    }
    let (first, last) = field.value.split_once('-').unwrap_or((field.value, field.value));
    let parse = |text: &str| text.parse::<u32>().ok().filter(|queue| *queue < 256);
    match (parse(first), parse(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Some((first, last))),
        _ => Err(field.refuse("wants all, one queue as in 0, or a range as in 0-3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<XdpOptions, LinkError> {
        XdpOptions::from_spec(&Spec::parse(text, OPTIONS_HELP)?)
    }

    #[test]
    fn everything_has_a_default_but_the_interface() {
        let plain = parse("xdp:veth0").unwrap();
        assert_eq!((plain.mode, plain.queues, plain.chunk), (Wanted::Auto, None, None));
        assert!(plain.wakeup && !plain.unaligned && !plain.huge);
        let error = parse("xdp").unwrap_err().to_string();
        assert!(error.contains("names no interface: write xdp:INTERFACE"), "{error}");
    }

    #[test]
    fn every_option_is_read() {
        let text = "xdp:eth1,mode=native,queues=1-3,channels=4,tx_queues=2,chunk=3008,unaligned=on,\
                    buffers=500,wakeup=off,huge=on,busy_poll_us=20,busy_poll_budget=16,\
                    rate_max_pps=1000";
        let expected = XdpOptions {
            interface: "eth1".to_owned(),
            mode: Wanted::Native,
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
            rights: RightsOptions::default(),
        };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_bad_option_names_itself_and_what_is_wanted() {
        for (text, reason) in [
            ("mode=skb", "\"mode=skb\": wants one of: auto, zero-copy, native, generic"),
            ("tx_queues=0", "\"tx_queues=0\": wants queues from 1 to 64"),
            ("queues=3-1", "\"queues=3-1\": wants all, one queue"),
            ("buffers=9", "\"buffers=9\": wants chunks from 64 to 65536"),
            ("chunk=8192", "\"chunk=8192\": wants bytes from 2048 to 4096"),
            ("chunk=3000", "\"chunk=3000\": wants 2048 or 4096"),
            ("chunk=3000,unaligned=on", "\"chunk=3000\": wants a multiple of 64"),
            ("wakeup=maybe", "\"wakeup=maybe\": wants on or off"),
            ("warp=9", "\"warp=9\": is not known"),
        ] {
            let error = parse(&format!("xdp:veth0,{text}")).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
