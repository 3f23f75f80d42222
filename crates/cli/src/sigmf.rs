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
    for segment in segments {
        let global_index = index(segment);
        let stop = || {
            // Before a stop, a segment may lack its time.
            let before = stretches.iter().rev().find(|stretch| stretch.global_index.is_some())?;
            let passed = global_index?.checked_sub(before.global_index?)?;
            let samples = passed.checked_sub(segment.first_sample - before.first_sample)?;
            Some(("stopped by the user".to_owned(), format!("{samples} samples")))
        };
        let gap = match segment.gap {
            Some(gap) => describe(segment, gap),
            None if segment.is_restart() => stop(),
            None => None,
        };
        if matches!(segment.gap, Some(GapCause::Reopened { .. })) {
            // The radio has the settings of the start again.
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
}
