//! Which socket a thread waits for, by the system call in which it sleeps (proc_pid_syscall(5)).
//! Needs the right to examine the process (ptrace(2)).

use crate::owners::socket_at;
use std::fs;
use std::path::Path;

/// Calls that wait for one descriptor, their first argument.
const READS: [libc::c_long; 5] =
    [libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg];
/// Calls that wait for a list of descriptors: `struct pollfd`, and how many.
#[cfg(target_arch = "x86_64")]
const POLLS: [libc::c_long; 2] = [libc::SYS_poll, libc::SYS_ppoll];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: [libc::c_long; 1] = [libc::SYS_ppoll];
/// Calls that wait for the descriptors that another one, their first argument, has in its list.
#[cfg(target_arch = "x86_64")]
const EPOLLS: [libc::c_long; 2] = [libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
#[cfg(not(target_arch = "x86_64"))]
const EPOLLS: [libc::c_long; 1] = [libc::SYS_epoll_pwait];
/// The descriptors of a list that are looked at.
const LIST_MAX: usize = 64;

/// Returns the inode of the first socket for which a thread of process `pid` waits and that
/// `is_ours`. `call` is the text of its file `syscall`: number and arguments, or `running`.
pub(crate) fn awaited_socket(pid: u32, call: &str, is_ours: impl Fn(u64) -> bool) -> Option<u64> {
    let mut words = call.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (first, second) = (argument()?, argument()?);
    let descriptors = match number {
        _ if READS.contains(&number) => vec![first],
        _ if POLLS.contains(&number) => polled(pid, first, second)?,
        _ if EPOLLS.contains(&number) => {
            epolled(&fs::read_to_string(format!("/proc/{pid}/fdinfo/{first}")).ok()?)
        }
        _ => return None,
    };
    let inode = |descriptor| socket_at(Path::new(&format!("/proc/{pid}/fd/{descriptor}")));
    descriptors.into_iter().filter_map(inode).find(|inode| is_ours(*inode))
}

/// Reads a list of `struct pollfd` in the memory of a process: descriptor and two masks each.
fn polled(pid: u32, address: u64, count: u64) -> Option<Vec<u64>> {
    let mut entries = [[0u8; 8]; LIST_MAX];
    let count = usize::try_from(count).ok()?.min(LIST_MAX);
    let bytes = count * size_of::<[u8; 8]>();
    let here = libc::iovec { iov_base: entries.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: address as *mut _, iov_len: bytes };
    // SAFETY: the kernel writes at most `bytes` bytes into `entries`, which is that long. The other
    // address is one of the other process; the kernel checks it there.
    let read = unsafe { libc::process_vm_readv(pid as i32, &here, 1, &there, 1, 0) };
    let read = usize::try_from(read).ok()? / size_of::<[u8; 8]>();
    let descriptor = |entry: &[u8; 8]| {
        let number = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        // A negative one is ignored by the call.
        u64::try_from(number).ok()
    };
    Some(entries[..read].iter().filter_map(descriptor).collect())
}

/// Reads the descriptors in the list of another one (proc_pid_fdinfo(5)).
fn epolled(text: &str) -> Vec<u64> {
    let entries = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let descriptor = |entry: &str| entry.split_whitespace().next()?.parse().ok();
    entries.filter_map(descriptor).take(LIST_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, epoll};
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    const IN: PollFlags = PollFlags::IN;

    /// Waits until a thread of this process that runs `wait` is seen to wait for `socket`, or for
    /// nothing if it waits for another.
    fn is_seen(socket: &UdpSocket, wait: impl FnOnce() + Send + 'static) {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let wanted = socket_at(Path::new(&link)).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            wait();
        });
        let file = format!("/proc/self/task/{}/syscall", told.recv().unwrap());
        let own = std::process::id();
        let seen = || awaited_socket(own, &fs::read_to_string(&file).unwrap(), |_| true);
        while seen() != Some(wanted) {
            std::thread::yield_now();
        }
        let call = fs::read_to_string(&file).unwrap();
        assert_eq!(awaited_socket(own, &call, |inode| inode != wanted), None);
        let end = socket.local_addr().unwrap();
        socket.send_to(&[0], end).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_reads_polls_or_waits_for_events_is_seen_with_its_socket() {
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let one = socket();
        let same = one.try_clone().unwrap();
        is_seen(&one, move || drop(same.recv(&mut [0; 9])));
        let one = socket();
        let same = one.try_clone().unwrap();
        is_seen(&one, move || {
            let other = std::io::stdin();
            let mut list = [PollFd::new(&other, PollFlags::empty()), PollFd::new(&same, IN)];
            rustix::event::poll(&mut list, None).unwrap();
        });
        let one = socket();
        let same = one.try_clone().unwrap();
        is_seen(&one, move || {
            let list = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let data = epoll::EventData::new_u64(0);
            epoll::add(&list, &same, data, epoll::EventFlags::IN).unwrap();
            let mut events = Vec::with_capacity(1);
            epoll::wait(&list, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        });
    }

    #[test]
    fn other_calls_and_other_texts_say_nothing() {
        let own = std::process::id();
        for text in [
            "running\n",
            "-1 0x7ffe 0x7f41\n",
            "",
            "0",
            "0 0x",
            "0 0xfffffffffffffffff 0x1",
            "0 0x7fffffff 0x0",
            "7 0x0 0x1 0x2",
            "7 0xffffffffffffffff 0xffffffffffffffff",
            "232 0x7fffffff 0x0",
            "99999 0x0 0x0",
        ] {
            assert_eq!(awaited_socket(own, text, |_| true), None, "{text:?}");
        }
        let list = "pos:\t0\ntfd:        7 events:       19 data: 7\ntfd: x\ntfd:\ntfd:        9\n";
        assert_eq!(epolled(list), [7, 9]);
    }
}
