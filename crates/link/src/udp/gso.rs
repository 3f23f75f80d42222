//! Control messages: segment sizes in both directions, the drop counter, launch times.

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

/// The reason why a queue refused a datagram with a launch time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchRefusal {
    /// Its time had passed at the queue, or the clock is another one.
    Invalid,
    /// Its time passed in the queue.
    Missed,
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

/// `linux/errqueue.h`.
const SO_EE_ORIGIN_TXTIME: u8 = 6;
const SO_EE_CODE_TXTIME_INVALID_PARAM: u8 = 1;
const SO_EE_CODE_TXTIME_MISSED: u8 = 2;

/// `CMSG_ALIGN` of cmsg(3): control messages start at multiples of the machine word.
const fn align(length: usize) -> usize {
    length.next_multiple_of(mem::size_of::<usize>())
}

const _: () = {
    let error = mem::size_of::<libc::sock_extended_err>() + mem::size_of::<libc::sockaddr_in>();
    assert!(align(HEADER_BYTES + error) <= ControlBuffer::BYTES);
    assert!(2 * align(HEADER_BYTES + mem::size_of::<u32>()) <= ControlBuffer::BYTES);
};

impl ControlBuffer {
    /// The size of the buffer, bytes: two values of four bytes each, or an error of the error queue
    /// with the address of its origin.
    pub const BYTES: usize = 64;

    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Returns the control messages in the first `used` bytes, each with its level, its type and
    /// its value, up to the first one whose length is wrong.
    fn messages(&self, used: usize) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
        let mut rest = &self.0[..used.min(Self::BYTES)];
        std::iter::from_fn(move || {
            let header = rest.get(..HEADER_BYTES)?;
            // `cmsghdr` on Linux: length (machine word), level, type.
            let word = mem::size_of::<usize>();
            let length = usize::from_ne_bytes(header[..word].try_into().expect("word"));
            let level = int(&header[word..]);
            let kind = int(&header[word + 4..]);
            let body = rest.get(HEADER_BYTES..length)?;
            rest = rest.get(align(length)..).unwrap_or(&[]);
            Some((level, kind, body))
        })
    }

    /// Returns the values in the first `used` bytes. Unknown or truncated control messages are
    /// skipped.
    pub fn notes(&self, used: usize) -> Notes {
        let mut notes = Notes::default();
        for (level, kind, body) in self.messages(used).filter(|(.., body)| body.len() >= 4) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    notes.segment_bytes = usize::try_from(int(body)).ok().filter(|n| *n > 0);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => notes.drops = Some(int(body) as u32),
                _ => {}
            }
        }
        notes
    }

    /// Returns the refusal of a launch time in the first `used` bytes of a message of the error
    /// queue.
    pub fn refusal(&self, used: usize) -> Option<LaunchRefusal> {
        let is_error = |(level, kind, _): &(c_int, c_int, &[u8])| {
            (*level, *kind) == (libc::IPPROTO_IP, libc::IP_RECVERR)
        };
        // `struct sock_extended_err`: the error, the origin, a type, a code.
        let (.., error) = self.messages(used).find(is_error)?;
        match (*error.get(4)?, *error.get(6)?) {
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_INVALID_PARAM) => Some(LaunchRefusal::Invalid),
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_MISSED) => Some(LaunchRefusal::Missed),
            _ => None,
        }
    }

    /// Returns a control buffer that makes the kernel split the message into segments of `bytes`,
    /// and its length.
    pub fn segment(bytes: u16) -> (Self, usize) {
        Self::one(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes())
    }

    /// Returns a control buffer that makes the kernel's queue send the message at `at_ns`, and its
    /// length.
    pub fn launch(at_ns: u64) -> (Self, usize) {
        Self::one(libc::SOL_SOCKET, libc::SCM_TXTIME, &at_ns.to_ne_bytes())
    }

    /// Returns a control buffer of one message, and its length.
    fn one(level: c_int, kind: c_int, value: &[u8]) -> (Self, usize) {
        let mut control = Self::default();
        let length = HEADER_BYTES + value.len();
        let word = mem::size_of::<usize>();
        control.0[..word].copy_from_slice(&length.to_ne_bytes());
        control.0[word..][..4].copy_from_slice(&level.to_ne_bytes());
        control.0[word + 4..][..4].copy_from_slice(&kind.to_ne_bytes());
        control.0[HEADER_BYTES..][..value.len()].copy_from_slice(value);
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
    let refusal = control.refusal(used);
    control.0[used..].fill(0);
    assert_eq!((control.notes(used), control.refusal(used)), (notes, refusal));
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
            kind in prop_oneof![
                Just((libc::SOL_UDP, libc::UDP_GRO)),
                Just((libc::IPPROTO_IP, libc::IP_RECVERR)),
                any::<(i32, i32)>(),
            ],
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
    #[test]
    fn a_refusal_is_told_from_other_errors() {
        // `struct sock_extended_err` and the offender's address, as the kernel's etf writes them.
        let refusal = |origin, code, bytes| {
            let mut error = [0; 32];
            (error[4], error[6]) = (origin, code);
            let (control, used) =
                ControlBuffer::one(libc::IPPROTO_IP, libc::IP_RECVERR, &error[..bytes]);
            control.refusal(used)
        };
        assert_eq!(refusal(6, 1, 32), Some(LaunchRefusal::Invalid));
        assert_eq!(refusal(6, 2, 32), Some(LaunchRefusal::Missed));
        // An ICMP answer, a code of later kernels, and an error cut short.
        assert_eq!([refusal(2, 2, 32), refusal(6, 9, 32), refusal(6, 2, 6)], [None; 3]);
    }
}
