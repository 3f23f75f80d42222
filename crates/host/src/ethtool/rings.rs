//! The sizes of a card's rings, and its interrupt coalescing (`ETHTOOL_GRINGPARAM`,
//! `ETHTOOL_GCOALESCE` of `linux/ethtool.h`; ethtool(8), `-g` and `-c`).

use super::Ethtool;
use serde::{Deserialize, Serialize};
use std::io;

const GET_COALESCE: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;

/// Sizes of a card's rings, descriptors.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Rings {
    /// Frames to receive into.
    pub receive: u32,
    /// Frames to transmit.
    pub transmit: u32,
}

/// The time and count of frames that a card collects before an interrupt.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Coalescing {
    /// Microseconds after the first frame.
    pub receive_us: u32,
    /// Frames; 0: no limit.
    pub receive_frames: u32,
    /// Whether the driver adapts both to the traffic.
    pub adaptive: bool,
}

/// `struct ethtool_ringparam`.
#[repr(C)]
#[derive(Default)]
struct RingArgs {
    command: u32,
    receive_max: u32,
    mini_max: u32,
    jumbo_max: u32,
    transmit_max: u32,
    receive: u32,
    mini: u32,
    jumbo: u32,
    transmit: u32,
}

/// `struct ethtool_coalesce`: the command and 22 numbers, of which four matter here.
#[repr(C)]
#[derive(Default)]
struct CoalesceArgs {
    command: u32,
    receive_us: u32,
    receive_frames: u32,
    between: [u32; 7],
    adaptive_receive: u32,
    rest: [u32; 12],
}

impl Ethtool {
    /// Returns the present and the largest sizes of the rings.
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; many virtual devices do not report them.
    pub fn rings(&self, interface: &str) -> io::Result<(Rings, Rings)> {
        let mut args = RingArgs { command: GET_RINGS, ..Default::default() };
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut args)? };
        let now = Rings { receive: args.receive, transmit: args.transmit };
        let max = Rings { receive: args.receive_max, transmit: args.transmit_max };
        Ok((now, max))
    }

    /// Returns the interrupt coalescing of the card.
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; many virtual devices do not report it.
    pub fn coalescing(&self, interface: &str) -> io::Result<Coalescing> {
        let mut args = CoalesceArgs { command: GET_COALESCE, ..Default::default() };
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut args)? };
        Ok(Coalescing {
            receive_us: args.receive_us,
            receive_frames: args.receive_frames,
            adaptive: args.adaptive_receive != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_size_of_the_kernel() {
        assert_eq!((size_of::<RingArgs>(), size_of::<CoalesceArgs>()), (36, 92));
        assert_eq!(std::mem::offset_of!(CoalesceArgs, adaptive_receive), 40);
    }
}
