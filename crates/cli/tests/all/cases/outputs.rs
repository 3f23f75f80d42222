//! Outputs are opened as what their names are, and nothing of the user's is replaced.

use super::{case, shell, shell_with_private_devices};
use crate::common::{Outcome, millstream, names};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

const GENERATE: [&str; 6] = ["sim", "generate", "--duration", "0.001", "--format", "sc16"];
/// 6250 samples.
const GENERATED_BYTES: usize = 25_000;

/// Nothing is said about devices that were replaced or files that were left among them.
#[track_caller]
fn devices_are_whole(outcome: &Outcome) {
    let wrong: Vec<_> = outcome.stdout.lines().filter(|line| line.contains("/dev/")).collect();
    assert!(wrong.is_empty(), "{outcome:?}");
}

#[test]
fn a_device_that_is_written_to_stays_a_device() {
    let folder = case("wav-sink-replaces-device");
    for sink in [
        "$M run wav.toml --set out=/dev/null",
        "$M sim generate --format sc16 \
         --duration 0.001 --out /dev/null",
        "$M run wav.toml --set out=/dev/stderr 2>err.wav",
        // Without ffmpeg there is no picture.
        "$M demo --duration 3s --time-scale 0.2 --out demo.ts --force --picture /dev/null",
    ] {
        let line = format!("{sink} >said.txt");
        let Some(outcome) = shell_with_private_devices(folder.path(), "", &line) else { return };
        devices_are_whole(outcome.succeeds());
        assert_eq!(outcome.stdout, "", "no other file is in /dev: {sink}");
    }
}

#[test]
fn a_pipe_and_a_fifo_get_the_bytes_of_a_wav_file() {
    let folder = case("wav-sink-replaces-device");
    // A fault here would replace the machine's /dev/stdout.
    let run = |line: &str| {
        let private = shell_with_private_devices(folder.path(), "", line);
        private.unwrap_or_else(|| shell(folder.path(), line))
    };
    let piped = run("$M run wav.toml --set out=- | wc -c");
    let bytes: usize = piped.stdout.trim().parse().unwrap();
    assert!(bytes > 2 * 376, "a header and 376 samples of 2 bytes: {piped:?}");
    let fifo = run(
        "mkfifo fifo.wav; cat fifo.wav | wc -c & $M run wav.toml --set out=fifo.wav >said; wait",
    );
    assert_eq!(fifo.succeeds().stdout.trim(), piped.stdout.trim(), "{fifo:?}");
    assert!(fs::symlink_metadata(folder.path().join("fifo.wav")).unwrap().file_type().is_fifo());
}

#[test]
fn standard_output_that_is_a_socket_gets_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(GENERATE)
        .args(["--out", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(std::os::fd::OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    ours.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(bytes.len(), GENERATED_BYTES);
}

#[test]
fn standard_output_needs_neither_rights_to_open_it_nor_a_name() {
    let folder = tempfile::tempdir().unwrap();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: another user's pipe needs root");
    }
    let generate = format!("$M {} --out -", GENERATE.join(" "));
    let foreign = "cp $M ./m; chmod 755 . m; setpriv --reuid=65534 --clear-groups ./m";
    let foreign = generate.replacen("$M", foreign, 1);
    let outcome = shell(folder.path(), &format!("({foreign}) | wc -c"));
    assert_eq!(outcome.stdout.trim(), GENERATED_BYTES.to_string(), "{outcome:?}");
    // No /proc, so /dev/stdout leads nowhere.
    let (before, line) = ("mount -t tmpfs none /proc", format!("{generate} >out.sc16"));
    let Some(outcome) = shell_with_private_devices(folder.path(), before, &line) else { return };
    devices_are_whole(outcome.succeeds());
    let written = fs::metadata(folder.path().join("out.sc16")).unwrap().len();
    assert_eq!(written, GENERATED_BYTES as u64);
}

#[test]
fn a_link_is_followed_also_one_to_a_file_that_is_still_missing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("disk")).unwrap();
    std::os::unix::fs::symlink("disk/rec.sc16", at("link.sc16")).unwrap();
    let generate = |more: &[&str]| {
        let args = [&GENERATE[..], &["--out", "link.sc16"], more].concat();
        millstream(folder.path(), &args)
    };
    generate(&[]).succeeds();
    assert!(fs::symlink_metadata(at("link.sc16")).unwrap().is_symlink());
    assert_eq!(fs::metadata(at("disk/rec.sc16")).unwrap().len(), GENERATED_BYTES as u64);
    generate(&[]).fails(1, "--force");
    generate(&["--force"]).succeeds();
    assert!(fs::symlink_metadata(at("link.sc16")).unwrap().is_symlink());
    assert_eq!(names(&at("disk")), ["rec.sc16"]);
}

#[test]
fn a_protected_recording_stays_and_its_mode_survives_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec.sc16");
    let prepare = |mode| {
        fs::write(&path, "keep").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let args = [&GENERATE[..], &["--out", "rec.sc16"]].concat();
    prepare(0o600);
    millstream(folder.path(), &args).fails(1, "--force");
    assert_eq!(fs::read(&path).unwrap(), b"keep");
    millstream(folder.path(), &[&args[..], &["--force"]].concat()).succeeds();
    let kept = fs::metadata(&path).unwrap();
    assert_eq!((kept.permissions().mode() & 0o777, kept.len()), (0o600, GENERATED_BYTES as u64));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    prepare(0o444);
    let line = format!(
        "cp $M ./m; chmod 755 . m; chown -R 65534 .; setpriv --reuid=65534 --clear-groups ./m {} \
         --force",
        args.join(" ")
    );
    shell(folder.path(), &line).fails(1, "Permission denied");
    assert_eq!(fs::read(&path).unwrap(), b"keep");
}

#[test]
fn a_run_without_items_leaves_no_older_result() {
    let folder = case("zero-items-leave-old-file");
    fs::write(folder.path().join("long.sc16"), [0; 40_000]).unwrap();
    fs::write(folder.path().join("short.sc16"), [0; 400]).unwrap();
    let run = |input: &str| {
        let input = format!("in={input}");
        let args = ["run", "graph.toml", "--force", "--set", &input, "--set", "out=rows.f32"];
        millstream(folder.path(), &args)
    };
    run("long.sc16").succeeds();
    let rows = folder.path().join("rows.f32");
    assert!(fs::metadata(&rows).unwrap().len() > 0);
    run("short.sc16");
    assert_eq!(fs::metadata(&rows).map_or(0, |data| data.len()), 0, "the rows of another run");
}

#[test]
fn the_limit_of_a_file_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let line = "ulimit -f 100; $M sim generate --duration 0.1 --out x.sc16";
    shell(folder.path(), line).fails(1, "File too large");
}

#[test]
fn a_name_that_is_not_text_is_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let line = "f=$(printf 'bad\\xff.sc16'); printf '\\0\\0\\0\\0' >\"$f\"; $M inspect \"$f\"";
    let outcome = shell(folder.path(), line);
    assert!(outcome.succeeds().stdout.contains("1 sample"), "{outcome:?}");
}
