//! `null`: discards what it transmits at full speed; receives nothing, or generated frames as fast
//! as they are asked for. It shows the costs of a user of the frame interface alone.

use std::io;

use crate::entry::{Factory, LinkEntry, Target, nothing_ahead};
use crate::frame::{FrameLink, FrameOptions, LinkInfo};
use crate::options::{Options, maybe, number};
use crate::supply::{FrameSupply, Supplied, SupplyLink};
use crate::{LinkError, Spec, options};

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct NullOptions {
        /// largest IP packet
        mtu: usize = 9000, number("bytes", 68..=65_535);
        /// receive frames of this length, header included; without it: nothing
        bytes: Option<usize> = None, maybe(number("bytes", 22..=65_549));
    }
}

/// The entry of `null`.
pub static LINK: LinkEntry = LinkEntry {
    name: "null",
    about: "drops what it transmits, and receives nothing or generated frames",
    options: NullOptions::describe,
    target: Target::None,
    factory: Factory::Frames(open),
    check: |spec| spec.read_alone::<NullOptions>().map(drop),
    rights: None,
    missing: None,
    foresee: nothing_ahead,
};

/// An Ethernet type for experiments (IEEE 802, local experimental 1).
const ETHERTYPE: u16 = 0x88b5;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];

/// A source of frames to this link, numbered behind the header (64 bits, little-endian).
struct Generator {
    bytes: usize,
    number: u64,
}

impl FrameSupply for Generator {
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Supplied> {
        if self.bytes == 0 {
            return Ok(Supplied::Nothing);
        }
        buffer[..6].copy_from_slice(&MAC);
        buffer[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        buffer[14..22].copy_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        Ok(Supplied::Frame(self.bytes))
    }
}

/// Opens a null link.
///
/// # Errors
/// [`LinkError::BadOption`], or [`LinkError::Setup`] where there is no memory.
pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let NullOptions { mtu, bytes } = spec.read_alone()?;
    let bytes = bytes.unwrap_or(0);
    let mut info = LinkInfo::new(LINK.name, MAC, mtu.max(bytes.saturating_sub(14)));
    info.detail = match bytes {
        0 => "receives nothing".to_owned(),
        bytes => format!("receives generated frames of {bytes} bytes"),
    };
    Ok(Box::new(SupplyLink::new(info, sizes, Generator { bytes, number: 0 })?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_frames;

    #[test]
    fn frames_are_generated_while_there_are_buffers() {
        let sizes = FrameOptions { receive_frames: 100, transmit_frames: 4 };
        let mut link = open_frames("null:bytes=1514", &sizes).unwrap();
        let mut frames = Vec::new();
        let counts = [64, 36, 0].map(|_| link.receive(&mut frames).unwrap());
        assert_eq!((counts, link.census().lent), ([64, 36, 0], 100));
        for (number, frame) in (0u64..).zip(&frames) {
            let bytes = link.memory().bytes(frame);
            assert_eq!((bytes.len(), &bytes[14..22]), (1514, &number.to_le_bytes()[..]));
        }
        link.give_back(&mut frames);
        assert_eq!((link.census().lent, link.counters().rx_bytes), (0, 151_400));
    }

    #[test]
    fn what_is_sent_is_counted_and_gone() {
        let mut link = open_frames("null", &FrameOptions::default()).unwrap();
        let mut frames = Vec::new();
        assert_eq!(link.receive(&mut frames).unwrap(), 0);
        link.reserve(&mut frames, 3);
        frames.iter_mut().for_each(|frame| frame.set_len(100));
        frames[0].set_continues(true);
        assert_eq!(link.transmit(&mut frames).unwrap(), 3);
        let counters = link.counters();
        assert_eq!((counters.tx_frames, counters.tx_bytes, link.census().lent), (2, 300, 0));
        let error = open_frames("null:bytes=3", &FrameOptions::default()).err().unwrap();
        assert!(error.to_string().contains("wants bytes from 22 to 65549"));
    }
}
