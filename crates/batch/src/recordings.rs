//! The recordings that the patterns of a manifest name.

use crate::identity::of_recording;
use crate::{BatchError, ResultFolder};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The files that match the patterns, relative to `folder`, sorted within each pattern. The files
/// of the results are none of them: tasks make and remove these meanwhile. Second, the folders that
/// `**` and `*` would have searched and could not, with the reason.
pub(crate) fn matches(
    folder: &Path,
    patterns: &[String],
    results: &ResultFolder,
) -> Result<(Vec<String>, Vec<String>), String> {
    if patterns.is_empty() {
        return Err("recordings = []: name at least one recording or pattern".to_owned());
    }
    let mut results = OwnFiles::new(results);
    let (mut found, mut known, mut unread) = (Vec::new(), HashSet::new(), Vec::new());
    for pattern in patterns {
        let place = format!("recordings: the pattern \"{pattern}\"");
        // A folder may have a name with `*` or `[`.
        let whole = match Path::new(pattern).is_absolute() {
            true => pattern.clone(),
            false => format!("{}/{pattern}", glob::Pattern::escape(&folder.to_string_lossy())),
        };
        let mut has_file = false;
        let paths = glob::glob(&whole).map_err(|error| format!("{place}: {error}"))?;
        for path in paths {
            let path = match path {
                Err(error) if results.contain(error.path()) => continue,
                // One folder that belongs to somebody else does not stop the others.
                Err(error) => {
                    let text = format!("{}: {}", error.path().display(), error.error());
                    if !unread.contains(&text) {
                        unread.push(text);
                    }
                    continue;
                }
                Ok(path) => path,
            };
            if results.contain(path.parent().unwrap_or(&path)) || path.is_dir() {
                continue;
            }
            let path = match path.extension().and_then(|extension| extension.to_str()) {
                Some("sigmf-data") => path.with_extension("sigmf-meta"),
                _ => path,
            };
            let shown = path.strip_prefix(folder).unwrap_or(&path);
            let shown = shown.to_str().ok_or_else(|| {
                format!("{place}: the name of {} is not UTF-8: rename the file", path.display())
            })?;
            has_file = true;
            if known.insert(shown.to_owned()) {
                found.push(shown.to_owned());
            }
        }
        if !has_file {
            let folder = folder.display();
            let unread = unread.iter().map(|one| format!("; cannot read {one}"));
            let unread: String = unread.collect();
            return Err(format!(
                "{place} matches no file below {folder}: correct it, or record one{unread}"
            ));
        }
    }
    Ok((found, unread))
}

/// Returns each recording with its identity.
pub(crate) fn identified(
    folder: &Path,
    found: Vec<String>,
) -> Result<Vec<Option<(String, String)>>, BatchError> {
    let known = found.into_iter().map(|shown| {
        let identity = of_recording(&folder.join(&shown), &shown)?;
        Ok(Some((shown, identity)))
    });
    known.collect()
}

/// Leaves only the first of recordings with one identity; returns the names of each further one
/// and the first.
pub(crate) fn merge(recordings: &mut Vec<Option<(String, String)>>) -> Vec<(String, String)> {
    let mut first: HashMap<String, String> = HashMap::new();
    let mut same = Vec::new();
    recordings.retain(|recording| {
        let Some((shown, identity)) = recording else { return true };
        match first.get(identity) {
            Some(earlier) => same.push((earlier.clone(), shown.clone())),
            None => drop(first.insert(identity.clone(), shown.clone())),
        }
        first.get(identity) == Some(shown)
    });
    same
}

/// The folders in which a batch keeps its results.
struct OwnFiles {
    folders: Vec<PathBuf>,
    /// What was found out about folders.
    known: HashMap<PathBuf, bool>,
}

impl OwnFiles {
    fn new(results: &ResultFolder) -> Self {
        let folders = results.folders().iter().map(|folder| resolved(folder)).collect();
        Self { folders, known: HashMap::new() }
    }

    fn contain(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let real = resolved(folder);
        let own = self.folders.iter().any(|own| real.starts_with(own));
        self.known.insert(folder.to_owned(), own);
        own
    }
}

/// The path without links and `..`; its end may not exist.
fn resolved(path: &Path) -> PathBuf {
    let known = |part: &Path| Some((part.canonicalize().ok()?, path.strip_prefix(part).ok()?));
    match path.ancestors().find_map(known) {
        Some((real, rest)) => real.join(rest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn place(results: &str) -> (tempfile::TempDir, PathBuf, ResultFolder) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let results = ResultFolder::new(path.join(results));
        for file in ["a.cf32".into(), "in/b.cf32".into(), results.result_of("x").join("c.cf32")] {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, [0; 8]).unwrap();
        }
        (folder, path, results)
    }

    #[test]
    fn results_are_no_recordings() {
        for results in ["b.results", "in/../b.results", "."] {
            let (_folder, path, results) = place(results);
            let list = results.list();
            fs::create_dir_all(list.parent().unwrap()).unwrap();
            fs::write(&list, "a list").unwrap();
            fs::write(list.with_extension("7.part"), "half a list").unwrap();
            let (all, _) = matches(&path, &["**/*".to_owned()], &results).unwrap();
            assert_eq!(all, ["a.cf32", "in/b.cf32"]);
            results.tidy().unwrap();
            assert!(list.exists() && !list.with_extension("7.part").exists());
            let above = "in/../**/*.cf32".to_owned();
            for pattern in ["**/*.cf32".to_owned(), format!("{}/**/*.cf32", path.display())] {
                let (found, _) = matches(&path, &[pattern], &results).unwrap();
                assert_eq!(found, ["a.cf32", "in/b.cf32"]);
            }
            assert_eq!(matches(&path, &[above], &results).unwrap().0.len(), 2);
        }
    }

    #[test]
    fn tasks_that_begin_and_end_do_not_disturb() {
        let (_folder, path, results) = place("b.results");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let work = results.work().join("y/z");
                    fs::create_dir_all(&work).unwrap();
                    fs::write(work.join("c.cf32"), "").unwrap();
                    fs::remove_dir_all(results.work()).unwrap();
                }
            });
            let all: Vec<_> =
                (0..200).map(|_| matches(&path, &["**/*.cf32".to_owned()], &results)).collect();
            ended.store(true, Ordering::Relaxed);
            let wanted = Ok((["a.cf32", "in/b.cf32"].map(str::to_owned).to_vec(), Vec::new()));
            assert!(all.iter().all(|found| *found == wanted), "{all:?}");
        });
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_told_and_the_others_are_searched() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, path, results) = place("b.results");
        let closed = path.join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let search = move || matches(&path, &["**/*.cf32".to_owned()], &results).unwrap();
        // Root may read it: a thread that is another user may not.
        let by_user = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                fs::set_permissions(closed.parent().unwrap(), fs::Permissions::from_mode(0o755))
                    .unwrap();
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(None, nobody, None).unwrap();
            }
            search()
        });
        let (found, unread) = by_user.join().unwrap();
        assert_eq!(found, ["a.cf32", "in/b.cf32"]);
        assert!(unread.len() == 1 && unread[0].contains("/closed: "), "{unread:?}");
    }

    #[test]
    fn a_pattern_may_match_only_what_an_earlier_one_does() {
        let (_folder, path, results) = place("b.results");
        let of = |patterns: &[&str]| {
            let patterns: Vec<_> = patterns.iter().map(|one| (*one).to_owned()).collect();
            matches(&path, &patterns, &results).map(|(found, _)| found)
        };
        let whole = path.join("in/*.cf32").to_string_lossy().into_owned();
        assert_eq!(of(&["in/b.cf32", &whole, "./in/b*"]).unwrap(), ["in/b.cf32"]);
        let error = of(&["*.cf32", "in/c*"]).unwrap_err();
        assert!(error.contains("the pattern \"in/c*\" matches no file below /"), "{error}");
    }
}
