//! A request, and the messages that answer it.

use super::NetlinkError;
use super::message::{NetlinkMessage, NetlinkRequest, messages, u32_at};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send,
    socket_with, sockopt,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// More than the largest datagram of the kernel (32 KiB).
const BUFFER_BYTES: usize = 64 << 10;
/// The kernel answers at once; this bounds the wait all the same.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The tries of a listing that changed during its transfer.
const TRIES: usize = 10;

#[derive(Debug)]
pub(super) struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// The state after a message: whether more messages follow.
#[derive(PartialEq)]
enum Next {
    More,
    Done,
    /// The listing changed during its transfer.
    Again,
}

impl Socket {
    /// Opens a connection to a part of the kernel; `None`: the routing tables.
    pub(super) fn open(protocol: Option<Protocol>) -> Result<Self, NetlinkError> {
        let refused = refused("open a netlink socket");
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let descriptor = socket_with(family, kind, SocketFlags::CLOEXEC, protocol);
        let descriptor = descriptor.map_err(|errno| refused(errno.into()))?;
        sockopt::set_socket_timeout(&descriptor, sockopt::Timeout::Recv, Some(ANSWER_TIMEOUT))
            .map_err(|errno| refused(errno.into()))?;
        Ok(Self { descriptor, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Sends a request, and collects the answers that `parse` accepts.
    pub(super) fn ask<T>(
        &mut self,
        what: &'static str,
        request: &NetlinkRequest,
        parse: impl Fn(&NetlinkMessage<'_>) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        for _ in 0..TRIES {
            let mut found = Vec::new();
            let once = self.ask_once(request, |message| found.extend(parse(message)));
            match once.map_err(refused(what))? {
                Next::Again => {}
                _ => return Ok(found),
            }
        }
        Err(refused(what)(io::ErrorKind::Interrupted.into()))
    }

    /// Sends a request for one thing, or about one; `None` where the kernel's error is one of
    /// `missing`.
    pub(super) fn ask_for<T>(
        &mut self,
        what: &'static str,
        request: &NetlinkRequest,
        missing: &[i32],
        parse: impl Fn(&NetlinkMessage<'_>) -> Option<T>,
    ) -> Result<Option<T>, NetlinkError> {
        let is_missing =
            |error: &io::Error| error.raw_os_error().is_some_and(|code| missing.contains(&code));
        match self.ask(what, request, parse) {
            Err(NetlinkError::Refused { source, .. }) if is_missing(&source) => Ok(None),
            found => Ok(found?.into_iter().next()),
        }
    }

    fn ask_once(
        &mut self,
        request: &NetlinkRequest,
        mut each: impl FnMut(&NetlinkMessage<'_>),
    ) -> io::Result<Next> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.clone().numbered(self.sequence);
        send(&self.descriptor, &bytes, SendFlags::empty())?;
        let mut changed = false;
        loop {
            let received = recv(&self.descriptor, &mut self.buffer, RecvFlags::TRUNC);
            let (_, length) = match received {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let bytes = self.buffer.get(..length).ok_or(io::ErrorKind::InvalidData)?;
            // Answers to an earlier, abandoned request are ignored.
            for message in messages(bytes).filter(|message| message.sequence == self.sequence) {
                changed |= i32::from(message.flags) & libc::NLM_F_DUMP_INTR != 0;
                if next(&message)? == Next::More {
                    each(&message);
                } else {
                    return Ok(if changed { Next::Again } else { Next::Done });
                }
            }
        }
    }
}

/// Returns the state after a message; the kernel's error if it is one.
fn next(message: &NetlinkMessage<'_>) -> io::Result<Next> {
    match i32::from(message.kind) {
        libc::NLMSG_DONE | libc::NLMSG_ERROR => {
            let code = u32_at(message.body, 0).ok_or(io::ErrorKind::InvalidData)? as i32;
            match code {
                0 => Ok(Next::Done),
                code => Err(io::Error::from_raw_os_error(-code)),
            }
        }
        _ => Ok(Next::More),
    }
}

pub(super) fn refused(what: &'static str) -> impl Fn(io::Error) -> NetlinkError {
    move |source| NetlinkError::Refused { what, source }
}
