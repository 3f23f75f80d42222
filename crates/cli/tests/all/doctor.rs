//! `millstream host doctor` as users run it, on a machine made of files.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn doctor(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.args(["host", "doctor", "--root"]).arg(root).args(arguments).output().unwrap()
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
    assert!(text.contains("matters    swap") && text.contains("sysctl -w vm.swappiness=1"));
    let head = "a stream of 50 MS/s on CPUs 1-3 (of 0-3)";
    assert!(!text.contains('\x1b') && text.contains(head), "{text}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors, "millstream: 1 setting needs attention: 1 matters\n");
}

#[test]
fn apply_and_undo_leave_no_trace() {
    let root = ill();
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    let output = doctor(root.path(), &["--apply"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("rt-throttling: not changed: name the rule"), "{text}");
    assert_eq!(read("proc/sys/vm/swappiness"), "1\n");
    assert!(doctor(root.path(), &["swap"]).status.success());
    let output = doctor(root.path(), &["rt-throttling", "--apply"]);
    assert!(output.status.success(), "{}", stdout(&output));
    assert_eq!(read("proc/sys/kernel/sched_rt_runtime_us"), "-1\n");
    assert!(doctor(root.path(), &["--undo"]).status.success());
    assert_eq!(read("proc/sys/vm/swappiness"), "60\n");
    assert_eq!(read("proc/sys/kernel/sched_rt_runtime_us"), "950000\n");
    assert_eq!(stdout(&doctor(root.path(), &["--undo"])), "nothing to undo\n");
}

/// Every file below a folder with its content.
fn files(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    found.push((path.display().to_string(), fs::read_to_string(path).unwrap()))
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_dry_run_names_each_file_with_both_values_and_writes_none() {
    let root = ill();
    let before = files(root.path());
    let output = doctor(root.path(), &["--apply", "--dry-run", "rt-throttling", "swap"]);
    assert!(output.status.success());
    let expected = "rt-throttling: /proc/sys/kernel/sched_rt_runtime_us: 950000 -> -1\n\
        swap: /proc/sys/vm/swappiness: 60 -> 1\n\
        nothing was changed: this was a dry run\n";
    assert_eq!(stdout(&output), expected);
    assert_eq!(files(root.path()), before);
    assert!(doctor(root.path(), &["--apply"]).status.success());
    let applied = files(root.path());
    let output = doctor(root.path(), &["--undo", "--dry-run"]);
    let told = "would be put back: /proc/sys/vm/swappiness (60)\nnothing was changed\n";
    assert_eq!(stdout(&output), told);
    assert_eq!(files(root.path()), applied);
    assert_eq!(doctor(root.path(), &["--dry-run"]).status.code(), Some(1), "of what?");
}

#[test]
fn what_others_have_changed_since_stays_noted_and_is_overruled_by_force() {
    let root = ill();
    let file = root.path().join("proc/sys/vm/swappiness");
    let before = files(root.path());
    assert!(doctor(root.path(), &["--apply"]).status.success());
    fs::write(&file, "30\n").unwrap();
    for _ in 0..2 {
        let output = doctor(root.path(), &["--undo"]);
        assert_eq!(output.status.code(), Some(1), "it is not undone");
        let text = stdout(&output);
        assert!(text.starts_with("not put back, because others changed it: "), "{text}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            errors.contains("1 setting since; the journal keeps") && errors.contains("--force")
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "30\n");
    }
    assert!(doctor(root.path(), &["--undo", "--force"]).status.success());
    assert_eq!(files(root.path()), before);
}

#[test]
fn what_is_minor_is_no_reason_to_fail_and_the_worst_comes_first() {
    let root = ill();
    let output = doctor(root.path(), &["rt-throttling", "isolation"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("minor      rt-throttling"));
    let small = root.path().join("proc/sys/net/core");
    fs::create_dir_all(&small).unwrap();
    fs::write(small.join("rmem_max"), "212992\n").unwrap();
    let text = stdout(&doctor(root.path(), &[]));
    let lines = text.lines().skip(2).map(str::trim);
    let first: Vec<_> = lines.filter(|line| !line.starts_with("mend")).take(4).collect();
    let starts =
        ["first of all", "✘ fails      receive-buffer", "! matters    swap", "- minor      "];
    assert_eq!(first.len(), starts.len());
    assert!(first.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    let slow = doctor(root.path(), &["receive-buffer", "--rate", "1e6"]);
    assert!(slow.status.success() && stdout(&slow).contains("of a 1 MS/s stream"));
}

/// A private machine that looks like this one, where root has noted a change.
const NOTED: &str = r#"
set -e
mount -t tmpfs none /run
mkdir /run/millstream
echo '{"begin":{"id":0,"file":{"path":"/x","before":"0","text":"1","after":"1"}}}' \
    > /run/millstream/doctor.kept
chmod 600 /run/millstream/doctor.kept
cp "$0" /run/millstream/it
exec setpriv --reuid=65534 --regid=65534 --clear-groups /run/millstream/it host doctor --undo
"#;

#[test]
fn a_user_is_told_that_roots_changes_are_roots_to_undo() {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", NOTED, env!("CARGO_BIN_EXE_millstream")]);
    let Ok(output) = command.output() else {
        return eprintln!("skipped: no unshare here (Debian package util-linux)");
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can have another user ask: {errors}");
    }
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("root changed these settings (noted in /run/millstream/doctor.kept)"),
        "{errors}"
    );
    assert!(errors.contains("run `sudo millstream host doctor --undo`"), "{errors}");
}

#[test]
fn the_document_has_every_finding_with_its_evidence() {
    let root = ill();
    let output = doctor(root.path(), &["--json", "swap"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &document["results"]["findings"][0];
    assert_eq!((&finding["rule"], &finding["verdict"]), (&"swap".into(), &"matters".into()));
    assert_eq!(finding["evidence"][1]["value"], "60");
    assert_eq!(finding["mend"]["writes"][0]["text"], "1");
    assert_eq!(document["error"], "1 setting needs attention: 1 matters");
}

#[test]
fn what_is_not_there_is_named_with_what_there_is() {
    let root = ill();
    let error = |arguments: &[&str]| {
        let output = doctor(root.path(), arguments);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["nonsense"]).contains("there is no rule or topic `nonsense`. Topics are cpu"));
    assert!(error(&["--cpus", "7"]).contains("there is no CPU 7; these CPUs are online: 0-3"));
    assert!(
        error(&["--interface", "eth9"]).contains("there is no network interface eth9; there are:")
    );
}
