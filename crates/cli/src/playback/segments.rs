//! The order of a playback: the stretches of a recording, repeated.

use millstream_blocks::sigmf::SigmfRecording;

/// A stretch of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaybackSegment {
    /// Its first sample in the file.
    pub first_sample: u64,
    /// Its length.
    pub samples: u64,
    /// Its start in samples after the first sample of all, if it begins a burst with a time.
    pub offset_samples: Option<u64>,
    /// Whether a burst ends with it.
    pub ends_burst: bool,
}

/// All segments, in order.
#[derive(Debug, Clone)]
pub struct PlaybackPlan {
    notes: Vec<PlaybackSegment>,
    /// Samples of time from the beginning of one repetition to that of the next.
    span_samples: u64,
    timed: bool,
    /// Repetitions; `None`: without end.
    repeats: Option<u64>,
}

impl PlaybackPlan {
    /// Plays the whole recording as one burst: gaps are closed, and repetitions follow directly.
    pub fn joined(source: &SigmfRecording, repeats: Option<u64>) -> Self {
        let note = PlaybackSegment {
            first_sample: 0,
            samples: source.samples,
            offset_samples: None,
            ends_burst: false,
        };
        Self { notes: vec![note], span_samples: source.samples, timed: false, repeats }
    }

    /// Plays a burst for each capture, as far apart as they were recorded.
    pub fn timed(source: &SigmfRecording, repeats: Option<u64>) -> anyhow::Result<Self> {
        let ends = source.captures.iter().skip(1).map(|next| next.first_sample);
        let ends = ends.chain([source.samples]);
        let mut notes = Vec::new();
        let (mut origin, mut span_samples) = (None, 0);
        for (capture, end) in source.captures.iter().zip(ends) {
            let Some(index) = capture.global_index else {
                anyhow::bail!(
                    "{}: the SigMF capture at sample {} has no core:global_index, so its time is \
                     unknown: transmit the recording without --timed",
                    source.data.display(),
                    capture.first_sample
                );
            };
            let offset = index.checked_sub(*origin.get_or_insert(index));
            let offset = offset.filter(|offset| *offset >= span_samples);
            let Some(offset) = offset else {
                anyhow::bail!(
                    "{}: the SigMF capture at sample {} begins before the previous one ends: \
                     transmit the recording without --timed",
                    source.data.display(),
                    capture.first_sample
                );
            };
            let samples = end - capture.first_sample;
            span_samples = offset.saturating_add(samples);
            let first_sample = capture.first_sample;
            let note = PlaybackSegment {
                first_sample,
                samples,
                offset_samples: Some(offset),
                ends_burst: true,
            };
            // Two captures may begin at one sample: then no sample came between two gaps.
            notes.extend((samples > 0).then_some(note));
        }
        Ok(Self { notes, span_samples, timed: true, repeats })
    }

    /// Samples of all repetitions; `None` without end.
    pub fn samples(&self) -> Option<u64> {
        let once: u64 = self.notes.iter().map(|note| note.samples).sum();
        self.repeats.map(|repeats| repeats.saturating_mul(once))
    }

    /// Samples of time from the first sample to the end of the last; `None` without end.
    pub fn duration_samples(&self) -> Option<u64> {
        self.repeats.map(|repeats| repeats.saturating_mul(self.span_samples))
    }
}

impl IntoIterator for PlaybackPlan {
    type Item = PlaybackSegment;
    type IntoIter = Box<dyn Iterator<Item = PlaybackSegment>>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { notes, span_samples, timed, repeats } = self;
        let count = if notes.is_empty() { 0 } else { repeats.unwrap_or(u64::MAX) };
        Box::new((0..count).flat_map(move |round| {
            let shift = round.wrapping_mul(span_samples);
            let mut notes = notes.clone();
            for note in &mut notes {
                note.offset_samples = note.offset_samples.map(|offset| offset.wrapping_add(shift));
            }
            let is_last = !timed && repeats == Some(round + 1);
            notes.last_mut().into_iter().for_each(|note| note.ends_burst |= is_last);
            notes
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_blocks::sigmf::Capture;
    use millstream_flow::blocks::SampleFormat;

    fn source(captures: &[(u64, Option<u64>)]) -> SigmfRecording {
        let capture = |&(first_sample, global_index)| Capture {
            first_sample,
            global_index,
            ..Capture::default()
        };
        SigmfRecording {
            data: "x.sc16".into(),
            format: SampleFormat::Sc16,
            rate_hz: None,
            samples: 100,
            captures: captures.iter().map(capture).collect(),
            annotations: Vec::new(),
            global: None,
        }
    }

    #[test]
    fn joined_is_one_burst_over_all_repetitions() {
        let score = PlaybackPlan::joined(&source(&[(0, None)]), Some(2));
        assert_eq!((score.samples(), score.duration_samples()), (Some(200), Some(200)));
        let notes: Vec<_> = score.into_iter().map(|note| (note.samples, note.ends_burst)).collect();
        assert_eq!(notes, [(100, false), (100, true)]);
        let endless = PlaybackPlan::joined(&source(&[(0, None)]), None);
        assert!(endless.into_iter().take(1000).all(|note| !note.ends_burst));
    }

    #[test]
    fn timed_keeps_the_gaps_and_repeats_behind_the_last_sample() {
        let score =
            PlaybackPlan::timed(&source(&[(0, Some(500)), (60, Some(700))]), Some(2)).unwrap();
        assert_eq!((score.samples(), score.duration_samples()), (Some(200), Some(480)));
        let notes: Vec<_> = score
            .into_iter()
            .map(|note| (note.first_sample, note.samples, note.offset_samples.unwrap()))
            .collect();
        assert_eq!(notes, [(0, 60, 0), (60, 40, 200), (0, 60, 240), (60, 40, 440)]);
    }

    #[test]
    fn what_has_no_time_cannot_be_timed() {
        let refused = |captures: &[(u64, Option<u64>)], part: &str| {
            let error = PlaybackPlan::timed(&source(captures), Some(1)).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("without --timed"), "{error}");
        };
        refused(&[(0, None)], "at sample 0 has no core:global_index");
        refused(&[(0, Some(9)), (60, Some(20))], "at sample 60 begins before the previous one");
        refused(&[(0, Some(9)), (60, Some(2))], "begins before");
    }
}
