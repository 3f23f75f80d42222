//! Users and groups of this machine, by name or number.

use anyhow::Context;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::ffi::CString;
use std::path::PathBuf;

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
        let found = match user.parse() {
            Ok(uid) => User::from_uid(Uid::from_raw(uid)),
            Err(_) => User::from_name(user),
        };
        let missing =
            || format!("there is no user {user} on this machine; `getent passwd` lists them");
        let User { name, uid, gid, dir, .. } = found.ok().flatten().with_context(missing)?;
        Ok(Self { name, uid: uid.as_raw(), gid: gid.as_raw(), home: dir })
    }

    /// Every group of the user.
    pub fn groups(&self) -> anyhow::Result<Vec<libc::gid_t>> {
        let groups = getgrouplist(&CString::new(self.name.as_str())?, Gid::from_raw(self.gid));
        let groups = groups.with_context(|| format!("cannot read the groups of {}", self.name))?;
        Ok(groups.into_iter().map(Gid::as_raw).collect())
    }
}

/// The number of the group of a name or number.
pub fn group(group: &str) -> anyhow::Result<u32> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let found = Group::from_name(group).ok().flatten();
    let found = found.with_context(|| {
        format!("there is no group {group} on this machine; `getent group` lists them")
    })?;
    Ok(found.gid.as_raw())
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
