//! Every way to write a file, by every kind of name: a file that exists, a protected one, a link, a
//! pipe, and standard output.

use crate::common::{command, millstream};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A graph of 1000 samples into `sink`.
fn graph_of(sink: &str) -> String {
    format!(
        "[[block]]\nname = \"tone\"\ntype = \"signal_source\"\nrate_hz = 1e6\n\
         frequency_hz = 1000\namplitude = 0.5\n[[block]]\nname = \"burst\"\ntype = \"head\"\n\
         count = 1000\n[[block]]\nname = \"file\"\n{sink}\n\
         [graph]\nconnections = [\"tone -> burst -> file\"]\n"
    )
}

/// Commands that write the file of this name, in a folder with their inputs.
fn writers(folder: &Path) -> Vec<(Vec<&'static str>, &'static str)> {
    let sinks = [
        ("raw.toml", "type = \"file_sink\"\nitem = \"cf32\"\npath = \"out.cf32\""),
        ("wav.toml", "type = \"wav_sink\"\nitem = \"cf32\"\nrate_hz = 48000\npath = \"out.wav\""),
        ("sigmf.toml", "type = \"sigmf_sink\"\nrate_hz = 1e6\npath = \"out.sigmf-data\""),
        ("tags.toml", "type = \"tag_probe\"\npath = \"out.txt\""),
    ];
    for (name, sink) in sinks {
        fs::write(folder.join(name), graph_of(sink)).unwrap();
    }
    let generate = ["sim", "generate", "--duration", "0.01", "--out"];
    vec![
        (vec!["run", "raw.toml"], "out.cf32"),
        (vec!["run", "wav.toml"], "out.wav"),
        (vec!["run", "sigmf.toml"], "out.sigmf-data"),
        (vec!["run", "tags.toml"], "out.txt"),
        ([&generate[..], &["out.sc16"]].concat(), "out.sc16"),
        (
            [&generate[..], &["/dev/null", "--format", "sc16", "--sent", "out.ts"]].concat(),
            "out.ts",
        ),
        (vec!["graph", "plan", "raw.toml", "--out", "out.toml"], "out.toml"),
        (vec!["graph", "draw", "raw.toml", "--out", "out.svg"], "out.svg"),
    ]
}

fn with_force<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--force"]].concat()
}

#[test]
fn what_exists_stays_unless_it_is_to_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (args, name) in writers(path) {
        let file = path.join(name);
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        millstream(path, &args).fails(1, "exists already");
        assert_eq!(fs::read(&file).unwrap(), b"old", "{args:?}");
        millstream(path, &with_force(&args)).succeeds();
        assert_ne!(fs::read(&file).unwrap(), b"old", "{args:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "{args:?}");
        assert!(!millstream_output::part_of(&file).exists(), "{args:?}");
    }
}

#[test]
fn links_are_followed_and_a_part_that_was_left_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (args, name) in writers(path) {
        let (file, target) = (path.join(name), path.join(format!("target-{name}")));
        symlink(target.file_name().unwrap(), &file).unwrap();
        let part = millstream_output::part_of(&target);
        fs::write(&part, "left").unwrap();
        let outcome = millstream(path, &args);
        outcome.succeeds();
        assert!(outcome.stderr.contains("an incomplete file of an earlier run is now"), "{args:?}");
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink(), "{args:?}");
        assert!(target.is_file(), "{args:?}");
        let kept = path.join(format!("target-{name}.part.1"));
        assert_eq!(fs::read(kept).unwrap(), b"left", "{args:?}");
    }
}

#[test]
fn a_pipe_is_written_into() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (args, name) in writers(path).into_iter().filter(|(_, name)| !name.contains("sigmf")) {
        let file = path.join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        let reader = file.clone();
        let reader = std::thread::spawn(move || fs::read(reader).unwrap());
        millstream(path, &args).succeeds();
        let bytes = reader.join().unwrap();
        assert_eq!(bytes.is_empty(), name == "out.txt", "{args:?}: the tone has no tags");
        assert!(!fs::symlink_metadata(&file).unwrap().is_file(), "{args:?}");
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sim", "generate", "--duration", "0.1", "--out", "x.sc16"];
    let mut command = command(folder.path(), &args);
    let limit = || {
        let limit = rustix::process::Rlimit { current: Some(100 << 10), maximum: None };
        Ok(rustix::process::setrlimit(rustix::process::Resource::Fsize, limit)?)
    };
    // SAFETY: the closure runs between fork and exec, and only makes an async-signal-safe call.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, limit) };
    let outcome = crate::common::Running::start(command).wait();
    outcome.fails(1, "File too large").fails(1, "ulimit -f");
}
