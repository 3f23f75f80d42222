//! SigMF metadata of a radio's recording.

use crate::output::Join;
use anyhow::Context;
use millstream_blocks::sigmf::{self, CaptureSegment, RecordingDescription};
use millstream_radio::block::{GapCause, RecordingSegment};
use millstream_radio::{Cause, RxEvent, StreamRate};
use std::path::Path;

/// Writes the metadata file of a recording with these segments.
pub fn write_meta(path: &Path, recording: &RecordingDescription<'_>) -> anyhow::Result<()> {
    let cannot = || format!("cannot write the file {}", path.display());
    sigmf::write_meta(path, recording).with_context(cannot)
}

/// Converts a radio's segments to those of the recording of an output, which counts its time in
/// samples.
pub fn stretches(
    segments: &[RecordingSegment],
    output: usize,
    rate: StreamRate,
) -> Vec<CaptureSegment> {
    let index = |segment: &RecordingSegment| segment.time_ticks.map(|ticks| rate.samples(ticks));
    let mut stretches: Vec<CaptureSegment> = Vec::with_capacity(segments.len());
    let mut frequency_hz = None;
    // Samples that are missing before segments without a time.
    let mut untimed = 0;
    for segment in segments {
        let global_index = index(segment);
        if global_index.is_none() {
            // What is missing right before a stop is told before the time behind the stop.
            untimed += segment.losses().map(|(_, samples)| samples).sum::<u64>();
        }
        let lost = if global_index.is_some() { std::mem::take(&mut untimed) } else { 0 };
        let stop = || {
            // Before a stop, a segment may lack its time.
            let before = stretches.iter().rev().find(|stretch| stretch.global_index.is_some())?;
            let passed = global_index?.checked_sub(before.global_index?)?;
            // The clock of a radio that was opened again may be a little behind.
            let recorded = segment.first_sample - before.first_sample;
            let samples = passed.saturating_sub(recorded).saturating_sub(lost);
            Some(("stopped by the user".to_owned(), format!("{samples} samples")))
        };
        let gap = match segment.gap {
            Some(gap) => describe(segment, gap),
            None if segment.is_restart() => stop(),
            None => None,
        };
        if matches!(segment.gap, Some(GapCause::Reopened { .. })) {
            // The radio has the settings of the start again, unless a tuning was repeated.
            frequency_hz = None;
        }
        let tuned = segment.tuning().filter(|tuned| tuned.output == output);
        frequency_hz = tuned.map(|tuned| tuned.freq_hz).or(frequency_hz);
        let first_sample = segment.first_sample;
        stretches.push(CaptureSegment { first_sample, global_index, gap, frequency_hz });
    }
    stretches
}

fn describe(segment: &RecordingSegment, gap: GapCause) -> Option<(String, String)> {
    let (label, missing) = match gap {
        GapCause::Stream(RxEvent::Overrun { samples }) => ("overrun", format!("{samples} samples")),
        GapCause::Stream(RxEvent::ClockJump { ticks, samples }) => {
            ("clock jump", format!("{samples} samples: the radio's time jumped by {ticks} ticks"))
        }
        GapCause::Stream(RxEvent::SequenceGap { packets, samples }) => {
            let missing = format!("{samples} samples in {packets} packets");
            let causes: Vec<_> = segment.losses().collect();
            return Some(match causes[..] {
                [] | [(Cause::NetworkLoss, _)] => ("packets lost".to_owned(), missing),
                _ => {
                    let causes = causes.iter().map(|(cause, samples)| format!("{cause} {samples}"));
                    let causes = causes.join(", ");
                    ("packets missing".to_owned(), format!("{missing}: {causes}"))
                }
            });
        }
        GapCause::Reopened { samples } => {
            ("radio opened again", format!("{samples} samples, by the clock of the computer"))
        }
        GapCause::Full { samples } => ("disk too slow", format!("{samples} samples")),
        GapCause::Stream(_) => return None,
    };
    Some((label.to_owned(), missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_radio::block::TunedOutput;

    #[test]
    fn gaps_are_named() {
        let lost = GapCause::Stream(RxEvent::SequenceGap { packets: 2, samples: 40 });
        let jump = GapCause::Stream(RxEvent::ClockJump { ticks: 50, samples: 50 });
        let at = |gap| RecordingSegment::new(60, Some(9), gap);
        let full = Some(GapCause::Full { samples: 7 });
        let segments = [at(None), at(Some(lost)), at(full), at(Some(jump))];
        let rate = StreamRate { ticks_hz: 4e6, ticks_per_sample: 4.try_into().unwrap() };
        let found = stretches(&segments, 0, StreamRate::of_radio(1e6));
        assert_eq!((found[0].global_index, &found[0].gap), (Some(9), &None));
        assert_eq!(stretches(&segments, 0, rate)[0].global_index, Some(2));
        let named = |n: usize| found[n].gap.clone().unwrap();
        assert_eq!(named(1), ("packets lost".into(), "40 samples in 2 packets".into()));
        assert_eq!(named(2), ("disk too slow".into(), "7 samples".into()));
        let jumped = "50 samples: the radio's time jumped by 50 ticks";
        assert_eq!(named(3), ("clock jump".into(), jumped.into()));
        // From tick 9 on 100 samples, and then a pause of 1000.
        let tuned = TunedOutput { output: 1, freq_hz: 88e6 };
        let segments = [
            at(None),
            RecordingSegment::restart(160, Some(1109)),
            RecordingSegment::tuned(170, Some(1119), tuned),
            RecordingSegment::new(180, Some(1130), full),
        ];
        let found = stretches(&segments, 1, StreamRate::of_radio(1e6));
        let frequencies: Vec<_> = found.iter().map(|stretch| stretch.frequency_hz).collect();
        assert_eq!(frequencies, [None, None, Some(88e6), Some(88e6)]);
        let found = stretches(&segments, 0, StreamRate::of_radio(1e6));
        assert!(found.iter().all(|stretch| stretch.frequency_hz.is_none()), "another output");
        let stopped = ("stopped by the user".to_owned(), "1000 samples".to_owned());
        assert_eq!((found[1].global_index, &found[1].gap), (Some(1109), &Some(stopped)));
    }

    #[test]
    fn what_was_lost_right_before_a_stop_is_no_part_of_the_pause() {
        // From tick 9 on 100 samples; 7 are lost, then a pause of 1000, and 50 are lost behind it.
        let again = GapCause::Reopened { samples: 50 };
        let segments = [
            RecordingSegment::new(60, Some(9), None),
            RecordingSegment::new(160, None, Some(GapCause::Full { samples: 7 })),
            RecordingSegment::new(160, None, Some(again)),
            RecordingSegment::restart(160, Some(9 + 100 + 7 + 1000 + 50)),
            RecordingSegment::restart(170, Some(2000)),
        ];
        let found = stretches(&segments, 0, StreamRate::of_radio(1e6));
        let said = |at: usize| found[at].gap.clone().unwrap();
        assert_eq!(said(1), ("disk too slow".to_owned(), "7 samples".to_owned()));
        assert_eq!(said(3), ("stopped by the user".to_owned(), "1000 samples".to_owned()));
        assert_eq!(said(4).1, format!("{} samples", 2000 - 1166 - 10));
    }

    #[test]
    fn behind_a_radio_that_was_opened_again_a_frequency_is_that_of_the_start_or_told_again() {
        let again = Some(GapCause::Reopened { samples: 50 });
        let tuned = TunedOutput { output: 0, freq_hz: 88e6 };
        let segments = [
            RecordingSegment::new(0, Some(9), None),
            RecordingSegment::tuned(10, Some(19), tuned),
            RecordingSegment::new(20, Some(79), again),
            RecordingSegment::new(30, None, again),
            RecordingSegment::tuned(30, Some(139), tuned),
        ];
        let found = stretches(&segments, 0, StreamRate::of_radio(1e6));
        let frequencies: Vec<_> = found.iter().map(|stretch| stretch.frequency_hz).collect();
        assert_eq!(frequencies, [None, Some(88e6), None, None, Some(88e6)]);
    }
}
