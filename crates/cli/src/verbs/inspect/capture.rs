//! The account of a capture's radio packets.

use crate::output::{Report, short, shown};
use anyhow::{Context, anyhow};
use millstream_link::pcapng::{CaptureError, CaptureReader};
use millstream_watch::{CaptureAccount, Captured, DataFlow, FlowGap, LinkType, LossPlace};
use millstream_wire::regs::radio::async_msg::Event;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes read from the file at once.
const READ_AHEAD: usize = 1 << 20;

/// The most gaps in the text; the document has all.
const GAPS_SHOWN: usize = 20;

crate::results! {
    /// A capture of a radio's packets.
    struct InspectedCapture {
        /// Its file.
        recording: String,
        /// `capture`.
        kind: &'static str,
        /// Its frames.
        frames: u64,
        /// Frames that are no UDP over IPv4.
        other_frames: u64,
        /// Later parts of datagrams, which have no header.
        fragments: u64,
        /// Frames that were cut off too early, or have impossible lengths.
        short_frames: u64,
        /// Datagrams that are no CHDR packets.
        foreign_datagrams: u64,
        /// Packets that the capture says it missed; null where its format does not say it.
        missed_by_capture: Option<u64>,
        /// Why the file could not be read to its end.
        damage: Option<String>,
        /// The directions of streams, in the order of their first packets.
        flows: Vec<CapturedFlow>,
        /// Where samples are missing, in the order of the capture.
        gaps: Vec<CapturedGap>,
        /// The radios' messages, in the order of the capture.
        messages: Vec<CapturedMessage>,
    }

    /// One direction of a stream.
    struct CapturedFlow {
        /// The sender's address and port.
        source: String,
        /// The receiver's address and port.
        destination: String,
        /// The receiver's endpoint.
        epid: u16,
        /// Whether the sender is a radio.
        from_radio: bool,
        /// Data packets, each copy counted.
        packets: u64,
        /// Their bytes.
        bytes: u64,
        /// Seconds from the first to the last packet.
        seconds: Option<f64>,
        /// Samples per second by the clock of the capture, which is rough.
        rate_hz: Option<f64>,
        /// Ticks of the radio's clock for each sample.
        ticks_per_sample: Option<u64>,
        /// Packets that end a burst.
        bursts: u64,
        /// Packets behind later ones.
        reordered: u64,
        /// Packets that came twice.
        duplicates: u64,
        /// How often the stream was set up behind its first packet.
        restarts: u64,
        /// How often the time jumped back within a burst.
        clock_jumps_back: u64,
        /// Packets lost before the place of the capture.
        lost_before: u64,
        /// Packets that the receiver missed although they were captured.
        lost_behind: u64,
        /// Samples that the sender did not send within a burst; null where that is not known.
        samples_not_sent: Option<u64>,
    }

    /// Missing samples.
    struct CapturedGap {
        /// The position of its flow.
        flow: usize,
        /// Seconds from the first frame.
        at_s: Option<f64>,
        /// Where they were lost: `sender`, `before` the place of the capture, or `behind` it.
        place: &'static str,
        /// Missing packets.
        packets: u64,
        /// Missing time, ticks of the radio's clock.
        ticks: Option<u64>,
        /// Missing samples.
        samples: Option<u64>,
        /// Whether the radio reported an overrun with just this time.
        overrun: bool,
        /// Packets for which the sender had room before it; 0: its credit was used up.
        room_packets: Option<u64>,
        /// Seconds since the receiver's last report before it.
        report_age_s: Option<f64>,
        /// False where the packet before it was cut off, so that a burst may have ended there.
        sure: bool,
    }

    /// A message of a radio.
    struct CapturedMessage {
        /// The radio's address.
        radio: String,
        /// Seconds from the first frame.
        at_s: Option<f64>,
        /// `underflow`, `late`, `burst_ack`, `late_command` or `overrun`.
        event: &'static str,
        /// The radio block's channel.
        channel: u8,
        /// Its time, ticks of the radio's clock.
        ticks: Option<u64>,
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
    let (mut account, mut begin_ns, mut other_links) = (CaptureAccount::new(), None, 0);
    let damage = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                begin_ns = begin_ns.or(packet.at_ns);
                let Some(link) = LinkType::of(packet.link_type) else {
                    other_links += 1;
                    continue;
                };
                account.take(&Captured {
                    at_ns: packet.at_ns,
                    interface: 0,
                    is_outgoing: None,
                    link,
                    bytes: packet.bytes,
                });
            }
            Ok(None) => break None,
            // What was captured until then counts.
            Err(error @ CaptureError::Damaged(_)) => break Some(error.to_string()),
            Err(error) => return Err(anyhow!(error).context(name)),
        }
    };
    let missed = reader.dropped();
    let at_s = |at_ns: Option<u64>| Some(at_ns?.saturating_sub(begin_ns?) as f64 / 1e9);
    let counts = account.counts();
    let results = InspectedCapture {
        recording: shown(path),
        kind: "capture",
        frames: counts.frames + other_links,
        other_frames: counts.others + other_links,
        fragments: counts.fragments,
        short_frames: counts.short,
        foreign_datagrams: counts.foreign,
        missed_by_capture: missed,
        damage,
        flows: account
            .flows()
            .iter()
            .enumerate()
            .map(|(n, flow)| of_flow(&account, n, flow))
            .collect(),
        gaps: account.gaps().map(|gap| of_gap(gap, at_s(gap.at_ns))).collect(),
        messages: account
            .messages()
            .map(|message| CapturedMessage {
                radio: message.radio.to_string(),
                at_s: at_s(message.at_ns),
                event: match message.event {
                    Event::TxUnderrun => "underflow",
                    Event::TxLate => "late",
                    Event::TxBurstAck => "burst_ack",
                    Event::RxLateCommand => "late_command",
                    Event::RxOverrun => "overrun",
                },
                channel: message.channel,
                ticks: message.ticks,
            })
            .collect(),
    };
    Ok(Report::of(text(&results), &results))
}

fn of_flow(account: &CaptureAccount, number: usize, flow: &DataFlow) -> CapturedFlow {
    let gaps = || account.gaps().filter(move |gap| gap.flow == number);
    let packets = |place| gaps().filter(|gap| gap.place == place).map(|gap| gap.packets).sum();
    let not_sent = gaps().filter(|gap| gap.place == LossPlace::Sender).map(|gap| gap.samples);
    CapturedFlow {
        source: flow.key().source.to_string(),
        destination: flow.key().destination.to_string(),
        epid: flow.key().epid,
        from_radio: account.is_from_radio(flow),
        packets: flow.packets(),
        bytes: flow.bytes(),
        seconds: flow.seconds(),
        rate_hz: flow.rate_hz(),
        ticks_per_sample: flow.ticks_per_sample(),
        bursts: flow.bursts(),
        reordered: flow.reordered(),
        duplicates: flow.duplicates(),
        restarts: flow.restarts(),
        clock_jumps_back: flow.clock_jumps_back(),
        lost_before: packets(LossPlace::Before),
        lost_behind: packets(LossPlace::Behind),
        samples_not_sent: not_sent.sum(),
    }
}

fn of_gap(gap: &FlowGap, at_s: Option<f64>) -> CapturedGap {
    CapturedGap {
        flow: gap.flow,
        at_s,
        place: match gap.place {
            LossPlace::Sender => "sender",
            LossPlace::Before => "before",
            LossPlace::Behind => "behind",
        },
        packets: gap.packets,
        ticks: gap.ticks,
        samples: gap.samples,
        overrun: gap.overrun,
        room_packets: gap.credit.map(|credit| credit.room_packets),
        report_age_s: gap.credit.map(|credit| credit.report_age_ns as f64 / 1e9),
        sure: gap.is_sure,
    }
}

fn text(found: &InspectedCapture) -> String {
    let mut text = format!("capture      {}: {} frames", found.recording, found.frames);
    for (count, what) in [
        (found.other_frames, "not UDP over IPv4"),
        (found.foreign_datagrams, "datagrams that are not CHDR"),
        (found.fragments, "later parts of datagrams"),
        (found.short_frames, "cut off too early"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text.push('\n');
    if let Some(damage) = &found.damage {
        let _ = writeln!(text, "damage       {damage}: the account ends there");
    }
    if let Some(missed) = found.missed_by_capture.filter(|missed| *missed > 0) {
        let _ = writeln!(
            text,
            "missed       the file says that {missed} packets are not in it: gaps before the \
             capture may be its own"
        );
    }
    if found.flows.is_empty() {
        text += "flows        none: it has no CHDR data packets. Capture the interface to the \
                 radio, e.g. tcpdump -i eth0 -s 256 -w FILE udp\n";
    }
    for (number, flow) in found.flows.iter().enumerate() {
        let way = if flow.from_radio { "from the radio" } else { "to the radio" };
        let CapturedFlow { source, destination, epid, packets, .. } = flow;
        let _ = writeln!(text, "flow {number:<8}{way}, {source} to {destination}, endpoint {epid}");
        let mut line = format!("{packets} packets");
        if let Some(seconds) = flow.seconds {
            let _ = write!(line, " in {seconds:.3} s");
        }
        if let Some(rate_hz) = flow.rate_hz {
            let _ = write!(line, ", about {} samples a second", short(rate_hz.round()));
        }
        for (count, what) in [
            (flow.bursts, "ends of bursts"),
            (flow.reordered, "out of order"),
            (flow.duplicates, "twice"),
            (flow.restarts, "times set up again"),
            (flow.clock_jumps_back, "jumps of the clock back"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
        let _ = writeln!(text, "             {line}");
        let not_sent = flow.samples_not_sent;
        if flow.lost_before + flow.lost_behind == 0 && not_sent == Some(0) {
            text += "             nothing is missing\n";
        } else {
            let not_sent = not_sent.map_or("an unknown number of".to_owned(), |n| n.to_string());
            let _ = writeln!(
                text,
                "             lost before the capture: {} packets; behind it: {}; not sent: \
                 {not_sent} samples",
                flow.lost_before, flow.lost_behind
            );
        }
    }
    for gap in found.gaps.iter().take(GAPS_SHOWN) {
        let at = gap.at_s.map_or("gap".to_owned(), |at_s| format!("{at_s:.6} s"));
        let sender = match found.flows.get(gap.flow) {
            Some(flow) if flow.from_radio => "radio",
            _ => "program",
        };
        let _ = writeln!(text, "{at:<13}flow {}: {}", gap.flow, gap.words(sender));
    }
    if let Some(more @ 1..) = found.gaps.len().checked_sub(GAPS_SHOWN) {
        let _ = writeln!(text, "             and {more} more gaps (--json has all)");
    }
    for event in ["overrun", "late_command", "underflow", "late"] {
        let count = found.messages.iter().filter(|message| message.event == event).count();
        if count > 0 {
            let _ =
                writeln!(text, "messages     {count} of the radio: {}", event.replace('_', " "));
        }
    }
    text
}

impl CapturedGap {
    /// What is missing, where it was lost, and what shows that.
    fn words(&self, sender: &str) -> String {
        let samples = match (self.samples, self.ticks) {
            (Some(samples), _) => format!("{samples} samples"),
            (None, Some(ticks)) => format!("{ticks} ticks of time"),
            (None, None) => "an unknown number of samples".to_owned(),
        };
        let packets = self.packets;
        match self.place {
            "before" => format!(
                "{packets} packets ({samples}) lost between the {sender} and the place of the \
                 capture"
            ),
            "behind" => format!(
                "{packets} packets lost between the place of the capture and the receiver, which \
                 reports them missing"
            ),
            _ => {
                let perhaps = if self.sure { "" } else { "perhaps " };
                let mut words = format!("{perhaps}{samples} not sent by the {sender}");
                if self.overrun {
                    words += ", which reported an overrun";
                }
                let credit = self.room_packets.zip(self.report_age_s);
                match credit.map(|(room, age_s)| (room, age_s * 1e3)) {
                    Some((0, ms)) => {
                        let _ = write!(
                            words,
                            ": its credit was used up, and the last report of the receiver was \
                             {ms:.1} ms old. The receiver read too late, or its reports were lost"
                        );
                    }
                    Some((room, ms)) => {
                        let _ = write!(
                            words,
                            ": the reports captured here gave it credit for {room} packets, the \
                             last one {ms:.1} ms before. They did not reach it, or it was too slow"
                        );
                    }
                    None => {}
                }
                words
            }
        }
    }
}
