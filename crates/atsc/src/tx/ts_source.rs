//! A transport stream file as the constant-rate multiplex that the transmitter sends.

use super::pcr::{self, CLOCK_HZ, NULL_PID, PCR_WRAP};
use super::restamp::Restamper;
use crate::params::{PACKET_BYTES, TS_RATE_BPS, TS_SYNC};
use millstream_dsp::chunks::Chunks;
use std::path::{Path, PathBuf};

/// Ticks of 27 MHz that one packet takes on the channel.
const SLOT_TICKS: f64 = (PACKET_BYTES * 8) as f64 / TS_RATE_BPS * CLOCK_HZ;

/// The deviation from the channel's rate up to which a file is sent packet by packet, unchanged:
/// the tolerance of system clocks (ISO/IEC 13818-1, clause 2.4.2.1).
const RATE_TOLERANCE: f64 = 30e-6;

/// The longest time between two clock references that count as one clock.
const MAX_REFERENCE_GAP_TICKS: u64 = 27_000_000;

/// A transport stream cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TsError {
    /// The file cannot be read.
    #[error("cannot read the transport stream {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The stream contains no packet.
    #[error("the transport stream is empty: give a file with at least one 188-byte packet")]
    Empty,
    /// A packet does not start with the sync byte.
    #[error(
        "this file is not a transport stream: byte {offset} is {found:#04x}, but a packet of 188 \
         bytes must begin with 0x47. Convert the file, for example with ffmpeg -c copy -f mpegts"
    )]
    Sync {
        /// Byte offset in the file.
        offset: usize,
        /// The byte there.
        found: u8,
    },
    /// The last packet is cut short.
    #[error(
        "the transport stream is not complete: its last packet has {excess} of 188 bytes. To \
         transmit the complete packets, cut the file to {whole} bytes"
    )]
    Truncated {
        /// Bytes of whole packets.
        whole: usize,
        /// Bytes after them.
        excess: usize,
    },
    /// The stream needs more than the channel carries.
    #[error(
        "the transport stream has {rate_bps:.0} bit/s, but the channel carries only \
         {TS_RATE_BPS:.0} bit/s: encode it at a lower rate"
    )]
    TooFast {
        /// The file's rate by its own clock.
        rate_bps: f64,
    },
}

/// The conversion of a file into the multiplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TsMode {
    /// Every packet unchanged: the file has the channel's rate.
    Unchanged,
    /// Every packet unchanged, because the file has no clock that gives its rate.
    Untimed,
    /// Null packets are inserted, and clock references corrected for the new positions of packets.
    Stuffed,
}

/// The origin of a packet of the multiplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplexPacket {
    /// A packet of the file.
    File,
    /// A null packet between packets of the file.
    Stuffing,
    /// A null packet after the file's last.
    Ended,
}

/// Plays a transport stream at the channel's rate of 19.392658 Mbit/s.
///
/// Repetitions are continuous: clock references, time stamps and continuity counters continue.
#[derive(Clone, Debug)]
pub struct TsSource {
    packets: Vec<[u8; PACKET_BYTES]>,
    timeline: Timeline,
    mode: TsMode,
    repeat: bool,
    restamper: Restamper,
    next: usize,
    /// Packets of the multiplex so far.
    slot: u64,
    /// The file's clock at the start of the current repetition, minus its first value.
    base: f64,
}

impl TsSource {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TsError`] when it cannot be read or sent.
    pub fn open(path: impl AsRef<Path>, repeat: bool) -> Result<Self, TsError> {
        let path = path.as_ref();
        // It is read to its end, and a device or a pipe may have none.
        let read = || match std::fs::metadata(path)?.is_file() {
            true => std::fs::read(path),
            false => Err(std::io::Error::other("it is not a regular file: copy it into one")),
        };
        let bytes = read().map_err(|source| TsError::Read { path: path.to_owned(), source })?;
        Self::new(&bytes, repeat)
    }

    /// Takes a transport stream from memory.
    ///
    /// # Errors
    /// [`TsError`] when it cannot be sent.
    pub fn new(bytes: &[u8], repeat: bool) -> Result<Self, TsError> {
        let (packets, rest) = bytes.in_chunks::<PACKET_BYTES>();
        let starts = bytes.iter().step_by(PACKET_BYTES).enumerate();
        if let Some((i, found)) = starts.into_iter().find(|(_, byte)| **byte != TS_SYNC) {
            return Err(TsError::Sync { offset: i * PACKET_BYTES, found: *found });
        }
        if !rest.is_empty() {
            let whole = bytes.len() - rest.len();
            return Err(TsError::Truncated { whole, excess: rest.len() });
        }
        if packets.is_empty() {
            return Err(TsError::Empty);
        }
        let timeline = Timeline::of(packets);
        Ok(Self {
            mode: timeline.mode(packets.len())?,
            timeline,
            packets: packets.to_vec(),
            repeat,
            restamper: Restamper::new(),
            next: 0,
            slot: 0,
            base: 0.0,
        })
    }

    /// Returns the duration of one repetition, seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        let ticks = match self.mode {
            TsMode::Stuffed => self.clock_ticks(),
            TsMode::Unchanged | TsMode::Untimed => self.packets.len() as f64 * SLOT_TICKS,
        };
        ticks / CLOCK_HZ
    }

    /// Returns the duration of one repetition by the file's own clock, if it has one.
    fn clock_ticks(&self) -> f64 {
        let count = self.packets.len();
        match self.mode {
            TsMode::Untimed => count as f64 * SLOT_TICKS,
            TsMode::Unchanged | TsMode::Stuffed => {
                self.timeline.time(count) - self.timeline.time(0)
            }
        }
    }

    /// Writes the next packet of the multiplex.
    pub fn next_packet(&mut self, packet: &mut [u8; PACKET_BYTES]) -> MultiplexPacket {
        let now = self.slot as f64 * SLOT_TICKS;
        self.slot += 1;
        if self.next == self.packets.len() {
            if !self.repeat {
                write_null(packet);
                return MultiplexPacket::Ended;
            }
            // Rounded as a whole, so that no error accumulates over the repetitions.
            let before = self.base.round();
            self.base += self.clock_ticks();
            self.restamper.repeat((self.base.round() - before) as u64);
            self.next = 0;
        }
        let mut moved = 0.0;
        if self.mode == TsMode::Stuffed {
            let meant = self.base + self.timeline.time(self.next) - self.timeline.time(0);
            moved = now - meant;
            if moved < 0.0 {
                write_null(packet);
                return MultiplexPacket::Stuffing;
            }
        }
        *packet = self.packets[self.next];
        self.restamper.apply(packet, moved.round() as u64);
        self.next += 1;
        MultiplexPacket::File
    }
}

/// The intended send time of each packet of a file, by the file's own clock.
#[derive(Clone, Debug)]
struct Timeline {
    /// Packet index and ticks since the first reference, rising in both.
    anchors: Vec<(usize, f64)>,
}

impl Timeline {
    /// Follows the first program clock in the stream.
    fn of(packets: &[[u8; PACKET_BYTES]]) -> Self {
        let mut anchors: Vec<(usize, f64)> = Vec::new();
        let (mut clock_pid, mut last, mut ticks_per_packet) = (None, 0, SLOT_TICKS);
        for (i, packet) in packets.iter().enumerate() {
            let Some(reference) = pcr::read(packet) else { continue };
            if *clock_pid.get_or_insert(pcr::pid(packet)) != pcr::pid(packet) {
                continue;
            }
            let time = match anchors.last() {
                None => 0.0,
                Some((at, time)) => {
                    let gap = (reference + PCR_WRAP - last % PCR_WRAP) % PCR_WRAP;
                    let count = (i - at) as f64;
                    // A clock that jumps does not give the rate: the last rate remains.
                    if (1..=MAX_REFERENCE_GAP_TICKS).contains(&gap) {
                        ticks_per_packet = gap as f64 / count;
                    }
                    time + ticks_per_packet * count
                }
            };
            anchors.push((i, time));
            last = reference;
        }
        Self { anchors }
    }

    /// Returns the intended send time of packet `index`, ticks; the stream's first references may
    /// make it negative, and the last rate holds beyond the end.
    fn time(&self, index: usize) -> f64 {
        let after = self.anchors.partition_point(|(at, _)| *at <= index);
        let right = after.clamp(1, self.anchors.len() - 1);
        let ((from, t0), (to, t1)) = (self.anchors[right - 1], self.anchors[right]);
        t0 + (t1 - t0) * (index as f64 - from as f64) / (to - from) as f64
    }

    fn mode(&self, packets: usize) -> Result<TsMode, TsError> {
        if self.anchors.len() < 2 {
            return Ok(TsMode::Untimed);
        }
        let ticks_per_packet = (self.time(packets) - self.time(0)) / packets as f64;
        let relative = SLOT_TICKS / ticks_per_packet - 1.0;
        match relative {
            r if r.abs() <= RATE_TOLERANCE => Ok(TsMode::Unchanged),
            r if r > 0.0 => Err(TsError::TooFast { rate_bps: TS_RATE_BPS * (1.0 + r) }),
            _ => Ok(TsMode::Stuffed),
        }
    }
}

fn write_null(packet: &mut [u8; PACKET_BYTES]) {
    packet.fill(0xFF);
    let [high, low] = NULL_PID.to_be_bytes();
    packet[..4].copy_from_slice(&[TS_SYNC, high, low, 0x10]);
}

#[cfg(test)]
mod tests;
