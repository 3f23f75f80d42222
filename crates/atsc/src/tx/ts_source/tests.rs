use super::*;

/// Returns a stream of `packets` at `ticks_per_packet`, with a clock reference in every 20th.
fn stream(packets: usize, ticks_per_packet: f64, start: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..packets {
        let mut packet = [i as u8; PACKET_BYTES];
        packet[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10 | (i & 15) as u8]);
        if i % 20 == 0 {
            packet[3] |= 0x20;
            packet[4..12].copy_from_slice(&[7, 0x10, 0, 0, 0, 0, 0x7E, 0]);
            pcr::shift(&mut packet, start + (i as f64 * ticks_per_packet).round() as u64, 0);
        }
        bytes.extend(packet);
    }
    bytes
}

fn play(source: &mut TsSource, count: usize) -> Vec<([u8; PACKET_BYTES], MultiplexPacket)> {
    let mut packet = [0; PACKET_BYTES];
    (0..count)
        .map(|_| {
            let supply = source.next_packet(&mut packet);
            (packet, supply)
        })
        .collect()
}

#[test]
fn a_full_rate_stream_passes_unchanged() {
    let bytes = stream(1000, SLOT_TICKS, 77);
    let mut source = TsSource::new(&bytes, false).unwrap();
    assert_eq!(source.mode, TsMode::Unchanged);
    let out = play(&mut source, 1001);
    let sent: Vec<u8> = out[..1000].iter().flat_map(|(p, _)| *p).collect();
    assert_eq!(sent, bytes);
    assert_eq!(out[1000].1, MultiplexPacket::Ended);
}

#[test]
fn a_slow_stream_is_stuffed_and_its_clock_stays_true() {
    let ticks = SLOT_TICKS * 3.7;
    let bytes = stream(2000, ticks, PCR_WRAP - 1_000_000);
    let mut source = TsSource::new(&bytes, true).unwrap();
    assert_eq!(source.mode, TsMode::Stuffed);
    let out = play(&mut source, 30_000);
    let mut first = None;
    let mut next_counter = 0;
    for (slot, (packet, supply)) in out.iter().enumerate() {
        if *supply == MultiplexPacket::Stuffing {
            assert_eq!(packet[..4], [0x47, 0x1F, 0xFF, 0x10]);
            continue;
        }
        assert_eq!(packet[3] & 15, next_counter, "slot {slot}");
        next_counter = (next_counter + 1) & 15;
        if let Some(reference) = pcr::read(packet) {
            let (slot0, reference0) = *first.get_or_insert((slot, reference));
            let elapsed = (reference + PCR_WRAP - reference0) % PCR_WRAP;
            let error = elapsed as f64 - (slot - slot0) as f64 * SLOT_TICKS;
            assert!(error.abs() < 3.0, "slot {slot}: {error} ticks");
        }
    }
    let real = out.iter().filter(|(_, s)| *s == MultiplexPacket::File).count();
    assert!((real as f64 - 30_000.0 / 3.7).abs() < 3.0, "{real} packets of the file");
}

#[test]
fn bad_files_are_refused_with_advice() {
    let good = stream(100, SLOT_TICKS, 0);
    let error = |bytes: &[u8]| TsSource::new(bytes, false).unwrap_err().to_string();
    assert!(error(&[]).contains("empty"));
    let text = error(&good[..188 * 3 + 5]);
    assert!(text.contains("5 of 188 bytes") && text.contains("564"), "{text}");
    let mut broken = good.clone();
    broken[188 * 7] = 0x48;
    let text = error(&broken);
    assert!(text.contains("byte 1316 is 0x48") && text.contains("ffmpeg"), "{text}");
    let text = error(&stream(100, SLOT_TICKS * 0.9, 0));
    assert!(text.contains("lower rate"), "{text}");
    let missing = TsSource::open("/nowhere/at.ts", false).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/at.ts"), "{missing}");
}

#[test]
fn a_stream_without_clock_is_sent_as_it_is() {
    let mut plain = stream(19, 1.0, 0);
    plain.drain(..PACKET_BYTES);
    let mut source = TsSource::new(&plain, true).unwrap();
    assert_eq!(source.mode, TsMode::Untimed);
    assert!(play(&mut source, 40).iter().all(|(_, supply)| *supply == MultiplexPacket::File));
}

#[test]
fn a_clock_that_jumps_keeps_the_last_rate() {
    let mut bytes = stream(200, SLOT_TICKS * 2.0, 0);
    bytes.extend(stream(200, SLOT_TICKS * 2.0, 1_000_000_000));
    let source = TsSource::new(&bytes, false).unwrap();
    let expected = 400.0 * SLOT_TICKS * 2.0 / CLOCK_HZ;
    assert!((source.duration_s() - expected).abs() < 1e-4, "{}", source.duration_s());
}

#[test]
fn the_clock_runs_on_at_the_files_rate_over_many_repetitions() {
    // Clocks 11 ppm fast and 13 ppm slow of the channel's, which is sent unchanged; one repetition
    // is not a whole number of ticks of the slower.
    for ticks in [2094.0, 2093.95] {
        let mut source = TsSource::new(&stream(41, ticks, 0), true).unwrap();
        assert_eq!(source.mode, TsMode::Unchanged);
        for (slot, (packet, _)) in play(&mut source, 100_000).iter().enumerate() {
            let Some(reference) = pcr::read(packet) else { continue };
            let error = reference as f64 - slot as f64 * ticks;
            assert!(error.abs() < 2.0, "{ticks}, slot {slot}: {error} ticks");
        }
    }
}

proptest::proptest! {
    #[test]
    fn hostile_packets_neither_panic_nor_stop_the_multiplex(
        mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 188 * 12),
        pids in proptest::collection::vec(0..3u8, 12),
    ) {
        // Few packet identifiers and adaptation fields throughout, so that clocks are found.
        for (packet, pid) in bytes.chunks_mut(188).zip(pids) {
            (packet[0], packet[2]) = (0x47, pid);
            packet[1] &= 0xE0;
            packet[3] |= 0x20;
            packet[4] |= 7;
            packet[5] |= 0x10;
        }
        if let Ok(mut source) = TsSource::new(&bytes, true) {
            for (packet, supply) in play(&mut source, 200) {
                proptest::prop_assert_eq!(packet[0], 0x47);
                proptest::prop_assert_ne!(supply, MultiplexPacket::Ended);
            }
        }
    }
}
