//! A command without any rights, permanently.

use super::account::Account;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Version 3 of `struct __user_cap_header_struct` (capset(2)).
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The variables that a command gets from root's environment, beside those that begin with `LC_`.
/// Others may be secrets, or name what only root may use.
const PASSED_ON: [&str; 7] = ["PATH", "TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ"];

fn is_passed_on(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED_ON.contains(&name) || name.starts_with("LC_"))
}

/// Makes `command` run as the user, in its groups, with every capability set empty (bounding and
/// ambient ones, too), without a way to gain any (PR_SET_NO_NEW_PRIVS), with only the standard
/// descriptors, in a session of its own whose terminal is one of these, and with only the variables
/// of [`PASSED_ON`]. It gets SIGTERM when the calling thread ends.
pub fn confine(command: &mut Command, account: &Account) -> anyhow::Result<()> {
    let groups = account.groups()?;
    let (uid, gid) = (account.uid, account.gid);
    command.env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| is_passed_on(name)));
    command.env("HOME", &account.home).env("USER", &account.name).env("LOGNAME", &account.name);
    let parent = std::process::id();
    let drop_all = move || {
        keep_standard_descriptors()?;
        leave_session()?;
        drop_bounding_set()?;
        // SAFETY: plain system calls with numbers, and a list that lives through the call.
        unsafe {
            done(libc::setgroups(groups.len(), groups.as_ptr()))?;
            done(libc::setresgid(gid, gid, gid))?;
            done(libc::setresuid(uid, uid, uid))?;
            done(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
            let (header, none) = ([CAPABILITY_VERSION, 0], [0u32; 6]);
            done(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) as i32)?;
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            // Changing users clears it, so it comes last; the parent may have died just before.
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0))?;
        }
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::Other.into())
        }
    };
    // SAFETY: the closure makes async-signal-safe system calls and allocates nothing.
    unsafe { command.pre_exec(drop_all) };
    Ok(())
}

/// Closes descriptors that were inherited without close-on-exec: they belong to root, not to the
/// command.
fn keep_standard_descriptors() -> io::Result<()> {
    let (first, last) = (3, libc::c_uint::MAX);
    // SAFETY: a plain system call with numbers; nothing is closed before exec.
    let status =
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
    done(status as libc::c_int)
}

/// Begins a session; its terminal is the first standard stream that is one and has no session.
fn leave_session() -> io::Result<()> {
    // SAFETY: plain system calls with numbers.
    unsafe {
        done(libc::setsid())?;
        // Fails where the stream is no terminal.
        let _ = (0..3).find(|stream| libc::ioctl(*stream, libc::TIOCSCTTY, 0) == 0);
    }
    Ok(())
}

/// Makes sure that no later program can gain a capability.
fn drop_bounding_set() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: a plain system call with numbers.
        match done(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(()) => {}
            // Beyond the last capability of this kernel.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn done(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_confined_command_has_no_rights_and_cannot_get_any() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root has rights that it can drop");
        }
        let nobody = Account::find("nobody").unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdout(Stdio::piped());
        confine(&mut command, &nobody).unwrap();
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), "0000000000000000", "{set}");
        }
        let uid = nobody.uid;
        assert_eq!(field("Uid"), format!("{uid} {uid} {uid} {uid}"));
        assert_eq!(field("NoNewPrivs"), "1");
        assert_eq!(field("Groups"), nobody.gid.to_string());
    }

    #[test]
    fn a_confined_command_gets_only_the_listed_variables() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root can run a command as another user");
        }
        let mut command = Command::new("env");
        command.stdout(Stdio::piped()).env("SSH_AUTH_SOCK", "/x").env("LD_PRELOAD", "/x");
        confine(&mut command, &Account::find("nobody").unwrap()).unwrap();
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        let own = ["HOME", "USER", "LOGNAME"];
        let other = names.filter(|name| !own.contains(name) && !is_passed_on(OsStr::new(name)));
        assert_eq!(other.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
        assert!(text.contains("USER=nobody\n") && text.contains("PATH="), "{text}");
    }

    #[test]
    fn a_confined_command_inherits_no_descriptor_but_the_standard_ones() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root has rights that it can drop");
        }
        // As a shell leaves them: without close-on-exec.
        let left = rustix::io::dup(std::io::stderr()).unwrap();
        let flags = rustix::io::fcntl_getfd(&left).unwrap();
        assert!(!flags.contains(rustix::io::FdFlags::CLOEXEC));
        let mut command = Command::new("ls");
        command.arg("/proc/self/fd").stdout(Stdio::piped());
        confine(&mut command, &Account::find("nobody").unwrap()).unwrap();
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        // The last one is the folder that `ls` reads.
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    }
}
