//! Joins the transport streams of parts.
//!
//! The receiver numbers the first packet of each field by the sample at which the field began. So
//! the groups of packets in two parts are the same field if their numbers are, whatever they
//! contain. Where two parts overlap, every field must be in both, with as many packets, and the
//! packets must be equal; the seam is between two such fields. Packets that could not be corrected
//! are not compared: their bytes depend on noise, and on all that was before. A part in which many
//! more of them are uncorrected than in the one before has not settled.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a packet.
const PACKET: usize = 188;
/// In its second byte: it could not be corrected.
const ERROR_INDICATOR: u8 = 0x80;
/// Packets that must agree at a seam: a field.
const LEAST: u64 = 312;
/// The share of a group by which two numbers of it may differ.
const TOLERANCE: u64 = 100;
/// The share of packets, correct in the earlier part, that the later one may not have correct.
const WORSE_PER_CENT: u64 = 1;
/// A reason to refuse a seam.
const MISSING: &str = "in the overlap one part has packets that the other has not";
/// Bytes copied at a time.
const CHUNK: usize = 4096 * PACKET;

/// The number of a group of packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mark {
    /// Its first byte in the stream.
    pub byte: u64,
    /// The sample at which it began, missing samples included.
    pub sample: u64,
}

/// What a part made.
#[derive(Debug)]
pub struct PartStream {
    /// `None` without a packet.
    file: Option<File>,
    bytes: u64,
    marks: Vec<Mark>,
    /// Groups from this sample on count; 0: the part begins with the recording.
    settled: u64,
}

/// Where two streams meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seam {
    /// The last group of the first stream, and the same group in the second.
    groups: (usize, usize),
    /// Packets that are equal in both.
    pub agreed: u64,
    /// Packets that could not be corrected in one or both.
    pub uncorrected: u64,
    /// The sample at which the last group of the first stream ends.
    pub sample: u64,
}

/// Why two streams are not joined.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The reason, in words.
    pub reason: String,
    /// No packet of the overlap is correct in either stream: a longer overlap hardly helps.
    pub is_dead: bool,
}

/// The size of a joined stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Joined {
    /// Packets.
    pub packets: u64,
    /// Of these, those that could not be corrected.
    pub uncorrected: u64,
}

/// What the packets of an overlap have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    agreed: u64,
    differ: u64,
    /// Packets that could not be corrected in one or both.
    uncorrected: u64,
    /// Of these, packets that are correct only in the earlier stream, and only in the later one.
    worse: u64,
    better: u64,
}

impl Comparison {
    /// Adds packets of the earlier stream and the same ones of the later stream.
    fn add(&mut self, before: &[u8], after: &[u8]) {
        for (x, y) in before.chunks_exact(PACKET).zip(after.chunks_exact(PACKET)) {
            match (is_marked(x), is_marked(y)) {
                (false, false) if x == y => self.agreed += 1,
                (false, false) => self.differ += 1,
                (before, after) => {
                    self.uncorrected += 1;
                    self.worse += u64::from(!before && after);
                    self.better += u64::from(before && !after);
                }
            }
        }
    }
}

impl PartStream {
    /// Opens the stream of a part, whose groups count from the sample `settled` on. Without a
    /// packet there is no file.
    ///
    /// # Errors
    /// It cannot be read, or its marks are not those of its packets.
    pub fn open(path: &Path, marks: Vec<Mark>, settled: u64) -> io::Result<Self> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            file => Some(file?),
        };
        let bytes =
            file.as_ref().map_or(Ok(0), |file| Ok::<_, io::Error>(file.metadata()?.len()))?;
        let in_order = marks.is_sorted_by(|a, b| a.byte < b.byte);
        let whole = marks.iter().all(|mark| mark.byte % (PACKET as u64) == 0);
        let begins = marks.first().map_or(bytes == 0, |first| first.byte == 0);
        let ends = marks.last().is_none_or(|last| last.byte < bytes);
        if !(in_order && whole && begins && ends && bytes % (PACKET as u64) == 0) {
            return Err(io::Error::other(
                "it is not a stream of packets of which the first of each field is numbered",
            ));
        }
        Ok(Self { file, bytes, marks, settled })
    }

    /// Returns the bytes of a group.
    fn group(&self, group: usize) -> (u64, u64) {
        let at = |group: usize| self.marks.get(group).map_or(self.bytes, |mark| mark.byte);
        (at(group), at(group + 1))
    }

    fn read(&self, (from, to): (u64, u64), buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.resize((to - from) as usize, 0);
        match &self.file {
            Some(file) => file.read_exact_at(buffer, from),
            None => Ok(()),
        }
    }

    /// Returns the first group that begins at the sample or later.
    fn group_from(&self, sample: u64) -> usize {
        self.marks.iter().position(|mark| mark.sample >= sample).unwrap_or(self.marks.len())
    }
}

/// Streams that are joined so far.
#[derive(Debug)]
pub struct Joiner {
    streams: Vec<PartStream>,
    seams: Vec<Seam>,
    /// Difference of numbers up to which they are the same.
    tolerance: u64,
}

impl Joiner {
    /// Begins with no stream; a group has so many samples.
    #[must_use]
    pub fn new(group: u64) -> Self {
        Self { streams: Vec::new(), seams: Vec::new(), tolerance: group / TOLERANCE }
    }

    /// Adds the stream of the next part; the seam is near the sample `cut`. A stream that begins
    /// with the recording replaces all others and their seams. `Err` inside says why it cannot be
    /// joined.
    ///
    /// # Errors
    /// A stream cannot be read.
    pub fn push(&mut self, next: PartStream, cut: u64) -> io::Result<Result<(), Refusal>> {
        let Some(before) = self.streams.last().filter(|_| next.settled > 0) else {
            self.seams.clear();
            self.streams = vec![next];
            return Ok(Ok(()));
        };
        Ok(self.seam(before, &next, cut)?.map(|seam| {
            self.streams.push(next);
            self.seams.push(seam);
        }))
    }

    /// The seams between the streams, in their order.
    #[must_use]
    pub fn seams(&self) -> &[Seam] {
        &self.seams
    }

    fn seam(&self, a: &PartStream, b: &PartStream, cut: u64) -> io::Result<Result<Seam, Refusal>> {
        let near = |x: u64, y: u64| x.abs_diff(y) <= self.tolerance;
        let from = a.settled.max(b.settled);
        let first = from.saturating_sub(self.tolerance);
        let (mut at, mut bt) = (a.group_from(first), b.group_from(first));
        // The last group of `a` is not complete.
        let last = a.marks.len().saturating_sub(1);
        // At the border one may be in and the other not.
        if let (Some(x), Some(y)) = (a.marks.get(at), b.marks.get(bt)) {
            match x.sample.cmp(&y.sample) {
                _ if near(x.sample, y.sample) => {}
                std::cmp::Ordering::Less if near(x.sample, from) => at += 1,
                std::cmp::Ordering::Greater if near(y.sample, from) => bt += 1,
                _ => {}
            }
        }
        let mut seam = Seam { groups: (0, 0), agreed: 0, uncorrected: 0, sample: 0 };
        let (mut compared, mut has_seam) = (Comparison::default(), false);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        while at < last {
            let (x, y) = (a.marks[at], b.marks.get(bt));
            let [x_bytes, y_bytes] = [a.group(at), b.group(bt)];
            let same = y.is_some_and(|y| near(x.sample, y.sample));
            if !same || x_bytes.1 - x_bytes.0 != y_bytes.1 - y_bytes.0 {
                return Ok(Err(Refusal { reason: MISSING.to_owned(), is_dead: false }));
            }
            a.read(x_bytes, &mut left)?;
            b.read(y_bytes, &mut right)?;
            compared.add(&left, &right);
            let group_end = a.marks[at + 1].sample;
            if !has_seam || group_end <= cut {
                (seam.groups, seam.sample) = ((at, bt), group_end);
                has_seam = true;
            }
            (at, bt) = (at + 1, bt + 1);
        }
        // How many packets agree in groups that are complete in both.
        let in_groups = compared.agreed;
        let mut is_missing = false;
        if let Some(x) = a.marks.get(at).filter(|_| at == last) {
            // What there is of the last group must be in the later stream, too.
            let same = b.marks.get(bt).is_some_and(|y| near(x.sample, y.sample));
            let [x_bytes, y_bytes] = [a.group(at), b.group(bt)];
            let bytes = x_bytes.1 - x_bytes.0;
            is_missing = !same || y_bytes.1 - y_bytes.0 < bytes;
            if !is_missing {
                a.read(x_bytes, &mut left)?;
                b.read((y_bytes.0, y_bytes.0 + bytes), &mut right)?;
                compared.add(&left, &right);
            }
        }
        let begun = self.seams.last().map_or(0, |seam| seam.groups.1 + 1);
        let Comparison { agreed, differ, uncorrected, worse, better } = compared;
        (seam.agreed, seam.uncorrected) = (agreed, uncorrected);
        let compared = agreed + differ;
        let correct = compared + worse;
        let reason = if is_missing {
            MISSING.to_owned()
        } else if differ > 0 {
            format!("{differ} of {compared} packets in the overlap differ")
        } else if worse * 100 > correct * WORSE_PER_CENT {
            format!(
                "{worse} of {correct} packets in the overlap are correct only in the part before"
            )
        } else if !has_seam || in_groups < LEAST {
            format!(
                "only {in_groups} packets in whole fields of the overlap can be compared, fewer \
                 than {LEAST}"
            )
        } else if seam.groups.0 < begun {
            "the part before has no packets of its own".to_owned()
        } else {
            return Ok(Ok(seam));
        };
        let is_dead = !is_missing && correct + better == 0;
        Ok(Err(Refusal { reason, is_dead }))
    }

    /// Writes the joined stream.
    ///
    /// # Errors
    /// A stream cannot be read, or the joined one not be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<Joined> {
        let mut joined = Joined::default();
        let mut buffer = Vec::new();
        for (at, stream) in self.streams.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| self.seams.get(before));
            let mut from = before.map_or(0, |seam| stream.group(seam.groups.1).1);
            let end = self.seams.get(at).map_or(stream.bytes, |seam| stream.group(seam.groups.0).1);
            while from < end {
                let to = end.min(from + CHUNK as u64);
                stream.read((from, to), &mut buffer)?;
                let marked = buffer.chunks_exact(PACKET).filter(|packet| is_marked(packet));
                joined.uncorrected += marked.count() as u64;
                joined.packets += (buffer.len() / PACKET) as u64;
                out.write_all(&buffer)?;
                from = to;
            }
        }
        Ok(joined)
    }
}

fn is_marked(packet: &[u8]) -> bool {
    packet[1] & ERROR_INDICATOR != 0
}

#[cfg(test)]
mod tests;
