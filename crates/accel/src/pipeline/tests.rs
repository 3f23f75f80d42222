//! When a pipeline looks at its device, in simulated time.

use super::Pipeline;
use crate::{Kernel, Lost, OffloadSettings, Opened, SampleWindow, Session};
use millstream_dsp::Sample;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A device that needs the same time for each batch, and that knows the simulated time.
struct Clockwork {
    now: Arc<Mutex<Instant>>,
    needs: Duration,
    since: Vec<Option<Instant>>,
    results: Vec<f32>,
}

impl Session for Clockwork {
    fn submit(&mut self, slot: usize, _: &Arc<SampleWindow>, _: usize) -> Result<(), Lost> {
        self.since[slot] = Some(*self.now.lock().unwrap());
        Ok(())
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        let now = *self.now.lock().unwrap();
        Ok(self.since[slot].is_some_and(|since| now >= since + self.needs))
    }

    fn results(&self, _: usize) -> &[f32] {
        &self.results
    }

    fn release(&mut self, slot: usize) {
        self.since[slot] = None;
    }

    fn pinned_bytes(&self) -> u64 {
        0
    }
}

const BATCH: usize = 64;

/// Returns the times until the results of batches were there, one after the other, and the calls. A
/// call comes when the pipeline asked for it, and as often as samples come.
fn latencies(needs: Duration, batches: usize, samples: Duration) -> (Vec<Duration>, usize) {
    let now = Arc::new(Mutex::new(Instant::now()));
    let kernel = Kernel::Fir { taps: vec![Sample::new(1.0, 0.0)], decimation: 1 };
    let settings = OffloadSettings::for_batches(BATCH, &kernel);
    let session = Clockwork {
        now: Arc::clone(&now),
        needs,
        since: vec![None; settings.slots],
        results: vec![0.0; 2 * BATCH],
    };
    let windows = (0..settings.slots).map(|_| Arc::new(SampleWindow::ordinary(BATCH))).collect();
    let opened = Opened { session: Box::new(session), windows, way: String::new() };
    let mut pipeline = Pipeline::new(&kernel, opened, settings);
    let mut out = vec![0.0; 2 * BATCH];
    let (mut times, mut calls) = (vec![], 0);
    for _ in 0..batches {
        let submitted = *now.lock().unwrap();
        assert_eq!(pipeline.take(&[Sample::new(1.0, 0.0); BATCH], submitted), BATCH);
        loop {
            let at = *now.lock().unwrap();
            pipeline.look(at);
            if pipeline.give(&mut out) > 0 {
                times.push(at - submitted);
                break;
            }
            calls += 1;
            let after = pipeline.next_look(at).expect("a batch is on its way");
            *now.lock().unwrap() = at + after.min(samples);
        }
    }
    (times, calls)
}

#[test]
fn results_are_taken_soon_after_they_are_there() {
    for micros in [20, 74, 300, 900, 3000] {
        let needs = Duration::from_micros(micros);
        let (times, calls) = latencies(needs, 400, Duration::MAX);
        // The time that a device needs is learnt from the first batches.
        let late = times[100..].iter().map(|time| *time - needs).max().unwrap();
        assert!(late <= needs / 4 + Duration::from_micros(60), "{needs:?}: {late:?} late");
        assert!(calls <= 6 * 400, "{needs:?}: {calls} calls for 400 batches");
    }
}

#[test]
fn samples_that_come_often_put_no_look_off() {
    let needs = Duration::from_micros(300);
    let (times, _) = latencies(needs, 400, Duration::from_micros(20));
    let late = times[100..].iter().map(|time| *time - needs).max().unwrap();
    assert!(late <= Duration::from_micros(160), "{late:?} late");
}
