use std::io::Cursor;

use super::*;

fn file(frames: &[(u64, &[u8])]) -> Vec<u8> {
    let mut bytes = [section(), interface("veth0", ETHERNET)].concat();
    for (at_ns, frame) in frames {
        let mut block = vec![0xff; packet_bytes(frame.len())];
        let (one, two) = frame.split_at(frame.len() / 3);
        let direction = FrameDirection::Out;
        let of = FrameStamp { interface: 0, at_ns: *at_ns, direction, whole_bytes: 1500 };
        packet(&mut block, of, frame.len(), [one, two].into_iter());
        assert_eq!(stamp_ns(&block), Some((*at_ns, block.len())));
        bytes.extend(block);
    }
    bytes.extend(journal_entry(8, "hello", ("SAID", "{}")));
    for counts in [1, 2] {
        let seen = CaptureStatistics { received: Some(3), lost: Some(counts), uncaptured: 1 };
        bytes.extend(statistics(0, 9, seen));
    }
    bytes
}

/// Packets with their times.
type Found = Vec<(Option<u64>, Vec<u8>)>;

fn all(bytes: &[u8]) -> Result<Found, CaptureError> {
    let mut reader = CaptureReader::new(Cursor::new(bytes))?;
    let mut found = Vec::new();
    while let Some(item) = reader.next_item()? {
        if let CaptureItem::Packet(packet) = item {
            found.push((packet.at_ns, packet.bytes.to_vec()));
        }
    }
    Ok(found)
}

#[test]
fn what_is_written_is_read() {
    let frames: [(u64, &[u8]); 3] =
        [(1_700_000_000_123_456_789, &[1; 60]), (u64::MAX / 2, &[2; 61]), (0, &[])];
    let found = all(&file(&frames)).unwrap();
    assert!(found.iter().zip(frames).all(|(a, b)| a.0 == Some(b.0) && a.1 == b.1));
    assert_eq!(found.len(), 3);
}

/// A handmade file in the byte order opposite to that of x86 and Arm, with microseconds, a time
/// offset and a simple packet.
#[test]
fn the_other_byte_order_and_coarser_times_are_understood() {
    let mut bytes = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let total = (12 + body.len()) as u32;
        let order = |word: u32| word.swap_bytes().to_ne_bytes();
        bytes.extend([order(kind), order(total)].concat());
        bytes.extend(body);
        bytes.extend(order(total));
    };
    block(SECTION, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    block(INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0]);
    block(99, b"whatever");
    let packet = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 3, 1, 2, 3, 0];
    block(PACKET, &packet);
    block(SIMPLE, &[0, 0, 0, 2, 8, 9, 0, 0]);
    let found = all(&bytes).unwrap();
    assert_eq!(found, [(Some(10_000_007_000), vec![1, 2, 3]), (None, vec![8, 9])]);
}

#[test]
fn what_is_no_capture_is_one_error() {
    for bytes in [&b""[..], b"short", &[0; 100], &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0]]
    {
        let error = CaptureReader::new(Cursor::new(bytes)).err().unwrap().to_string();
        assert!(error.contains("no pcapng or pcap capture; `editcap"), "{error}");
    }
}

#[test]
fn the_older_format_is_read_in_both_byte_orders_and_units() {
    for (magic, ticks) in [(PCAP_MICRO, 7_000), (PCAP_NANO, 7)] {
        for swapped in [false, true] {
            let order = |word: u32| if swapped { word.swap_bytes() } else { word }.to_ne_bytes();
            let mut bytes = Vec::new();
            // Version 2.4, whose halves stand in the file's order, then time zone, accuracy,
            // longest packet and link type.
            for word in [magic, 4 << 16 | 2, 0, 0, 64, 113] {
                bytes.extend(order(word));
            }
            for (seconds, captured, original) in [(10, 3, 3), (11, 2, 900)] {
                for word in [seconds, 7, captured, original] {
                    bytes.extend(order(word));
                }
                bytes.extend(&[9; 3][..captured as usize]);
            }
            let mut reader = CaptureReader::new(Cursor::new(&bytes)).unwrap();
            let packet = reader.next_packet().unwrap().unwrap();
            let whole = (packet.at_ns, packet.link_type, packet.bytes.len(), packet.is_whole);
            assert_eq!(whole, (Some(10_000_000_000 + ticks), 113, 3, true));
            assert!(!reader.next_packet().unwrap().unwrap().is_whole);
            assert_eq!(reader.next_packet().unwrap(), None);
            assert_eq!(reader.dropped(), None);
            assert!(all(&bytes[..bytes.len() - 1]).is_err(), "it is cut off");
        }
    }
}

/// Statistics count from the beginning of their section.
#[test]
fn what_the_capture_missed_is_read_by_the_last_statistics_of_each_section() {
    for sections in [1, 2] {
        let bytes = file(&[(5, &[1; 60])]).repeat(sections as usize);
        let mut reader = CaptureReader::new(Cursor::new(&bytes)).unwrap();
        while reader.next_packet().unwrap().is_some() {}
        assert_eq!(reader.dropped(), Some(3 * sections), "lost by the link, and by the capture");
    }
}

#[test]
fn cut_frames_and_entries_of_a_journal_are_read_in_their_order() {
    let bytes = file(&[(5, &[1; 61])]);
    let mut reader = CaptureReader::new(Cursor::new(&bytes)).unwrap();
    let Some(CaptureItem::Packet(packet)) = reader.next_item().unwrap() else { panic!() };
    assert_eq!((packet.interface, packet.direction), (0, Some(FrameDirection::Out)));
    assert!(!packet.is_whole && packet.bytes == [1; 61]);
    let Some(CaptureItem::JournalEntry(entry)) = reader.next_item().unwrap() else { panic!() };
    assert!(entry.starts_with(b"__REALTIME_TIMESTAMP=0\nMESSAGE=hello\nSAID={}\n"));
    assert_eq!(reader.next_item().unwrap(), None);
}

#[test]
fn damage_anywhere_is_an_error_or_other_packets_and_never_a_panic() {
    let good = file(&[(5, &[1; 60]), (6, &[2; 61])]);
    for cut in 0..good.len() {
        let _ = all(&good[..cut]);
    }
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 24) as u8;
        }
        let _ = all(&bytes);
    }
    let error = all(&good[..good.len() - 3]).unwrap_err().to_string();
    assert_eq!(error, "the capture file is damaged: it ends in the middle of a block");
}
