use super::*;
use std::fs;
use std::process::{Child, Command};

/// Returns a machine of files with one setting, and where that is.
pub(super) fn setting(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proc/sys/vm/swappiness");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// A process with a setting of its own of which the kernel stores nine bits, so that the stored
/// value differs from the written one (proc_pid_coredump_filter(5)).
pub(super) struct Adjusting(Child);

impl Adjusting {
    pub(super) fn new() -> Self {
        let mut command = Command::new("sleep");
        crate::child::tie(command.arg("60"), None);
        let made = Self(command.spawn().unwrap());
        // The file takes decimal and shows hexadecimal numbers: this one is the same in both.
        fs::write(made.path(), "1").unwrap();
        made
    }

    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/coredump_filter", self.0.id()).into()
    }

    pub(super) fn value(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

impl Drop for Adjusting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_kernel_makes_something_else_of_is_taken_back_at_once() {
    let (folder, adjusting) = (tempfile::tempdir().unwrap(), Adjusting::new());
    let journal = Arc::new(Journal::open_in(folder.path()));
    let before = adjusting.value();
    let error = journal.write_file(&adjusting.path(), "4294967295").unwrap_err().to_string();
    assert!(error.contains("the kernel shows `000001ff` after that"), "{error}");
    assert_eq!((adjusting.value(), journal.open_changes()), (before.clone(), 0));
    let change = journal.write_file(&adjusting.path(), "2").unwrap();
    assert_eq!(adjusting.value(), "00000002\n");
    change.undo().unwrap();
    assert_eq!(adjusting.value(), before);
}

#[test]
fn what_was_being_written_when_its_process_died_is_ours_whatever_it_is() {
    let (folder, setting) = setting("61\n");
    let journals = folder.path().join("journals");
    fs::create_dir(&journals).unwrap();
    let follow = |after: &str| {
        let path = "/proc/sys/vm/swappiness";
        let what = format!(r#"{{"path":"{path}","before":"0\n","text":"128","after":{after}}}"#);
        let line = format!(r#"{{"begin":{{"id":0,"file":{what}}}}}"#);
        let file = journals.join("1-0.journal");
        fs::write(&file, line + "\n").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let recovered = recover_below(folder.path(), &journals).unwrap();
        assert_eq!((recovered.journals, &recovered.failed), (1, &vec![]));
        fs::read_to_string(&setting).unwrap()
    };
    assert_eq!(follow(r#""128\n""#), "61\n", "somebody else's");
    assert_eq!(follow("null"), "0\n");
}

#[test]
fn a_group_of_somebody_else_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (journals, group) = (folder.path().join("journals"), folder.path().join("millstream"));
    fs::create_dir(&group).unwrap();
    let files = [("tasks", "4711\n"), ("cpuset.cpus.partition", "root\n")];
    files.iter().for_each(|(name, text)| fs::write(group.join(name), text).unwrap());
    let journal = Arc::new(Journal::below(folder.path(), &journals));
    let error = journal.make_group(&group, Origins::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the control group "), "{error}");
    for (name, text) in files {
        assert_eq!(fs::read_to_string(group.join(name)).unwrap(), text, "{name}");
    }
    assert_eq!((journal.open_changes(), fs::read_dir(&journals).unwrap().count()), (0, 0));
}

#[test]
fn what_cannot_be_undone_outlasts_the_process_in_its_journal() {
    let (folder, setting) = setting("1\n");
    let journals = folder.path().join("journals");
    let journal = Arc::new(Journal::below(folder.path(), &journals));
    let change = journal.write_file(&setting, "2").unwrap();
    let aside = folder.path().join("aside");
    fs::rename(&setting, &aside).unwrap();
    fs::create_dir(&setting).unwrap();
    change.undo().unwrap_err();
    drop(journal);
    // A process that another test is starting may hold its lock until its exec.
    let mut found = std::iter::repeat_with(|| recover_below(folder.path(), &journals).unwrap());
    assert_eq!(found.find(|found| found.journals > 0).unwrap().failed.len(), 1);
    fs::remove_dir(&setting).unwrap();
    fs::rename(&aside, &setting).unwrap();
    assert_eq!(recover_below(folder.path(), &journals).unwrap().undone.len(), 1);
    assert_eq!(fs::read_to_string(&setting).unwrap(), "1\n");
}

/// Journals of every kind, which name what this program never changes.
#[test]
fn a_hostile_journal_changes_nothing() {
    let (folder, setting) = setting("60\n");
    let root = folder.path();
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for name in ["etc/passwd", "etc/conf/file", "proc/sys/kernel/core_pattern", "cg/user/tasks"] {
        put(name, "1\n");
    }
    put("cg/cgroup.subtree_control", "cpuset\n");
    std::os::unix::fs::symlink(root.join("etc"), root.join("proc/irq")).unwrap();
    put("etc/24/smp_affinity_list", "1\n");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("cpus"), "1\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("cg/out")).unwrap();
    let outside = outside.path().display();
    let file = |path: &str| {
        format!(r#""file":{{"path":"{path}","before":"evil","text":"1\n","after":null}}"#)
    };
    let whole = |path: String| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    let journals = root.join("journals");
    fs::create_dir(&journals).unwrap();
    let hostile = [
        file("/etc/passwd"),
        file("/proc/sys/kernel/core_pattern"),
        file("/proc/irq/../sys/kernel/core_pattern"),
        file("/proc/irq/../smp_affinity_list"),
        file("proc/sys/vm/swappiness"),
        file(&format!("{outside}/cpus")),
        file("/cg/out/cpus"),
        r#""group":{"path":"/etc"}"#.into(),
        r#""group":{"path":"/cg/user"}"#.into(),
        r#""group":{"path":"/cg/millstream/../user"}"#.into(),
        r#""group":{"path":"/cg/user","guests":"/etc","residents":[1]}"#.into(),
        r#""cpusets":{"group":"/cg/../cg"}"#.into(),
        r#""cpusets":{"group":"cg"}"#.into(),
        "[".repeat(100_000),
        format!(r#""file":{{"path":"/{}"}}"#, "a/".repeat(100_000)),
    ];
    let list = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    for what in hostile {
        let line = format!(r#"{{"begin":{{"id":0,{what}}}}}"#) + "\n";
        for name in ["1-0.journal", "doctor.kept"] {
            let path = journals.join(name);
            fs::write(&path, &line).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
        }
        let recovered = recover_below(root, &journals).unwrap();
        let told = &what[..what.len().min(100)];
        assert_eq!(recovered.undone, Vec::<String>::new(), "{told}");
        let _ = PersistentChanges::below(root, &journals, "doctor").undo(Since::Overruled);
        for name in ["etc/passwd", "etc/conf/file", "proc/sys/kernel/core_pattern", "cg/user/tasks"]
        {
            assert_eq!(list(name), "1\n", "{told}");
        }
        assert_eq!(list("cg/cgroup.subtree_control"), "cpuset\n", "{told}");
        assert!(whole(outside.to_string()) && fs::read_to_string(&setting).unwrap() == "60\n");
        assert_eq!(fs::read_to_string(format!("{outside}/cpus")).unwrap(), "1\n", "{told}");
    }
}

/// The thread that claims to be a user's; the kernel has these numbers for each thread.
#[test]
fn who_may_not_change_a_setting_learns_that_it_needs_root() {
    let text = || {
        let what = "make the control group /x".to_owned();
        JournalError::Change { what, source: io::ErrorKind::PermissionDenied.into() }.to_string()
    };
    let by_user = std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(None, nobody, None).unwrap();
        }
        let gone = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(needs_root(&gone), "", "root could not either");
        text()
    });
    let by_user = by_user.join().unwrap();
    assert!(
        by_user.starts_with("cannot make the control group /x: permission denied"),
        "{by_user}"
    );
    assert!(by_user.ends_with("; this needs root"), "{by_user}");
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(text().contains("needs root"), !is_root, "root is not told to become root");
}
