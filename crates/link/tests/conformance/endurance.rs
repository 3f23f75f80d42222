//! Many frames, every one of which is accounted for.

use std::time::{Duration, Instant};

use crate::wire::{ETHERNET_BYTES, ETHERTYPE, PATIENCE, Wire};

/// Frames over links in memory, which take a second.
const FRAMES_IN_MEMORY: u64 = 10_000_000;

/// The time limit of the other links, unless the number of frames is given.
const SHARE: Duration = Duration::from_secs(2);

/// After 10⁷ frames the frame counts are as before, the user holds none, and sent = received +
/// lost.
///
/// Links over an interface send as many as fit into a short time; with `MILLSTREAM_FRAMES=10000000`
/// all send that number.
pub fn no_frame_is_lost_from_the_pool(wire: &mut Wire) {
    let asked = std::env::var("MILLSTREAM_FRAMES").ok().and_then(|text| text.parse().ok());
    let most = asked.unwrap_or(FRAMES_IN_MEMORY);
    let in_memory = wire.pair().is_none() && wire.has_cable();
    let share = if asked.is_some() || in_memory { Duration::MAX } else { SHARE };
    let (mut sent, mut received, mut expected) = (0u64, 0u64, 0u64);
    let (mut frames, mut moved) = (Vec::new(), Instant::now());
    let started = Instant::now();
    while sent < most && started.elapsed() < share {
        let count = prepare(wire, &mut frames, sent);
        wire.tx().transmit(&mut frames).unwrap();
        wire.tx().flush().unwrap();
        let left = frames.len() as u64;
        wire.tx().give_back(&mut frames);
        sent += count - left;
        let got = take(wire, &mut frames, &mut expected);
        received += got;
        if count > left || got > 0 {
            moved = Instant::now();
        }
        assert!(moved.elapsed() < PATIENCE, "stalled after {sent} sent, {received} received");
    }
    let until = Instant::now() + Duration::from_millis(100);
    while received < sent && Instant::now() < until {
        received += take(wire, &mut frames, &mut expected);
    }
    wire.tx().flush().unwrap();
    wire.at_rest();
    let (tx, rx) = (wire.tx().counters(), wire.rx().counters());
    println!("{sent} sent, {received} received in {:?}", started.elapsed());
    println!("sender {tx:?}\nreceiver {rx:?}");
    assert_eq!(tx.tx_frames, sent);
    assert!(received > 0 && received <= sent);
    let lost = rx.rx_ring_full + rx.rx_starved + rx.rx_dropped + tx.tx_dropped + tx.tx_invalid;
    if wire.exact {
        assert_eq!(received + lost, sent);
    }
    // The kernel's own frames may be among those lost.
    assert!(received + lost >= sent, "{} lost unheard", sent - received - lost);
}

/// Writes a batch of the shortest frames, numbered from `first`; returns their number.
fn prepare(wire: &mut Wire, frames: &mut Vec<millstream_link::frame::Frame>, first: u64) -> u64 {
    let to = wire.rx().info().mac;
    let end = wire.tx();
    let count = end.reserve(frames, end.info().batch_max.min(64));
    for (index, frame) in frames.iter_mut().enumerate() {
        frame.set_len(60);
        frame.set_continues(false);
        let bytes = end.memory().bytes_mut(frame);
        bytes[..6].copy_from_slice(&to);
        bytes[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        bytes[ETHERNET_BYTES..][..8].copy_from_slice(&(first + index as u64).to_le_bytes());
    }
    count as u64
}

/// Takes the received frames and gives them back; returns the number of ours, which must not be
/// older than expected.
fn take(
    wire: &mut Wire,
    frames: &mut Vec<millstream_link::frame::Frame>,
    expected: &mut u64,
) -> u64 {
    let end = wire.rx();
    end.receive(frames).unwrap();
    let mut ours = 0;
    for frame in frames.iter() {
        let bytes = end.memory().bytes(frame);
        if bytes[12..14] == ETHERTYPE.to_be_bytes() {
            let number = crate::wire::number(bytes);
            assert!(number >= *expected, "{number} came after {expected}");
            *expected = number + 1;
            ours += 1;
        }
    }
    end.give_back(frames);
    ours
}
