//! Recordings whose writer, radio or disk ends at a drawn moment: what is there opens, its metadata
//! is true up to the last second, and nothing older is lost. `MILLSTREAM_KILLS=200` draws that
//! many; `MILLSTREAM_SEED` repeats one.

use crate::common::{Radio, Running, command, eventually, fault, millstream, names};
use millstream_dsp::chunks::Chunks;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::mount::{MountFlags, MountPropagationFlags};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Draws without `MILLSTREAM_KILLS`.
const DRAWS: u64 = 6;
/// Samples of a second.
const RATE: usize = 1_000_000;
/// A disk that is soon full.
const DISK: &std::ffi::CStr = c"size=6m";
const OLDER: &[u8] = b"a recording of an earlier day";
const LEFT: &[u8] = b"what a crash has left";

/// What writes, and where: `rx`, or a graph with that sink.
const WRITERS: [(&str, &str); 6] = [
    ("rx", "x.sc16"),
    ("rx", "x.sigmf-meta"),
    ("file_sink", "x.cf32"),
    ("sigmf_sink", "x.sigmf-meta"),
    ("wav_sink", "x.wav"),
    ("jsonl_sink", "x.jsonl"),
];

/// What happens in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The writer is killed.
    Writer,
    /// The writer is stopped, goes on, and is killed.
    Stopped,
    /// The radio is killed.
    Radio,
    /// The radio is stopped for good.
    Silence,
    /// The disk is full.
    Disk,
}

const ENDS: [End; 5] = [End::Writer, End::Stopped, End::Radio, End::Silence, End::Disk];

/// A graph from the radio, or from zeros, to a sink.
fn graph(radio: &Radio, sink: &str, out: &str) -> String {
    let args = radio.args();
    let (source, more) = match sink {
        "jsonl_sink" => (
            "type = \"null_source\"\nitem = \"u8\"\n[[block]]\nname = \"pace\"\n\
             type = \"throttle\"\nitem = \"u8\"\nrate_hz = 4e5\n"
                .to_owned(),
            "items = 188\n",
        ),
        _ => {
            let more = match sink {
                "wav_sink" => "rate_hz = 1000000\nitem = \"cf32\"\n",
                "file_sink" => "item = \"cf32\"\n",
                _ => "",
            };
            let radio = format!("type = \"radio_rx\"\nargs = \"{args}\"\nrate_hz = 1e6\n");
            (format!("{radio}freq_hz = 433.9e6\n"), more)
        }
    };
    let way = if sink == "jsonl_sink" { "source -> pace -> sink" } else { "source -> sink" };
    format!(
        "[[block]]\nname = \"source\"\n{source}[[block]]\nname = \"sink\"\ntype = \"{sink}\"\n\
         path = \"{out}\"\n{more}[graph]\nconnections = [\"{way}\"]\n"
    )
}

/// The file of samples that a writer of `out` writes.
fn data(out: &str) -> String {
    out.replace("sigmf-meta", "sigmf-data")
}

/// Starts the writer in `folder`, where an older result and the rest of a crash are.
fn start(folder: &Path, radio: &Radio, (writer, out): (&str, &str)) -> Running {
    for name in [data(out), out.to_owned()] {
        fs::write(folder.join(&name), OLDER).unwrap();
        fs::write(folder.join(format!("{name}.part")), LEFT).unwrap();
    }
    if writer == "rx" {
        let args = radio.args();
        let rx = ["rx", "--args", &args, "--rate", "1e6", "--freq", "433.9e6"];
        let rest = ["--duration", "600", "--out", out, "--force"];
        return Running::start(command(folder, &[&rx[..], &rest].concat()));
    }
    fs::write(folder.join("graph.toml"), graph(radio, writer, out)).unwrap();
    Running::start(command(folder, &["run", "graph.toml", "--force"]))
}

/// Each pair of I and Q is a counter of the radio's ticks, which are its samples.
fn counters(path: &Path, floats: bool) -> Vec<u32> {
    let bytes = fs::read(path).unwrap();
    if !floats {
        return bytes.in_chunks().0.iter().map(|sample| u32::from_le_bytes(*sample)).collect();
    }
    let whole = |part: &[u8]| {
        let value = f32::from_le_bytes(part.try_into().unwrap()) * 32767.0;
        u32::from(value.round() as i16 as u16)
    };
    let sample = |both: &[u8; 8]| whole(&both[..4]) | whole(&both[4..]) << 16;
    bytes.in_chunks().0.iter().map(sample).collect()
}

/// Checks that each capture has the time of its first sample and ends before the next gap; one in
/// the last second need not be told.
#[track_caller]
fn captures_are_true(samples: &[u32], results: &Value, about: &str) {
    let captures = results["sigmf"]["metadata"]["captures"].as_array().unwrap();
    let place = |one: &Value, name: &str| {
        let value = one[name].as_u64();
        value.unwrap_or_else(|| panic!("{name} is missing: {about}: {results}"))
    };
    let starts = captures.iter().map(|one| place(one, "core:sample_start") as usize);
    let ends = starts.clone().skip(1).chain([samples.len()]);
    let sure = samples.len().saturating_sub(RATE);
    for ((capture, start), end) in captures.iter().zip(starts).zip(ends) {
        let first = place(capture, "core:global_index") as u32;
        let end = if end == samples.len() { end.min(sure.max(start)) } else { end };
        let is_true = |n: usize| samples[n] == first.wrapping_add((n - start) as u32);
        let wrong = (start..end.min(samples.len())).find(|n| !is_true(*n));
        assert_eq!(wrong, None, "{about}: a capture from {start} to {end}: {results}");
        let frequency = capture["core:frequency"].as_f64();
        let is_tuned = frequency.is_some_and(|frequency| (frequency - 433.9e6).abs() < 1.0);
        assert!(is_tuned, "{about}: {results}");
    }
}

/// Checks what is in `folder` behind the end.
#[track_caller]
fn check(folder: &Path, (writer, out): (&str, &str), about: &str) {
    let data = data(out);
    let there = names(folder);
    for name in [&data, out] {
        let older = fs::read(folder.join(name)).unwrap();
        assert!(older == OLDER, "{about}: {name} is not the older one: {there:?}");
        let kept = |one: &&String| {
            one.starts_with(&format!("{name}.part"))
                && fs::read(folder.join(one)).is_ok_and(|bytes| bytes == LEFT)
        };
        assert!(there.iter().any(|one| kept(&one)), "{about}: {name}.part is lost: {there:?}");
    }
    let part = format!("{data}.part");
    if writer == "jsonl_sink" {
        let text = fs::read_to_string(folder.join(&part)).unwrap();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        assert!(whole > 0, "{about}: no line");
        return assert!(text[..whole].lines().all(|line| {
            serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object())
        }));
    }
    let outcome = millstream(folder, &["inspect", &part, "--json"]);
    assert_eq!(outcome.status, Some(0), "{about}: {outcome:?}");
    let results = outcome.json()["results"].take();
    assert!(results["samples"].as_u64() > Some(0), "{about}: {results}");
    if data == out {
        return;
    }
    assert_eq!(results["rate_hz"].as_f64(), Some(RATE as f64), "{about}: {results}");
    let samples = counters(&folder.join(&part), writer != "rx");
    captures_are_true(&samples, &results, about);
    // By its other name, too.
    millstream(folder, &["inspect", &format!("{out}.part")]).succeeds();
}

/// One draw in `folder`.
fn draw(folder: &Path, seed: u64, may_mount: bool) {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut below = |count: u64| random.next_u64() % count;
    let writer = WRITERS[below(WRITERS.len() as u64) as usize];
    let end = ENDS[below(ENDS.len() as u64) as usize];
    // Nothing of the radio reaches lines of zeros, and lines wait for room on the disk.
    let of_lines = matches!(end, End::Writer | End::Stopped);
    if !of_lines && writer.0 == "jsonl_sink" || end == End::Disk && !may_mount {
        return;
    }
    let about = format!("MILLSTREAM_SEED={seed}: {end:?} of {writer:?}");
    eprintln!("{about}");
    let disk = folder.join("disk");
    fs::create_dir(&disk).unwrap();
    if end == End::Disk {
        let flags = MountFlags::empty();
        rustix::mount::mount("none", &disk, "tmpfs", flags, DISK)
            .unwrap_or_else(|error| panic!("tmpfs: {error}"));
    }
    let (radio, control) = Radio::start_with_control(folder, &["--rx-antenna", "ramp"]);
    if below(2) == 0 {
        let every = format!("every={}", 500 + below(5000));
        fault(&control, &["add", "lose", "to_host", "data", "skip=100", &every]).succeeds();
    }
    let running = start(&disk, &radio, writer);
    let part = disk.join(format!("{}.part", data(writer.1)));
    let length = || fs::metadata(&part).map_or(0, |data| data.len());
    eventually("a part of its own", || fs::read(&part).is_ok_and(|bytes| bytes != LEFT));
    let enough = below(if end == End::Disk { 1 } else { 5 << 20 });
    eventually("bytes", || length() > enough);
    match end {
        End::Writer => running.signal(libc::SIGKILL),
        End::Stopped => {
            running.signal(libc::SIGSTOP);
            std::thread::sleep(std::time::Duration::from_millis(below(300)));
            running.signal(libc::SIGCONT);
            running.signal(libc::SIGKILL);
        }
        End::Radio => radio.running.signal(libc::SIGKILL),
        End::Silence => radio.running.signal(libc::SIGSTOP),
        End::Disk => {}
    }
    let outcome = running.wait();
    assert_ne!(outcome.status, Some(0), "{about}: {outcome:?}");
    check(&disk, writer, &about);
    drop(radio);
    if end == End::Disk {
        rustix::mount::unmount(&disk, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn whatever_ends_a_recording_it_opens_and_nothing_older_is_lost() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("MILLSTREAM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = std::process::id().into();
            from..from + number("MILLSTREAM_KILLS").unwrap_or(DRAWS)
        }
    };
    // Mounts of this thread and its children only, which vanish with it.
    let flags = rustix::thread::UnshareFlags::NEWNS;
    // SAFETY: the thread gets mounts and a current folder of its own; its descriptors stay shared.
    let alone = unsafe { rustix::thread::unshare_unsafe(flags) };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let may_mount = alone.and_then(|()| rustix::mount::mount_change("/", private)).is_ok();
    if !may_mount {
        eprintln!("skipped: full disks, because mounts need root here");
    }
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        draw(folder.path(), seed, may_mount);
    }
}
