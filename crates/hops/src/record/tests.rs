use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::pcapng::{CaptureItem, CaptureReader};
use millstream_watch::{
    CaptureAccount, Captured, InterfaceReading, Judge, LinkType, SocketReading, ThreadReading,
};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn frame(at_ns: u64, interface: u32, bytes: &[u8]) -> PassingFrame<'_> {
    PassingFrame {
        interface,
        at_ns,
        is_outgoing: interface == 8,
        is_ethernet: interface != 9,
        length: 1500,
        bytes,
    }
}

fn notes(at_ns: u64) -> [HopNote; 3] {
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 49153);
    let reading = HopReading {
        at_ns,
        interfaces: vec![InterfaceReading {
            name: "eth0\nx=y".to_owned(),
            ring_full: Some(u64::MAX),
            ring_entries: Some((256, 4096)),
            ..InterfaceReading::default()
        }],
        sockets: vec![SocketReading {
            local: address,
            remote: Some(address),
            inode: 1,
            pid: None,
            queued_bytes: 2,
            buffer_bytes: 3,
            send_queued_bytes: 4,
            dropped: 5,
        }],
        threads: vec![ThreadReading {
            pid: 1,
            tid: 2,
            name: "\"é\n".to_owned(),
            cpu: 3,
            state: 'R',
            cpu_ns: 4,
            run_delay_ns: None,
            major_faults: 5,
            migrations: None,
            reads: Some(6),
        }],
        ..HopReading::default()
    };
    let dropped = DroppedPacket {
        at_ns,
        reason: "SOCKET_RCVBUFF\n".to_owned(),
        namespace: Some(4_026_531_840),
        segments: 2,
        source: address,
        destination: address,
        header: Some([1, 2, 3, 4, 5, 6, 7, 8]),
    };
    let instead = Some((7, "kworker".to_owned()));
    let wait = ThreadWait { tid: 2, from_ns: at_ns - 5, until_ns: at_ns, cpu: 1, instead };
    [HopNote::Reading(reading), HopNote::Dropped(dropped), HopNote::Waited(wait)]
}

/// What a file has, in its order: interface, bytes and link type of frames; notes.
#[derive(Debug, PartialEq)]
enum Item {
    Frame(u64, u32, usize, u16, bool),
    Note(HopNote),
}

fn read(bytes: &[u8]) -> Vec<Item> {
    let mut reader = CaptureReader::new(bytes).unwrap();
    let mut items = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        items.push(match item {
            CaptureItem::JournalEntry(entry) => Item::Note(HopNote::read(entry).unwrap().unwrap()),
            CaptureItem::Packet(packet) => Item::Frame(
                packet.at_ns.unwrap(),
                packet.interface,
                packet.bytes.len(),
                packet.link_type,
                packet.direction == Some(FrameDirection::Out),
            ),
        });
    }
    items
}

#[test]
fn frames_and_notes_are_read_again_in_their_order_whether_all_is_kept_or_the_end() {
    for keep in [None, Some(Duration::from_secs(1))] {
        let mut recorder = HopRecorder::new(Vec::new(), keep);
        let mut expected = Vec::new();
        // The observer's cut of a long frame, an IP packet, and a short frame that is whole.
        for (number, link_type, name) in [(8, 1, "eth0"), (9, 101, "tun0"), (8, 1, "unused")] {
            let cut = frame(50, number, &[3; SNAPLEN]);
            recorder.frame(&cut, || name.to_owned()).unwrap();
            let position = number - 8;
            expected.push(Item::Frame(50, position, CUT_BYTES, link_type, number == 8));
            let whole = PassingFrame { length: 70, ..frame(51, number, &[3; 70]) };
            recorder.frame(&whole, || unreachable!()).unwrap();
            expected.push(Item::Frame(51, position, 70, link_type, number == 8));
            for note in notes(52) {
                recorder.note(&note).unwrap();
                expected.push(Item::Note(note));
            }
        }
        let (bytes, part) = recorder.finish(60, 7).unwrap();
        assert_eq!(read(&bytes), expected);
        let expected = RecordedPart { bytes: bytes.len() as u64, length_ns: 10, is_short: false };
        assert_eq!(part, expected);
        let mut reader = CaptureReader::new(&bytes[..]).unwrap();
        while reader.next_packet().unwrap().is_some() {}
        assert_eq!(reader.dropped(), Some(7), "what the capture missed is in its statistics");
    }
}

#[test]
fn of_a_long_run_the_wanted_seconds_are_kept_or_as_many_as_have_room() {
    let (keep_s, pieces) = (4, 20);
    // Slower and faster than the memory.
    for step_ns in [SECOND_NS / 1000, SECOND_NS / 100_000] {
        let mut recorder = HopRecorder::new(Vec::new(), Some(Duration::from_secs(keep_s)));
        recorder.memory_bytes = pieces * PIECE_BYTES;
        let end_ns = 400_000 * step_ns;
        for number in 0..=400_000 {
            let at_ns = number * step_ns;
            recorder.frame(&frame(at_ns, 1, &[0; SNAPLEN]), || "eth0".to_owned()).unwrap();
            let held: usize = recorder.full.iter().map(|piece| piece.blocks.capacity()).sum();
            assert!(held + recorder.filling.blocks.capacity() <= recorder.memory_bytes);
        }
        let (bytes, part) = recorder.finish(end_ns, 0).unwrap();
        let items = read(&bytes);
        let times = items.iter().map(|item| match item {
            Item::Frame(at_ns, ..) => *at_ns,
            Item::Note(_) => panic!("there is none"),
        });
        let times: Vec<_> = times.collect();
        assert!(times.windows(2).all(|pair| pair[1] == pair[0] + step_ns), "no frame is missing");
        assert_eq!(times.last(), Some(&end_ns));
        let kept_s = part.length_ns as f64 / 1e9;
        if part.is_short {
            assert!(bytes.len() > (pieces - 2) * PIECE_BYTES, "the memory is used");
        } else {
            let most_s = keep_s as f64 * (1.0 + 2.0 / f64::from(PIECES));
            assert!((keep_s as f64..=most_s).contains(&kept_s), "{kept_s} s");
        }
        assert_eq!(part.is_short, step_ns < SECOND_NS / 1000);
    }
}

#[test]
fn a_recording_of_which_nothing_is_known_is_an_empty_file_that_can_be_read() {
    let (bytes, part) = HopRecorder::new(Vec::new(), None).finish(5, 0).unwrap();
    assert_eq!(read(&bytes), []);
    assert_eq!((part.bytes, part.length_ns), (bytes.len() as u64, 0));
}

#[test]
fn entries_of_others_are_no_notes_and_damaged_ones_are_errors() {
    for entry in ["", "MESSAGE=hello\n", "XMILLSTREAM_HOPS={}\n", "MILLSTREAM_HOPSX={}", "\0\0"] {
        assert!(HopNote::read(entry.as_bytes()).is_none(), "{entry}");
    }
    let [_, _, wait] = notes(9).map(|note| serde_json::to_string(&note).unwrap());
    let longer = wait.replace("\"tid\"", "\"more\":1,\"tid\"");
    let negative = wait.replace("\"tid\":2", "\"tid\":-2");
    let deep = "[".repeat(100_000);
    let cut = &wait[..wait.len() - 1];
    for json in ["", "{}", "null", "{\"reading\":{}}", cut, &longer, &negative, &deep, "\u{fffd}"] {
        let entry = format!("MESSAGE=x\nMILLSTREAM_HOPS={json}\n\0\0");
        assert!(HopNote::read(entry.as_bytes()).unwrap().is_err(), "{json}");
    }
}

/// Digits, names and lengths of a recording that is not ours may say anything.
#[test]
fn a_recording_of_an_attacker_is_an_error_or_an_account_and_never_a_panic() {
    let mut recorder = HopRecorder::new(Vec::new(), None);
    for step in 1..=40 {
        let at_ns = step * SECOND_NS / 10;
        recorder.frame(&frame(at_ns, 1, &[3; SNAPLEN]), || "eth0".to_owned()).unwrap();
        for note in notes(at_ns) {
            recorder.note(&note).unwrap();
        }
    }
    let (good, _) = recorder.finish(5 * SECOND_NS, 0).unwrap();
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut notes_read = 0;
    for _ in 0..1000 {
        let mut bytes = good.clone();
        for _ in 0..20 {
            let at = draw(bytes.len());
            // Most of the file is text: another digit keeps it readable.
            bytes[at] = match bytes[at] {
                b'0'..=b'9' => b"0123456789"[draw(10)],
                _ if draw(8) == 0 => draw(256) as u8,
                same => same,
            };
        }
        let Ok(mut reader) = CaptureReader::new(&bytes[..]) else { continue };
        let (mut account, mut judge) = (CaptureAccount::new(), Judge::new());
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                CaptureItem::Packet(packet) => account.take(&Captured {
                    at_ns: packet.at_ns,
                    interface: packet.interface,
                    is_outgoing: None,
                    link: LinkType::Ethernet,
                    bytes: packet.bytes,
                }),
                CaptureItem::JournalEntry(entry) => match HopNote::read(entry) {
                    Some(Ok(HopNote::Reading(reading))) => {
                        let at_ns = reading.at_ns;
                        judge.reading(reading);
                        judge.settle(&account, at_ns);
                        notes_read += 1;
                    }
                    Some(Ok(HopNote::Dropped(dropped))) => judge.dropped(dropped),
                    Some(Ok(HopNote::Waited(wait))) => judge.wait(wait),
                    _ => {}
                },
            }
        }
        judge.finish(&account);
    }
    assert!(notes_read > 10_000, "{notes_read} notes could be read");
}
