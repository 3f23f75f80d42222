//! Fuzzes the journal of changed settings: its lines are executed with the rights of the reader.
//! For any content, no file outside the machine's folder is written.
//!
//! `ROOT` in the input is that folder.
#![no_main]

use millstream_host::journal::{PersistentChanges, Since};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Two settings in a machine of files, one outside of it, and the folder of journals.
struct Place {
    root: PathBuf,
    settings: [PathBuf; 2],
    outside: PathBuf,
    journals: PathBuf,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("millstream-journal-{}", std::process::id()));
    let root = folder.join("root");
    let journals = root.join("run");
    fs::create_dir_all(&journals).unwrap();
    fs::set_permissions(&journals, fs::Permissions::from_mode(0o700)).unwrap();
    let settings = ["a", "b"].map(|name| root.join(name));
    Place { settings, outside: folder.join("outside"), journals, root }
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Place { root, settings, outside, journals } = &*PLACE;
    for file in settings.iter().chain([outside]) {
        fs::write(file, "1\n").unwrap();
    }
    let file = journals.join("fuzz.kept");
    let text = String::from_utf8_lossy(bytes).replace("ROOT", &root.display().to_string());
    fs::write(&file, &text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
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
    assert_eq!(fs::read_to_string(outside).unwrap(), "1\n");
    let _ = fs::remove_file(&file);
});
