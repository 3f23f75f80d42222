//! Fuzzes the journal of changed settings: its lines are executed with the rights of the reader.
//! For any content, as a journal that is kept and as that of a dead process, nothing is written or
//! removed but a machine's settings that this program changes.
#![no_main]

use millstream_host::journal::{PersistentChanges, Since, recover_below};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Two settings in a machine of files, files that are none, and the folder of journals.
struct Place {
    root: PathBuf,
    settings: [PathBuf; 2],
    others: [PathBuf; 3],
    journals: PathBuf,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("millstream-journal-{}", std::process::id()));
    let root = folder.join("root");
    let journals = root.join("run");
    fs::create_dir_all(&journals).unwrap();
    fs::set_permissions(&journals, fs::Permissions::from_mode(0o700)).unwrap();
    let settings = ["proc/sys/vm/swappiness", "proc/irq/1/smp_affinity_list"];
    let others = ["../outside", "etc/passwd", "proc/sys/kernel/core_pattern"];
    let [settings, others] = [settings.to_vec(), others.to_vec()]
        .map(|names| names.into_iter().map(|name| root.join(name)).collect::<Vec<_>>());
    for file in settings.iter().chain(&others) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    let (settings, others) = (settings.try_into().unwrap(), others.try_into().unwrap());
    Place { settings, others, journals, root }
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Place { root, settings, others, journals } = &*PLACE;
    for file in settings.iter().chain(others) {
        fs::write(file, "1\n").unwrap();
    }
    let [file, dead] = ["fuzz.kept", "1-0.journal"].map(|name| journals.join(name));
    for file in [&file, &dead] {
        fs::write(file, bytes).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    recover_below(root, journals).unwrap();
    let _ = fs::remove_file(&dead);
    let kept = PersistentChanges::below(root, journals, "fuzz");
    let noted = kept.open_changes().map(|noted| noted.len()).ok();
    let _ = kept.write(&settings[0], "2");
    for since in [Since::Left, Since::Overruled] {
        if let Ok(fates) = kept.undo(since) {
            assert!(noted.is_some(), "a journal that makes no sense is not followed");
            let is_done = fates.iter().all(|fate| fate.put_back);
            assert_eq!(file.exists(), !is_done, "what is not undone stays noted");
        }
    }
    for other in others {
        assert_eq!(fs::read_to_string(other).unwrap(), "1\n");
    }
    let _ = fs::remove_file(&file);
});
