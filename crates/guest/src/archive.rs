//! The format of the initial file system: cpio, "new ASCII" (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive, built entry by entry. Directories above an entry are added automatically.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Returns an empty archive.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory.
    pub fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.directories.insert(path.to_owned()) {
            return;
        }
        self.parents(path);
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_start_matches('/');
        self.parents(path);
        self.entry(path, FILE, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        let path = path.trim_start_matches('/');
        self.parents(path);
        self.entry(path, LINK, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        let path = path.trim_start_matches('/');
        self.parents(path);
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// Returns the whole archive, with its end.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
    }

    /// Adds header, name and content, each padded to four bytes. Sizes are 32 bits by the format.
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("an entry below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a short name");
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.fill();
        self.bytes.extend_from_slice(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.file("/lib64/one", b"abc");
        archive.file("lib64/two", b"");
        archive.device("/dev/console", 5, 1);
        archive.link("/init", "/lib64/one");
        archive.directory("/proc");
        archive.finish()
    }

    #[test]
    fn directories_above_a_file_come_once_and_before_it() {
        let text = String::from_utf8(sample()).unwrap();
        assert_eq!(text.matches("lib64\0").count(), 1);
        assert!(text.find("lib64\0") < text.find("lib64/one\0"));
    }

    #[test]
    fn cpio_lists_what_was_put_in() {
        let mut command = Command::new("cpio");
        command.args(["-t", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            eprintln!("skipped: cpio is not installed");
            return;
        };
        child.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let list = String::from_utf8(output.stdout).unwrap();
        let list: Vec<&str> = list.lines().collect();
        assert_eq!(list, ["lib64", "lib64/one", "lib64/two", "dev", "dev/console", "init", "proc"]);
    }
}
