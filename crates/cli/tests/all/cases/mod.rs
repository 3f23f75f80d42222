//! Faults that users of comparable programs have reported, each as the smallest input that showed
//! it, with the right result. The inputs are in `tests/cases/NAME`.

mod outputs;
mod radios;
mod sigmf;
mod sources;

use crate::common::{Outcome, millstream};
use std::path::Path;
use tempfile::TempDir;

/// A folder with the inputs of a case, if it has any.
fn case(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    for entry in std::fs::read_dir(inputs).into_iter().flatten() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// The number of samples that `inspect` finds.
#[track_caller]
fn samples(folder: &Path, file: &str) -> u64 {
    let outcome = millstream(folder, &["inspect", file, "--json"]);
    outcome.succeeds().json()["results"]["samples"].as_u64().unwrap()
}

/// Runs a line of the shell, which finds the program as `$M`.
fn shell(folder: &Path, line: &str) -> Outcome {
    let output = std::process::Command::new("bash")
        .args(["-c", line])
        .current_dir(folder)
        .env("M", env!("CARGO_BIN_EXE_millstream"))
        .env("XDG_STATE_HOME", folder.join(".state"))
        .output()
        .unwrap();
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The same as root in a mount namespace with devices of its own: `before` prepares it.
fn shell_with_private_devices(folder: &Path, before: &str, line: &str) -> Option<Outcome> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a private /dev needs root");
        return None;
    }
    let devices = "D=$(mktemp -d) && mount -t tmpfs none $D && mkdir $D/shm && \
         mknod -m 666 $D/null c 1 3 && mknod -m 666 $D/full c 1 7 && \
         mknod -m 666 $D/urandom c 1 9 && ln -s /proc/self/fd $D/fd && \
         ln -s /proc/self/fd/0 $D/stdin && \
         ln -s /proc/self/fd/1 $D/stdout && ln -s /proc/self/fd/2 $D/stderr && \
         mount --move $D /dev && rmdir $D";
    let check = "for one in null full; do test -c /dev/$one || echo /dev/$one is replaced; done; \
         for one in stdout stderr; do test -L /dev/$one || echo /dev/$one is replaced; done; \
         ls /dev | grep -vxE 'null|full|urandom|fd|stdin|stdout|stderr|shm'";
    let script = format!("{devices} || exit 99\n{before}\n{line}\nended=$?\n{check}\nexit $ended");
    std::fs::write(folder.join("script"), script).unwrap();
    let outcome = shell(folder, "exec unshare --mount --propagation private bash script");
    assert_ne!(outcome.status, Some(99), "no private /dev: {outcome:?}");
    Some(outcome)
}
