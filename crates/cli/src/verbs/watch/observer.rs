//! What passes, what the hops say of it, and which losses follow.

use super::recording::{HopRecording, WatchRecording};
use crate::account::{FlowAccount, FoundLoss, LOSSES_MAX, LossGroups};
use anyhow::anyhow;
use millstream_hops::{
    DropWatch, HopNote, HopReader, ProbeError, WaitWatch, radio_sockets, within,
};
use millstream_host::netlink::{Netlink, NetlinkError};
use millstream_link::packet::{HeaderCapture, HeaderFilter};
use millstream_watch::{
    CaptureAccount, Captured, Hop, HopReading, Judge, JudgedLoss, LinkType, LossKind, SNAPLEN,
};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time between two readings of the hops.
const READING: Duration = Duration::from_millis(40);
/// The time between two looks for verdicts, and for new flows.
const SETTLE: Duration = Duration::from_millis(100);
/// A flow without a packet for so long has ended, nanoseconds.
const IDLE_NS: u64 = 30_000_000_000;
/// The time between two pictures.
const PICTURE: Duration = Duration::from_millis(500);

/// A program whose sockets the flows use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamingProcess {
    pub pid: u32,
    pub name: String,
}

/// The packets and the hops of a network namespace.
pub struct Observer {
    capture: HeaderCapture,
    hops: HopReader,
    /// The packets that the kernel drops and the waits of threads, or why they are not seen.
    drops: Result<DropWatch, ProbeError>,
    waits: Result<WaitWatch, ProbeError>,
    pub account: CaptureAccount,
    judge: Judge,
    recording: Option<HopRecording>,
    losses: Vec<JudgedLoss>,
    pub groups: LossGroups,
    /// Packets lost at each hop, and events there, of each flow.
    pub at_hops: BTreeMap<(Option<usize>, Hop), u64>,
    pub lost: u64,
    pub begin_ns: Option<u64>,
    pub missed: u64,
    pub programs: Vec<StreamingProcess>,
    reading: HopReading,
    /// The readings of the picture before and of this one.
    pub shown: [HopReading; 2],
    /// Packets of each flow at the last picture, and per second before it.
    packets: Vec<u64>,
    pub rates_hz: Vec<f64>,
    next_reading: Instant,
    next_settle: Instant,
    next_picture: Instant,
}

impl Observer {
    /// Begins to watch the interfaces, or all, of the network namespace of a process, or of ours.
    pub fn open(
        pid: Option<u32>,
        interfaces: &[String],
        ports: &[u16],
        recording: Option<HopRecording>,
    ) -> anyhow::Result<Self> {
        let hops = HopReader::open(pid, interfaces)?;
        let mut drops = DropWatch::open();
        if let Ok(drops) = &mut drops {
            drops.watch_ports(ports);
        }
        let waits = WaitWatch::open(WaitWatch::THRESHOLD);
        let open = || -> io::Result<_> {
            let interfaces = numbers_of(interfaces).map_err(io::Error::other)?;
            let ports = ports.to_vec();
            let filter = HeaderFilter { ports, interfaces, bytes: SNAPLEN as u32 };
            HeaderCapture::begin(HeaderCapture::socket()?, &filter)
        };
        let capture = within(pid, open)?.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => anyhow!(
                "cannot see the packets of other programs: this process lacks CAP_NET_RAW. Run it \
                 with sudo, or give it the capability: sudo setcap cap_net_raw,cap_bpf,cap_perfmon\
                 +ep {}",
                std::env::current_exe().unwrap_or_default().display()
            ),
            _ => anyhow!(error).context("cannot open a packet socket"),
        })?;
        let now = Instant::now();
        Ok(Self {
            capture,
            hops,
            drops,
            waits,
            account: CaptureAccount::new(),
            judge: Judge::new(),
            recording,
            losses: Vec::new(),
            groups: LossGroups::default(),
            at_hops: BTreeMap::new(),
            lost: 0,
            begin_ns: None,
            missed: 0,
            programs: Vec::new(),
            reading: HopReading::default(),
            shown: Default::default(),
            packets: Vec::new(),
            rates_hz: Vec::new(),
            next_reading: now,
            next_settle: now,
            next_picture: now + PICTURE,
        })
    }

    /// Waits for packets, and takes them and what the hops say; not longer than until the next
    /// reading. Returns lines for the losses that became known.
    pub fn step(&mut self) -> anyhow::Result<Vec<String>> {
        let now = Instant::now();
        self.capture.wait(self.next_reading.saturating_duration_since(now))?;
        let Self { account, begin_ns, recording, .. } = self;
        let mut recorded = Ok(());
        self.capture.read(|frame| {
            begin_ns.get_or_insert(frame.at_ns);
            if let (Some(recording), Ok(())) = (recording.as_mut(), &recorded) {
                recorded = recording.frame(frame);
            }
            account.take(&Captured {
                at_ns: Some(frame.at_ns),
                interface: frame.interface,
                is_outgoing: Some(frame.is_outgoing),
                link: if frame.is_ethernet { LinkType::Ethernet } else { LinkType::Raw },
                bytes: frame.bytes,
            });
        });
        recorded?;
        let now = Instant::now();
        if now >= self.next_reading {
            self.missed = self.capture.missed()?;
            self.reading = self.hops.read(self.missed);
            self.next_reading = now + READING.max(self.hops.rest());
            let (mut dropped, mut waited) = (Vec::new(), Vec::new());
            if let Ok(drops) = &mut self.drops {
                drops.read(&mut dropped);
            }
            if let Ok(waits) = &mut self.waits {
                waits.read(&mut waited);
            }
            for note in dropped.into_iter().map(HopNote::Dropped) {
                self.note(note)?;
            }
            for note in waited.into_iter().map(HopNote::Waited) {
                self.note(note)?;
            }
            self.note(HopNote::Reading(self.reading.clone()))?;
        }
        if now < self.next_settle {
            return Ok(Vec::new());
        }
        self.next_settle = now + SETTLE;
        self.follow();
        let judged = self.judge.settle(&self.account, self.reading.at_ns);
        let new = self.keep(judged);
        Ok(new.lines().collect())
    }

    /// Returns the seconds since the first packet.
    pub fn at_s(&self, at_ns: Option<u64>) -> Option<f64> {
        Some(at_ns?.saturating_sub(self.begin_ns?) as f64 / 1e9)
    }

    /// Returns what was seen.
    pub fn told(&self) -> FlowAccount {
        let (account, losses) = (&self.account, Some(&self.losses[..]));
        FlowAccount::of(account, self.begin_ns, 0, Some(self.missed), losses)
    }

    /// Takes what is left, when nothing more comes, and ends the recording.
    pub fn finish(&mut self) -> anyhow::Result<Option<WatchRecording>> {
        let judged = self.judge.finish(&self.account);
        self.keep(judged);
        let ended = self.recording.take();
        ended.map(|recording| recording.end(self.reading.at_ns, self.missed)).transpose()
    }

    /// Takes what the hops said.
    fn note(&mut self, note: HopNote) -> anyhow::Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.note(&note)?;
        }
        match note {
            HopNote::Reading(reading) => self.judge.reading(reading),
            HopNote::Dropped(dropped) => self.judge.dropped(dropped),
            HopNote::Waited(wait) => self.judge.wait(wait),
        }
        Ok(())
    }

    /// Whether it is time for a picture; then the packet rates are new.
    pub fn is_time_for_picture(&mut self, now: Instant) -> bool {
        let is_time = now >= self.next_picture;
        if is_time {
            let seconds = (now + PICTURE - self.next_picture).as_secs_f64();
            self.next_picture = now + PICTURE;
            let packets: Vec<_> = self.account.flows().iter().map(|flow| flow.packets()).collect();
            let before = self.packets.iter().copied().chain(std::iter::repeat(0));
            let rate = |(now, before): (&u64, u64)| (now - before) as f64 / seconds;
            self.rates_hz = packets.iter().zip(before).map(rate).collect();
            self.packets = packets;
            self.shown = [std::mem::take(&mut self.shown[1]), self.reading.clone()];
        }
        is_time
    }

    /// Whether programs were seen, and all of them have ended.
    pub fn programs_have_ended(&self) -> bool {
        !self.programs.is_empty() && self.programs.iter().all(|program| !is_alive(program.pid))
    }

    /// Says what could not be seen, and what would help.
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = self.hops.lacks();
        let drops = self.drops.as_ref().map(DropWatch::missed);
        let waits = self.waits.as_ref().map(WaitWatch::missed);
        for (missed, what, many) in [
            (drops, "which packets the kernel dropped, and why", "dropped packets"),
            (waits, "what ran when a thread waited", "waits of threads"),
        ] {
            match missed {
                Ok(0) => {}
                Ok(missed) => lacks.push(format!("{missed} {many}, which were too many at once.")),
                Err(error) => lacks.push(format!("{what}: {error}.")),
            }
        }
        for (missed, what) in [
            (self.account.counts().not_kept, "flows, which were more than are followed"),
            (self.account.forgotten(), "of the oldest gaps and messages, which were too many"),
        ] {
            if missed > 0 {
                lacks.push(format!("{missed} {what}."));
            }
        }
        lacks
    }

    /// Counts and keeps losses; returns them by groups.
    fn keep(&mut self, judged: Vec<JudgedLoss>) -> LossGroups {
        let mut new = LossGroups::default();
        for loss in judged {
            // What only our own capture missed is no loss.
            let is_lost = loss.kind != LossKind::NotCaptured;
            let count = if is_lost { loss.packets.max(1) } else { 0 };
            self.lost += count;
            let found = FoundLoss::of(&loss, self.at_s(loss.at_ns));
            new.add(&found);
            self.groups.add(&found);
            *self.at_hops.entry((loss.flow, loss.verdict.hop)).or_default() += count;
            if self.losses.len() < LOSSES_MAX {
                self.losses.push(loss);
            }
        }
        new
    }

    /// Follows the sockets of all flows, and the programs that have them.
    fn follow(&mut self) {
        let ends = |flow: &millstream_watch::DataFlow| [flow.key().source, flow.key().destination];
        // The ports of ended flows may be another program's by now.
        let old_ns = self.reading.at_ns.saturating_sub(IDLE_NS);
        let flows = self.account.flows().iter();
        let ends: Vec<SocketAddrV4> =
            flows.filter(|flow| flow.last_ns() >= Some(old_ns)).flat_map(ends).collect();
        self.hops.follow(&ends);
        if let Ok(waits) = &mut self.waits {
            let threads: Vec<_> = self.reading.threads.iter().map(|thread| thread.tid).collect();
            // Beyond its limit the first are watched.
            let _ = waits.watch_threads(&threads);
        }
        for pid in self.reading.sockets.iter().filter_map(|socket| socket.pid) {
            if self.programs.iter().all(|program| program.pid != pid) {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                let name = name.unwrap_or_default().trim_end().to_owned();
                self.programs.push(StreamingProcess { pid, name });
            }
        }
    }
}

/// Returns the numbers of interfaces by their names.
fn numbers_of(names: &[String]) -> Result<Vec<u32>, NetlinkError> {
    let mut netlink = Netlink::open()?;
    names.iter().map(|name| Ok(netlink.interface(name)?.index)).collect()
}

/// Whether a process has not ended.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    // The state stands behind the name, which is in brackets and may contain any.
    stat.is_ok_and(|stat| {
        !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X']))
    })
}

/// Returns where a program has sockets for a radio's samples: in the network namespace of this
/// process, of another one, or nowhere.
pub fn streams_at() -> Option<Option<u32>> {
    let mut places = radio_sockets().into_iter().map(|(place, _)| place);
    let first = places.next()?;
    // Ours has priority.
    Some(first.filter(|_| places.all(|place| place.is_some())))
}
