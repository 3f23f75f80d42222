//! `millstream inspect` of captures: whatever file and link they are of, and recordings of
//! `millstream watch`, of which it makes the same account.

use crate::common::{Outcome, Radio, millstream};
use millstream_hops::{HopNote, HopRecorder};
use millstream_link::packet::PassingFrame;
use millstream_link::pcapng;
use millstream_watch::{HopReading, SocketReading};
use millstream_wire::chdr::{DataRepr, Width};
use millstream_wire::stream::StatusRepr;
use millstream_wire::{Epid, ipv4, udp};
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

const RADIO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 49153);
const HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40001);
const TICKS: u64 = 4;
const STEP_NS: u64 = 1_000_000;
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

/// The UDP datagram of a payload.
fn datagram(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (udp::HEADER_LEN + payload.len()) as u16;
    let head = [source, destination, length, 0].map(u16::to_be_bytes).concat();
    [&head, payload].concat()
}

/// The IP packet with a part of a datagram, `offset` bytes from its beginning.
fn ip(
    source: SocketAddrV4,
    destination: SocketAddrV4,
    part: &[u8],
    offset: usize,
    more: bool,
) -> Vec<u8> {
    let mut bytes = vec![0; ipv4::HEADER_LEN];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&((ipv4::HEADER_LEN + part.len()) as u16).to_be_bytes());
    let fragment = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes[8..10].copy_from_slice(&[64, ipv4::protocol::UDP]);
    bytes[12..16].copy_from_slice(&source.ip().octets());
    bytes[16..20].copy_from_slice(&destination.ip().octets());
    bytes.extend(part);
    bytes
}

fn whole(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    ip(source, destination, &datagram(source.port(), destination.port(), payload), 0, false)
}

/// The CHDR packet of this number, with this number of samples.
fn data(number: u16, samples: u64) -> Vec<u8> {
    let repr = DataRepr {
        dst_epid: Epid(3),
        seq: number,
        timestamp: Some(u64::from(number) * samples * TICKS),
        payload_len: samples as usize * 4,
        ..DataRepr::default()
    };
    let mut bytes = vec![0; repr.packet_len(Width::W64)];
    repr.emit(Width::W64, &mut bytes).unwrap();
    bytes
}

/// A receiver's report, which shows the width of the radio's packets.
fn report(host: SocketAddrV4) -> Vec<u8> {
    let mut bytes = vec![0; StatusRepr::packet_len(Width::W64)];
    let repr = StatusRepr { dst_epid: Epid(2), src_epid: Epid(3), ..StatusRepr::default() };
    repr.emit(Width::W64, &mut bytes).unwrap();
    whole(host, RADIO, &bytes)
}

/// A report and 40 packets, of which three are lost, as IP packets.
fn stream() -> Vec<Vec<u8>> {
    let sent = (0..40).filter(|number| !(20..23).contains(number));
    let packets = sent.map(|number| whole(RADIO, HOST, &data(number, 364)));
    std::iter::once(report(HOST)).chain(packets).collect()
}

/// An IP packet as the link of this `LINKTYPE_` has it; 0 stands for Ethernet with a VLAN tag.
fn framed(link: u16, packet: &[u8]) -> Vec<u8> {
    let head = match link {
        0 => [&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat(),
        1 => [&[2; 12][..], &[8, 0]].concat(),
        101 => Vec::new(),
        113 => [&[0; 14][..], &[8, 0]].concat(),
        _ => [&[8, 0][..], &[0; 18]].concat(),
    };
    [&head, packet].concat()
}

/// What a capture is written as.
#[derive(Debug, Clone, Copy)]
enum File {
    Pcapng,
    /// Units of a second, and whether the other byte order than this machine's is used.
    Pcap(u64, bool),
}

impl File {
    /// A file of frames, a millisecond each, cut off behind `cut` bytes.
    fn of(self, link: u16, frames: &[Vec<u8>], cut: usize) -> Vec<u8> {
        let word = |word: u32| match self {
            Self::Pcap(_, true) => word.swap_bytes().to_ne_bytes(),
            _ => word.to_ne_bytes(),
        };
        let link = link.max(1);
        let mut file = match self {
            Self::Pcapng => [pcapng::section(), pcapng::interface("eth0", link)].concat(),
            Self::Pcap(units, swapped) => {
                let magic = if units == 1_000_000 { 0xa1b2_c3d4 } else { 0xa1b2_3c4d };
                let two = |one: u16, other: u16| {
                    let halves = [one, other];
                    if swapped { halves.map(u16::swap_bytes) } else { halves }
                };
                let version = two(2, 4).map(u16::to_ne_bytes).concat();
                let rest = [0, 0, 65_535, u32::from(link)].map(word).concat();
                [&word(magic)[..], &version, &rest].concat()
            }
        };
        for (number, frame) in frames.iter().enumerate() {
            let at_ns = BEGIN_NS + number as u64 * STEP_NS;
            let bytes = &frame[..frame.len().min(cut)];
            match self {
                Self::Pcapng => {
                    let direction = pcapng::FrameDirection::In;
                    let (interface, whole_bytes) = (0, frame.len());
                    let of = pcapng::FrameStamp { interface, at_ns, direction, whole_bytes };
                    let mut block = vec![0; pcapng::packet_bytes(bytes.len())];
                    pcapng::packet(&mut block, of, bytes.len(), std::iter::once(bytes));
                    file.extend(block);
                }
                Self::Pcap(units, _) => {
                    let part = at_ns % 1_000_000_000 / (1_000_000_000 / units);
                    let seconds = (at_ns / 1_000_000_000) as u32;
                    let words = [seconds, part as u32, bytes.len() as u32, frame.len() as u32];
                    file.extend(words.map(word).concat());
                    file.extend(bytes);
                }
            }
        }
        file
    }
}

/// Inspects a file with this content.
fn inspected(content: &[u8]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.cap"), content).unwrap();
    let mut document = millstream(folder.path(), &["inspect", "x.cap", "--json"]).succeeds().json();
    document["results"].take()
}

#[test]
fn a_loss_is_found_whatever_the_file_and_the_link_are() {
    let files = [1_000_000, 1_000_000_000]
        .into_iter()
        .flat_map(|units| [false, true].map(|swapped| File::Pcap(units, swapped)));
    for file in files.chain([File::Pcapng]) {
        for link in [0, 1, 101, 113, 276] {
            let frames: Vec<_> = stream().iter().map(|packet| framed(link, packet)).collect();
            let found = inspected(&file.of(link, &frames, 256));
            let about = format!("{file:?}, link {link}: {found}");
            assert_eq!(found["frames"], 38, "{about}");
            let flow = &found["flows"][0];
            let counts = ["packets", "lost_before", "samples_not_sent", "from_radio"];
            assert_eq!(
                counts.map(|name| flow[name].clone()),
                [json!(37), json!(3), json!(0), json!(true)]
            );
            let gap = &found["gaps"][0];
            assert_eq!((&gap["place"], &gap["samples"]), (&json!("before"), &json!(3 * 364)));
            // The 21st packet, behind the report.
            assert!((gap["at_s"].as_f64().unwrap() - 0.021).abs() < 1e-9, "{about}");
            assert_eq!((&found["losses"], &found["damage"]), (&Value::Null, &Value::Null));
        }
    }
}

/// `tcpdump -i any` sees a packet on a VLAN device, and again below it.
#[test]
fn a_packet_that_passes_two_interfaces_is_one() {
    let twice = stream().into_iter().flat_map(|packet| {
        [3, 4].map(|interface| {
            let mut frame = framed(276, &packet);
            frame[7] = interface;
            frame
        })
    });
    let found = inspected(&File::Pcapng.of(276, &twice.collect::<Vec<_>>(), 256));
    let flow = &found["flows"][0];
    let counts = ["packets", "duplicates", "lost_before"].map(|name| flow[name].clone());
    assert_eq!(counts, [37, 0, 3].map(|count| json!(count)), "{found}");
    assert_eq!(found["elsewhere"], 38);
}

#[test]
fn a_capture_that_ends_in_the_middle_counts_until_there() {
    let frames: Vec<_> = stream().iter().map(|packet| framed(1, packet)).collect();
    for file in [File::Pcapng, File::Pcap(1_000_000, false)] {
        let content = file.of(1, &frames, 256);
        let found = inspected(&content[..content.len() - 5]);
        assert_eq!(found["flows"][0]["packets"], 36, "{file:?}: {found}");
        assert_eq!(found["flows"][0]["lost_before"], 3);
        assert!(found["damage"].as_str().unwrap().contains("ends in the middle"), "{found}");
    }
}

#[test]
fn two_hundred_flows_are_told_apart() {
    let host = |flow: u16| SocketAddrV4::new(*HOST.ip(), 40_000 + flow);
    let mut frames: Vec<_> = (0..200).map(|flow| framed(1, &report(host(flow)))).collect();
    for number in 0..20 {
        // Each flow loses another packet.
        let lost = |flow: u16| number == 5 + flow % 10;
        let packets = (0..200)
            .filter(|flow| !lost(*flow))
            .map(|flow| framed(1, &whole(RADIO, host(flow), &data(number, 364))));
        frames.extend(packets);
    }
    let found = inspected(&File::Pcapng.of(1, &frames, 256));
    let flows = found["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 200);
    assert!(flows.iter().all(|flow| flow["lost_before"] == 1 && flow["packets"] == 19), "{found}");
}

#[test]
fn fragments_trains_and_jumbo_frames_count_as_their_packets() {
    // Jumbo datagrams, whole or in fragments of 1480 bytes; the last one of a fragment is shorter.
    let (samples, mut frames) = (1996, vec![framed(1, &report(HOST))]);
    for number in (0..40).filter(|number| !(20..23).contains(number)) {
        let datagram = datagram(RADIO.port(), HOST.port(), &data(number, samples));
        if number % 2 == 0 {
            frames.push(framed(1, &ip(RADIO, HOST, &datagram, 0, false)));
            continue;
        }
        let parts = datagram.chunks(1480).enumerate();
        frames.extend(parts.map(|(part, bytes)| {
            let more = (part + 1) * 1480 < datagram.len();
            framed(1, &ip(RADIO, HOST, bytes, part * 1480, more))
        }));
    }
    let found = inspected(&File::Pcapng.of(1, &frames, 256));
    let flow = &found["flows"][0];
    assert_eq!((&flow["packets"], &flow["lost_before"]), (&json!(37), &json!(3)), "{found}");
    assert_eq!((&flow["samples_not_sent"], &found["short_frames"]), (&json!(0), &json!(0)));
    let later = 8000_usize.div_ceil(1480) - 1;
    assert_eq!(found["fragments"], json!(later * 19), "{found}");

    // A train is one frame with several datagrams' data, of which only the first header is there.
    let mut frames: Vec<_> = stream()[..11].iter().map(|packet| framed(1, packet)).collect();
    for first in [10, 14, 21, 25] {
        let train: Vec<u8> = (first..first + 4).flat_map(|number| data(number, 364)).collect();
        frames.push(framed(1, &whole(RADIO, HOST, &train)));
    }
    let found = inspected(&File::Pcapng.of(1, &frames, 256));
    let flow = &found["flows"][0];
    assert_eq!((&flow["packets"], &flow["lost_before"]), (&json!(26), &json!(3)), "{found}");
}

/// The readings of a host whose socket had no room for packets, 20 ms each.
fn reading(at_ns: u64, dropped: u64) -> HopNote {
    let socket = SocketReading {
        local: HOST,
        remote: Some(RADIO),
        inode: 77,
        pid: Some(4711),
        queued_bytes: 212_000,
        buffer_bytes: 212_992,
        send_queued_bytes: 0,
        dropped,
    };
    HopNote::Reading(HopReading { at_ns, sockets: vec![socket], ..HopReading::default() })
}

/// A recording of a second, in which a socket drops 12 packets.
fn recording() -> Vec<u8> {
    let mut recorder = HopRecorder::new(Vec::new(), Some(Duration::from_secs(60)));
    let frame = |recorder: &mut HopRecorder<Vec<u8>>, at_ns, packet: &[u8]| {
        let frame = framed(1, packet);
        let passing = PassingFrame {
            interface: 2,
            at_ns,
            is_outgoing: false,
            is_ethernet: true,
            length: frame.len() as u32,
            bytes: &frame[..frame.len().min(186)],
        };
        recorder.frame(&passing, || "eth0".to_owned()).unwrap();
    };
    frame(&mut recorder, BEGIN_NS, &report(HOST));
    for number in 0..1000_u16 {
        let at_ns = BEGIN_NS + u64::from(number) * STEP_NS;
        frame(&mut recorder, at_ns, &whole(RADIO, HOST, &data(number, 364)));
        if number % 20 == 0 {
            recorder.note(&reading(at_ns, if number >= 500 { 12 } else { 0 })).unwrap();
        }
    }
    recorder.finish(BEGIN_NS + 1000 * STEP_NS, 0).unwrap().0
}

#[test]
fn a_recording_with_readings_says_at_which_hop_samples_were_lost() {
    let found = inspected(&recording());
    assert_eq!((&found["readings"], &found["unreadable_notes"]), (&json!(50), &json!(0)));
    assert_eq!(found["flows"][0]["packets"], 1000);
    let losses = found["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 1, "{found}");
    assert_eq!((&losses[0]["hop"], &losses[0]["packets"]), (&json!("socket"), &json!(12)));
    // Notes of another version are counted, and the rest is read.
    let other = String::from_utf8_lossy(&recording()).len();
    let mut damaged = recording();
    let at = damaged.windows(10).position(|bytes| bytes == b"{\"reading\"").unwrap();
    damaged[at + 2] = b'R';
    assert!(other > at);
    let found = inspected(&damaged);
    assert_eq!((&found["readings"], &found["unreadable_notes"]), (&json!(49), &json!(1)));
}

/// Wireshark's own reader takes the file, and shows the readings between the packets.
#[test]
fn a_recording_is_read_by_tshark_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.pcapng");
    fs::write(&file, recording()).unwrap();
    let shown = std::process::Command::new("tshark").arg("-r").arg(&file).output();
    let Ok(shown) = shown else {
        eprintln!("skipped: there is no tshark");
        return;
    };
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.lines().filter(|line| line.contains("hops: ")).count(), 50, "{shown}");
    assert_eq!(shown.lines().count(), 1051);
}

#[test]
fn inspect_makes_the_account_of_a_recording_that_watch_made_live() {
    let lose = ["--fault", "lose to_host data skip=300 count=7", "--rx-antenna", "ramp"];
    let radio = Radio::start(Path::new("/"), &lose);
    let folder = tempfile::tempdir().unwrap();
    let (port, args) = (radio.chdr_port.to_string(), radio.args());
    let program = env!("CARGO_BIN_EXE_millstream");
    // A small queue, so that a busy machine loses packets there, too.
    let args = format!("{args},recv_queue_bytes=100000");
    let rx = ["rx", "--args", &args, "--rate", "4e6", "--nsamps", "4000000", "--out", "x.sc16"];
    for keep in ["60s", "all"] {
        let watch =
            ["watch", "--json", "--port", &port, "--record", "x.pcapng", "--record-last", keep];
        let watch = [&watch[..], &["--force", "--", program], &rx, &["--force"]].concat();
        let live = millstream(folder.path(), &watch);
        if is_not_allowed(&live) {
            return;
        }
        let live = &live.json()["results"];
        assert!(live["recording"]["bytes"].as_u64().unwrap() > 100_000, "{live}");
        let inspect = ["inspect", "x.pcapng", "--json"];
        let later = millstream(folder.path(), &inspect).succeeds().json();
        let later = &later["results"];
        for part in ["frames", "flows", "gaps", "messages", "losses", "missed_by_capture"] {
            assert_eq!(live[part], later[part], "{part} of {live}");
        }
        let flows = live["flows"].as_array().unwrap();
        let lost = flows.iter().map(|flow| flow["lost_before"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(lost, if keep == "60s" { 7 } else { 0 }, "the fault strikes once: {live}");
    }
    radio.stop();
}

/// Whether a command may not watch; says so.
fn is_not_allowed(outcome: &Outcome) -> bool {
    let is_so = outcome.stderr.contains("CAP_NET_RAW");
    if is_so {
        eprintln!("skipped: {}", outcome.stderr);
    }
    is_so
}
