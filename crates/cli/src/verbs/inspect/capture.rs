//! The account of a capture's radio packets.

use crate::account::{self, FlowAccount, LOSSES_MAX};
use crate::output::{Report, shown};
use anyhow::{Context, anyhow};
use millstream_hops::HopNote;
use millstream_link::pcapng::{
    CaptureError, CaptureItem, CaptureReader, CapturedPacket, FrameDirection,
};
use millstream_watch::{CaptureAccount, Captured, Judge, JudgedLoss, LinkType};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes read from the file at once.
const READ_AHEAD: usize = 1 << 20;

/// The time between two looks for verdicts, as when it was recorded.
const SETTLE_NS: u64 = 100_000_000;

crate::results! {
    also [account::results],

    /// A capture of a radio's packets.
    struct InspectedCapture {
        /// Its file.
        recording: String,
        /// `capture`.
        kind: &'static str,
        /// Why the file could not be read to its end.
        damage: Option<String>,
        /// Readings of the hops in it, which `watch --record` writes.
        readings: u64,
        /// Readings and other notes of the hops that are damaged, or of another version.
        unreadable_notes: u64,
        /// What its packets show.
        #[serde(flatten)]
        account: FlowAccount,
    }
}

/// Whether a file begins as a capture does.
pub fn is_capture(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    let words = [u32::from_be_bytes(magic), u32::from_le_bytes(magic)];
    read.is_ok()
        && (words.contains(&0x0a0d_0d0a)
            || words.iter().any(|word| matches!(word, 0xa1b2_c3d4 | 0xa1b2_3c4d)))
}

/// Reads a capture.
pub fn inspect(path: &Path) -> anyhow::Result<Report> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| name.clone())?;
    let mut reader = CaptureReader::new(BufReader::with_capacity(READ_AHEAD, file))
        .map_err(|error| anyhow!(error))
        .with_context(|| name.clone())?;
    let mut found = Found::default();
    let damage = loop {
        match reader.next_item() {
            Ok(Some(CaptureItem::Packet(packet))) => found.packet(&packet),
            Ok(Some(CaptureItem::JournalEntry(entry))) => match HopNote::read(entry) {
                Some(Ok(note)) => found.note(note),
                Some(Err(_)) => found.unreadable_notes += 1,
                None => {}
            },
            Ok(None) => break None,
            // What was captured until then counts.
            Err(error @ CaptureError::Damaged(_)) => break Some(error.to_string()),
            Err(error) => return Err(anyhow!(error).context(name)),
        }
    };
    let missed = reader.dropped().map(|missed| missed.max(found.missed));
    let (readings, unreadable_notes) = (found.readings, found.unreadable_notes);
    let account = found.account(missed);
    let results = InspectedCapture {
        recording: shown(path),
        kind: "capture",
        damage,
        readings,
        unreadable_notes,
        account,
    };
    Ok(Report::of(text(&results), &results))
}

/// What was found until now.
#[derive(Default)]
struct Found {
    account: CaptureAccount,
    judge: Judge,
    losses: Vec<JudgedLoss>,
    begin_ns: Option<u64>,
    other_links: u64,
    readings: u64,
    unreadable_notes: u64,
    missed: u64,
    settled_ns: u64,
}

impl Found {
    fn packet(&mut self, packet: &CapturedPacket<'_>) {
        let CapturedPacket { at_ns, bytes, direction, .. } = *packet;
        let is_outgoing = direction.map(|direction| direction == FrameDirection::Out);
        self.begin_ns = self.begin_ns.or(at_ns);
        match LinkType::of(packet.link_type) {
            Some(link) => {
                // 0 is one that is not known.
                let interface = link.interface(bytes).unwrap_or(packet.interface + 1);
                self.account.take(&Captured { at_ns, interface, is_outgoing, link, bytes });
            }
            None => self.other_links += 1,
        }
    }

    fn note(&mut self, note: HopNote) {
        match note {
            HopNote::Dropped(dropped) => self.judge.dropped(dropped),
            HopNote::Waited(wait) => self.judge.wait(wait),
            HopNote::Reading(reading) => {
                let at_ns = reading.at_ns;
                self.readings += 1;
                self.missed = reading.capture_missed;
                self.judge.reading(reading);
                if at_ns.saturating_sub(self.settled_ns) >= SETTLE_NS {
                    self.settled_ns = at_ns;
                    let judged = self.judge.settle(&self.account, at_ns);
                    self.keep(judged);
                }
            }
        }
    }

    fn keep(&mut self, judged: Vec<JudgedLoss>) {
        self.losses.extend(judged);
        self.losses.truncate(LOSSES_MAX);
    }

    /// Ends the account, of which the capture missed packets.
    fn account(mut self, missed: Option<u64>) -> FlowAccount {
        let judged = self.judge.finish(&self.account);
        self.keep(judged);
        // Without readings all evidence is in the gaps.
        let losses = (self.readings > 0).then_some(&self.losses[..]);
        FlowAccount::of(&self.account, self.begin_ns, self.other_links, missed, losses)
    }
}

fn text(found: &InspectedCapture) -> String {
    let InspectedCapture { recording, damage, readings, unreadable_notes, account, .. } = found;
    let mut text = format!("capture      {recording}: {}\n", account.frame_words());
    if let Some(damage) = damage {
        text += &format!("damage       {damage}: the account ends there\n");
    }
    for (count, what) in [(readings, "readings of the hops"), (unreadable_notes, "unreadable ones")]
    {
        if *count > 0 {
            text += &format!("readings     {count} {what}\n");
        }
    }
    if account.flows.is_empty() {
        text += "flows        none: it has no CHDR data packets. Capture the interface to the \
                 radio, e.g. tcpdump -i eth0 -s 256 -w FILE udp\n";
    }
    text + &account.text()
}
