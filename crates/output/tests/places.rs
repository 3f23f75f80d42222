//! What a name can be, and what then becomes of it and of its neighbours.

use millstream_output::{Existing, OutputError, OutputFile, check, is_regular, part_of};
use millstream_output::{names_standard_output, open_input, store_whole, take_set_aside};
use millstream_output::{update_whole, write_whole};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Every way to write a file. In the order: one that a user names, small ones, own ones.
type Way = fn(&Path, &[u8], Existing) -> Result<(), OutputError>;
const WAYS: [Way; 4] = [
    |path, bytes, existing| {
        let mut file = OutputFile::create(path, existing)?;
        file.write_all(bytes).map_err(|error| file.fail(error))?;
        file.complete()
    },
    write_whole,
    |path, bytes, _| update_whole(path, bytes),
    |path, bytes, _| store_whole(path, bytes),
];

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with the contents that are given, by name.
fn folder_of(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("a");
    (folder, path)
}

#[test]
fn an_old_file_is_replaced_only_where_that_is_allowed_and_keeps_its_mode() {
    let (folder, path) = folder_of(&[("a", "old"), ("empty", "")]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    for write in &WAYS[..2] {
        let error = write(&path, b"new", Existing::Refuse).unwrap_err();
        let expected =
            format!("{} exists already: choose another name, or add --force", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write(&folder.path().join("empty"), b"", Existing::Refuse).unwrap();
    }
    for write in WAYS {
        fs::write(&path, "old").unwrap();
        write(&path, b"new", Existing::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    }
    assert_eq!(names(folder.path()), ["a", "empty"]);
}

#[test]
fn the_old_file_is_whole_until_the_new_one_is() {
    let (folder, path) = folder_of(&[("a", "old")]);
    let mut file = OutputFile::create(&path, Existing::Replace).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read(part_of(&path)).unwrap(), b"new", "it was not completed");
    fs::remove_file(part_of(&path)).unwrap();
    drop(OutputFile::create(&path, Existing::Replace).unwrap());
    assert_eq!(names(folder.path()), ["a"], "an empty part is of no use");
    OutputFile::create(&path, Existing::Replace).unwrap().complete().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"", "nothing written is a result, too");
}

#[test]
fn what_a_crash_left_is_kept_under_a_free_name() {
    let (folder, path) = folder_of(&[("a.part", "first"), ("a.part.1", "older")]);
    WAYS[0](&path, b"new", Existing::Refuse).unwrap();
    assert_eq!(fs::read(folder.path().join("a.part.2")).unwrap(), b"first");
    assert_eq!(fs::read(folder.path().join("a.part.1")).unwrap(), b"older");
    assert_eq!(names(folder.path()), ["a", "a.part.1", "a.part.2"]);
    assert!(take_set_aside().contains(&folder.path().join("a.part.2")));
}

#[test]
fn two_writers_exclude_each_other() {
    let (folder, path) = folder_of(&[]);
    let mut first = OutputFile::create(&path, Existing::Refuse).unwrap();
    first.write_all(b"first").unwrap();
    let error = OutputFile::create(&path, Existing::Replace).unwrap_err().to_string();
    assert!(error.contains("reads or writes it: write elsewhere"), "{error}");
    first.complete().unwrap();
    let reader = open_input(&path).unwrap();
    reader.try_lock_shared().unwrap();
    let error = OutputFile::create(&path, Existing::Replace).unwrap_err().to_string();
    assert!(error.contains("reads or writes it: write elsewhere"), "{error}");
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (b"first".to_vec(), vec!["a".into()])
    );
}

#[test]
fn a_part_that_another_program_took_away_replaces_nothing() {
    let (folder, path) = folder_of(&[("a", "old")]);
    let mut file = OutputFile::create(&path, Existing::Replace).unwrap();
    file.write_all(b"mine").unwrap();
    fs::rename(part_of(&path), folder.path().join("moved")).unwrap();
    fs::write(part_of(&path), "another's").unwrap();
    let error = file.complete().unwrap_err().to_string();
    assert!(error.contains("another program has renamed or removed"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read(part_of(&path)).unwrap(), b"another's");
    assert_eq!(fs::read(folder.path().join("moved")).unwrap(), b"mine");
}

#[test]
fn a_file_that_appeared_meanwhile_is_not_replaced() {
    let (_folder, path) = folder_of(&[]);
    let mut file = OutputFile::create(&path, Existing::Refuse).unwrap();
    file.write_all(b"mine").unwrap();
    fs::write(&path, "another's").unwrap();
    assert!(matches!(file.complete(), Err(OutputError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"another's");
    assert_eq!(fs::read(part_of(&path)).unwrap(), b"mine");
}

#[test]
fn links_are_followed_also_to_names_that_are_not_there() {
    for write in WAYS {
        let (folder, path) = folder_of(&[("target", "old")]);
        let disk = tempfile::tempdir().unwrap();
        symlink("link", &path).unwrap();
        symlink(disk.path().join("made"), folder.path().join("link")).unwrap();
        write(&path, b"far", Existing::Refuse).unwrap();
        assert_eq!(fs::read(disk.path().join("made")).unwrap(), b"far");
        assert_eq!(names(disk.path()), ["made"], "its part was there, too");
        fs::remove_file(&path).unwrap();
        symlink("target", &path).unwrap();
        write(&path, b"new", Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("target")).unwrap(), b"new");
        fs::remove_file(&path).unwrap();
        symlink("a", &path).unwrap();
        let error = write(&path, b"round", Existing::Replace).unwrap_err().to_string();
        assert!(error.contains("Too many levels of symbolic links"), "{error}");
    }
}

#[test]
fn devices_fifos_and_descriptors_get_the_bytes_and_stay_what_they_are() {
    for write in WAYS {
        let (folder, path) = folder_of(&[]);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        // Opened to read and write, so that nobody waits.
        let mut reader = File::options().read(true).write(true).open(&path).unwrap();
        write(&path, b"fifo", Existing::Refuse).unwrap();
        let mut read = [0; 4];
        reader.read_exact(&mut read).unwrap();
        assert_eq!((&read, names(folder.path())), (b"fifo", vec!["a".to_owned()]));

        write(Path::new("/dev/null"), b"away", Existing::Refuse).unwrap();
        let error = write(Path::new("/dev/full"), b"x", Existing::Refuse).unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
        for name in ["/dev/null", "/dev/full"] {
            assert!(!is_regular(Path::new(name)));
            assert!(fs::symlink_metadata(part_of(Path::new(name))).is_err());
        }

        // A socket cannot be opened by a name below /dev/fd: only the descriptor itself does.
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let name = format!("{folder}/{}", far.as_raw_fd());
            write(Path::new(&name), b"sock", Existing::Refuse).unwrap();
            near.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"sock");
        }
    }
}

#[test]
fn a_file_that_the_shell_has_opened_to_append_grows() {
    let (folder, path) = folder_of(&[("a", "old ")]);
    let file = File::options().append(true).open(&path).unwrap();
    let name = format!("/dev/fd/{}", file.as_raw_fd());
    for write in WAYS {
        write(Path::new(&name), b"new ", Existing::Refuse).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"old new new new new ");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_descriptor_that_is_not_open_is_an_error() {
    for write in WAYS {
        let error = write(Path::new("/dev/fd/987"), b"x", Existing::Refuse).unwrap_err();
        assert!(error.to_string().contains("Bad file descriptor"), "{error}");
    }
}

#[test]
fn names_of_standard_streams_are_known_without_looking_at_the_file_system() {
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(names_standard_output(Path::new(name)), "{name}");
        check(Path::new(name), Existing::Refuse).unwrap();
    }
    for name in ["/dev/null", "/dev/stderr", "./-", "no/such"] {
        assert!(!names_standard_output(Path::new(name)), "{name}");
    }
}

#[test]
fn what_cannot_be_a_file_is_refused_and_left_alone() {
    let (folder, path) = folder_of(&[]);
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::create_dir(part_of(&path)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    let before = names(folder.path());
    let told = |name: &str| {
        let path = folder.path().join(name);
        assert!(check(&path, Existing::Replace).is_err() || name == "a");
        OutputFile::create(&path, Existing::Replace).unwrap_err().to_string()
    };
    assert!(told("folder").ends_with("is a directory"), "{}", told("folder"));
    assert!(told("socket").contains("use a FIFO"), "{}", told("socket"));
    assert!(told("a").contains("which is no regular file: remove it"), "{}", told("a"));
    assert!(told("no/b").ends_with("; make its folder first"), "{}", told("no/b"));
    assert_eq!(names(folder.path()), before);
}

#[test]
fn no_file_is_made_below_dev_but_in_shared_memory() {
    for name in ["/dev/no-such-device", "/dev/../dev/fulll"] {
        for write in WAYS {
            let error = write(Path::new(name), b"x", Existing::Replace).unwrap_err();
            assert!(matches!(error, OutputError::NoDevice { .. }), "{error}");
        }
        assert!(!Path::new(name).exists() && !part_of(Path::new(name)).exists());
    }
    if Path::new("/dev/shm").is_dir() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        write_whole(&folder.path().join("a"), b"x", Existing::Refuse).unwrap();
    }
}

#[test]
fn a_protected_file_is_refused() {
    let (folder, path) = folder_of(&[("a", "old")]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    // Root may write it. Identities belong to threads in Linux.
    let as_user = std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            use rustix::thread::{Uid, set_thread_res_uid};
            let nobody = Uid::from_raw(65_534);
            if rustix::process::geteuid().is_root() {
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let results =
                [check(&path, Existing::Replace), WAYS[0](&path, b"new", Existing::Replace)];
            results.map(|result| result.unwrap_err().to_string())
        });
        user.join().unwrap()
    });
    for error in as_user {
        assert!(error.contains("Permission denied"), "{error}");
    }
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (b"old".to_vec(), vec!["a".into()])
    );
}

#[test]
fn an_input_may_be_a_descriptor() {
    let (mut writer, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    writer.write_all(b"in").unwrap();
    drop(writer);
    let mut text = String::new();
    let name = format!("/dev/fd/{}", reader.as_raw_fd());
    open_input(Path::new(&name)).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "in");
}
