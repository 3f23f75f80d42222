//! The guest's initial file system: this program, the libraries it is linked with, the job.

use crate::archive::Archive;
use crate::error::{Error, at};
use crate::job::{self, GuestJob};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files for a guest in addition to the program: their paths in the guest, and their content.
pub type Files = Vec<(String, Vec<u8>)>;

/// Builds the initial file system that runs `job` with the calling program itself, or with
/// `program`, a static one for a guest with another processor. It includes the libraries that the
/// calling program is linked with, and `others`, with theirs: programs, and shared objects that a
/// program opens itself. A static program has none.
///
/// # Errors
/// When the program or a library cannot be read.
pub fn build(
    program: Option<&Path>,
    job: &GuestJob,
    files: &Files,
    others: &[PathBuf],
) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::new();
    for directory in ["proc", "sys", "dev", "tmp", "run", "root", "var/run"] {
        archive.directory(directory);
    }
    archive.device("/dev/console", 5, 1);
    // The program's own file, even when its path has another one by now.
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let init = program.unwrap_or(&own);
    archive.file("/init", &std::fs::read(init).map_err(at(init))?);
    let mut objects = if program.is_none() { vec![own] } else { Vec::new() };
    objects.extend_from_slice(others);
    let mut paths = if objects.is_empty() { BTreeSet::new() } else { libraries(&objects)? };
    paths.extend(others.iter().cloned());
    add_objects(&mut archive, &paths)?;
    for (path, content) in files {
        archive.file(path, content);
    }
    let job = serde_json::to_vec(job).expect("a job is plain data");
    archive.file(job::PATH, &job);
    Ok(archive.finish())
}

/// Adds each object once, under all its names: an object that a program opens by a second name must
/// be the same one.
fn add_objects(archive: &mut Archive, paths: &BTreeSet<PathBuf>) -> Result<(), Error> {
    let mut added = BTreeSet::new();
    for path in paths {
        let object = std::fs::canonicalize(path).map_err(at(path))?;
        let (name, target) = (path.to_string_lossy(), object.to_string_lossy());
        if added.insert(object.clone()) {
            archive.file(&target, &std::fs::read(&object).map_err(at(&object))?);
        }
        if *path != object {
            archive.link(&name, &target);
        }
    }
    Ok(())
}

/// Returns the objects that the loader would load, by the names under which it searches them, and
/// the loader by the name in the program's header.
fn libraries(objects: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    let mut command = Command::new("ldd");
    // For one object or several, each with a heading; a static one has no output, which is not an
    // error.
    let output = command.args(objects).output().map_err(|source| Error::Missing {
        program: "ldd".to_owned(),
        package: "libc-bin",
        source,
    })?;
    Ok(named(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads `name => path (address)`, and `path (address)` of the loader.
fn named(list: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let (path, _) = line.rsplit_once(" (")?;
        let path = path.rsplit_once("=> ").map_or(path, |(_, path)| path).trim();
        path.starts_with('/').then(|| path.into())
    };
    list.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tests::smallest_static_program;

    #[test]
    fn libraries_come_under_the_names_by_which_they_are_looked_for() {
        let list = "\
/usr/lib/librte_net_e1000.so:
\tlinux-vdso.so.1 (0x00007fcb6705e000)
\tlibrte_eal.so.23 => /lib/x86_64-linux-gnu/librte_eal.so.23 (0x00007fcb66cde000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fcb66a87000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fcb67060000)
/usr/bin/static:
\tstatically linked
/usr/bin/other:
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fcb66a87000)
";
        let wanted = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/librte_eal.so.23",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert!(named(list).iter().eq(&wanted.map(PathBuf::from)), "{:?}", named(list));
    }

    #[test]
    fn the_image_holds_program_job_and_files() {
        let job = GuestJob { arguments: vec!["find".into()], ..GuestJob::default() };
        let files = vec![("/plan.toml".to_owned(), b"restarts = 3".to_vec())];
        let image = build(None, &job, &files, &[]).unwrap();
        for needle in [&b"init\0"[..], b"millstream-job.json\0", b"restarts = 3", b"TRAILER!!!"] {
            assert!(image.windows(needle.len()).any(|window| window == needle));
        }
    }

    #[test]
    fn a_static_program_brings_nothing_and_does_not_hide_what_others_bring() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("static");
        std::fs::write(&program, smallest_static_program()).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(libraries(std::slice::from_ref(&program)).unwrap().is_empty());
        let own = std::env::current_exe().unwrap();
        let alone = libraries(std::slice::from_ref(&own)).unwrap();
        assert_eq!(libraries(&[program, own]).unwrap(), alone);
    }
}
