//! The options of the `udp` link.

use socket2::Socket;

use super::sockopt;
use crate::spec::bad;
use crate::{LinkError, Spec};

/// What a link string may say behind `udp:`.
pub const OPTIONS_HELP: &str = "gro=on|off (receive coalescing), gso=on|off (send trains), \
     busy_poll_us=N (the kernel polls the device this long before it sleeps)";

/// The options, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UdpOptions {
    pub gro: bool,
    pub gso: bool,
    pub busy_poll_us: Option<u32>,
}

impl UdpOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        spec.no_target(OPTIONS_HELP)?;
        let mut parsed = Self { gro: true, gso: true, busy_poll_us: None };
        for field in spec.fields(OPTIONS_HELP) {
            match field.name {
                "gro" => parsed.gro = field.on_off()?,
                "gso" => parsed.gso = field.on_off()?,
                "busy_poll_us" => {
                    parsed.busy_poll_us = Some(field.number("microseconds", 0..=1_000_000)?);
                }
                _ => return Err(field.unknown()),
            }
        }
        Ok(parsed)
    }

    /// Asks the kernel to busy-poll, if the link string said so. A refusal is an error, because
    /// somebody asked for it by name.
    pub fn apply_busy_poll(&self, socket: &Socket) -> Result<(), LinkError> {
        let Some(us) = self.busy_poll_us else { return Ok(()) };
        sockopt::busy_poll(socket, us).map_err(|error| {
            let reason = format!("was refused ({error}): it needs CAP_NET_ADMIN");
            bad(&format!("busy_poll_us={us}"), &reason, OPTIONS_HELP)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<UdpOptions, LinkError> {
        UdpOptions::from_spec(&Spec::parse(text, OPTIONS_HELP)?)
    }

    #[test]
    fn offloads_are_on_unless_switched_off() {
        let plain = parse("udp").unwrap();
        assert!(plain.gro && plain.gso && plain.busy_poll_us.is_none());
        let off = parse("udp:gro=off,gso=off,busy_poll_us=50").unwrap();
        assert_eq!(off, UdpOptions { gro: false, gso: false, busy_poll_us: Some(50) });
    }

    #[test]
    fn a_bad_option_names_itself_and_the_choices() {
        for (text, reason) in [
            ("udp:gro=maybe", "\"gro=maybe\": wants on or off"),
            ("udp:warp=9", "\"warp=9\": is not known"),
            ("udp:busy_poll_us=-1", "wants microseconds"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("gro=on|off"), "{error}");
        }
    }
}
