//! `millstream batch`: results that are whole and there once, whatever is wrong.

mod killed;
mod split;

use crate::common::{Outcome, Running, command, graph, millstream, names};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Copies a recording, slowly enough to be killed meanwhile.
const SLOW_COPY: &str = r#"
[parameters]
in = { help = "recording" }
out = { help = "its copy" }
speed = 1e6
[[block]]
name = "source"
type = "file_source"
path = "${in}"
[[block]]
name = "clock"
type = "throttle"
item = "cf32"
rate_hz = "${speed}"
[[block]]
name = "sink"
type = "file_sink"
item = "cf32"
path = "${out}"
[graph]
connections = ["source -> clock -> sink"]
"#;

/// A folder with a graph, recordings of different contents, and a manifest.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new(recordings: u8, samples: usize, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::write(path.join("copy.toml"), SLOW_COPY).unwrap();
        for number in 0..recordings {
            let bytes = vec![number; samples * 8];
            std::fs::write(path.join(format!("r{number:02}.cf32")), bytes).unwrap();
        }
        let place = Self { _folder: folder, path };
        place.manifest(&format!("recordings = [\"r*.cf32\"]\n{more}"));
        place
    }

    fn manifest(&self, text: &str) {
        let text = text.replace("[outputs]", "[outputs]\nout = \"copy.cf32\"");
        std::fs::write(self.path.join("b.toml"), format!("graph = \"copy.toml\"\n{text}")).unwrap();
    }

    fn batch(&self, args: &[&str]) -> Outcome {
        millstream(&self.path, &[&["batch"], args].concat())
    }

    fn results(&self) -> PathBuf {
        self.path.join("b.results")
    }

    /// The tasks of `batch list --json`.
    fn tasks(&self) -> Vec<Value> {
        let list = self.batch(&["list", "b.toml", "--json"]);
        list.succeeds().json()["results"]["tasks"].as_array().unwrap().clone()
    }

    /// Checks that every task has one whole result, and nothing else is there.
    #[track_caller]
    fn is_whole(&self) {
        let tasks = self.tasks();
        let wanted: BTreeSet<_> = tasks.iter().map(|task| text(task, "name")).collect();
        let found: BTreeSet<_> = names(&self.results().join("done")).into_iter().collect();
        assert_eq!(found, wanted, "each is there once, and none is too many");
        for task in &tasks {
            assert_eq!(task["state"], "done", "{task}");
            let folder = self.results().join("done").join(text(task, "name"));
            assert_eq!(names(&folder), ["copy.cf32", "result.json"]);
            let copy = std::fs::read(folder.join("copy.cf32")).unwrap();
            let recording = std::fs::read(self.path.join(text(task, "recording"))).unwrap();
            assert!(copy == recording, "{task}: {} bytes", copy.len());
            let line = std::fs::read_to_string(folder.join("result.json")).unwrap();
            assert_eq!(line.matches('\n').count(), 1, "one line: {line}");
            let result: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(result["task"]["name"], task["name"]);
        }
        assert_eq!(names(&self.results().join("work")), [""; 0]);
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_batch_gives_what_run_gives_and_then_has_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for cn in ["8", "25"] {
        let out = format!("tv-{cn}.sc16");
        let args = ["sim", "generate", "--duration", "0.2", "--cn", cn, "--out", &out];
        millstream(path, &args).succeeds();
    }
    let manifest = format!(
        "graph = {:?}\nrecordings = [\"tv-25.sc16\", \"tv-*.sc16\"]\n[outputs]\nout = \"tv.ts\"\n",
        graph("atsc-rx.toml")
    );
    std::fs::write(path.join("tv.toml"), manifest).unwrap();
    let first = millstream(path, &["batch", "run", "tv.toml"]);
    assert!(first.succeeds().stdout.contains("2 of 2 tasks done, 2 now"), "{first:?}");
    let again = millstream(path, &["batch", "run", "tv.toml", "--json"]);
    let again = again.succeeds().json();
    assert_eq!((&again["results"]["done"], &again["results"]["before"]), (&2.into(), &2.into()));

    let list = millstream(path, &["batch", "list", "tv.toml", "--json"]);
    let tasks = list.succeeds().json()["results"]["tasks"].clone();
    assert_eq!(tasks[0]["recording"], "tv-25.sc16", "the first pattern, and only once");
    assert!(tasks[0].get("reason").is_none(), "{tasks}");
    let reason = text(&tasks[1], "reason");
    assert!(reason.starts_with("the signal is too weak"), "no failure, but told: {reason}");
    let set = ["--set", "in=tv-25.sc16", "--set", "out=one.ts"];
    millstream(path, &[&["run", &graph("atsc-rx.toml")], &set[..]].concat()).succeeds();
    let result = path.join("tv.results/done").join(text(&tasks[0], "name"));
    let [one, other] = [path.join("one.ts"), result.join("tv.ts")].map(std::fs::read);
    assert!(one.unwrap() == other.unwrap(), "the same packets as with `run`");

    let table = millstream(path, &["batch", "table", "tv.toml", "--out", "-"]);
    let rows: Vec<_> = table.succeeds().stdout.lines().collect();
    let column = |name: &str, row: &str| {
        let at = rows[0].split(',').position(|heading| heading == name).unwrap();
        row.split(',').nth(at).unwrap().parse::<f64>().unwrap()
    };
    assert!(column("atsc.mer_db", rows[1]) > 20.0 && column("atsc.mer_db", rows[2]) < 12.0);
    assert_eq!(column("atsc.uncorrected_packets", rows[1]), 0.0);
    for (name, start) in [("t.parquet", "PAR1"), ("t.PARQUET", "PAR1"), ("t.csv", "task,state,")] {
        millstream(path, &["batch", "table", "tv.toml", "--out", name]).succeeds();
        assert!(std::fs::read(path.join(name)).unwrap().starts_with(start.as_bytes()), "{name}");
    }
}

#[test]
fn a_truncated_recording_costs_its_task_and_one_line() {
    let place = Place::new(3, 100, "[outputs]\n");
    let truncated = place.path.join("r01.cf32");
    std::fs::write(&truncated, [1; 803]).unwrap();
    let outcome = place.batch(&["run", "b.toml"]);
    outcome.fails(1, "1 of 3 tasks failed: `millstream batch list` shows the reasons");
    let lines: Vec<_> = outcome.stderr.lines().filter(|line| line.contains("r01")).collect();
    assert_eq!(lines.len(), 1, "{outcome:?}");
    let tasks = place.tasks();
    let name = text(&tasks[1], "name");
    assert!(lines[0].starts_with(&format!("failed  {name} (r01.cf32): ")), "{lines:?}");
    assert!(lines[0].ends_with("the file is not complete, or it is not a cf32 file"), "{lines:?}");
    assert_eq!(
        (text(&tasks[1], "state"), text(&tasks[0], "state")),
        ("failed".into(), "done".into())
    );
    assert!(text(&tasks[1], "reason").ends_with("it is not a cf32 file"));
    // The recording is another one when it is repaired: its task has another name.
    std::fs::write(&truncated, [1; 800]).unwrap();
    place.batch(&["task", "b.toml", &name]).fails(1, &format!("has no task `{name}`"));
    let again = place.batch(&["run", "b.toml"]);
    assert!(again.succeeds().stdout.contains("3 of 3 tasks done, 1 now"), "{again:?}");
}

#[test]
fn a_result_without_its_file_says_so() {
    let place = Place::new(1, 100, "");
    let manifest = format!(
        "graph = {:?}\nrecordings = [\"r*.cf32\"]\n[outputs]\nout = \"rows.f32\"\n",
        graph("spectrum.toml")
    );
    std::fs::write(place.path.join("b.toml"), manifest).unwrap();
    place.batch(&["run", "b.toml"]).succeeds();
    let task = &place.tasks()[0];
    assert_eq!(
        (text(task, "state"), text(task, "reason")),
        ("done".to_owned(), "the graph wrote nothing to its file rows.f32".to_owned(),)
    );
}

#[test]
fn what_is_wrong_with_a_manifest_is_told_before_anything_runs() {
    let place = Place::new(1, 100, "");
    for (manifest, part) in [
        ("recordings = []", "recordings = []: name at least one recording or pattern"),
        ("recordings = [\"none/*.sc16\"]", "the pattern \"none/*.sc16\" matches no file below /"),
        ("recordings = [\"[\"]", "recordings: the pattern \"[\": "),
        ("recordings = [\"r00.cf32\"]\n", "parameter `out` (its copy) has no value"),
        ("recordings = [\"r00.cf32\"]\n[outputs]\n[sweep]\nspede = [1, 2]", "no parameter `spede`"),
        (
            "recordings = [\"r00.cf32\"]\n[outputs]\n[sweep]\nspeed = [1, \"x\"]",
            "expected a number",
        ),
        ("recordings = [\"r00.cf32\"]\n[outputs]\nspeed", "TOML parse error"),
        ("speed = 3", "unknown field `speed`"),
    ] {
        place.manifest(manifest);
        let outcome = place.batch(&["run", "b.toml", "--json"]);
        outcome.fails(1, part).json();
        assert!(!place.results().exists(), "{manifest}");
    }
    place.batch(&["run", "none.toml"]).fails(1, "cannot read none.toml: No such file");
    place.manifest("recordings = [\"r00.cf32\"]\nresults = \"/proc/none\"\n[outputs]\n");
    let outcome = place.batch(&["run", "b.toml"]);
    outcome.fails(1, "1 of 1 tasks failed");
    assert!(outcome.stderr.contains("cannot write /proc/none/work: No such file"), "{outcome:?}");
}

/// A disk of 400 kB, in a mount namespace of its own: of three results of 160 kB two have room.
const FULL_DISK: &str = r#"
mkdir b.results && mount -t tmpfs -o size=400k none b.results || exit 99
"$0" batch run b.toml --workers 1
echo "status $?"
rm -r b.results/done/*
"$0" batch run b.toml --workers 1
echo "status $?"
"#;

#[test]
fn a_full_disk_costs_what_has_no_room_and_says_so() {
    let place = Place::new(3, 20_000, "[outputs]\n");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", FULL_DISK, env!("CARGO_BIN_EXE_millstream")]);
    let Ok(outcome) = command.current_dir(&place.path).output() else {
        return eprintln!("skipped: no unshare here (Debian package util-linux)");
    };
    let [stdout, stderr] =
        [&outcome.stdout, &outcome.stderr].map(|text| String::from_utf8_lossy(text));
    if outcome.status.code() != Some(0) {
        return eprintln!("skipped: no disk of its own without root: {stderr}");
    }
    let told = stderr.lines().filter(|line| line.starts_with("failed  ")).collect::<Vec<_>>();
    assert_eq!(told.len(), 2, "one at first, and one after the first two were removed: {stderr}");
    for line in told {
        assert!(line.contains("No space left on device"), "{line}");
        assert!(line.contains("free some space"), "{line}");
    }
    assert_eq!(stdout.matches("2 of 3 tasks done, 2 now, 1 failed").count(), 2, "{stdout}");
}

/// Runs each element of the array in turn, as Slurm would.
const SBATCH: &str = r#"#!/bin/bash
[ "$1" = --parsable ] || exit 1
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\)%2$/\1/p' "$2")
export SLURM_ARRAY_TASK_ID SLURM_CPUS_PER_TASK=1
for ((SLURM_ARRAY_TASK_ID = 0; SLURM_ARRAY_TASK_ID <= last; SLURM_ARRAY_TASK_ID++)); do
  bash "$2" >&2 || exit 1
done
echo '42;cluster'
"#;

#[test]
fn a_job_of_slurm_runs_the_same_tasks() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new(3, 100, "[outputs]\n");
    let run = ["batch", "run", "b.toml", "--engine", "slurm", "--workers", "2"];
    place.batch(&[&run[1..], &["--dry-run"]].concat()).succeeds();
    let jobs = || names(&place.results().join("slurm"));
    let script = place.results().join("slurm").join(&jobs()[0]).join("job.sh");
    let script = std::fs::read_to_string(script).unwrap();
    assert!(script.contains("#SBATCH --array=0-2%2\n#SBATCH --cpus-per-task=1\n"), "{script}");
    let missing = Running::start({
        let mut command = command(&place.path, &run);
        command.env("PATH", "/nowhere");
        command
    });
    missing.wait().fails(1, "cannot run sbatch: run this on a machine of the cluster");

    let sbatch = place.path.join("sbatch");
    std::fs::write(&sbatch, SBATCH).unwrap();
    std::fs::set_permissions(&sbatch, PermissionsExt::from_mode(0o755)).unwrap();
    let mut submit = command(&place.path, &run);
    submit.env("PATH", format!("{}:{}", place.path.display(), std::env::var("PATH").unwrap()));
    let outcome = Running::start(submit).wait();
    assert!(outcome.succeeds().stdout.contains("job      42: "), "{outcome:?}");
    place.is_whole();
    let again = place.batch(&run[1..]);
    assert!(again.succeeds().stdout.contains("nothing was submitted"), "{again:?}");
}

#[test]
fn a_sweep_stops_poor_settings_early_and_draws_the_best() {
    let place = Place::new(
        4,
        100,
        "[outputs]\n[sweep]\nspeed = [1e6, 2e6]\nformat = [\"auto\", \"cf32\"]\n\
         [early_stop]\nvalue = \"sink.items_in\"\n",
    );
    let graph = SLOW_COPY
        .replace("speed = 1e6", "speed = 1e6\nformat = \"auto\"")
        .replace("path = \"${in}\"", "path = \"${in}\"\nformat = \"${format}\"");
    std::fs::write(place.path.join("copy.toml"), graph).unwrap();
    // Each setting has the same numbers: the first of each rung continues.
    let outcome = place.batch(&["run", "b.toml"]);
    let text = "8 of 16 tasks done, 8 now, 8 stopped early";
    assert!(outcome.succeeds().stdout.contains(text), "{outcome:?}");
    let again = place.batch(&["run", "b.toml"]);
    assert!(again.succeeds().stdout.contains("8 of 16 tasks done, 0 now, 8 stopped"), "{again:?}");
    let axes = ["--x", "speed", "--y", "format"];
    let map = |value: &str, axes: &[&str]| {
        place.batch(&[&["map", "b.toml", "--out", "map.svg", "--value", value], axes].concat())
    };
    let drawn = map("sink.items_in", &axes);
    assert!(
        drawn.succeeds().stdout.starts_with("best     format=auto speed=1000000: "),
        "{drawn:?}"
    );
    let svg = std::fs::read_to_string(place.path.join("map.svg")).unwrap();
    assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
    assert!(svg.contains("speed=2000000 format=cf32: 100"), "{svg}");
    map("sink.snr", &axes).fails(1, "no result has the number `sink.snr`; the results have: ");
    map("sink.items_in", &["--x", "rate", "--y", "format"]).fails(1, "[sweep] are: format, speed");
    map("sink.items_in", &["--x", "speed", "--y", "speed"]).fails(1, "is on both axes");

    // With one setting nothing is given up, and a wrong name is told, too.
    let stop = "[outputs]\n[early_stop]\nvalue = \"sink.snr\"\n";
    place.manifest(&format!("recordings = [\"r*.cf32\"]\n{stop}"));
    let outcome = place.batch(&["run", "b.toml"]);
    let text = "no result so far has the number `sink.snr` that [early_stop] compares";
    assert_eq!(outcome.succeeds().stderr.matches(text).count(), 1, "{outcome:?}");
}
