//! Flows that are not CHDR: signal data of VITA 49, and datagrams with a counter anywhere.
//!
//! Nothing says which datagrams have numbers. So a flow is followed once its packets have proved
//! it: those of VITA 49 by 16 counts in a row, others by a field of 16 bits that grows by one for
//! 64 packets, and through a carry, so that its place and its byte order are certain. A wider
//! counter has such a field in its lower bits. What fails too often is given up.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use millstream_wire::vita49::{Fraction, Header};

use crate::frame::Datagram;

/// The most pairs of sockets, and streams, that are tried.
const TRIED_MAX: usize = 1 << 12;
/// How often a proof may begin anew.
const TRIES: u8 = 8;
/// Counts of VITA 49, and values of a counter, in a row that prove a flow.
const COUNTS: u16 = 16;
const VALUES: u16 = 64;
/// The bytes in which a counter is looked for.
const LOOKED_AT: usize = 64;

/// How the packets of a flow are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowProtocol {
    /// By CHDR headers.
    Chdr,
    /// By the 4-bit counts of VITA 49. Where its times do not say more, a loss has at least its
    /// number, or 16, 32 and so on more.
    Vita49,
    /// By a counter in the datagrams.
    Counter {
        /// The place of its lower 16 bits, bytes from the start of the datagram.
        at: usize,
        /// Its lower byte comes first.
        is_little: bool,
    },
}

/// The number of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainNumber {
    pub protocol: FlowProtocol,
    /// The stream identifier of VITA 49.
    pub stream: u32,
    pub number: u16,
    /// Packets before it may be missing 16 at a time besides.
    pub is_least: bool,
}

/// The flows that are not CHDR, and what may become one.
#[derive(Debug, Default)]
pub(crate) struct PlainFlows {
    pairs: HashMap<(SocketAddrV4, SocketAddrV4), Pair>,
    streams: HashMap<(SocketAddrV4, SocketAddrV4, u32), Stream>,
}

#[derive(Debug)]
enum Pair {
    Vita49,
    Tried(Box<Trial>),
    Counter { at: usize, is_little: bool },
    GivenUp,
}

impl PlainFlows {
    /// Returns the number of a datagram, once its flow is proved.
    pub fn number(&mut self, datagram: &Datagram<'_>) -> Option<PlainNumber> {
        let key = (datagram.source, datagram.destination);
        let Some(pair) = self.pairs.get_mut(&key) else {
            if self.pairs.len() < TRIED_MAX {
                let pair = match signal(datagram) {
                    Some(_) => Pair::Vita49,
                    None => Pair::Tried(Box::new(Trial::new(datagram.payload))),
                };
                self.pairs.insert(key, pair);
            }
            return None;
        };
        match pair {
            Pair::GivenUp => None,
            Pair::Vita49 => {
                let header = signal(datagram).filter(|header| header.is_data)?;
                let stream = header.stream.unwrap_or(0);
                let key = (key.0, key.1, stream);
                let Some(known) = self.streams.get_mut(&key) else {
                    if self.streams.len() < TRIED_MAX {
                        self.streams.insert(key, Stream::new(&header));
                    }
                    return None;
                };
                let (number, is_least) = known.number(&header)?;
                Some(PlainNumber { protocol: FlowProtocol::Vita49, stream, number, is_least })
            }
            Pair::Tried(trial) => {
                match trial.take(datagram.payload) {
                    Proof::Yet => {}
                    Proof::Failed => *pair = Pair::GivenUp,
                    Proof::Done { at, is_little } => *pair = Pair::Counter { at, is_little },
                }
                None
            }
            Pair::Counter { at, is_little } => counter(*at, *is_little, datagram.payload),
        }
    }

    /// Returns stream, number and the bits of the number of a packet with these first bytes.
    pub fn peek(
        &self,
        ends: (SocketAddrV4, SocketAddrV4),
        header: &[u8; 8],
    ) -> Option<(u32, u64, u64)> {
        match self.pairs.get(&ends)? {
            Pair::Vita49 => {
                // Type 1 has a stream identifier in its second word.
                let stream = if header[0] >> 4 == 1 {
                    u32::from_be_bytes(*header[4..].first_chunk()?)
                } else {
                    0
                };
                Some((stream, (header[1] & 0xF).into(), 0xF))
            }
            Pair::Counter { at, is_little } => {
                let found = counter(*at, *is_little, header)?;
                Some((0, found.number.into(), u16::MAX.into()))
            }
            Pair::Tried(_) | Pair::GivenUp => None,
        }
    }
}

fn counter(at: usize, is_little: bool, payload: &[u8]) -> Option<PlainNumber> {
    let bytes = *payload.get(at..)?.first_chunk()?;
    let number = if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
    let protocol = FlowProtocol::Counter { at, is_little };
    Some(PlainNumber { protocol, stream: 0, number, is_least: false })
}

/// Returns the header of a packet of VITA 49 that fills a datagram.
fn signal(datagram: &Datagram<'_>) -> Option<Header> {
    let header = Header::parse(datagram.payload).ok()?;
    (header.len == datagram.length && header.len > header.header_len).then_some(header)
}

/// A stream of VITA 49.
#[derive(Debug)]
struct Stream {
    /// Counts in a row, until they prove it.
    proved: u16,
    failed: u8,
    /// The number of the newest packet; its lowest four bits are the count.
    number: u16,
    time: Option<u64>,
    /// The time from one packet to the next.
    step: Option<u64>,
}

impl Stream {
    fn new(header: &Header) -> Self {
        let (number, time) = (header.count.into(), time_of(header));
        Self { proved: 0, failed: 0, number, time, step: None }
    }

    /// Takes a packet; returns its number, and whether more may be missing before it.
    fn number(&mut self, header: &Header) -> Option<(u16, bool)> {
        let steps = u16::from(header.count).wrapping_sub(self.number) & 0xF;
        let now = time_of(header);
        let passed = now.zip(self.time).map(|(now, before)| now.wrapping_sub(before) as i64);
        if self.proved < COUNTS {
            if self.failed == TRIES {
                return None;
            }
            self.step = passed.filter(|_| steps == 1).and_then(|passed| u64::try_from(passed).ok());
            self.failed += u8::from(steps != 1);
            self.proved = if steps == 1 { self.proved + 1 } else { 0 };
            (self.number, self.time) = (self.number.wrapping_add(steps), now);
            return (self.proved == COUNTS).then_some((self.number, false));
        }
        let by_time = passed.zip(self.step).and_then(|(passed, step)| {
            let step = i64::try_from(step).ok().filter(|step| *step > 0)?;
            let steps_passed = passed.checked_add(step / 2)?.div_euclid(step);
            let agrees = steps_passed & 0xF == i64::from(steps);
            i16::try_from(steps_passed).ok().filter(|_| agrees)
        });
        // Without time, the nearest number with this count.
        let by_count = if steps > 8 { steps as i16 - 16 } else { steps as i16 };
        let ahead = by_time.unwrap_or(by_count);
        let number = self.number.wrapping_add_signed(ahead);
        if ahead > 0 {
            (self.number, self.time) = (number, now);
        }
        Some((number, by_time.is_none() && ahead != 1))
    }
}

/// Returns a time that grows evenly: picoseconds, or samples. Samples since a second do not.
fn time_of(header: &Header) -> Option<u64> {
    match (header.fraction?, header.seconds) {
        (Fraction::Picoseconds(rest), seconds) => {
            let seconds = u64::from(seconds.unwrap_or(0)).wrapping_mul(1_000_000_000_000);
            Some(seconds.wrapping_add(rest))
        }
        (Fraction::Free(samples), _) | (Fraction::Samples(samples), None) => Some(samples),
        (Fraction::Samples(_), Some(_)) => None,
    }
}

/// Datagrams that may have a counter.
#[derive(Debug)]
struct Trial {
    last: [u8; LOOKED_AT],
    length: usize,
    in_row: u16,
    failed: u8,
    /// Places whose 16 bits have grown by one each time: big-endian, little-endian.
    alive: [u64; 2],
    /// Those of them whose upper byte has changed.
    carried: [u64; 2],
}

enum Proof {
    Yet,
    Failed,
    Done { at: usize, is_little: bool },
}

impl Trial {
    fn new(payload: &[u8]) -> Self {
        let mut trial = Self {
            last: [0; LOOKED_AT],
            length: 0,
            in_row: 0,
            failed: 0,
            alive: [u64::MAX; 2],
            carried: [0; 2],
        };
        trial.keep(payload);
        trial
    }

    fn keep(&mut self, payload: &[u8]) {
        self.length = payload.len().min(LOOKED_AT);
        self.last[..self.length].copy_from_slice(&payload[..self.length]);
    }

    fn take(&mut self, payload: &[u8]) -> Proof {
        let length = payload.len().min(self.length);
        let pairs = self.last[..length].windows(2).zip(payload[..length].windows(2));
        let (mut grown, mut carried) = ([0; 2], [0; 2]);
        for (at, (before, now)) in pairs.enumerate() {
            let numbers = |bytes: &[u8]| {
                let bytes = [bytes[0], bytes[1]];
                [u16::from_be_bytes(bytes), u16::from_le_bytes(bytes)]
            };
            let (before, now) = (numbers(before), numbers(now));
            for n in 0..2 {
                let is_next = now[n] == before[n].wrapping_add(1);
                let carries = is_next && now[n] & 0xFF == 0;
                grown[n] |= u64::from(is_next) << at;
                carried[n] |= u64::from(carries) << at;
            }
        }
        self.keep(payload);
        for n in 0..2 {
            self.alive[n] &= grown[n];
            self.carried[n] = (self.carried[n] | carried[n]) & self.alive[n];
        }
        self.in_row += 1;
        if self.alive == [0; 2] {
            self.failed += 1;
            (self.in_row, self.alive, self.carried) = (0, [u64::MAX; 2], [0; 2]);
            return if self.failed == TRIES { Proof::Failed } else { Proof::Yet };
        }
        let proved = self.carried.map(u64::trailing_zeros);
        match (self.in_row >= VALUES, proved) {
            (true, [at, _]) if at < 64 => Proof::Done { at: at as usize, is_little: false },
            (true, [_, at]) if at < 64 => Proof::Done { at: at as usize, is_little: true },
            // A counter of 8 bits never carries.
            _ if self.in_row > 4 * VALUES + VALUES => Proof::Failed,
            _ => Proof::Yet,
        }
    }
}
