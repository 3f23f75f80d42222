//! What breaks a device from within.

use super::prepare::prepared;
use super::session::Inner;
use super::{Gpu, gpus};
use crate::session::ClosingSession;
use millstream_accel::{Kernel, SampleWindow, Session};
use millstream_dsp::Sample;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Prepares the first device for a kernel of ten taps, if there is a device.
fn session(frames: usize) -> Option<(Gpu, ClosingSession<Inner>, Arc<SampleWindow>)> {
    let gpu = gpus().ok()?.remove(0);
    let kernel = Kernel::Fir { taps: vec![Sample::new(1.0, 0.0); 10], decimation: 1 };
    let shape = kernel.shape();
    let way = gpu.ways(&kernel, frames).unwrap().remove(0);
    let (inner, windows) = prepared(&gpu, &kernel, shape, &way, 3, frames).unwrap();
    let window = Arc::clone(&windows[0]);
    Some((gpu, ClosingSession::new(inner, shape, 3, frames), window))
}

/// Polls until the device is lost, and returns the error.
fn lost(session: &mut ClosingSession<Inner>, slot: usize) -> String {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match session.poll(slot) {
            Ok(_) => assert!(Instant::now() < end, "the device is not lost after 20 seconds"),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn a_lost_device_is_an_error_of_each_function_and_of_no_other_session() {
    let Some((_, mut session, window)) = session(1_000_000) else { return };
    let (_, mut other, _) = self::session(10).unwrap();
    session.submit(0, &window, 1_000_000).unwrap();
    session.batches().device.destroy();
    let text = lost(&mut session, 0);
    assert!(text.starts_with("the device is lost: "), "{text}");
    assert_eq!(session.submit(1, &window, 10).unwrap_err().to_string(), text);
    assert_eq!(session.poll(1).unwrap_err().to_string(), text);
    assert!(session.results(0).is_empty());
    session.release(0);
    drop(session);

    let window = Arc::new(SampleWindow::ordinary(19));
    other.submit(0, &window, 10).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while !other.poll(0).unwrap() {
        assert!(Instant::now() < end);
    }
    assert_eq!(other.results(0), [0.0; 20]);
}

#[test]
fn a_slot_that_is_not_free_is_an_error_and_no_panic() {
    let Some((_, mut session, window)) = session(1_000_000) else { return };
    session.submit(0, &window, 1_000_000).unwrap();
    let text = session.submit(0, &window, 10).unwrap_err().to_string();
    assert_eq!(text, "the device is lost: a slot was used that is not free");
}

#[test]
fn a_mapping_that_fails_is_an_error_and_no_panic() {
    let Some((_, mut session, window)) = session(1_000_000) else { return };
    session.submit(0, &window, 1_000_000).unwrap();
    session.batches().slots[0].destroy();
    let text = lost(&mut session, 0);
    assert!(text.contains("could not be mapped") || text.contains("destroyed"), "{text}");
}

/// All of these happen within calls of wgpu; each look at the device costs four more.
#[test]
fn a_batch_costs_few_allocations() {
    let Some((gpu, mut session, window)) = session(1000) else { return };
    let mut counts = vec![];
    for round in 0..40 {
        let slot = round % 3;
        let before = millstream_testkit::allocations();
        session.submit(slot, &window, 1000).unwrap();
        let submitted = millstream_testkit::allocations();
        let mut polls = 0;
        while !session.poll(slot).unwrap() {
            polls += 1;
        }
        session.release(slot);
        let all = millstream_testkit::allocations();
        counts.push((submitted - before, (all - submitted).saturating_sub(4 * polls)));
    }
    counts.sort_unstable();
    let (submit, poll) = counts[counts.len() / 2];
    println!(
        "{gpu:?}: allocations of a batch in wgpu: {submit} to submit, {poll} to poll and release"
    );
    assert!(submit + poll < 150, "{counts:?}");
}
