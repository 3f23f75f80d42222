//! Captures of links and ports: tshark reads them, and `replay` plays them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::{Duration, Instant};

use millstream_link::frame::{FrameLink, FrameOptions};
use millstream_link::port::PortOptions;
use millstream_link::{open, open_frames};
use millstream_testkit::allocations;

/// A file of this test, deleted when this is dropped.
struct Temporary(std::path::PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ms-{}-{name}.pcapng", std::process::id())))
    }

    fn text(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn frames(text: &str) -> Box<dyn FrameLink> {
    open_frames(text, &FrameOptions::default()).unwrap()
}

/// Sends a frame with its number.
fn send(link: &mut dyn FrameLink, number: u32, bytes: usize) {
    let mut frames = Vec::new();
    assert_eq!(link.reserve(&mut frames, 1), 1);
    frames[0].set_len(bytes);
    let memory = std::sync::Arc::clone(link.memory());
    memory.bytes_mut(&mut frames[0])[14..18].copy_from_slice(&number.to_le_bytes());
    assert_eq!(link.transmit(&mut frames).unwrap(), 1);
}

/// Returns tshark's output for fields of a capture: a line for each packet, empty where the field
/// is absent.
fn tshark(file: &Temporary, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", &file.text(), "-T", "fields", "-E", "separator=,"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(done) = command.output() else {
        eprintln!("skipped: there is no tshark here");
        return None;
    };
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !errors.contains("appears"), "{errors}");
    Some(String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn a_capture_of_frames_has_both_directions_and_plays_again() {
    let file = Temporary::new("frames");
    let mut link = frames(&format!("loop:mtu=1500,part_bytes=512,capture={}", file.text()));
    let mut got = Vec::new();
    for number in 0..50 {
        send(&mut *link, number, 60 + number as usize * 7);
        link.receive(&mut got).unwrap();
        link.give_back(&mut got);
    }
    drop(link);
    if let Some(lines) = tshark(&file, &["frame.len", "frame.packet_flags_direction"]) {
        let wanted = (0..50).flat_map(|n| [1, 2].map(|way| (60 + n * 7, way)));
        let wanted: Vec<_> = wanted.map(|(len, way)| format!("{len},0x{:08x}", 3 - way)).collect();
        assert_eq!(lines, wanted, "transmitted, then received");
    }
    let mut replay = frames(&format!("replay:{},speed=max,loop=3", file.text()));
    let mut numbers = Vec::new();
    loop {
        let count = replay.receive(&mut got).unwrap();
        for frame in &got {
            let bytes = replay.memory().bytes(frame);
            numbers.push(u32::from_le_bytes(bytes[14..18].try_into().unwrap()));
            assert_eq!(bytes.len(), 60 + *numbers.last().unwrap() as usize * 7);
        }
        replay.give_back(&mut got);
        if count == 0 {
            break;
        }
    }
    let once: Vec<_> = (0..50).flat_map(|number| [number, number]).collect();
    assert_eq!(numbers, [&once[..]; 3].concat());
    assert_eq!(replay.receive(&mut got).unwrap(), 0, "the end is the end");
}

#[test]
fn a_capture_without_a_frame_that_fits_is_played_once_and_never_hangs() {
    let file = Temporary::new("unfit");
    let mut link = frames(&format!("loop:mtu=9000,capture={}", file.text()));
    (0..500).for_each(|number| send(&mut *link, number, 5000));
    drop(link);
    let mut replay = frames(&format!("replay:{},speed=max,loop=0,mtu=1500", file.text()));
    let mut got = Vec::new();
    // Repeated for ever, a batch each time: a poll returns all the same.
    for _ in 0..100 {
        assert_eq!(replay.receive(&mut got).unwrap(), 0);
    }
    assert_eq!(replay.counters().rx_dropped, 500);
}

#[test]
fn a_damaged_capture_plays_up_to_the_damage_and_says_so_once() {
    let file = Temporary::new("damaged");
    let mut link = frames(&format!("loop:capture={}", file.text()));
    (0..5).for_each(|number| send(&mut *link, number, 60));
    drop(link);
    let mut bytes = std::fs::read(&file.0).unwrap();
    let third = bytes.windows(4).position(|at| at == 6u32.to_ne_bytes()).unwrap() + 2 * 104;
    bytes[third + 4..third + 8].copy_from_slice(&7u32.to_ne_bytes());
    std::fs::write(&file.0, bytes).unwrap();
    let mut replay = frames(&format!("replay:{},speed=max,loop=0", file.text()));
    let mut got = Vec::new();
    assert_eq!(replay.receive(&mut got).unwrap(), 2);
    replay.give_back(&mut got);
    let error = replay.receive(&mut got).unwrap_err().to_string();
    assert_eq!(error, "the capture file is damaged: the length of a block is impossible");
    assert_eq!((replay.receive(&mut got).unwrap(), got.len()), (0, 0), "nothing follows");
}

#[test]
fn a_replay_keeps_the_times_of_its_capture() {
    let file = Temporary::new("times");
    let mut link = frames(&format!("loop:capture={}", file.text()));
    for number in 0..3 {
        send(&mut *link, number, 60);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(link);
    let mut replay = frames(&format!("replay:{},speed=0.5", file.text()));
    let (started, mut got) = (Instant::now(), Vec::new());
    while got.len() < 3 {
        replay.receive(&mut got).unwrap();
        assert!(started.elapsed() < Duration::from_secs(10));
    }
    assert!(started.elapsed() >= Duration::from_millis(80), "twice 40 ms");
    replay.give_back(&mut got);
}

#[test]
fn a_capture_of_a_port_has_headers_and_right_checksums() {
    let file = Temporary::new("port");
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = PortOptions::default();
    let mut a = open(&format!("udp:capture={}", file.text()), local, &options).unwrap();
    let mut b = open("udp", local, &options).unwrap();
    a.tx.send(b"hello", b.local).unwrap();
    a.tx.send_train(&[7; 2500], 1000, b.local).unwrap();
    b.tx.send(&[9; 100], a.local).unwrap();
    assert_eq!(a.rx.recv_batch(Duration::from_secs(5)).unwrap(), 1);
    let ports = (a.local.port(), b.local.port());
    drop(a);
    let fields =
        ["udp.srcport", "udp.dstport", "udp.length", "ip.checksum.status", "_ws.malformed"];
    if let Some(lines) = tshark(&file, &fields) {
        let line = |from, to, bytes| format!("{from},{to},{},", bytes + 8);
        let wanted = [5, 1000, 1000, 500].map(|bytes| line(ports.0, ports.1, bytes));
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(lines.iter().zip(&wanted).all(|(got, start)| got.starts_with(start)), "{lines:?}");
        assert!(lines[4].starts_with(&line(ports.1, ports.0, 100)), "{lines:?}");
        assert!(lines.iter().all(|line| line.ends_with(',')), "malformed: {lines:?}");
    }
}

#[test]
fn links_share_a_file_go_on_in_it_and_never_replace_another() {
    let file = Temporary::new("shared");
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let text = format!("udp:capture={}", file.text());
    let open = || open(&text, local, &PortOptions::default());
    // The ports of a radio, and then those of its next session.
    for _ in 0..2 {
        let (mut a, mut b) = (open().unwrap(), open().unwrap());
        for _ in 0..50 {
            a.tx.send(&[1; 700], b.local).unwrap();
            b.tx.send(&[2; 900], a.local).unwrap();
        }
    }
    if let Some(lines) = tshark(&file, &["udp.length"]) {
        let count = |length: &str| lines.iter().filter(|line| *line == length).count();
        assert_eq!((lines.len(), count("708"), count("908")), (200, 100, 100), "{lines:?}");
    }
    let mut replay = frames(&format!("replay:{},speed=max", file.text()));
    let (mut got, mut played) = (Vec::new(), 0);
    while let Ok(frames @ 1..) = replay.receive(&mut got) {
        played += frames;
        replay.give_back(&mut got);
    }
    assert_eq!(played, 200);
    // Of another program: the same bytes under another name.
    let other = Temporary::new("older");
    std::fs::copy(&file.0, &other.0).unwrap();
    let before = std::fs::read(&other.0).unwrap();
    let error = open_frames(&format!("null:capture={}", other.text()), &FrameOptions::default());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("it exists: remove it, or give another name"), "{error}");
    assert_eq!(std::fs::read(&other.0).unwrap(), before);
}

#[test]
fn a_disk_that_is_too_slow_costs_counted_packets_and_nothing_else() {
    let file = Temporary::new("slow");
    let text = format!("null:bytes=9014,capture={}", file.text());
    let mut link = frames(&text);
    let (mut got, mut seen) = (Vec::new(), 0u64);
    // Far more at once than the buffer holds: the writer polls it every few milliseconds.
    while seen < 40_000 {
        seen += link.receive(&mut got).unwrap() as u64;
        link.give_back(&mut got);
    }
    drop(link);
    let Ok(info) = Command::new("capinfos").args(["-M", "-c", &file.text()]).output() else {
        return eprintln!("skipped: there is no capinfos here");
    };
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    let packets = info.lines().find_map(|line| line.strip_prefix("Number of packets:"));
    let captured: u64 = packets.unwrap().trim().parse().unwrap();
    let bytes = std::fs::read(&file.0).unwrap();
    // The last option of the last block: `isb_osdrop`, before the end of options and the length.
    let at = bytes.len() - 4 - 4 - 8;
    assert_eq!(bytes[at - 4..at - 2], 7u16.to_ne_bytes());
    let uncaptured = u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    println!("{captured} captured, {uncaptured} counted as missing of {seen}");
    assert_eq!(captured + uncaptured, seen);
}

/// `/dev/full` takes the file and refuses every byte that is flushed to it (full(4)).
#[test]
fn a_full_disk_is_an_error_at_once_or_a_count_and_a_sentence() {
    let open = || open_frames("null:capture=/dev/full", &FrameOptions::default());
    let error = open().err().unwrap().to_string();
    assert!(error.contains("\"capture=/dev/full\": cannot be written: No space left"), "{error}");
    // A later failure: the file may have only a few bytes.
    let file = Temporary::new("full");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "capture::child_whose_disk_is_full"])
        .env(FULL, file.text())
        .output()
        .unwrap();
    let [out, err] = [child.stdout, child.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(child.status.success(), "{out}{err}");
    // The file ends with a whole block, so that every program can read it.
    let bytes = std::fs::read(file.text()).unwrap();
    let mut rest = &bytes[..];
    while let Some(length) = rest.get(4..8) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        assert!(length <= rest.len(), "{} bytes of a block of {length}", rest.len());
        rest = &rest[length..];
    }
    assert!(rest.is_empty() && !bytes.is_empty(), "{} bytes", rest.len());
    let line = format!("the capture {} is not complete: 320 packets are missing", file.text());
    assert!(
        err.contains(&line) && err.contains("Free some space, or capture to another disk"),
        "{err}"
    );
}

const FULL: &str = "MILLSTREAM_FULL_DISK";

#[test]
#[ignore = "a child of the test above: it limits the files of its process"]
fn child_whose_disk_is_full() {
    let Ok(path) = std::env::var(FULL) else { return };
    let mut link = frames(&format!("null:bytes=5000,capture={path}"));
    let limit = rustix::process::Rlimit { current: Some(4096), maximum: Some(4096) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    // SAFETY: it ignores the signal of a file that is too long, so that writing fails with EFBIG.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let (mut got, mut seen) = (Vec::new(), 0);
    let until = Instant::now() + Duration::from_secs(10);
    while seen < 320 {
        seen += link.receive(&mut got).unwrap();
        link.give_back(&mut got);
    }
    while link.explain().is_none() || link.counters().uncaptured < 320 {
        assert!(Instant::now() < until, "{:?}", link.counters());
        std::thread::sleep(Duration::from_millis(1));
    }
    let counters = link.counters();
    assert_eq!(counters.rx_frames, counters.uncaptured, "{counters:?}");
}

#[test]
fn capturing_allocates_nothing() {
    let file = Temporary::new("steady");
    let mut link = frames(&format!("loop:capture={}", file.text()));
    let mut got = Vec::with_capacity(64);
    let mut turn = |link: &mut dyn FrameLink| {
        link.reserve(&mut got, 30);
        got.iter_mut().for_each(|frame| frame.set_len(100));
        link.transmit(&mut got).unwrap();
        link.receive(&mut got).unwrap();
        link.give_back(&mut got);
    };
    turn(&mut *link);
    let before = allocations();
    (0..100).for_each(|_| turn(&mut *link));
    assert_eq!(allocations(), before);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let error = open_frames("null:capture=/nonesuch/x.pcapng", &FrameOptions::default());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("\"capture=/nonesuch/x.pcapng\": cannot be written: No such file"));
}
