//! The account of radio streams that are not ours, as a document and as text: `inspect` makes it of
//! a capture, and `watch` of what passes now.

mod groups;
mod words;

pub use groups::LossGroups;

use millstream_watch::{
    CaptureAccount, Certainty, DataFlow, FlowGap, Hop, HopVerdict, JudgedLoss, LossKind, LossPlace,
    RadioMessage,
};
use millstream_wire::regs::radio::async_msg::Event;

/// The most losses that are kept; all are counted.
pub const LOSSES_MAX: usize = 1 << 16;

crate::results! {
    /// What the packets of a place show of the streams that pass it.
    pub struct FlowAccount {
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
        /// Packets that passed another interface than the one where their flow is followed.
        elsewhere: u64,
        /// Packets that the capture says it missed; null where its format does not say it.
        missed_by_capture: Option<u64>,
        /// The directions of streams, in the order of their first packets.
        flows: Vec<CapturedFlow>,
        /// Where samples are missing, in the order of the capture.
        gaps: Vec<CapturedGap>,
        /// The radios' messages, in the order of the capture.
        messages: Vec<CapturedMessage>,
        /// Losses with their hops, in the order of time; null where the hops were not read.
        losses: Option<Vec<FoundLoss>>,
    }

    /// One direction of a stream.
    pub struct CapturedFlow {
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
    pub struct CapturedGap {
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
    pub struct CapturedMessage {
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

    /// A loss, and the hop at which it occurred.
    pub struct FoundLoss {
        /// `lost` packets, `not_captured` (perhaps none was lost), samples `not_sent`, `overrun`,
        /// `underflow`, `late_data` or `late_command`.
        kind: &'static str,
        /// The position of its flow; null where it is not of one flow.
        flow: Option<usize>,
        /// Seconds from the first frame.
        at_s: Option<f64>,
        /// Lost packets.
        packets: u64,
        /// Missing samples; null where they are not known.
        samples: Option<u64>,
        /// The hop, or the first of those between which it lies: `radio`, `wire`, `card`,
        /// `backlog`, `stack`, `socket`, `program` or `send_queue`.
        hop: &'static str,
        /// The last of those between which it lies; `hop` itself where it is known.
        until: &'static str,
        /// `sure`, `perhaps` (something else could explain it), or `between` the two hops.
        certainty: &'static str,
        /// What shows it, a sentence each.
        evidence: Vec<String>,
        /// What to do, a sentence or a command each; the most promising first.
        remedies: Vec<String>,
    }
}

impl FlowAccount {
    /// Tells an account whose first frame came at `begin_ns`. `other_links` are frames of links
    /// that it did not take, and `missed` those that were not captured.
    pub fn of(
        account: &CaptureAccount,
        begin_ns: Option<u64>,
        other_links: u64,
        missed: Option<u64>,
        losses: Option<&[JudgedLoss]>,
    ) -> Self {
        let at_s = |at_ns: Option<u64>| Some(at_ns?.saturating_sub(begin_ns?) as f64 / 1e9);
        let counts = account.counts();
        Self {
            frames: counts.frames + other_links,
            other_frames: counts.others + other_links,
            fragments: counts.fragments,
            short_frames: counts.short,
            foreign_datagrams: counts.foreign,
            elsewhere: counts.elsewhere,
            missed_by_capture: missed,
            flows: account.flows().iter().map(|flow| CapturedFlow::of(account, flow)).collect(),
            gaps: account.gaps().map(|gap| CapturedGap::of(gap, at_s(gap.at_ns))).collect(),
            messages: account
                .messages()
                .map(|message| CapturedMessage::of(message, at_s(message.at_ns)))
                .collect(),
            losses: losses.map(|losses| {
                // Some became known later than losses behind them.
                let mut losses: Vec<_> = losses.iter().collect();
                losses.sort_by_key(|loss| loss.at_ns);
                losses.iter().map(|loss| FoundLoss::of(loss, at_s(loss.at_ns))).collect()
            }),
        }
    }
}

impl CapturedFlow {
    fn of(account: &CaptureAccount, flow: &DataFlow) -> Self {
        Self {
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
            lost_before: flow.lost_before(),
            lost_behind: flow.lost_behind(),
            samples_not_sent: flow.not_sent(),
        }
    }
}

impl CapturedGap {
    /// Tells a gap at this time.
    pub fn of(gap: &FlowGap, at_s: Option<f64>) -> Self {
        Self {
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
}

impl CapturedMessage {
    /// Tells a message at this time.
    pub fn of(message: &RadioMessage, at_s: Option<f64>) -> Self {
        Self {
            radio: message.radio.to_string(),
            at_s,
            event: match message.event {
                Event::TxUnderrun => "underflow",
                Event::TxLate => "late",
                Event::TxBurstAck => "burst_ack",
                Event::RxLateCommand => "late_command",
                Event::RxOverrun => "overrun",
            },
            channel: message.channel,
            ticks: message.ticks,
        }
    }
}

impl FoundLoss {
    /// Tells a loss at this time.
    pub fn of(loss: &JudgedLoss, at_s: Option<f64>) -> Self {
        let HopVerdict { hop, until, certainty, evidence, remedies } = loss.verdict.clone();
        Self {
            kind: match loss.kind {
                LossKind::Lost => "lost",
                LossKind::NotCaptured => "not_captured",
                LossKind::NotSent => "not_sent",
                LossKind::Overrun => "overrun",
                LossKind::Underflow => "underflow",
                LossKind::LateData => "late_data",
                LossKind::LateCommand => "late_command",
            },
            flow: loss.flow,
            at_s,
            packets: loss.packets,
            samples: loss.samples,
            hop: hop_name(hop),
            until: hop_name(until),
            certainty: match certainty {
                Certainty::Sure => "sure",
                Certainty::Perhaps => "perhaps",
                Certainty::Between => "between",
            },
            evidence,
            remedies,
        }
    }
}

/// Returns a hop's name in documents.
pub fn hop_name(hop: Hop) -> &'static str {
    match hop {
        Hop::Radio => "radio",
        Hop::Wire => "wire",
        Hop::Card => "card",
        Hop::Backlog => "backlog",
        Hop::Stack => "stack",
        Hop::Socket => "socket",
        Hop::Program => "program",
        Hop::SendQueue => "send_queue",
    }
}
