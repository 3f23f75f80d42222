//! `replay:FILE.pcapng`: receives the frames of a capture, at their times, at scaled times, or as
//! fast as they are asked for; counts and drops transmitted frames.
//!
//! The file is read ahead in large pieces. After its end no more frames are received.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::time::Instant;

use crate::entry::{Factory, LinkEntry, Target, nothing_ahead};
use crate::frame::{FrameLink, FrameOptions, LinkInfo};
use crate::options::{Options, Parsed, number};
use crate::pcapng::{CaptureError, CaptureReader};
use crate::spec::bad;
use crate::supply::{FrameSupply, Supplied, SupplyLink};
use crate::{LinkError, Spec, options};

/// The factor by which playing is faster than the capture. `None`: as fast as asked for.
type Speed = Option<f64>;

const SPEED: Parsed<Speed> = Parsed {
    looks: "FACTOR|max",
    wants: "wants a factor above 0, or max",
    read: |text| match text {
        "max" => Some(None),
        text => text.parse().ok().filter(|f: &f64| *f > 0.0 && f.is_finite()).map(Some),
    },
    write: |speed| speed.map_or("max".to_owned(), |factor| factor.to_string()),
};

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq)]
    struct ReplayOptions {
        /// 1: the times of the capture, 2: twice as fast, max: as fast as asked
        speed: Speed = Some(1.0), SPEED;
        /// times to play the file; 0: for ever
        times as "loop": u64 = 1, number("times", 0..=u64::MAX);
        /// largest IP packet
        mtu: usize = 9000, number("bytes", 68..=65_535);
    }
}

/// The entry of `replay`.
pub static LINK: LinkEntry = LinkEntry {
    name: "replay",
    about: "receives the packets of a capture, at their times",
    options: ReplayOptions::describe,
    target: Target::File,
    factory: Factory::Frames(open),
    check: |spec| file(spec).and_then(|_| spec.read::<ReplayOptions>()).map(drop),
    rights: None,
    missing: None,
    foresee: nothing_ahead,
};

/// Bytes read from the file at once.
const READ_AHEAD: usize = 1 << 20;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// The times at which frames are due. A pure calculation: all times are arguments.
#[derive(Debug)]
struct Pace {
    /// The factor by which playing is faster than the capture. `None`: as fast as asked for.
    speed: Option<f64>,
    /// The first frame's capture time and its playing time.
    first: Option<(u64, u64)>,
}

impl Pace {
    /// Returns when a frame captured at `at_ns` is due, on the clock of `now_ns`.
    fn due_ns(&mut self, at_ns: Option<u64>, now_ns: u64) -> u64 {
        let (Some(speed), Some(at_ns)) = (self.speed, at_ns) else { return 0 };
        let (captured_ns, played_ns) = *self.first.get_or_insert((at_ns, now_ns));
        // The times in a file can have any value.
        played_ns.saturating_add((at_ns.saturating_sub(captured_ns) as f64 / speed) as u64)
    }
}

struct Player {
    reader: CaptureReader<BufReader<File>>,
    pace: Pace,
    /// The number of further plays of the file. `None`: for ever.
    more: Option<u64>,
    /// The file had a playable frame, so playing it again is useful.
    fruitful: bool,
    over: bool,
    started: Instant,
    now_ns: u64,
    /// The due time of the next frame, whose bytes stay here until then.
    waiting: Option<u64>,
    bytes: Vec<u8>,
    unfit: bool,
}

impl Player {
    /// Reads the next packet, from the beginning again if the file is to be played again. Returns
    /// false when there is none.
    fn read(&mut self) -> io::Result<bool> {
        while !self.over {
            match self.reader.next_packet() {
                Ok(Some(packet)) => {
                    let due_ns = self.pace.due_ns(packet.at_ns, self.now_ns);
                    self.bytes.clear();
                    self.bytes.extend_from_slice(packet.bytes);
                    self.unfit = !packet.is_whole_frame();
                    self.waiting = Some(due_ns);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(error) => {
                    // Bytes after damage must not be taken for packets.
                    self.over = true;
                    return Err(broken(error));
                }
            }
            let again = self.more != Some(0) && self.fruitful;
            self.more = self.more.map(|more| more.saturating_sub(1));
            self.over = !again;
            if again {
                self.reader = self.reader.again().map_err(broken)?;
                self.pace.first = None;
            }
        }
        Ok(false)
    }
}

impl FrameSupply for Player {
    fn look(&mut self) -> io::Result<()> {
        self.now_ns = self.started.elapsed().as_nanos() as u64;
        Ok(())
    }

    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Supplied> {
        if self.waiting.is_none() && !self.read()? {
            return Ok(Supplied::Nothing);
        }
        if self.waiting.is_some_and(|due_ns| due_ns > self.now_ns) {
            return Ok(Supplied::Nothing);
        }
        self.waiting = None;
        let Some(room) = buffer.get_mut(..self.bytes.len()).filter(|_| !self.unfit) else {
            return Ok(Supplied::Unfit);
        };
        room.copy_from_slice(&self.bytes);
        self.fruitful = true;
        Ok(Supplied::Frame(self.bytes.len()))
    }
}

fn broken(error: CaptureError) -> io::Error {
    match error {
        CaptureError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}

impl CaptureReader<BufReader<File>> {
    /// Opens the same capture from its beginning.
    fn again(&mut self) -> Result<Self, CaptureError> {
        let mut file = self.source().get_ref().try_clone()?;
        file.rewind()?;
        CaptureReader::new(BufReader::with_capacity(READ_AHEAD, file))
    }
}

/// Returns the path of the capture that a spec names.
fn file(spec: &Spec) -> Result<&str, LinkError> {
    let reason = "wants a capture: replay:FILE.pcapng";
    spec.target.as_deref().ok_or_else(|| bad(LINK.name, reason))
}

/// Opens a replay.
///
/// # Errors
/// [`LinkError::BadOption`] for a file that cannot be played or unusable options,
/// [`LinkError::Setup`] where there is no memory.
pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let (path, options) = (file(spec)?, spec.read::<ReplayOptions>()?);
    let ReplayOptions { speed, times, mtu } = options;
    let opened = File::open(path).map_err(CaptureError::Io);
    let reader =
        opened.and_then(|file| CaptureReader::new(BufReader::with_capacity(READ_AHEAD, file)));
    let reader = reader.map_err(|error| bad(path, &error.to_string()))?;
    let mut info = LinkInfo::new(LINK.name, MAC, mtu);
    info.detail = match speed {
        Some(speed) => format!("plays {path} at {speed} times its speed"),
        None => format!("plays {path} as fast as it is read"),
    };
    let player = Player {
        reader,
        pace: Pace { speed, first: None },
        more: times.checked_sub(1),
        fruitful: false,
        over: false,
        started: Instant::now(),
        now_ns: 0,
        waiting: None,
        bytes: Vec::with_capacity(info.part_bytes_max),
        unfit: false,
    };
    Ok(Box::new(SupplyLink::new(info, sizes, player)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_due_as_far_apart_as_they_were_captured() {
        let mut pace = Pace { speed: Some(2.0), first: None };
        let due = [1000, 1500, 3000].map(|at_ns| pace.due_ns(Some(at_ns), 77));
        assert_eq!(due, [77, 327, 1077]);
        assert_eq!(pace.due_ns(Some(10), 5000), 77, "out of order: not before the first");
        let mut slow = Pace { speed: Some(0.01), first: Some((0, 77)) };
        assert_eq!(slow.due_ns(Some(u64::MAX), 80), u64::MAX, "never");
        assert_eq!(Pace { speed: None, first: None }.due_ns(Some(9), 77), 0);
        assert_eq!(pace.due_ns(None, 77), 0, "without a time: at once");
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        let open = |text: &str| crate::open_frames(text, &FrameOptions::default());
        for (text, reason) in [
            ("replay", "wants a capture: replay:FILE.pcapng"),
            ("replay:/nonesuch.pcapng", "No such file"),
            ("replay:/proc/self/exe", "the file is no pcapng or pcap capture"),
            ("replay:/dev/null,speed=-1", "wants a factor above 0, or max"),
        ] {
            let error = open(text).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
