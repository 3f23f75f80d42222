//! The header, the library and the example, as a program in C has them.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};

use millstream_c::*;

const HEADER: &str = include_str!("../millstream.h");
const LONG_NS: i64 = 20_000_000_000;

/// Returns the shared library of this build.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let places = [deps.join("libmillstream_c.so"), deps.join("../libmillstream_c.so")];
    let there = places.into_iter().filter(|place| place.exists());
    there.max_by_key(|place| place.metadata().unwrap().modified().unwrap()).expect("it is built")
}

/// Compiles a program and returns it, with a folder that keeps it.
fn compile(source: &Path, flags: &str, folder: &Path) -> PathBuf {
    let (program, named) = (folder.join("program"), folder.join("libmillstream_c.so.1"));
    std::fs::copy(library(), &named).unwrap();
    let strict = "-std=c99 -pedantic -Wall -Wextra -Werror -g -I";
    let done = Command::new("cc")
        .args(strict.split(' '))
        .arg(env!("CARGO_MANIFEST_DIR"))
        .args(flags.split_whitespace())
        .args([source, &named])
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// Returns the names of functions that lie between `begin` and an opening parenthesis.
fn names(text: &str, begin: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.split_once(begin));
    let heads = lines.filter_map(|(_, rest)| rest.split_once('('));
    heads.map(|(name, _)| format!("millstream_{name}")).collect()
}

/// What cannot be found by a test of one function: that the header says what the library has.
#[test]
fn the_header_is_that_of_the_library() {
    let declared: String = HEADER
        .lines()
        .filter(|line| line.starts_with("int") || line.starts_with("const char"))
        .map(|line| format!("{line}\n"))
        .collect();
    let declared = names(&declared, "millstream_");
    let sources = [
        include_str!("../src/guard.rs"),
        include_str!("../src/settings.rs"),
        include_str!("../src/stream.rs"),
        include_str!("../src/things.rs"),
    ];
    assert_eq!(declared, names(&sources.concat(), "extern \"C\" fn millstream_"));
    assert!(declared.len() <= 12, "{declared:?}");
    let sizes = [
        ("sizeof(millstream_time)", size_of::<CTime>()),
        ("offsetof(millstream_time, rate_hz)", offset_of!(CTime, rate_hz)),
        ("sizeof(millstream_received)", size_of::<CReceived>()),
        ("offsetof(millstream_received, missing)", offset_of!(CReceived, missing)),
        ("offsetof(millstream_received, cause)", offset_of!(CReceived, cause)),
        ("offsetof(millstream_received, end)", offset_of!(CReceived, end)),
        ("sizeof(millstream_event)", size_of::<CEvent>()),
        ("offsetof(millstream_event, samples)", offset_of!(CEvent, samples)),
        ("offsetof(millstream_event, kind)", offset_of!(CEvent, kind)),
        ("offsetof(millstream_event, channel)", offset_of!(CEvent, channel)),
    ];
    let mut source = "#include \"millstream.h\"\ntypedef void (*any)(void);\n".to_owned();
    source += "int main(void) {\n    any all[12];\n    int place = 0;\n";
    for name in &declared {
        source += &format!("    all[place++] = (any){name};\n");
    }
    for (of, size) in sizes {
        source += &format!("    if ({of} != {size}) return {};\n", size + 1);
    }
    source += "    return all[place - 1] == 0;\n}\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sizes.c");
    std::fs::write(&file, source).unwrap();
    let program = compile(&file, "", folder.path());
    assert!(Command::new(program).status().unwrap().success());
}

/// Runs the example, and returns what it printed.
fn example(flags: &str, args: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("example.c");
    let program = compile(&source, flags, folder.path());
    let done = Command::new(program).arg(args).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[test]
fn the_example_counts_every_gap_and_its_burst_leaves_whole() {
    let sent = tempfile::NamedTempFile::new().unwrap();
    let args = format!(
        "radio=emulated,rx_buffer_samples=67108864,antenna=ramp,tx_out={},\
         fault=lose to_host data skip=20 every=50 count=5",
        sent.path().display()
    );
    let text = example("-O1 -fsanitize=address,undefined -fno-sanitize-recover=all", &args);
    let gaps: Vec<u64> = text
        .lines()
        .filter_map(|line| line.split_once(" samples are missing (sequence) before "))
        .map(|(samples, _)| samples.parse().unwrap())
        .collect();
    assert_eq!(gaps.len(), 5, "{text}");
    let (lost, got) = (gaps.iter().sum::<u64>(), 1_000_000 - gaps.iter().sum::<u64>());
    let ledger = format!("{got} samples, 5 gaps with {lost} samples, {lost} by the ledger");
    assert!(text.contains(&ledger), "{ledger}\n{text}");
    assert!(text.contains("a burst of 5000 samples has left"), "{text}");
    let burst = (0..5000_i16).flat_map(|n| [n + 1, -n]).flat_map(i16::to_le_bytes);
    let burst: Vec<u8> = burst.collect();
    let sent = std::fs::read(sent.path()).unwrap();
    assert!(sent.windows(burst.len()).step_by(4).any(|window| window == burst));
}

fn opened(text: &str) -> u64 {
    let (text, mut radio) = (CString::new(text).unwrap(), 0);
    // SAFETY: a text and a place for the number.
    assert_eq!(unsafe { millstream_open(text.as_ptr(), &mut radio) }, 0, "{}", error());
    // SAFETY: two texts. At this rate no busy machine loses samples.
    let set = unsafe { millstream_set(radio, 0, 0, c"rate".as_ptr(), c"1e6".as_ptr()) };
    assert_eq!(set, 0, "{}", error());
    radio
}

fn started(radio: u64, channels: &[u32]) -> u64 {
    let (mut stream, count) = (0, channels.len() as u32);
    // SAFETY: the channels, no options, no time, a place for the number.
    unsafe {
        let open = millstream_stream(radio, 0, 0, channels.as_ptr(), count, null(), &mut stream);
        assert_eq!((open, millstream_start(stream, null(), 0)), (0, 0), "{}", error());
    }
    stream
}

fn error() -> String {
    // SAFETY: it is a text of this thread.
    unsafe { CStr::from_ptr(millstream_error()) }.to_str().unwrap().to_owned()
}

fn get(radio: u64, key: &CStr) -> Result<String, String> {
    let mut text = [1; 64];
    // SAFETY: a text, and room for one.
    let length = unsafe { millstream_get(radio, 0, 0, key.as_ptr(), text.as_mut_ptr(), 64) };
    if length < 0 {
        return Err(error());
    }
    // SAFETY: it ends with 0.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    assert_eq!(text.count_bytes(), length as usize);
    Ok(text.to_str().unwrap().to_owned())
}

/// Checks the result of a call, and its reason.
fn refused(result: impl Into<i64>, expected: i64, reason: &str) {
    assert_eq!(result.into(), expected, "{reason}");
    assert!(error().contains(reason), "{reason} is missing in: {}", error());
}

/// Each call is refused with a reason, and nothing else happens.
#[test]
fn null_pointers_and_wrong_numbers_are_errors() {
    let radio = opened("radio=emulated");
    let stream = started(radio, &[0, 1]);
    let (mut got, mut time, mut event) = Default::default();
    let mut samples = [[0_i16; 2]; 8];
    let first = samples.as_mut_ptr();
    let odd = [first.wrapping_byte_add(1).cast(), null_mut()];
    let same = [first.cast(), first.wrapping_add(3).cast()];
    let (rate, gain, no, one) = (c"rate".as_ptr(), c"gain".as_ptr(), c"no".as_ptr(), c"1".as_ptr());
    let none = [null_mut(); 2];
    // SAFETY: what is no text, place or buffer is null, not aligned or overlaps, which the
    // functions promise to find.
    unsafe {
        refused(millstream_open(null(), &mut 0), -1, "args is a null pointer");
        refused(millstream_open(c"radio=emulated".as_ptr(), null_mut()), -1, "radio is a null");
        refused(millstream_open(c"adr=1.2.3.4".as_ptr(), &mut 0), -1, "one of addr, serial");
        refused(millstream_open(c"\xff".as_ptr(), &mut 0), -1, "not valid UTF-8");
        refused(millstream_close(0, 0), -4, "stands for nothing");
        refused(millstream_close(stream + (9 << 32), 0), -4, "open it again");
        refused(millstream_now(stream, &mut time), -1, "this is a receive stream");
        refused(millstream_now(radio, null_mut()), -1, "time is a null pointer");
        refused(millstream_set(radio, 0, 0, null(), null()), -1, "key is a null");
        refused(millstream_set(radio, 2, 0, gain, one), -1, "2 is no direction");
        refused(millstream_set(radio, 0, 9, gain, one), -1, "9");
        refused(millstream_set(radio, 0, 0, gain, no), -1, "gain=no cannot be used");
        refused(millstream_set(radio, 0, 0, no, one), -1, "no cannot be set: give frequency");
        refused(millstream_get(radio, 0, 0, no, null_mut(), 0), -1, "no sensor \"no\"");
        refused(millstream_get(radio, 0, 0, rate, null_mut(), 1), -1, "text is a null");
        refused(millstream_stream(radio, 0, 5, &0, 1, null(), &mut 0), -1, "no form of samples");
        refused(millstream_stream(radio, 0, 0, null(), 1, null(), &mut 0), -1, "channels is a");
        refused(millstream_stream(radio, 0, 0, &0, 0, null(), &mut 0), -1, "a stream of 0");
        refused(millstream_stream(radio, 0, 0, &0, 1, no, &mut 0), -1, "option no is not known");
        refused(millstream_start(radio, null(), 0), -1, "a stream is needed here");
        refused(millstream_start(stream, &time, 0), -1, "0 ticks a second");
        refused(millstream_stop(7), -4, "stands for nothing");
        refused(millstream_read(stream, null(), 8, 0, &mut got), -1, "buffers is a null");
        refused(millstream_read(stream, none.as_ptr(), 8, 0, &mut got), -1, "buffers[0] is a null");
        refused(millstream_read(stream, odd.as_ptr(), 7, 0, &mut got), -1, "that 2 divides");
        refused(millstream_read(stream, same.as_ptr(), 4, 0, &mut got), -1, "overlap");
        refused(millstream_read(stream, same.as_ptr(), usize::MAX, 0, &mut got), -1, "no buffer");
        refused(millstream_read(stream, same.as_ptr(), 3, 0, null_mut()), -1, "received is a null");
        refused(millstream_write(stream, null(), 0, null(), 0, 0), -1, "a transmit stream is");
        refused(millstream_next_event(radio, 0, &mut event), -1, "a stream is needed here");
        assert!(millstream_read(stream, same.as_ptr(), 3, LONG_NS, &mut got) > 0, "{}", error());
    }
    assert_eq!((got.missing, got.end, got.time.rate_hz), (0, 0, 16e6));
    assert_eq!(millstream_close(radio, LONG_NS), 1);
    // SAFETY: the stream is closed, and that is found before a buffer is used.
    unsafe { refused(millstream_read(stream, same.as_ptr(), 3, 0, &mut got), -4, "was closed") };
    assert_eq!(millstream_close(stream, LONG_NS), 1);
    refused(millstream_close(stream, LONG_NS), -4, "stands for nothing");
}

#[test]
fn settings_are_texts_that_come_back() {
    let radio = opened("radio=emulated");
    let pairs = [
        (c"rate", c"1e6", "1000000"),
        (c"frequency", c"1e9", "1000000000"),
        (c"gain", c"40", "40"),
        (c"gain", c"auto", "auto"),
        (c"bandwidth", c"2e6", "2000000"),
        (c"antenna", c"TX/RX", "TX/RX"),
    ];
    for (key, value, expected) in pairs {
        // SAFETY: two texts.
        let set = unsafe { millstream_set(radio, 0, 0, key.as_ptr(), value.as_ptr()) };
        assert_eq!(set, 0, "{key:?}: {}", error());
        assert_eq!(get(radio, key).unwrap(), expected);
    }
    assert_eq!(get(radio, c"channels").unwrap(), "2");
    assert_eq!(get(radio, c"gain_range").unwrap(), "0 76");
    let mut text = [b'x' as c_char; 4];
    // SAFETY: a text, and room for four bytes.
    let whole = unsafe { millstream_get(radio, 0, 0, c"antenna".as_ptr(), &mut text[0], 4) };
    assert_eq!((whole, text.map(|byte| byte as u8)), (5, *b"TX/\0"));
    assert_eq!(millstream_close(radio, LONG_NS), 1);
}

#[test]
fn a_read_that_waits_ends_when_another_thread_closes_its_stream() {
    let radio = opened("radio=emulated");
    let stream = started(radio, &[0]);
    let waits = std::thread::spawn(move || {
        // More samples than come in the length of the test.
        let mut samples = vec![[0_i16; 2]; 1 << 26];
        let (buffer, mut got) = (samples.as_mut_ptr().cast(), CReceived::default());
        // SAFETY: the buffer has room for the samples.
        unsafe { millstream_read(stream, &buffer, samples.len(), -1, &mut got) }
    });
    while get(radio, c"ledger_delivered").unwrap() == "0" {
        std::thread::yield_now();
    }
    assert_eq!(millstream_close(stream, LONG_NS), 1);
    assert_eq!(waits.join().unwrap(), -4);
    assert_eq!(millstream_close(radio, LONG_NS), 1);
}
