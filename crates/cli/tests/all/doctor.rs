//! `millstream doctor` as people use it, on a machine made of files.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn doctor(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.args(["doctor", "--root"]).arg(root).args(arguments).output().unwrap()
}

/// A machine with swap that is used too readily, and a stopped real-time class.
fn ill() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("proc/swaps", "Filename\n/dev/sda2\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ];
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn it_fails_where_something_stands_in_the_way_and_says_what() {
    let root = ill();
    let output = doctor(root.path(), &["swap", "clock"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("costs you  swap") && text.contains("sysctl -w vm.swappiness=1"));
    assert!(!text.contains('\x1b') && text.contains("a stream on CPUs 1-3 (of 0-3)"), "{text}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors, "millstream: 1 thing stands in the way\n");
}

#[test]
fn apply_and_undo_leave_no_trace() {
    let root = ill();
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    let output = doctor(root.path(), &["--apply"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("rt-throttling: left to you: name the rule"), "{text}");
    assert_eq!(read("proc/sys/vm/swappiness"), "1\n");
    assert!(doctor(root.path(), &["swap"]).status.success());
    let output = doctor(root.path(), &["rt-throttling", "--apply"]);
    assert!(output.status.success(), "{}", stdout(&output));
    assert_eq!(read("proc/sys/kernel/sched_rt_runtime_us"), "-1\n");
    assert!(doctor(root.path(), &["--undo"]).status.success());
    assert_eq!(read("proc/sys/vm/swappiness"), "60\n");
    assert_eq!(read("proc/sys/kernel/sched_rt_runtime_us"), "950000\n");
    assert_eq!(stdout(&doctor(root.path(), &["--undo"])), "nothing is to be put back\n");
}

#[test]
fn the_document_has_every_finding_with_its_evidence() {
    let root = ill();
    let output = doctor(root.path(), &["--json", "swap"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &document["results"]["findings"][0];
    assert_eq!((&finding["rule"], &finding["verdict"]), (&"swap".into(), &"costs".into()));
    assert_eq!(finding["evidence"][1]["value"], "60");
    assert_eq!(finding["mend"]["writes"][0]["text"], "1");
    assert_eq!(document["error"], "1 thing stands in the way");
}

#[test]
fn what_is_not_there_is_named_with_what_there_is() {
    let root = ill();
    let error = |arguments: &[&str]| {
        let output = doctor(root.path(), arguments);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["nonsense"]).contains("there is no rule or topic `nonsense`; topics are cpu"));
    assert!(error(&["--cpus", "7"]).contains("there is no CPU 7; online are 0-3"));
    assert!(error(&["--interface", "eth9"]).contains("there is no interface eth9; there are:"));
}
