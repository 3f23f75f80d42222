//! A burst of samples that can be told apart, in calls of chosen sizes.

use std::time::Duration;

use millstream_radio::{TxMetadata, TxStreamer};

/// Returns a sample; no two are equal, and none is zero.
pub fn sample(n: usize) -> [i16; 2] {
    [(n % 32_749) as i16 + 1, (n / 32_749) as i16 - 9999]
}

/// Sends a burst at `at` in calls of these sizes, and does `after` behind each. A call that sends a
/// part is continued where it stopped.
pub fn send(
    stream: &mut TxStreamer,
    at: u64,
    samples: &[[i16; 2]],
    sizes: &[usize],
    timeout: Duration,
    mut after: impl FnMut(&mut TxStreamer),
) {
    let (mut done, mut turn) = (0, 0);
    while done < samples.len() {
        let end = (done + sizes[turn % sizes.len()]).min(samples.len());
        let mut meta = if done == 0 { TxMetadata::at(at) } else { TxMetadata::now() };
        meta.end_of_burst = end == samples.len();
        let sent = stream.send(&samples[done..end], meta, timeout).unwrap();
        after(stream);
        (done, turn) = (done + sent.samples, turn + 1);
    }
}
