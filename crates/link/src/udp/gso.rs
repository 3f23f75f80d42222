//! Control messages: segment sizes in both directions and the drop counter.

use std::mem;

use libc::{c_int, c_void};

/// The kernel's control messages of a received message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// Size of the datagrams a coalesced message consists of.
    pub segment_bytes: Option<usize>,
    /// The socket's drop counter when this message was queued, modulo 2³².
    pub drops: Option<u32>,
}

/// Room for the control messages of one message, aligned as cmsg(3) requires.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct ControlBuffer([u8; ControlBuffer::BYTES]);

impl Default for ControlBuffer {
    fn default() -> Self {
        Self([0; Self::BYTES])
    }
}

const HEADER_BYTES: usize = mem::size_of::<libc::cmsghdr>();

/// `CMSG_ALIGN` of cmsg(3): control messages start at multiples of the machine word.
const fn align(length: usize) -> usize {
    length.next_multiple_of(mem::size_of::<usize>())
}

impl ControlBuffer {
    /// The size of the buffer, bytes: two values of four bytes each, with a reserve.
    pub const BYTES: usize = 64;

    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Returns the values in the first `used` bytes. Unknown or truncated control messages are
    /// skipped.
    pub fn notes(&self, used: usize) -> Notes {
        let mut rest = &self.0[..used.min(Self::BYTES)];
        let mut notes = Notes::default();
        while let Some((header, body)) = rest.split_at_checked(HEADER_BYTES) {
            // `cmsghdr` on Linux: length (machine word), level, type.
            let word = mem::size_of::<usize>();
            let length = usize::from_ne_bytes(header[..word].try_into().expect("word"));
            let level = int(&header[word..]);
            let kind = int(&header[word + 4..]);
            if length < HEADER_BYTES || length > rest.len() {
                break;
            }
            if length >= HEADER_BYTES + 4 {
                match (level, kind) {
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        notes.segment_bytes = usize::try_from(int(body)).ok().filter(|n| *n > 0);
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => notes.drops = Some(int(body) as u32),
                    _ => {}
                }
            }
            rest = rest.get(align(length)..).unwrap_or(&[]);
        }
        notes
    }

    /// Returns a control buffer that makes the kernel split the message into segments of `bytes`,
    /// and its length.
    pub fn segment(bytes: u16) -> (Self, usize) {
        let mut control = Self::default();
        let length = HEADER_BYTES + mem::size_of::<u16>();
        let word = mem::size_of::<usize>();
        control.0[..word].copy_from_slice(&length.to_ne_bytes());
        control.0[word..][..4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
        control.0[word + 4..][..4].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
        control.0[HEADER_BYTES..][..2].copy_from_slice(&bytes.to_ne_bytes());
        (control, align(length))
    }
}

fn int(bytes: &[u8]) -> c_int {
    c_int::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
}

/// Takes any bytes as control messages, for a fuzz target and a test.
#[cfg(any(test, fuzzing))]
pub fn exercise(bytes: &[u8]) {
    let Some((&used, bytes)) = bytes.split_first() else { return };
    let mut control = ControlBuffer::default();
    control.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let notes = control.notes(usize::from(used));
    assert!(notes.segment_bytes != Some(0));
    // Bytes behind the end have no effect.
    let used = usize::from(used).min(ControlBuffer::BYTES);
    control.0[used..].fill(0);
    assert_eq!(control.notes(used), notes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_do_any_harm(
            used in 0..=80u8,
            length in 0..40u8,
            kind in prop_oneof![Just((libc::SOL_UDP, libc::UDP_GRO)), any::<(i32, i32)>()],
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let (level, kind) = kind;
            let length = usize::from(length).to_ne_bytes();
            let head = [&[used][..], &length, &level.to_ne_bytes(), &kind.to_ne_bytes()].concat();
            exercise(&[head, rest].concat());
        }
    }

    fn push(
        control: &mut ControlBuffer,
        at: usize,
        level: c_int,
        kind: c_int,
        value: c_int,
    ) -> usize {
        let length = HEADER_BYTES + 4;
        control.0[at..][..8].copy_from_slice(&length.to_ne_bytes());
        control.0[at + 8..][..4].copy_from_slice(&level.to_ne_bytes());
        control.0[at + 12..][..4].copy_from_slice(&kind.to_ne_bytes());
        control.0[at + 16..][..4].copy_from_slice(&value.to_ne_bytes());
        at + align(length)
    }

    #[test]
    fn both_notes_are_found_in_either_order() {
        let mut control = ControlBuffer::default();
        let next = push(&mut control, 0, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 7);
        let used = push(&mut control, next, libc::SOL_UDP, libc::UDP_GRO, 1472);
        let want = Notes { segment_bytes: Some(1472), drops: Some(7) };
        assert_eq!(control.notes(used), want);
        assert_eq!(control.notes(next), Notes { segment_bytes: None, drops: Some(7) });
    }

    #[test]
    fn nonsense_lengths_end_the_search() {
        for length in [0usize, 3, 15, 1000, usize::MAX] {
            let mut control = ControlBuffer::default();
            control.0[..8].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(control.notes(ControlBuffer::BYTES), Notes::default());
        }
    }
}
