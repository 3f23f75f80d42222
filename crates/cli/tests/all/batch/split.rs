//! One recording in parts: the transport stream is that of a single pass, also with a break.

use super::text;
use crate::common::{Outcome, Running, command, eventually, graph, is_alive, millstream, names};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const RATE_HZ: f64 = 6e6;
/// The missing samples of the break, a fifth of a second.
const MISSING: u64 = 1_234_567;

/// A recording of television with a break, raw and with metadata that tells of the break.
fn recording(path: &Path, seconds: f64) {
    let first = (0.41 * seconds * RATE_HZ) as u64 + 457;
    let seconds = seconds.to_string();
    let args = ["--out", "whole.sc16", "--cn", "22", "--offset", "3200", "--clock-ppm", "4"];
    let length = ["--rate", "6e6", "--duration", &seconds];
    millstream(path, &[&["sim", "generate"], &args[..], &length].concat()).succeeds();
    std::fs::rename(path.join("whole.sc16"), path.join("raw.sc16")).unwrap();
    take_out(&path.join("raw.sc16"), first * 4, MISSING * 4);
    std::fs::hard_link(path.join("raw.sc16"), path.join("told.sigmf-data")).unwrap();
    let captures = serde_json::json!([
        { "core:sample_start": 0, "core:global_index": 0 },
        { "core:sample_start": first, "core:global_index": first + MISSING },
    ]);
    let meta = serde_json::json!({
        "global": {
            "core:datatype": "ci16_le", "core:version": "1.0.0", "core:sample_rate": RATE_HZ,
        },
        "captures": captures,
        "annotations": [],
    });
    std::fs::write(path.join("told.sigmf-meta"), meta.to_string()).unwrap();
    let receiver = std::fs::read_to_string(graph("atsc-rx.toml")).unwrap();
    let told = receiver.replace("\"file_source\"", "\"sigmf_source\"");
    let told = told.replace("format = \"${format}\"\n", "");
    std::fs::write(path.join("told.toml"), told.replace("format = {", "unused = {")).unwrap();
    std::fs::write(path.join("raw.toml"), receiver).unwrap();
}

/// Takes some bytes out of a file, in place: a recording of minutes has room once.
fn take_out(path: &Path, mut at: u64, missing: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let end = file.metadata().unwrap().len() - missing;
    let mut chunk = vec![0; 1 << 20];
    while at < end {
        let bytes = chunk.len().min((end - at) as usize);
        file.read_exact_at(&mut chunk[..bytes], at + missing).unwrap();
        file.write_all_at(&chunk[..bytes], at).unwrap();
        at += bytes as u64;
    }
    file.set_len(end).unwrap();
}

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// A folder with a recording, its graph, and a manifest that splits it.
struct Split<'a> {
    path: &'a Path,
    name: &'a str,
    single: Vec<u8>,
}

impl<'a> Split<'a> {
    fn new(path: &'a Path, name: &'a str, recording: &str) -> Self {
        let graph = format!("{name}.toml");
        let set = [format!("in={recording}"), "out=single.ts".to_owned(), "rate=6e6".to_owned()];
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        millstream(path, &[&["run", "--force", &graph], &set[..]].concat()).succeeds();
        let manifest = format!(
            "graph = \"{graph}\"\nrecordings = [\"{recording}\"]\n[outputs]\nout = \"tv.ts\"\n\
             [parameters]\nrate = 6e6\n[split]\nparts = 2\n"
        );
        std::fs::write(path.join(format!("{name}-split.toml")), manifest).unwrap();
        let single = std::fs::read(path.join("single.ts")).unwrap();
        Self { path, name, single }
    }

    fn batch(&self, verb: &str, more: &[&str]) -> Outcome {
        let manifest = format!("{}-split.toml", self.name);
        millstream(self.path, &[&["batch", verb, &manifest], more].concat())
    }

    fn done(&self) -> PathBuf {
        self.path.join(format!("{}-split.results/done", self.name))
    }

    /// The names of the whole task and of its parts.
    fn tasks(&self) -> Vec<String> {
        let list = self.batch("list", &["--json"]).succeeds().json();
        let tasks = list["results"]["tasks"].as_array().unwrap();
        tasks.iter().map(|task| text(task, "name")).collect()
    }

    /// Checks the joined stream, and returns its result.
    #[track_caller]
    fn is_single(&self, seconds: f64) -> serde_json::Value {
        let tasks = self.tasks();
        assert_eq!(names(&self.done()), [&*tasks[0]], "its parts are removed");
        let folder = self.done().join(&tasks[0]);
        assert_eq!(names(&folder), ["result.json", "tv.ts"]);
        let joined = std::fs::read(folder.join("tv.ts")).unwrap();
        let at = joined.iter().zip(&self.single).position(|(a, b)| a != b);
        let lengths = [&joined, &self.single].map(|stream| stream.len() / 188);
        assert!(joined == self.single, "packets {lengths:?}, the first other byte is {at:?}");
        // 12 900 packets a second; the break and the beginning cost some.
        assert!(lengths[0] as f64 > 12_000.0 * (seconds - 0.5), "{lengths:?}");
        let text = std::fs::read_to_string(folder.join("result.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// MILLSTREAM_SPLIT_SECONDS=60 splits a minute, which takes 1.4 GB (in TMPDIR). A command of a test
/// may take two minutes, so a recording of five is made by hand.
#[test]
fn a_recording_in_parts_gives_the_stream_of_a_single_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let seconds = std::env::var("MILLSTREAM_SPLIT_SECONDS");
    let seconds = seconds.map_or(3.7, |seconds| seconds.parse().unwrap());
    recording(path, seconds);

    // The break is a jump that nothing tells of; the driver is killed in the midst of the parts.
    let raw = Split::new(path, "raw", "raw.sc16");
    let run = ["batch", "run", "raw-split.toml", "--workers", "2"];
    let driver = Running::start(command(path, &run));
    let work = path.join("raw-split.results/work");
    eventually("parts that run", || {
        let entries = std::fs::read_dir(&work).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().join("tv.ts.part").exists()).count() >= 1
    });
    driver.signal(libc::SIGKILL);
    eventually("the end of the driver", || !is_alive(driver.pid()));
    let outcome = raw.batch("run", &["--workers", "2"]);
    assert!(outcome.succeeds().stdout.contains("3 of 3 tasks done"), "{outcome:?}");
    let result = raw.is_single(seconds);
    println!("{}", result["results"]["split"]);
    let seams = result["results"]["split"]["seams"].as_array().unwrap();
    assert!(!seams.is_empty() && seams[0]["agreed"].as_u64() >= Some(312), "{seams:?}");
    assert!(result.get("notes").is_none(), "{result}");
    assert!(result["numbers"]["atsc.mer_db"].as_f64() > Some(19.0), "{}", result["numbers"]);

    // The metadata tells of it.
    let told = Split::new(path, "told", "told.sigmf-meta");
    told.batch("run", &[]).succeeds();
    told.is_single(seconds);
    let shown = told.batch("split", &["--explain", "--json"]).succeeds().json();
    let shown = &shown["results"]["recordings"][0];
    let sum: u64 = shown["memory"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(shown["memory_samples"], sum);
    assert_eq!(shown["parts"].as_array().unwrap().len(), 2);
    let explained = told.batch("split", &["--explain"]);
    for stage in ["interleaver", "training on field syncs", "timing loop", "memory: the sum"] {
        assert!(explained.succeeds().stdout.contains(stage), "{stage}: {explained:?}");
    }

    // Who ended the last part cannot join: another process does, and is killed meanwhile.
    let tasks = told.tasks();
    let [whole, first, second] = [0, 1, 2].map(|at| told.done().join(&tasks[at]));
    std::fs::remove_dir_all(&whole).unwrap();
    let work = path.join("told-split.results/work");
    let lock = std::fs::File::create(work.join(format!("{}.lock", tasks[0]))).unwrap();
    lock.lock().unwrap();
    told.batch("task", &[&tasks[1]]).succeeds();
    let outcome = told.batch("task", &[&tasks[2], "--json"]);
    assert!(outcome.succeeds().stderr.contains(": another process runs the task"), "{outcome:?}");
    assert_eq!(outcome.json()["results"]["folder"], second.display().to_string());
    drop(lock);
    let kept = path.join("kept");
    copy(&first, &kept.join("first"));
    copy(&second, &kept.join("second"));
    // A part that is done joins, too.
    let outcome = told.batch("task", &[&tasks[2], "--json"]);
    assert_eq!(outcome.succeeds().json()["results"]["folder"], whole.display().to_string());
    told.is_single(seconds);
    // What was not removed is removed by the next call.
    for (verb, more) in [("task", &tasks[2..]), ("task", &tasks[..1]), ("run", &[])] {
        copy(&kept.join("first"), &first);
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        told.batch(verb, &more).succeeds();
        told.is_single(seconds);
    }

    // A part that does not agree with the one before is processed again, and it is told.
    std::fs::remove_dir_all(&whole).unwrap();
    std::fs::rename(kept.join("first"), first).unwrap();
    std::fs::rename(kept.join("second"), &second).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(second.join("tv.ts")).unwrap();
    for packet in 0..file.metadata().unwrap().len() / 188 {
        file.write_all_at(b"bad", packet * 188 + 60).unwrap();
    }
    let again = told.batch("run", &[]);
    let line = again.succeeds().stderr.lines().find(|line| line.starts_with("joined  "));
    let line = line.unwrap_or_else(|| panic!("{again:?}"));
    assert!(line.starts_with(&format!("joined  {}: part 2 of 2 parts, at ", tasks[0])), "{line}");
    assert!(line.contains(" packets in the overlap differ; it is processed again from"), "{line}");
    told.is_single(seconds);
}

#[test]
fn every_format_that_the_source_reads_can_be_split() {
    const SAMPLES: u64 = 30_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let receiver = format!("graph = {:?}\n", graph("atsc-rx.toml"));
    for (name, format, bytes) in [
        ("a.cu8", "", 2),
        ("a.cs8", "", 2),
        ("a.sc16", "", 4),
        ("a.cfile", "", 8),
        ("a.bin", "format = \"cu8\"\n", 2),
        ("a.bin", "format = \"ci8\"\n", 2),
    ] {
        std::fs::File::create(path.join(name)).unwrap().set_len(SAMPLES * bytes).unwrap();
        let manifest = format!(
            "{receiver}recordings = [\"{name}\"]\n[outputs]\nout = \"x\"\n\
             [parameters]\n{format}[split]\nparts = 2\n"
        );
        std::fs::write(path.join("b.toml"), manifest).unwrap();
        let shown = millstream(path, &["batch", "split", "b.toml", "--json"]).succeeds().json();
        assert_eq!(shown["results"]["recordings"][0]["samples"], SAMPLES, "{name} {format}{shown}");
    }
}

#[test]
fn what_cannot_be_split_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("a.cf32"), [0; 800]).unwrap();
    let spectrum = format!("graph = {:?}\n", graph("spectrum.toml"));
    let noisy = format!("graph = {:?}\n", graph("../examples/noisy-reception.toml"));
    for (graph, part) in [
        (&spectrum, "the block `spectrum` does not state how much of its past it needs"),
        (&noisy, "` does not have exactly one input: only a graph that is a chain"),
    ] {
        let manifest = format!(
            "{graph}recordings = [\"*.cf32\"]\n[outputs]\nout = \"x\"\n[split]\nparts = 2\n"
        );
        std::fs::write(path.join("b.toml"), manifest).unwrap();
        millstream(path, &["batch", "run", "b.toml"]).fails(1, part);
        millstream(path, &["batch", "split", "b.toml"]).fails(1, part);
        assert_eq!(names(path), ["a.cf32", "b.toml"]);
    }
    let receiver = std::fs::read_to_string(graph("atsc-rx.toml")).unwrap();
    let some = receiver.replace("\"file_source\"\n", "\"file_source\"\ncount = 50\n");
    std::fs::write(path.join("some.toml"), some).unwrap();
    let manifest = "graph = \"some.toml\"\nrecordings = [\"*.cf32\"]\n[outputs]\nout = \"x\"\n\
                    [split]\nparts = 2\n";
    std::fs::write(path.join("b.toml"), manifest).unwrap();
    let part = "reads a part of its recording already: remove `count` from the graph";
    millstream(path, &["batch", "run", "b.toml"]).fails(1, part);
    std::fs::write(path.join("b.toml"), format!("{spectrum}[outputs]\nout = \"x\"\n")).unwrap();
    let part = "does not split its recordings: write `[split]` and `parts = 2` into it";
    millstream(path, &["batch", "split", "b.toml"]).fails(1, part);
}
