//! The names in a folder; and the user's folders, by the XDG Base Directory Specification 0.8.

use std::path::{Path, PathBuf};

/// Returns the names in a folder, sorted; empty where it cannot be read.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns those names in a folder that are numbers, as of processes in `/proc`, sorted.
#[must_use]
pub fn numbers(folder: &Path) -> Vec<u32> {
    let mut numbers: Vec<_> = names(folder).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the folder for data that outlives a process but is not configuration: `$XDG_STATE_HOME`,
/// else `$HOME/.local/state`. `variable` reads an environment; paths in it that are not absolute
/// are ignored.
#[must_use]
pub fn state(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    of_user(variable, "XDG_STATE_HOME", ".local/state")
}

/// Returns the folder for data that can be made again: `$XDG_CACHE_HOME`, else `$HOME/.cache`.
#[must_use]
pub fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    of_user(variable, "XDG_CACHE_HOME", ".cache")
}

/// Reads a variable of this process's environment, for [`state`] and [`cache`].
#[must_use]
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn of_user(
    variable: impl Fn(&str) -> Option<PathBuf>,
    name: &str,
    below_home: &str,
) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| path.is_absolute());
    set(name).or_else(|| Some(set("HOME")?.join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_comes_before_the_home_folder_unless_it_is_relative() {
        let of = |own: Option<&str>, home: Option<&str>| {
            cache(|name| if name == "HOME" { home } else { own }.map(PathBuf::from))
        };
        assert_eq!(of(Some("/c"), Some("/h")), Some("/c".into()));
        assert_eq!(of(Some("c"), Some("/h")), Some("/h/.cache".into()));
        assert_eq!(of(None, Some("h")), None);
    }
}
