//! The guest's initial file system: this program, the libraries it is linked with, the job.

use crate::archive::Archive;
use crate::error::{Error, at};
use crate::job::{self, Job};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files for a guest beside the program: where they lie there, and their content.
pub type Files = Vec<(String, Vec<u8>)>;

/// The initial file system that runs `job` with `program`, which is the calling program itself.
/// A program that is linked statically is all there is; otherwise its libraries come along.
///
/// # Errors
/// When the program or a library cannot be read.
pub fn build(program: &Path, job: &Job, files: &Files) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::new();
    for directory in ["proc", "sys", "dev", "tmp", "run", "root", "var"] {
        archive.directory(directory);
    }
    archive.device("/dev/console", 5, 1);
    archive.file("/init", &std::fs::read(program).map_err(at(program))?);
    for library in libraries()? {
        let content = std::fs::read(&library).map_err(at(&library))?;
        archive.file(&library.to_string_lossy(), &content);
    }
    for (path, content) in files {
        archive.file(path, content);
    }
    let job = serde_json::to_vec(job).expect("a job is plain data");
    archive.file(job::PATH, &job);
    Ok(archive.finish())
}

/// The shared objects of the calling process, and the loader's path as programs name it.
fn libraries() -> Result<BTreeSet<PathBuf>, Error> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(at("/proc/self/maps"))?;
    let mut found = mapped_objects(&maps);
    // The kernel follows the name in the program's header (System V ABI, AMD64 supplement, 5.2.1).
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if !found.is_empty() && loader.exists() {
        found.insert(loader.to_owned());
    }
    // A library is looked for in the default directories, wherever it was found here.
    Ok(found)
}

fn mapped_objects(maps: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| line.split_whitespace().nth(5).map(PathBuf::from);
    let is_object = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_absolute() && (name.ends_with(".so") || name.contains(".so."))
    };
    maps.lines().filter_map(path).filter(is_object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_objects_are_taken_from_the_map_and_data_is_not() {
        let maps = "\
55f0-55f1 r--p 00000000 fe:00 12 /usr/bin/millstream
7f00-7f01 r-xp 00001000 fe:00 34 /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 r--p 00000000 fe:00 34 /usr/lib/x86_64-linux-gnu/libc.so.6
7f04-7f05 r--p 00000000 fe:00 35 /usr/lib/locale/locale-archive
7ffe-7fff rw-p 00000000 00:00 0 [stack]
";
        let found = mapped_objects(maps);
        assert_eq!(found, [PathBuf::from("/usr/lib/x86_64-linux-gnu/libc.so.6")].into());
    }

    #[test]
    fn the_image_holds_program_job_and_files() {
        let job = Job { arguments: vec!["find".into()], ..Job::default() };
        let files = vec![("/plan.toml".to_owned(), b"restarts = 3".to_vec())];
        let program = std::env::current_exe().unwrap();
        let image = build(&program, &job, &files).unwrap();
        for needle in [&b"init\0"[..], b"millstream-job.json\0", b"restarts = 3", b"TRAILER!!!"] {
            assert!(image.windows(needle.len()).any(|window| window == needle));
        }
    }
}
