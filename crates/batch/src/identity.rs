//! Which recording a path leads to: what must not change while its name stays.
//!
//! A SigMF recording that states the hash of its samples (`core:sha512`) is known by its metadata
//! and the size of its samples; it may move. Every other recording is known by its path relative to
//! the manifest, its size and the time of its last change: reading all samples of all recordings to
//! recognise a finished batch would take longer than many a task.

use crate::BatchError;
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The largest metadata file, bytes.
const META_BYTES_MAX: u64 = 16 << 20;

/// Returns the identity of the recording at `path`, which the manifest calls `shown`. That a file
/// of it is not there is the task's failure, not the batch's.
pub(crate) fn of_recording(path: &Path, shown: &str) -> Result<String, BatchError> {
    let Some(found) = stat(path)? else { return Ok(format!("{shown} is not there")) };
    if path.extension().is_none_or(|extension| extension != "sigmf-meta") {
        return Ok(format!("{shown} {}", size_and_time(&found)));
    }
    let samples = stat(&path.with_extension("sigmf-data"))?;
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(META_BYTES_MAX).read_to_end(&mut text));
    read.map_err(BatchError::read(path))?;
    let hash = digest(&text);
    // Metadata that cannot be read is the task's failure, not the batch's.
    let document: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    let stated = document.is_some_and(|document| document["global"]["core:sha512"].is_string());
    Ok(match (samples, stated) {
        (None, _) => format!("{shown} {hash} without samples"),
        (Some(samples), true) => format!("sigmf {hash} {} bytes", samples.len()),
        (Some(samples), false) => format!("{shown} {hash} {}", size_and_time(&samples)),
    })
}

/// Returns the sizes of a recording's files and the times of their last changes.
pub(crate) fn stamp(path: &Path) -> Result<String, BatchError> {
    let of = |path: &Path| {
        let found = fs::metadata(path).map_err(BatchError::read(path))?;
        Ok(size_and_time(&found))
    };
    match path.extension().is_some_and(|extension| extension == "sigmf-meta") {
        true => Ok(format!("{}, {}", of(path)?, of(&path.with_extension("sigmf-data"))?)),
        false => of(path),
    }
}

/// What the system says about a file; `None` if there is none.
fn stat(path: &Path) -> Result<Option<Metadata>, BatchError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(BatchError::read(path)),
    }
}

fn size_and_time(found: &Metadata) -> String {
    format!("{} bytes {}.{:09} s", found.len(), found.mtime(), found.mtime_nsec())
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_standard() {
        // FIPS 180-4, the example of one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), expected);
    }

    #[test]
    fn a_recording_is_another_one_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sc16");
        fs::write(&path, [0; 40]).unwrap();
        let first = of_recording(&path, "a.sc16").unwrap();
        assert_eq!(of_recording(&path, "a.sc16").unwrap(), first);
        fs::write(&path, [0; 44]).unwrap();
        assert_ne!(of_recording(&path, "a.sc16").unwrap(), first, "longer");
        let missing = of_recording(&folder.path().join("b"), "b").unwrap();
        assert_eq!(missing, "b is not there", "its task fails");
    }

    #[test]
    fn a_sigmf_recording_with_its_hash_may_move_and_one_without_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-meta"));
        for (global, same) in [("\"core:sha512\": \"12\"", true), ("\"x\": 1", false)] {
            for path in [&a, &b] {
                fs::write(path, format!("{{\"global\": {{{global}}}}}")).unwrap();
                fs::write(path.with_extension("sigmf-data"), [0; 40]).unwrap();
            }
            let both = [&a, &b].map(|path| of_recording(path, &path.to_string_lossy()).unwrap());
            assert_eq!(both[0] == both[1], same, "{both:?}");
        }
        fs::write(&a, "no metadata").unwrap();
        of_recording(&a, "a").unwrap();
        fs::remove_file(a.with_extension("sigmf-data")).unwrap();
        assert!(of_recording(&a, "a").unwrap().ends_with(" without samples"));
    }
}
