//! `millstream host shield` with a command, in a private hierarchy of cpusets.

use serde_json::Value;
use std::process::{Command, Output};

/// Private mounts: /proc/mounts names a hierarchy of version 1, in which only processes of its own
/// group are moved.
const INSIDE: &str = r#"
set -e
mkdir "$0/cg" && mount -t cgroup -o cpuset none "$0/cg"
mount -t tmpfs none /run
group="$0/cg/millstream-test-$$"
mkdir "$group"
trap 'rmdir "$group"' EXIT
cat "$0/cg/cpuset.cpus" > "$group/cpuset.cpus"
cat "$0/cg/cpuset.mems" > "$group/cpuset.mems"
echo inside >&2
export LEFT="$0/left"
status=0
options="--under ${group##*/} --keep-interrupts --measure 0 $DRY_RUN"
"$1" $2 host shield $options 1 -- sh -c "$3" --json || status=$?
if [ -f "$LEFT" ]; then
    grep cpuset "/proc/$(cat "$LEFT")/cgroup" /proc/self/cgroup >&2
    kill "$(cat "$LEFT")"
fi
exit $status
"#;

/// A command with an argument `--json` of its own, behind a shield around CPU 1; `None` where that
/// is not possible.
fn shielded(options: &str, command: &str) -> Option<Output> {
    shielded_or_dry(options, command, "")
}

fn shielded_or_dry(options: &str, command: &str, dry_run: &str) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", INSIDE]).arg(folder.path());
    unshare.arg(env!("CARGO_BIN_EXE_millstream")).args([options, command]);
    unshare.env("DRY_RUN", dry_run);
    let output = unshare.output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if errors.contains("inside\n") && cpus > 1 {
        return Some(output);
    }
    eprintln!("skipped: no namespaces, no cpusets of version 1, or one CPU: {errors}");
    None
}

#[test]
fn it_ends_as_its_command_did() {
    for (command, status) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let Some(output) = shielded("", command) else { return };
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{command}: {errors}");
        assert!(errors.contains("the shield is down"), "{errors}");
    }
}

#[test]
fn standard_output_is_the_commands_or_the_documents_and_never_both() {
    let Some(output) = shielded("", "echo of the command") else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "of the command\n");
    let Some(output) = shielded("--json", "echo of the command; exit 7") else { return };
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &document["results"]["command_status"]),
        (Some(7), &7.into())
    );
    assert_eq!(document["error"], "sh: exit status: 7");
    assert!(String::from_utf8_lossy(&output.stderr).contains("of the command\n"));
}

#[test]
fn what_the_command_leaves_running_is_in_the_group_that_it_was_started_in() {
    let left = "sleep 60 >/dev/null 2>&1 & echo $! > $LEFT";
    let Some(output) = shielded("", left) else { return };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let groups = errors.lines().filter(|line| line.starts_with("/proc/"));
    let groups: Vec<_> = groups.filter_map(|line| line.split(":cpuset:").nth(1)).collect();
    assert!(groups.len() == 2 && groups[0] == groups[1], "{errors}");
}

#[test]
fn a_dry_run_tells_what_would_be_done_and_runs_no_command() {
    let Some(output) = shielded_or_dry("", "echo it ran", "--dry-run") else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("would be kept free"), "{output:?}");
    assert!(text.contains("sh -c"), "{text}");
    assert!(text.ends_with("nothing was changed: this was a dry run\n"), "{text}");
    assert!(!text.lines().any(|line| line == "it ran"), "{text}");
}
