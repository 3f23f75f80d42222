//! Samples and plans on standard output, for pipes: no other output may go there then.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::JoinHandle;

/// The names of standard output.
const NAMES: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The path of samples to standard output, once it is requested.
static WAY: Mutex<Option<OutputTarget>> = Mutex::new(None);

enum OutputTarget {
    /// The writer opens it by its name.
    Straight,
    /// It is a file, which the shell has opened, perhaps to append: only its own descriptor writes
    /// at the right position. A thread copies from a pipe.
    Pipe(OwnedFd, JoinHandle<io::Result<u64>>),
}

/// Returns the path to open for data that are to be written to `out`: `-` is standard output. If
/// `out` is standard output under any name, the text at the end goes to standard error.
pub fn for_data(out: &Path) -> anyhow::Result<PathBuf> {
    let out = if out == Path::new("-") { Path::new(NAMES[0]) } else { out };
    if !is_standard_output(out) {
        return Ok(out.to_owned());
    }
    anyhow::ensure!(
        !crate::output::is_json(),
        "the samples and the JSON document of --json cannot both go to standard output: write the \
         samples to a file, or leave out --json"
    );
    let is_file = Path::new(NAMES[0]).metadata().is_ok_and(|data| data.is_file());
    let (way, path) = if is_file { pipe()? } else { (OutputTarget::Straight, NAMES[0].into()) };
    *WAY.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(way);
    Ok(path)
}

/// The same for parameters of a graph: a value that is `-` or a name of standard output is a
/// destination of samples.
pub fn for_parameters(set: &[String]) -> anyhow::Result<Vec<String>> {
    let one = |text: &String| match text.split_once('=') {
        Some((name, value)) if value == "-" || NAMES.contains(&value) => {
            Ok(format!("{name}={}", for_data(Path::new(value))?.display()))
        }
        _ => Ok(text.clone()),
    };
    set.iter().map(one).collect()
}

/// The name in texts of a path from [`for_data`], if it is standard output.
pub fn name(path: &Path) -> Option<&'static str> {
    let is_it = NAMES.iter().any(|name| path == Path::new(name)) || path.starts_with(FOLDER);
    is_it.then_some("standard output")
}

/// Waits until all samples are written; returns whether any were expected.
pub fn end_samples() -> bool {
    let way = WAY.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    let Some(way) = way else { return false };
    if let OutputTarget::Pipe(end, thread) = way {
        // The last writer: the thread sees the end.
        drop(end);
        if let Ok(Err(error)) = thread.join() {
            crate::output::note(format_args!(
                "millstream: cannot write to standard output: {error}"
            ));
        }
    }
    true
}

const FOLDER: &str = "/proc/self/fd";

fn pipe() -> anyhow::Result<(OutputTarget, PathBuf)> {
    let (mut reader, writer) = io::pipe()?;
    let mut out = File::from(rustix::io::dup(io::stdout())?);
    let copy = move || io::copy(&mut reader, &mut out);
    let thread = std::thread::Builder::new().name("ms-stdout".to_owned()).spawn(copy)?;
    let writer = OwnedFd::from(writer);
    let path = PathBuf::from(format!("{FOLDER}/{}", writer.as_raw_fd()));
    Ok((OutputTarget::Pipe(writer, thread), path))
}

/// Whether a path leads to standard output. `/dev/null` does not count: it has no reader.
fn is_standard_output(path: &Path) -> bool {
    let same = || {
        let [a, b] = [path, Path::new(NAMES[0])].map(|path| path.metadata().ok());
        let (a, b) = (a?, b?);
        Some((a.dev(), a.ino()) == (b.dev(), b.ino()) && path != Path::new("/dev/null"))
    };
    NAMES.iter().any(|name| path == Path::new(name)) || same() == Some(true)
}
