//! The kernel as somebody else can get it: its package and the hashes of its files.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The origin of the running kernel, so that others can run the same one.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelOrigin {
    /// The package that installed it (`linux-image-6.1.0-56-amd64`).
    pub package: Option<String>,
    /// The package's version (`6.1.176-1`).
    pub version: Option<String>,
    /// SHA-256 of the package's file, hexadecimal.
    pub package_sha256: Option<String>,
    /// SHA-256 of the image (`vmlinuz`), hexadecimal.
    pub image_sha256: Option<String>,
}

impl KernelOrigin {
    /// The file in which a virtual machine finds the origin of its kernel, as JSON.
    pub const GUEST_FILE: &str = "/boot/millstream-kernel.json";

    /// Reads it below `root`, for the kernel of this release and build (`#1 SMP … Debian
    /// 6.1.176-1`); `None` if nothing is known. A package that was upgraded since the boot is not
    /// the running kernel's.
    #[must_use]
    pub fn read(root: &Path, release: &str, build: &str) -> Option<Self> {
        let told = fs::read(root.join(Self::GUEST_FILE.trim_start_matches('/')));
        if let Some(told) = told.ok().and_then(|told| serde_json::from_slice(&told).ok()) {
            return Some(told);
        }
        let package = format!("linux-image-{release}");
        let version = installed_version(root, &package)?;
        if !build.split_whitespace().any(|word| word == version) {
            return Some(Self { package: Some(package), ..Self::default() });
        }
        Some(Self {
            package: Some(package),
            version: Some(version),
            package_sha256: None,
            image_sha256: sha256(&root.join(format!("boot/vmlinuz-{release}"))).ok(),
        })
    }
}

/// Returns the SHA-256 of a file, hexadecimal.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => break,
            count => hash.update(&part[..count]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the version of a Debian package that is installed below `root`.
fn installed_version(root: &Path, package: &str) -> Option<String> {
    let status = fs::read_to_string(root.join("var/lib/dpkg/status")).ok()?;
    let head = format!("Package: {package}");
    let mut entries = status.split("\n\n").map(str::lines);
    let mut entry = entries.find(|lines| {
        let mut status = lines.clone().filter_map(|line| line.strip_prefix("Status: "));
        let is_installed = status.any(|status| status.ends_with(" installed"));
        is_installed && lines.clone().any(|line| line == head)
    })?;
    entry.find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned)
}
