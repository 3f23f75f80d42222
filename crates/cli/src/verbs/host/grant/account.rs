//! Users and groups of this machine, by name or number (getpwnam(3), getgrnam(3)).

use anyhow::{Context, bail};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::path::PathBuf;

/// Longest entry of the user database, bytes.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// Groups of one user.
const GROUPS_MAX: usize = 1024;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
}

impl Account {
    /// The user of a name or number.
    pub fn find(user: &str) -> anyhow::Result<Self> {
        let name = CString::new(user).context("a user name must not contain a NUL character")?;
        let mut space = vec![0 as libc::c_char; ENTRY_BYTES_MAX];
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        let (at, bytes) = (space.as_mut_ptr(), space.len());
        // SAFETY: all pointers are to live memory of the sizes given; `found` is set to `entry` or
        // null.
        let status = unsafe {
            match user.parse::<u32>() {
                Ok(uid) => libc::getpwuid_r(uid, entry.as_mut_ptr(), at, bytes, &raw mut found),
                Err(_) => {
                    libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), at, bytes, &raw mut found)
                }
            }
        };
        if status != 0 || found.is_null() {
            bail!("there is no user {user} on this machine; `getent passwd` lists them");
        }
        // SAFETY: a success with a result filled the entry; its strings lie in `space`.
        let (entry, name, home) = unsafe {
            let entry = entry.assume_init();
            (entry, CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir))
        };
        let home = PathBuf::from(home.to_string_lossy().into_owned());
        let name = name.to_string_lossy().into_owned();
        Ok(Self { name, uid: entry.pw_uid, gid: entry.pw_gid, home })
    }

    /// Every group of the user.
    pub fn groups(&self) -> anyhow::Result<Vec<libc::gid_t>> {
        let name = CString::new(self.name.as_str())?;
        let mut groups = vec![0; GROUPS_MAX];
        let mut count = GROUPS_MAX as libc::c_int;
        // SAFETY: `groups` has room for `count` numbers; the call says how many it wrote.
        let status = unsafe {
            libc::getgrouplist(name.as_ptr(), self.gid, groups.as_mut_ptr(), &raw mut count)
        };
        if status < 0 {
            bail!(
                "user {} is in more than {GROUPS_MAX} groups, the limit of this program",
                self.name
            );
        }
        groups.truncate(count as usize);
        Ok(groups)
    }
}

/// The number of the group of a name or number.
pub fn group(group: &str) -> anyhow::Result<u32> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let name = CString::new(group).context("a group name must not contain a NUL character")?;
    let mut space = vec![0 as libc::c_char; ENTRY_BYTES_MAX];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    let (at, bytes) = (space.as_mut_ptr(), space.len());
    // SAFETY: as in `Account::find`.
    let status =
        unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), at, bytes, &raw mut found) };
    if status != 0 || found.is_null() {
        bail!("there is no group {group} on this machine; `getent group` lists them");
    }
    // SAFETY: a success with a result filled the entry.
    Ok(unsafe { entry.assume_init() }.gr_gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_number() {
        let root = Account::find("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::find("0").unwrap(), root);
        assert!(root.groups().unwrap().contains(&0));
        assert_eq!(group("root").unwrap(), 0);
    }

    #[test]
    fn whom_nobody_knows_is_an_error() {
        let error = Account::find("nobody-of-this-name").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no user nobody-of-this-name on this machine; `getent passwd` lists them"
        );
        assert!(group("no-such-group").is_err());
    }
}
