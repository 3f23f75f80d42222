//! Fuzzes the reader of captures, through the link that replays them: for any file, each poll
//! returns, the played frames fit, and their number is limited by the file's size.
#![no_main]

use std::io::{Seek, Write};
use std::sync::{Mutex, OnceLock};

use millstream_link::frame::FrameOptions;
use millstream_link::open_frames;

/// The bytes of the shortest block of a packet: head, original length, length again.
const PACKET_BYTES_MIN: usize = 16;

/// How often each file is played.
const TURNS: usize = 2;

/// Returns the file in memory to which every input is written; it ends with the process.
fn file() -> &'static Mutex<std::fs::File> {
    static FILE: OnceLock<Mutex<std::fs::File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = format!("/dev/shm/millstream-fuzz-replay-{}", std::process::id());
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path);
        std::fs::remove_file(&path).expect("it was made");
        Mutex::new(file.expect("there is memory"))
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    use std::os::fd::AsRawFd;
    let mut file = file().lock().expect("one thread");
    file.set_len(0).expect("it is writable");
    file.rewind().expect("it is a file");
    file.write_all(bytes).expect("there is memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let sizes = FrameOptions { receive_frames: 64, transmit_frames: 1 };
    let text = format!("replay:{path},speed=max,mtu=1500,loop={TURNS}");
    let Ok(mut link) = open_frames(&text, &sizes) else { return };
    let (mut frames, mut played) = (Vec::new(), 0);
    // Frames that do not fit are skipped, a batch each time.
    for _ in 0..=TURNS * bytes.len() / PACKET_BYTES_MIN / 64 + 2 {
        let Ok(count) = link.receive(&mut frames) else { break };
        played += count;
        assert!(frames.iter().all(|frame| frame.len() <= 1518));
        link.give_back(&mut frames);
        assert_eq!(link.census().lent, 0);
    }
    assert!(played <= TURNS * bytes.len() / PACKET_BYTES_MIN);
    assert_eq!(link.receive(&mut frames).unwrap_or(0), 0, "the end is the end");
    // The order and the distance of the file's times do not matter.
    let Ok(mut link) = open_frames(&format!("replay:{path},speed=0.5"), &sizes) else { return };
    let _ = link.receive(&mut frames);
    link.give_back(&mut frames);
});
