//! Settings are restored, however the process ends.

use millstream_host::ethtool::{Channels, Ethtool, Offload};
use millstream_host::journal::{Journal, SettingValue, recover_in};
use millstream_testkit::netns::{INTERFACE, Namespace, PairOptions, VethPair};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

const FOLDER: &str = "MILLSTREAM_TEST_JOURNAL";

fn mtu(side: &Namespace) -> u32 {
    side.run(|| Ethtool::open().unwrap().mtu(INTERFACE).unwrap())
}

fn journals(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |listing| listing.count())
}

#[test]
fn a_change_lasts_as_long_as_its_guard() {
    let Some(pair) = VethPair::new(PairOptions { queues: 2, ..Default::default() }) else { return };
    let folder = tempfile::tempdir().unwrap();
    pair.left.run(|| {
        let ethtool = Ethtool::open().unwrap();
        let journal = Arc::new(Journal::open_in(folder.path()));
        let before = ethtool.channels(INTERFACE).unwrap().0;
        let checksum = ethtool.offload(INTERFACE, Offload::TransmitChecksum).unwrap();
        let one = Channels { receive: 1, transmit: 1, combined: 0 };
        let queues = journal.change(INTERFACE, SettingValue::Channels(one)).unwrap();
        let off = SettingValue::Offload(Offload::TransmitChecksum, !checksum);
        let offload = journal.change(INTERFACE, off).unwrap();
        assert_eq!(ethtool.channels(INTERFACE).unwrap().0, one);
        assert_eq!((journal.open_changes(), journals(folder.path())), (2, 1));
        assert_eq!(recover_in(folder.path()).unwrap().journals, 0, "its process lives");
        drop(queues);
        assert_eq!(ethtool.channels(INTERFACE).unwrap().0, before);
        offload.undo().unwrap();
        assert_eq!(ethtool.offload(INTERFACE, Offload::TransmitChecksum).unwrap(), checksum);
        assert_eq!((journal.open_changes(), journals(folder.path())), (0, 0));
    });
}

#[test]
fn changes_of_one_setting_may_end_in_any_order() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    pair.left.run(|| {
        let journal = Arc::new(Journal::open_in(folder.path()));
        let first = journal.change(INTERFACE, SettingValue::Mtu(1400)).unwrap();
        let second = journal.change(INTERFACE, SettingValue::Mtu(1300)).unwrap();
        drop(first);
        assert_eq!(mtu(&pair.left), 1300, "the second still wants it");
        drop(second);
        assert_eq!(mtu(&pair.left), 1500);
    });
}

#[test]
fn what_somebody_else_changed_since_is_left() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(folder.path()));
    let change = pair.left.run(|| journal.change(INTERFACE, SettingValue::Mtu(1400)).unwrap());
    pair.left.sh(&format!("ip link set {INTERFACE} mtu 1350"));
    // Dropped outside of the namespace: the change is undone where it was made.
    drop(change);
    assert_eq!(mtu(&pair.left), 1350);
    let change = pair.left.run(|| journal.change(INTERFACE, SettingValue::Mtu(1400)).unwrap());
    drop(change);
    assert_eq!((mtu(&pair.left), journals(folder.path())), (1350, 0));
}

#[test]
fn a_refused_change_leaves_nothing_in_the_journal() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(folder.path()));
    let change = |name: &str, value| pair.left.run(|| journal.change(name, value)).unwrap_err();
    let error = change(INTERFACE, SettingValue::Mtu(10)).to_string();
    assert!(error.starts_with(&format!("cannot set the MTU (10) of {INTERFACE}: ")), "{error}");
    let error = change("nonsense", SettingValue::Mtu(1400)).to_string();
    assert!(error.ends_with("there is no such interface in this network namespace"), "{error}");
    let no_folder = Arc::new(Journal::open_in(Path::new("/proc/nowhere")));
    let error = pair.left.run(|| no_folder.change(INTERFACE, SettingValue::Mtu(1400))).unwrap_err();
    assert!(error.to_string().ends_with("No setting was changed"), "{error}");
    assert_eq!((mtu(&pair.left), journal.open_changes(), journals(folder.path())), (1500, 0, 0));
}

/// Starts this program again, inside the namespace; it changes settings and waits to be killed.
fn victim(side: &Namespace, folder: &Path) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut command = side.command(own.to_str().unwrap());
    command.args(["--exact", "journal::the_victim", "--ignored", "--nocapture"]);
    let mut child = command.env(FOLDER, folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains("changed"));
    assert!(ready, "the victim came as far as changing settings");
    child
}

#[test]
#[ignore = "the process that other tests kill"]
fn the_victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let journal = Arc::new(Journal::open_in(Path::new(&folder)));
    let off = SettingValue::Offload(Offload::TransmitChecksum, false);
    let _offload = journal.change(INTERFACE, off).unwrap();
    let _done = journal.change(INTERFACE, SettingValue::Mtu(1450)).unwrap().undo();
    let _mtu = journal.change(INTERFACE, SettingValue::Mtu(1400)).unwrap();
    println!("changed");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn the_next_start_undoes_what_a_killed_process_left() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child = victim(&pair.left, folder.path());
    assert_eq!((mtu(&pair.left), journals(folder.path())), (1400, 1));
    assert_eq!(recover_in(folder.path()).unwrap().journals, 0, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    // From outside, recovery finds the namespace.
    let recovered = recover_in(folder.path()).unwrap();
    assert_eq!((recovered.journals, &recovered.failed), (1, &vec![]));
    let expected = ["the MTU (1500)", "the offload transmit-checksum (on)"];
    assert_eq!(recovered.undone, expected.map(|what| format!("{INTERFACE}: {what}")));
    assert_eq!((mtu(&pair.left), journals(folder.path())), (1500, 0));
    assert_eq!(recover_in(folder.path()).unwrap().journals, 0, "once is enough");
}

#[test]
fn a_namespace_that_is_gone_needs_no_undoing() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child = victim(&pair.left, folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(pair);
    let recovered = recover_in(folder.path()).unwrap();
    assert_eq!((recovered.journals, recovered.undone.len()), (1, 0), "{recovered:?}");
    assert_eq!(journals(folder.path()), 0, "{recovered:?}");
}

#[test]
fn a_journal_cut_short_is_followed_as_far_as_it_goes() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child = victim(&pair.left, folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"begin\":{\"id\":99,");
    fs::write(&path, &text).unwrap();
    assert_eq!(recover_in(folder.path()).unwrap().undone.len(), 2);
    // A journal that cannot be understood remains, and is reported.
    let odd = folder.path().join("1-0.journal");
    fs::write(&odd, "odd\n").unwrap();
    let recovered = recover_in(folder.path()).unwrap();
    assert!(recovered.failed[0].contains("1-0.journal: "), "{recovered:?}");
    assert!(odd.exists());
}

/// Starts a process that changes settings and dies; returns its journal.
fn left_over(pair: &VethPair, folder: &Path) -> std::path::PathBuf {
    let mut child = victim(&pair.left, folder);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_somebody_else_may_have_written_is_never_followed() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = left_over(&pair, folder.path());
    let followed = || recover_in(folder.path()).map(|found| found.journals);
    // A folder that is world-writable, belongs to another user, or is a link to ours.
    allow(folder.path(), 0o1777);
    assert_eq!(followed().unwrap_err().kind(), ErrorKind::PermissionDenied);
    let journal = Arc::new(Journal::open_in(folder.path()));
    let error = pair.left.run(|| journal.change(INTERFACE, SettingValue::Mtu(1350))).unwrap_err();
    assert!(error.to_string().contains("must be a directory that you own"), "{error}");
    allow(folder.path(), 0o700);
    chown(folder.path(), Some(65534), None).unwrap();
    assert_eq!(followed().unwrap_err().kind(), ErrorKind::PermissionDenied);
    chown(folder.path(), Some(0), None).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("folder");
    symlink(folder.path(), &link).unwrap();
    assert_eq!(recover_in(&link).unwrap_err().kind(), ErrorKind::PermissionDenied);
    // A file with another owner, that others can write, or with a second name.
    chown(&path, Some(65534), None).unwrap();
    assert_eq!(followed().unwrap(), 0);
    chown(&path, Some(0), None).unwrap();
    allow(&path, 0o620);
    assert_eq!(followed().unwrap(), 0);
    allow(&path, 0o600);
    let second = elsewhere.path().join("second");
    fs::hard_link(&path, &second).unwrap();
    assert_eq!(followed().unwrap(), 0);
    fs::remove_file(&second).unwrap();
    assert_eq!((mtu(&pair.left), followed().unwrap(), mtu(&pair.left)), (1400, 1, 1500));
    // A link to a file of this user.
    let own = elsewhere.path().join("own");
    fs::write(&own, "").unwrap();
    symlink(&own, folder.path().join("1-0.journal")).unwrap();
    assert_eq!(followed().unwrap(), 0);
    assert!(own.exists());
}

#[test]
fn another_namespace_with_the_same_inode_is_left_alone() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = left_over(&pair, folder.path());
    let text = fs::read_to_string(&path).unwrap();
    let cookie = text.split("\"cookie\":").nth(1).unwrap().split(',').next().unwrap();
    if cookie == "null" {
        return eprintln!("skipped: this kernel has no cookies of namespaces");
    }
    let other = text.replace(&format!("\"cookie\":{cookie}"), "\"cookie\":1844674407");
    fs::write(&path, other).unwrap();
    let recovered = recover_in(folder.path()).unwrap();
    assert_eq!((recovered.journals, recovered.undone), (1, vec![]));
    assert_eq!((mtu(&pair.left), journals(folder.path())), (1400, 0));
}

#[test]
fn the_journal_of_a_dead_process_with_our_number_is_not_written_over() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let left: Vec<_> = (0..100)
        .map(|number| folder.path().join(format!("{}-{number}.journal", std::process::id())))
        .collect();
    left.iter().for_each(|path| fs::write(path, "left\n").unwrap());
    let journal = Arc::new(Journal::open_in(folder.path()));
    let change = pair.left.run(|| journal.change(INTERFACE, SettingValue::Mtu(1400)).unwrap());
    assert_eq!(journals(folder.path()), 101);
    drop(change);
    assert!(left.iter().all(|path| fs::read_to_string(path).unwrap() == "left\n"));
    assert_eq!((mtu(&pair.left), journals(folder.path())), (1500, 100));
}
