//! Transmitted frames arrive: whole, once, in order.

use crate::wire::{ETHERNET_BYTES, FRAME_BYTES_MIN, Wire, number, numbered, numbers};

pub fn every_size_arrives_whole(wire: &mut Wire) {
    let most = wire.frame_bytes_max();
    let sizes = [60, 61, 63, 64, 65, 127, 128, 511, 512, 513, 1023, 1024, 1513, 1514, 2048, 2049];
    let sizes = sizes.into_iter().chain([4096, 4097, 8042, most - 1, most]);
    for (index, bytes) in sizes.filter(|bytes| (FRAME_BYTES_MIN..=most).contains(bytes)).enumerate()
    {
        let name = index as u64;
        wire.send(name..name + 1, bytes);
        let got = wire.collect(1);
        assert_eq!(got.len(), 1, "{bytes} bytes");
        assert_eq!(got[0].len(), bytes);
        assert_eq!(got[0][..6], wire.rx().info().mac, "destination, {bytes} bytes");
        assert_eq!(got[0][6..12], wire.tx().info().mac, "source, {bytes} bytes");
        assert_eq!(got[0][14..], numbered(name, bytes - ETHERNET_BYTES), "{bytes} bytes");
    }
}

pub fn order_is_kept_in_batches_of_every_size(wire: &mut Wire) {
    let most = wire.rx().info().batch_max as u64;
    let mut next = 0;
    for count in [1, 2, most - 1, most, most + 1, 2 * most, 3 * most + 1] {
        for bytes in [60, 1514] {
            wire.send(next..next + count, bytes);
            let got = wire.collect(count as usize);
            assert!(numbers(&got).eq(next..next + count), "{count} of {most}, {bytes} bytes");
            next += count;
        }
        wire.balanced();
    }
}

pub fn a_look_never_waits(wire: &mut Wire) {
    let started = std::time::Instant::now();
    let mut frames = Vec::new();
    for _ in 0..1000 {
        wire.rx().receive(&mut frames).unwrap();
        wire.rx().give_back(&mut frames);
        assert_eq!(wire.tx().transmit(&mut frames).unwrap(), 0);
        wire.tx().flush().unwrap();
        assert_eq!(wire.tx().reserve(&mut frames, 0), 0);
    }
    // A thousand waits of any kind would take longer.
    assert!(started.elapsed() < crate::wire::PATIENCE);
}

pub fn counters_count_frames_and_bytes(wire: &mut Wire) {
    let (before_tx, before_rx) = (wire.tx().counters(), wire.rx().counters());
    for (count, bytes) in [(10u64, 60), (20, 1000), (5, wire.frame_bytes_max())] {
        wire.send(0..count, bytes);
        assert_eq!(number(&wire.collect(count as usize)[0]), 0);
    }
    wire.tx().flush().unwrap();
    let (tx, rx) = (wire.tx().counters(), wire.rx().counters());
    let bytes = 10 * 60 + 20 * 1000 + 5 * wire.frame_bytes_max() as u64;
    assert_eq!(tx.tx_frames - before_tx.tx_frames, 35, "{tx:?}");
    assert_eq!(tx.tx_bytes - before_tx.tx_bytes, bytes, "{tx:?}");
    // A link may deliver more than is wanted.
    assert!(rx.rx_frames - before_rx.rx_frames >= 35, "{rx:?}");
    assert!(rx.rx_bytes - before_rx.rx_bytes >= bytes, "{rx:?}");
    let losses = [rx.rx_ring_full, rx.rx_starved, rx.rx_dropped, tx.tx_invalid, tx.tx_dropped];
    assert_eq!(losses, [0; 5]);
}
