use super::*;
use std::fs;
use std::process::{Child, Command};

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
    let folder = tempfile::tempdir().unwrap();
    let (journals, setting) = (folder.path().join("journals"), folder.path().join("setting"));
    fs::create_dir(&journals).unwrap();
    fs::write(&setting, "61\n").unwrap();
    let follow = |after: &str| {
        let path = setting.display();
        let what = format!(r#"{{"path":"{path}","before":"0\n","text":"128","after":{after}}}"#);
        let line = format!(r#"{{"begin":{{"id":0,"file":{what}}}}}"#);
        let file = journals.join("1-0.journal");
        fs::write(&file, line + "\n").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let recovered = recover_in(&journals).unwrap();
        assert_eq!((recovered.journals, &recovered.failed), (1, &vec![]));
        fs::read_to_string(&setting).unwrap()
    };
    assert_eq!(follow(r#""128\n""#), "61\n", "somebody else's");
    assert_eq!(follow("null"), "0\n");
}

#[test]
fn a_group_of_somebody_else_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (journals, group) = (folder.path().join("journals"), folder.path().join("group"));
    fs::create_dir(&group).unwrap();
    let files = [("tasks", "4711\n"), ("cpuset.cpus.partition", "root\n")];
    files.iter().for_each(|(name, text)| fs::write(group.join(name), text).unwrap());
    let journal = Arc::new(Journal::open_in(&journals));
    let error = journal.make_group(&group, Origins::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the control group "), "{error}");
    for (name, text) in files {
        assert_eq!(fs::read_to_string(group.join(name)).unwrap(), text, "{name}");
    }
    assert_eq!((journal.open_changes(), fs::read_dir(&journals).unwrap().count()), (0, 0));
}

#[test]
fn what_cannot_be_undone_outlasts_the_process_in_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (journals, setting) = (folder.path().join("journals"), folder.path().join("setting"));
    fs::write(&setting, "1\n").unwrap();
    let journal = Arc::new(Journal::open_in(&journals));
    let change = journal.write_file(&setting, "2").unwrap();
    let aside = folder.path().join("aside");
    fs::rename(&setting, &aside).unwrap();
    fs::create_dir(&setting).unwrap();
    change.undo().unwrap_err();
    drop(journal);
    // A process that another test is starting may hold its lock until its exec.
    let mut found = std::iter::repeat_with(|| recover_in(&journals).unwrap());
    assert_eq!(found.find(|found| found.journals > 0).unwrap().failed.len(), 1);
    fs::remove_dir(&setting).unwrap();
    fs::rename(&aside, &setting).unwrap();
    assert_eq!(recover_in(&journals).unwrap().undone.len(), 1);
    assert_eq!(fs::read_to_string(&setting).unwrap(), "1\n");
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
