//! A setting that is a file: in /proc/sys, /sys, or a control group.

use super::entry::UndoOutcome;
use super::file::found;
use super::kept::Since;
use super::paths::{Place, Root, SettingPath};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// A change of a file's content.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfFile {
    pub(super) path: SettingPath,
    /// The content before the change, byte for byte.
    pub(super) before: String,
    /// The written text.
    pub(super) text: String,
    /// The content after the change. `None` while it is being written, and when that failed: any
    /// content is ours then.
    pub(super) after: Option<String>,
    /// The content before the change below this one (`super::layers`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) beneath: Option<String>,
}

/// Reads a file in large calls: the list of CPUs of the kernel's tracers (osnoise/cpus) refuses a
/// call for as few bytes as it has, even at its end.
fn content(path: &Path) -> io::Result<String> {
    let mut text = String::with_capacity(4096);
    fs::File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

impl OfFile {
    /// Returns the change that writing `text` makes.
    pub(super) fn of(root: &Root, path: &Path, text: &str) -> io::Result<Self> {
        let path = root.inner(path)?;
        let before = content(&root.find(&path)?)?;
        Ok(Self { path, before, text: text.to_owned(), after: None, beneath: None })
    }

    /// Returns the same change with the value before an earlier one, if it changes that one's text.
    pub(super) fn upon(mut self, earlier: Option<&Self>) -> Self {
        if let Some(earlier) = earlier.filter(|earlier| earlier.is_ours(&self.before)) {
            self.before.clone_from(&earlier.before);
            self.beneath.clone_from(&earlier.beneath);
        }
        self
    }

    /// Writes the text, and stores the file's new content.
    pub(super) fn apply(&mut self, root: &Root) -> io::Result<()> {
        let found = self.set(root, &self.text)?;
        if is_same(&found, &self.text) {
            self.after = Some(found);
            return Ok(());
        }
        let text = format!("the kernel shows `{}` after that", found.trim());
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    /// Restores the old content, even after changes by others if they are overruled.
    pub(super) fn undo(&self, root: &Root, since: Since) -> io::Result<UndoOutcome> {
        match found(root.find(&self.path).and_then(|path| content(&path)))? {
            // The device, the processor or the group is gone.
            None => Ok(UndoOutcome::Nothing),
            Some(found) if found == self.before => Ok(UndoOutcome::Nothing),
            // A different value was set by others on purpose.
            Some(found) if since == Since::Left && !self.is_ours(&found) => Ok(UndoOutcome::Left),
            Some(_) => self.put_back(root),
        }
    }

    fn put_back(&self, root: &Root) -> io::Result<UndoOutcome> {
        if self.set(root, &self.before)? == self.before {
            return Ok(UndoOutcome::PutBack);
        }
        let text = format!("it did not become `{}` again", self.before.trim());
        Err(io::Error::other(text))
    }

    /// Returns whether this content is the result of our change.
    pub(super) fn is_ours(&self, found: &str) -> bool {
        self.after.as_ref().is_none_or(|after| is_same(found, after))
    }

    /// Writes in one call, as kernel files require; the file is neither created nor truncated.
    /// Returns the content after that.
    fn set(&self, root: &Root, text: &str) -> io::Result<String> {
        use std::io::Write;
        let path = root.find(&self.path)?;
        let mut options = fs::OpenOptions::new();
        // Plain files, in machines made for tests, would keep the end of a longer text.
        let is_plain = !root.is_live() && fs::metadata(&path)?.len() > 0;
        let mut file = options.write(true).truncate(is_plain).open(&path)?;
        let mut text = chosen(text).to_owned();
        if is_plain && self.before.ends_with('\n') && !text.ends_with('\n') {
            text.push('\n');
        }
        // A list may be empty, and a write of zero bytes has no effect.
        file.write_all(if text.is_empty() { b"\n" } else { text.as_bytes() })?;
        drop(file);
        content(&path)
    }
}

/// Returns the choice in `always [madvise] never`, or `none (voluntary) full`; other texts are
/// returned unchanged.
pub(crate) fn chosen(text: &str) -> &str {
    marked(text).unwrap_or(text)
}

/// Returns the marked choice in such a text.
pub(crate) fn marked(text: &str) -> Option<&str> {
    let between = |(open, close)| Some(text.split_once(open)?.1.split_once(close)?.0);
    [('[', ']'), ('(', ')')].into_iter().find_map(between)
}

/// Returns whether a kernel that reads one of them shows the other. CPU lists and masks may come
/// back in another form (`0,1` as `0-1`, `2` as `00000002`).
fn is_same(found: &str, written: &str) -> bool {
    let (found, written) = (chosen(found).trim(), chosen(written).trim());
    let cpus = |text: &str| text.parse::<millstream_cpu::CpuSet>().ok();
    let mask = |text: &str| {
        let groups = text.split(',').map(|group| u64::from_str_radix(group, 16));
        let groups: Vec<_> = groups.collect::<Result<_, _>>().ok()?;
        Some(groups.into_iter().skip_while(|bits| *bits == 0).collect::<Vec<_>>())
    };
    found == written
        || cpus(found).is_some_and(|set| cpus(written) == Some(set))
        || mask(found).is_some_and(|bits| mask(written) == Some(bits))
}

impl fmt::Display for OfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.path().display(), chosen(&self.before).trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(text: &str) -> (tempfile::TempDir, Root, PathBuf) {
        let (folder, path) = super::super::tests::setting(text);
        let root = Root::new(folder.path());
        (folder, root, path)
    }

    #[test]
    fn what_was_there_comes_back_byte_for_byte() {
        let (_folder, root, path) = file("212992\n");
        let mut change = OfFile::of(&root, &path, "33554432").unwrap();
        assert_eq!(
            change.undo(&root, Since::Left).unwrap(),
            UndoOutcome::Nothing,
            "nothing was done yet"
        );
        change.apply(&root).unwrap();
        assert_eq!(content(&path).unwrap(), "33554432\n");
        assert_eq!(change.undo(&root, Since::Left).unwrap(), UndoOutcome::PutBack);
        assert_eq!(content(&path).unwrap(), "212992\n");
        assert_eq!(
            change.undo(&root, Since::Left).unwrap(),
            UndoOutcome::Nothing,
            "once is enough"
        );
    }

    #[test]
    fn what_somebody_else_changed_is_left() {
        let (_folder, root, path) = file("1\n");
        let mut change = OfFile::of(&root, &path, "2").unwrap();
        change.apply(&root).unwrap();
        fs::write(&path, "3\n").unwrap();
        assert_eq!(change.undo(&root, Since::Left).unwrap(), UndoOutcome::Left);
        assert_eq!(content(&path).unwrap(), "3\n");
        fs::remove_file(&path).unwrap();
        assert_eq!(
            change.undo(&root, Since::Left).unwrap(),
            UndoOutcome::Nothing,
            "a file that is gone"
        );
    }

    #[test]
    fn a_choice_is_written_as_its_word() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert!(is_same("always [madvise] never\n", "madvise"));
        assert!(is_same("0-1\n", "0,1") && is_same("00000002\n", "2") && is_same("\n", ""));
        let wide = ["00000001", "00000002,00000000,00000000,00000000,0000000f"];
        assert!(is_same(&wide.join(","), &wide.join(",")[7..]), "masks of any number of CPUs");
        assert!(!is_same(&wide.join(","), wide[1]));
        assert!(
            !is_same("20\n", "2")
                && !is_same("0\n", "")
                && !is_same("1\n", "")
                && !is_same("[a] b", "b")
        );
    }

    #[test]
    fn a_file_that_is_not_there_cannot_be_changed() {
        let missing = Path::new("/proc/irq/4711/smp_affinity_list");
        assert_eq!(
            OfFile::of(&Root::new(Path::new("/")), missing, "1").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
