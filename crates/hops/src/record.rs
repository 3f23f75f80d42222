//! A recording of what an observer saw: the beginnings of frames, and what the hops said meanwhile,
//! in one pcapng file, so that the same account can be made of it later and elsewhere.
//!
//! What the hops say are entries of a journal between the packets (the format's own block for
//! them): Wireshark shows each as a line in its place, and `editcap` and `tshark -w` keep them,
//! which they do not with statistics and unknown blocks. An entry has a message for people, and the
//! field [`FIELD`], whose JSON is read again.
//!
//! The last seconds are kept in memory, in pieces of [`PIECE_BYTES`]: the oldest piece gives its
//! memory to the newest, so that a recording of days allocates no more than one of a minute, and
//! needs no disk until it ends.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use millstream_link::packet::PassingFrame;
use millstream_link::pcapng::{
    self, CaptureStatistics, ETHERNET, FrameDirection, FrameStamp, packet_bytes,
};
use millstream_watch::{DroppedPacket, HopReading, SNAPLEN, ThreadWait};
use serde::{Deserialize, Serialize};

/// The field of an entry that is read again.
pub const FIELD: &str = "MILLSTREAM_HOPS";

/// The most memory that a recording of the last seconds takes: a minute of 26 000 packets a second.
pub const MEMORY_BYTES: usize = 256 << 20;

/// Bytes of a piece.
const PIECE_BYTES: usize = 1 << 20;

/// Pieces of a recording that does not fill them: how exactly its beginning is kept.
const PIECES: u32 = 16;

/// Bytes of a cut frame that are kept: its headers with two VLAN tags and IP options, up to the
/// time of a data packet. Control packets and reports are shorter than an observer cuts.
const CUT_BYTES: usize = 14 + 8 + 60 + 8 + 38;
const _: () = assert!(CUT_BYTES <= SNAPLEN);

/// The most interfaces: readers have this limit, too.
const INTERFACES_MAX: usize = 4096;

/// `LINKTYPE_RAW`: an IP header.
const RAW: u16 = 101;

/// What the hops of a host said at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HopNote {
    /// Their counters.
    Reading(HopReading),
    /// The kernel dropped a packet.
    Dropped(DroppedPacket),
    /// A thread waited.
    Waited(ThreadWait),
}

impl HopNote {
    /// Reads an entry of a journal; `None` if it is not of such a recording.
    ///
    /// # Errors
    /// That of its JSON: it is damaged, or of another version.
    #[must_use]
    pub fn read(entry: &[u8]) -> Option<Result<Self, serde_json::Error>> {
        let name = [FIELD.as_bytes(), b"="].concat();
        let mut lines = entry.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(&name[..])).map(serde_json::from_slice)
    }

    /// Returns when it was.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::Reading(reading) => reading.at_ns,
            Self::Dropped(dropped) => dropped.at_ns,
            Self::Waited(wait) => wait.until_ns,
        }
    }

    /// Returns a line for people.
    fn message(&self) -> String {
        let message = match self {
            Self::Reading(reading) => {
                let sockets = reading.sockets.iter().map(|socket| {
                    format!(
                        ", socket {} {} of {} bytes, {} dropped",
                        socket.local, socket.queued_bytes, socket.buffer_bytes, socket.dropped
                    )
                });
                format!(
                    "hops: capture missed {}{}",
                    reading.capture_missed,
                    sockets.collect::<String>()
                )
            }
            Self::Dropped(DroppedPacket { reason, source, destination, segments, .. }) => {
                format!("dropped: {segments} of {source} to {destination}, {reason}")
            }
            Self::Waited(ThreadWait { tid, from_ns, until_ns, cpu, .. }) => {
                let ms = until_ns.saturating_sub(*from_ns) as f64 / 1e6;
                format!("waited: thread {tid}, {ms:.3} ms for CPU {cpu}")
            }
        };
        message.replace(char::is_control, " ")
    }
}

/// What of a run a recording has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedPart {
    /// Bytes of the file.
    pub bytes: u64,
    /// From its first to its last frame or note, nanoseconds.
    pub length_ns: u64,
    /// Whether the memory was too small for the wanted seconds.
    pub is_short: bool,
}

/// Records frames and notes, in the order in which they are given.
#[derive(Debug)]
pub struct HopRecorder<W> {
    to: W,
    /// How much is kept; `None` for all, which is written at once.
    keep: Option<Duration>,
    memory_bytes: usize,
    /// The blocks before all others, as far as they are not written.
    head: Vec<u8>,
    /// Numbers of interfaces, and whether their frames are of Ethernet.
    interfaces: Vec<(u32, bool)>,
    full: VecDeque<Piece>,
    filling: Piece,
    part: RecordedPart,
    begin_ns: Option<u64>,
    left_out: u64,
}

/// Blocks in a row.
#[derive(Debug, Default)]
struct Piece {
    blocks: Vec<u8>,
    /// The times of its first and last block.
    times_ns: Option<(u64, u64)>,
}

impl<W: Write> HopRecorder<W> {
    /// Begins a recording of all, or of the last seconds, which is written when it ends.
    pub fn new(to: W, keep: Option<Duration>) -> Self {
        Self {
            to,
            keep,
            memory_bytes: MEMORY_BYTES,
            head: pcapng::section(),
            interfaces: Vec::new(),
            full: VecDeque::new(),
            filling: Piece::default(),
            part: RecordedPart::default(),
            begin_ns: None,
            left_out: 0,
        }
    }

    /// Records the beginning of a frame; `name` is called for the name of an interface that has not
    /// occurred.
    ///
    /// # Errors
    /// That of the file, where all is kept.
    pub fn frame(
        &mut self,
        frame: &PassingFrame<'_>,
        name: impl FnOnce() -> String,
    ) -> io::Result<()> {
        let Some(interface) = self.interface(frame, name) else {
            self.left_out += 1;
            return Ok(());
        };
        let (whole_bytes, mut bytes) = (frame.length as usize, frame.bytes);
        if bytes.len() < whole_bytes {
            bytes = &bytes[..bytes.len().min(CUT_BYTES)];
        }
        let direction = if frame.is_outgoing { FrameDirection::Out } else { FrameDirection::In };
        let stamp = FrameStamp { interface, at_ns: frame.at_ns, direction, whole_bytes };
        let total = packet_bytes(bytes.len());
        let room = self.room(frame.at_ns, total)?;
        let at = room.len();
        room.resize(at + total, 0);
        pcapng::packet(&mut room[at..], stamp, bytes.len(), std::iter::once(bytes));
        Ok(())
    }

    /// Records what the hops said.
    ///
    /// # Errors
    /// That of the file, where all is kept.
    pub fn note(&mut self, note: &HopNote) -> io::Result<()> {
        let json = serde_json::to_string(note).map_err(io::Error::other)?;
        let entry = pcapng::journal_entry(note.at_ns(), &note.message(), (FIELD, &json));
        if entry.len() > PIECE_BYTES / 2 {
            // Nobody would read so long a block.
            self.left_out += 1;
            return Ok(());
        }
        self.room(note.at_ns(), entry.len())?.extend(entry);
        Ok(())
    }

    /// Writes what is kept, and returns the file, which is not flushed. `missed` are the frames
    /// that the capture missed.
    ///
    /// # Errors
    /// That of the file.
    pub fn finish(mut self, at_ns: u64, missed: u64) -> io::Result<(W, RecordedPart)> {
        if !self.interfaces.is_empty() {
            let uncaptured = missed + self.left_out;
            let seen = CaptureStatistics { received: None, lost: None, uncaptured };
            let block = pcapng::statistics(0, at_ns, seen);
            self.room(at_ns, block.len())?.extend(block);
        }
        self.full.push_back(std::mem::take(&mut self.filling));
        while let Some(piece) = self.full.pop_front() {
            self.write(&piece)?;
        }
        Ok((self.to, self.part))
    }

    /// Returns the position of a frame's interface.
    fn interface(
        &mut self,
        frame: &PassingFrame<'_>,
        name: impl FnOnce() -> String,
    ) -> Option<u32> {
        let of = (frame.interface, frame.is_ethernet);
        let known = self.interfaces.iter().position(|interface| *interface == of);
        if known.is_none() && self.interfaces.len() < INTERFACES_MAX {
            let link_type = if frame.is_ethernet { ETHERNET } else { RAW };
            self.head.extend(pcapng::interface(&name(), link_type));
            self.interfaces.push(of);
            return Some(self.interfaces.len() as u32 - 1);
        }
        known.map(|position| position as u32)
    }

    /// Returns the piece for a block of this time and size.
    fn room(&mut self, at_ns: u64, bytes: usize) -> io::Result<&mut Vec<u8>> {
        let age_ns = |begin_ns: u64| u128::from(at_ns.saturating_sub(begin_ns));
        let is_old = |keep: Duration| {
            let begin_ns = self.filling.times_ns.map_or(at_ns, |(begin_ns, _)| begin_ns);
            age_ns(begin_ns) > keep.as_nanos() / u128::from(PIECES)
        };
        if self.filling.blocks.len() + bytes > PIECE_BYTES || self.keep.is_some_and(is_old) {
            let mut next = Piece::default();
            if let Some(keep) = self.keep {
                let is_over = |piece: &Piece| {
                    piece.times_ns.is_none_or(|(_, end_ns)| age_ns(end_ns) > keep.as_nanos())
                };
                while let Some(oldest) = self.full.front() {
                    // One more piece is being filled, and one is what the next block begins.
                    let has_room = (self.full.len() + 2) * PIECE_BYTES <= self.memory_bytes;
                    let is_over = is_over(oldest);
                    if has_room && !is_over {
                        break;
                    }
                    self.part.is_short |= !is_over;
                    next = self.full.pop_front().unwrap_or_default();
                }
            }
            let filled = std::mem::take(&mut self.filling);
            match self.keep {
                Some(_) => self.full.push_back(filled),
                None => {
                    self.write(&filled)?;
                    next = filled;
                }
            }
            next.blocks.clear();
            self.filling = Piece { blocks: next.blocks, times_ns: None };
        }
        let piece = &mut self.filling;
        piece.blocks.reserve_exact(PIECE_BYTES.saturating_sub(piece.blocks.len()));
        piece.times_ns.get_or_insert((at_ns, at_ns)).1 = at_ns;
        Ok(&mut piece.blocks)
    }

    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        let Some((begin_ns, end_ns)) = piece.times_ns else {
            self.part.bytes += self.head.len() as u64;
            return self.to.write_all(&std::mem::take(&mut self.head));
        };
        let begin_ns = *self.begin_ns.get_or_insert(begin_ns);
        self.part.length_ns = end_ns.saturating_sub(begin_ns);
        for blocks in [&std::mem::take(&mut self.head), &piece.blocks] {
            self.to.write_all(blocks)?;
            self.part.bytes += blocks.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
