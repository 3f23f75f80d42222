//! The options of the `udp` link.

use std::io;

use millstream_ring::Wait;
use socket2::Socket;

use super::{launch, sockopt};
use crate::launch::LaunchClock;
use crate::options::{OnOff, Words, maybe, number};
use crate::spec::bad;
use crate::{LinkError, Spec, options};

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct UdpOptions {
        /// receive trains of datagrams by one call (GRO)
        gro: bool = true, OnOff;
        /// send trains of datagrams by one call (GSO)
        gso: bool = true, OnOff;
        /// how a thread waits: sleep in the kernel, poll the socket, which needs a whole core, or
        /// poll for at most 50 µs and then sleep
        wait: Wait = Wait::Park, Words(&[
            ("park", Wait::Park),
            ("spin", Wait::Spin),
            ("adaptive", Wait::Adaptive),
        ]);
        /// microseconds for which the kernel polls the card before the thread sleeps
        busy_poll_us: Option<u32> = None, maybe(number("microseconds", 0..=1_000_000));
        /// the kernel handles packets of the card only when this process polls
        prefer_busy_poll: bool = false, OnOff;
        /// most packets that one poll takes
        busy_poll_budget: Option<u32> = None, maybe(number("packets", 1..=65_535));
        /// the interface's queue that sends packets at set times; etf needs CAP_NET_ADMIN
        launch: Option<LaunchClock> = None, Words(&[
            ("off", None),
            ("fq", Some(LaunchClock::Monotonic)),
            ("etf", Some(LaunchClock::Tai)),
        ]);
    }
}

impl UdpOptions {
    pub fn from_spec(spec: &Spec) -> Result<Self, LinkError> {
        spec.read_alone()
    }

    /// Requests busy polling from the kernel, if the link string does. A refusal is an error,
    /// because the option was given explicitly.
    pub fn apply_busy_poll(&self, socket: &Socket) -> Result<(), LinkError> {
        let prefer = self.prefer_busy_poll.then_some(1);
        let wishes = [
            ("busy_poll_us", libc::SO_BUSY_POLL, self.busy_poll_us),
            ("prefer_busy_poll", libc::SO_PREFER_BUSY_POLL, prefer),
            ("busy_poll_budget", libc::SO_BUSY_POLL_BUDGET, self.busy_poll_budget),
        ];
        for (name, option, value) in wishes {
            let Some(value) = value else { continue };
            sockopt::busy_poll(socket, option, value).map_err(|error| {
                let reason = format!("was refused ({error}): it needs CAP_NET_ADMIN");
                bad(&format!("{name}={value}"), &reason)
            })?;
        }
        Ok(())
    }

    /// Requests launch times from the kernel, if the link string does.
    pub fn apply_launch(&self, socket: &Socket) -> Result<(), LinkError> {
        let Some(clock) = self.launch else { return Ok(()) };
        launch::enable(socket, clock).map_err(|error| {
            let option = match clock {
                LaunchClock::Monotonic => "launch=fq",
                LaunchClock::Tai => "launch=etf",
            };
            let next = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "it needs CAP_NET_ADMIN; use launch=fq without rights"
                }
                _ => "the kernel has no launch times (SO_TXTIME, Linux 4.19); leave it out",
            };
            bad(option, &format!("was refused ({error}): {next}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<UdpOptions, LinkError> {
        UdpOptions::from_spec(&Spec::parse(text)?)
    }

    #[test]
    fn offloads_are_on_unless_switched_off() {
        let plain = parse("udp").unwrap();
        assert!(plain.gro && plain.gso && plain.busy_poll_us.is_none());
        let off = parse("udp:gro=off,gso=off,busy_poll_us=50").unwrap();
        assert_eq!(off, UdpOptions { gro: false, gso: false, busy_poll_us: Some(50), ..plain });
    }

    #[test]
    fn waiting_is_a_choice() {
        assert_eq!(parse("udp").unwrap().wait, Wait::Park);
        for wait in Wait::ALL {
            assert_eq!(parse(&format!("udp:wait={}", wait.name())).unwrap().wait, wait);
        }
        let spin = parse("udp:wait=spin,prefer_busy_poll=on,busy_poll_budget=16").unwrap();
        assert!(
            spin.wait == Wait::Spin && spin.prefer_busy_poll && spin.busy_poll_budget == Some(16)
        );
    }
}
