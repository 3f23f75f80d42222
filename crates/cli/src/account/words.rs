//! The account as text.

use super::{CapturedFlow, CapturedGap, FlowAccount, LossGroups};
use crate::output::short;
use std::fmt::Write;

/// The most gaps in the text; the document has all.
const GAPS_SHOWN: usize = 20;

impl FlowAccount {
    /// Its text: flows, gaps and messages; whole lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(missed) = self.missed_by_capture.filter(|missed| *missed > 0) {
            let _ = writeln!(
                text,
                "missed       the capture says that it missed {missed} packets: gaps before it may \
                 be its own"
            );
        }
        for (number, flow) in self.flows.iter().enumerate() {
            let way = if flow.from_radio { "from the radio" } else { "to the radio" };
            let CapturedFlow { source, destination, epid, .. } = flow;
            let _ =
                writeln!(text, "flow {number:<8}{way}, {source} to {destination}, endpoint {epid}");
            text += &flow.words();
        }
        if let Some(losses) = &self.losses {
            let mut groups = LossGroups::default();
            losses.iter().for_each(|loss| groups.add(loss));
            text += &groups.text();
        } else {
            self.gaps.iter().take(GAPS_SHOWN).for_each(|gap| text += &self.gap_line(gap));
            if let Some(more @ 1..) = self.gaps.len().checked_sub(GAPS_SHOWN) {
                let _ = writeln!(text, "             and {more} more gaps (--json has all)");
            }
        }
        text + &self.message_lines()
    }

    /// The beginning of a text: the frames that were seen, and what else they were.
    pub fn frame_words(&self) -> String {
        let mut words = format!("{} frames", self.frames);
        for (count, what) in [
            (self.other_frames, "not UDP over IPv4"),
            (self.foreign_datagrams, "datagrams that are not CHDR"),
            (self.fragments, "later parts of datagrams"),
            (self.short_frames, "cut off too early"),
            (self.elsewhere, "on a second interface"),
        ] {
            if count > 0 {
                let _ = write!(words, ", {count} {what}");
            }
        }
        words
    }

    /// A gap of these flows, with its verdict; whole lines.
    fn gap_line(&self, gap: &CapturedGap) -> String {
        let at = gap.at_s.map_or("gap".to_owned(), |at_s| format!("{at_s:.6} s"));
        let sender = match self.flows.get(gap.flow) {
            Some(flow) if flow.from_radio => "radio",
            _ => "program",
        };
        format!("{at:<13}flow {}: {}\n", gap.flow, gap.words(sender))
    }

    fn message_lines(&self) -> String {
        let mut text = String::new();
        for event in ["overrun", "late_command", "underflow", "late"] {
            let count = self.messages.iter().filter(|message| message.event == event).count();
            if count > 0 {
                let name = event.replace('_', " ");
                let _ = writeln!(text, "messages     {count} of the radio: {name}");
            }
        }
        text
    }
}

impl CapturedFlow {
    /// Its packets, and how many are missing; whole lines.
    fn words(&self) -> String {
        let mut line = format!("{} packets", self.packets);
        if let Some(seconds) = self.seconds {
            let _ = write!(line, " in {seconds:.3} s");
        }
        if let Some(rate_hz) = self.rate_hz {
            let _ = write!(line, ", about {} samples a second", short(rate_hz.round()));
        }
        for (count, what) in [
            (self.bursts, "ends of bursts"),
            (self.reordered, "out of order"),
            (self.duplicates, "twice"),
            (self.restarts, "times set up again"),
            (self.clock_jumps_back, "jumps of the clock back"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
        let not_sent = self.samples_not_sent;
        let missing = if self.lost_before + self.lost_behind == 0 && not_sent == Some(0) {
            "nothing is missing".to_owned()
        } else {
            let not_sent = not_sent.map_or("an unknown number of".to_owned(), |n| n.to_string());
            format!(
                "lost before the capture: {} packets; behind it: {}; not sent: {not_sent} samples",
                self.lost_before, self.lost_behind
            )
        };
        format!("             {line}\n             {missing}\n")
    }
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
