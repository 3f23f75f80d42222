//! Plain kernel UDP, the base of all comparisons: `sendmmsg` and `recvmmsg` of single datagrams
//! (`sendto` and `recvfrom` where they come one by one), without segmentation offload, and without
//! our code around them.

use std::io;
use std::mem;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use millstream_host::socket;
use millstream_link::frame::Copies;

use super::super::budget::PacketCopies;
use super::super::plan::Half;
use super::{BATCH, EchoMode, EndAddress, LOAD, Look, PathEnd, SLEEP_MS, load, nowhere, number};

/// Bytes of the socket's queues, as ports request.
const QUEUE_BYTES: libc::c_int = 8 << 20;
/// After this many calls without a batch, calls ask for one datagram, except one in so many.
const SINGLES: usize = 32;

/// A UDP socket and the arrays that describe its batches to the kernel.
pub struct KernelEnd {
    socket: UdpSocket,
    local: SocketAddrV4,
    /// Payloads to send, back to back: each packet has its own, as a program's data would.
    load: Vec<u8>,
    payload_bytes: usize,
    peer: libc::sockaddr_in,
    arena: Vec<u8>,
    slot_bytes: usize,
    names: Vec<libc::sockaddr_in>,
    vectors: Vec<libc::iovec>,
    heads: Vec<libc::mmsghdr>,
    /// The number of filled slots, from the first.
    used: usize,
    /// Largest number of packets of one call.
    batch: usize,
    /// Largest number of datagrams of the next poll: one after an empty poll, as a program that
    /// waits for an answer would ask.
    asked: usize,
    /// The datagrams of every call, if the measurement gives their number.
    takes: Option<usize>,
    /// Whether the last call left nothing in the queue of such a measurement.
    is_drained: bool,
    /// Consecutive calls with at most one datagram.
    singles: usize,
    calls: u64,
    refused: u64,
}

impl KernelEnd {
    /// Binds a socket for payloads of `payload_bytes`. One call sends and receives no more than
    /// `batch_max` packets.
    ///
    /// # Errors
    /// The system's.
    pub fn open(
        local: SocketAddrV4,
        payload_bytes: usize,
        way: &Half,
        batch_max: usize,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.set_read_timeout(Some(Duration::from_millis(SLEEP_MS as u64)))?;
        socket.set_write_timeout(Some(Duration::from_secs(1)))?;
        for (forced, usual) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            set(&socket, forced, QUEUE_BYTES).or_else(|_| set(&socket, usual, QUEUE_BYTES))?;
        }
        if let Some(us) = way.busy_poll_us {
            set(&socket, libc::SO_BUSY_POLL, us as libc::c_int)?;
        }
        if let Some(priority) = way.priority {
            set(&socket, libc::SO_PRIORITY, priority as libc::c_int)?;
        }
        let std::net::SocketAddr::V4(local) = socket.local_addr()? else { unreachable!("IPv4") };
        // Room for one byte more shows that a packet is too long.
        let slot_bytes = (payload_bytes + 1).next_multiple_of(64);
        // SAFETY: plain C structures for which all-zero bytes are a valid value.
        let (vector, head) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Ok(Self {
            socket,
            local,
            load: load(BATCH, payload_bytes),
            payload_bytes,
            peer: raw(nowhere()),
            arena: vec![0; BATCH * slot_bytes],
            slot_bytes,
            names: vec![raw(nowhere()); BATCH],
            vectors: vec![vector; BATCH],
            heads: vec![head; BATCH],
            used: BATCH,
            asked: BATCH.min(batch_max),
            batch: BATCH.min(batch_max),
            takes: way.call_takes.map(|takes| takes.clamp(1, BATCH)),
            is_drained: true,
            singles: 0,
            calls: 0,
            refused: 0,
        })
    }

    /// Sends the messages described in `heads[from..to]`; returns how many left.
    fn send_heads(&mut self, from: usize, to: usize) -> io::Result<usize> {
        self.calls += 1;
        let heads = &mut self.heads[from..to];
        // SAFETY: the caller pointed these headers at live buffers of this struct with their true
        // lengths, and the kernel only reads those.
        let sent = unsafe { socket::send_messages(&self.socket, heads, 0) };
        self.left(sent.map_or(-1, usize::cast_signed))
    }

    /// Sends one packet, without headers to describe it; returns how many left.
    ///
    /// # Safety
    /// The vector describes a live buffer of this struct.
    unsafe fn send_one(&mut self, vector: libc::iovec, to: libc::sockaddr_in) -> io::Result<usize> {
        self.calls += 1;
        // SAFETY: the buffer (the caller's promise) and the address are live, with their true
        // lengths, and the kernel only reads them.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                vector.iov_base,
                vector.iov_len,
                0,
                (&raw const to).cast(),
                mem::size_of::<libc::sockaddr_in>() as libc::socklen_t,
            )
        };
        self.left(sent.min(1))
    }

    /// The number that left, from a call's result.
    fn left(&mut self, answer: isize) -> io::Result<usize> {
        usize::try_from(answer).or_else(|_| {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => Ok(0),
                // An ICMP answer to an earlier packet; reading it has cleared it.
                Some(libc::ECONNREFUSED) => {
                    self.refused += 1;
                    Ok(0)
                }
                _ => Err(error),
            }
        })
    }

    fn receive(&mut self, look: Look) -> io::Result<usize> {
        self.calls += 1;
        // With single answers it waits for one, as any program would; now and then it asks for
        // more, to notice when there are more.
        let one_by_one = self.singles >= SINGLES && !self.singles.is_multiple_of(SINGLES);
        let count = match look {
            _ if self.takes.is_some() => self.receive_gathered(),
            Look::Sleep if one_by_one => self.receive_one(),
            _ => self.receive_batch(look),
        };
        self.singles = if count > 1 { 0 } else { self.singles + 1 };
        usize::try_from(count).or_else(|_| {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED) => Ok(0),
                _ => Err(error),
            }
        })
    }

    /// Waits for one datagram, without headers to describe it; returns the number, or -1.
    fn receive_one(&mut self) -> isize {
        let mut length = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: the first slot and the first name of this struct with their true lengths.
        let bytes = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                self.arena.as_mut_ptr().cast(),
                self.slot_bytes,
                0,
                (&raw mut self.names[0]).cast(),
                &raw mut length,
            )
        };
        let vector = &mut self.vectors[0];
        vector.iov_base = self.arena.as_mut_ptr().cast();
        vector.iov_len = self.slot_bytes;
        point(&mut self.heads[0], vector, &mut self.names[0]);
        self.used = self.used.max(1);
        self.heads[0].msg_len = u32::try_from(bytes).unwrap_or(0);
        bytes.min(1)
    }

    /// Takes the datagrams that are there, or waits for the first; returns how many, or -1.
    fn receive_batch(&mut self, look: Look) -> isize {
        for (index, head) in self.heads.iter_mut().enumerate().take(self.used) {
            let vector = &mut self.vectors[index];
            vector.iov_base = self.arena[index * self.slot_bytes..].as_mut_ptr().cast();
            vector.iov_len = self.slot_bytes;
            point(head, vector, &mut self.names[index]);
        }
        let flags = match look {
            Look::Glance => libc::MSG_DONTWAIT,
            Look::Sleep => libc::MSG_WAITFORONE,
        };
        let heads = &mut self.heads[..self.asked];
        // SAFETY: every header points at a slot and a name of this struct with their true lengths.
        let count = unsafe { socket::receive_messages(&self.socket, heads, flags) };
        let count = count.map_or(-1, usize::cast_signed);
        self.used = usize::try_from(count).unwrap_or(0).max(1);
        self.asked = if count > 0 { self.batch } else { 1 };
        count
    }

    /// Takes a fixed number of datagrams from the queue, after they have gathered there: so calls
    /// are full and the thread seldom sleeps, whichever side is faster. Returns how many, or -1.
    fn receive_gathered(&mut self) -> isize {
        if self.is_drained {
            std::thread::sleep(Duration::from_millis(SLEEP_MS as u64));
        }
        let takes = self.takes.unwrap_or(BATCH);
        self.asked = takes;
        let count = self.receive_batch(Look::Glance);
        self.is_drained = count < takes.cast_signed();
        count
    }

    /// The payload in slot `index`.
    fn payload(&self, index: usize) -> &[u8] {
        let length = (self.heads[index].msg_len as usize).min(self.slot_bytes);
        &self.arena[index * self.slot_bytes..][..length]
    }
}

impl PathEnd for KernelEnd {
    fn address(&self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: self.local }
    }

    fn aim(&mut self, peer: &EndAddress) {
        self.peer = raw(peer.udp);
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn send(&mut self, count: usize) -> io::Result<usize> {
        let count = count.min(self.batch);
        self.used = self.used.max(count);
        let payloads = self.load.chunks_exact_mut(self.payload_bytes).take(count);
        for ((head, vector), payload) in self.heads.iter_mut().zip(&mut self.vectors).zip(payloads)
        {
            vector.iov_base = payload.as_mut_ptr().cast();
            vector.iov_len = payload.len();
            point(head, vector, &mut self.peer);
        }
        self.send_heads(0, count)
    }

    fn send_numbered(&mut self, number: u64) -> io::Result<bool> {
        self.load[..8].copy_from_slice(&number.to_le_bytes());
        let vector =
            libc::iovec { iov_base: self.load.as_mut_ptr().cast(), iov_len: self.payload_bytes };
        // SAFETY: the payload of this struct.
        let sent = unsafe { self.send_one(vector, self.peer) };
        self.load[..8].copy_from_slice(&LOAD.to_le_bytes());
        Ok(sent? == 1)
    }

    fn take(&mut self, look: Look) -> io::Result<usize> {
        self.receive(look)
    }

    fn take_numbers(&mut self, look: Look, numbers: &mut Vec<u64>) -> io::Result<usize> {
        let count = self.receive(look)?;
        numbers.extend((0..count).filter_map(|index| number(self.payload(index))));
        Ok(count)
    }

    fn echo(&mut self, look: Look, which: EchoMode) -> io::Result<(usize, usize)> {
        let count = self.receive(look)?;
        let (mut kept, mut last) = (0, 0);
        for index in 0..count {
            if which == EchoMode::Numbered && number(self.payload(index)).is_none() {
                continue;
            }
            let length = self.payload(index).len();
            self.vectors[index].iov_len = length;
            self.heads[kept] = self.heads[index];
            (kept, last) = (kept + 1, index);
        }
        if kept == 1 {
            // SAFETY: the slot of this struct that was received into, with the length received.
            let sent = unsafe { self.send_one(self.vectors[last], self.names[last]) };
            return sent.map(|sent| (count, sent));
        }
        let mut sent = 0;
        while sent < kept {
            match self.send_heads(sent, kept)? {
                0 => break,
                some => sent += some,
            }
        }
        Ok((count, sent))
    }

    fn calls(&mut self) -> Option<u64> {
        Some(self.calls)
    }

    fn copies(&mut self) -> PacketCopies {
        PacketCopies::new(Copies::ONCE, 0, 0)
    }

    fn events(&mut self) -> Vec<(String, u64)> {
        let mut events = Vec::new();
        if let Some(drops) = socket::drops(&self.socket).ok().filter(|drops| *drops > 0) {
            events.push(("socket_queue_full".to_owned(), drops.into()));
        }
        if self.refused > 0 {
            events.push(("refused".to_owned(), self.refused));
        }
        events
    }
}

fn point(head: &mut libc::mmsghdr, vector: &mut libc::iovec, name: &mut libc::sockaddr_in) {
    let header = &mut head.msg_hdr;
    header.msg_name = (&raw mut *name).cast();
    header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    head.msg_len = 0;
}

fn raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn set(socket: &UdpSocket, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    socket::set(socket, libc::SOL_SOCKET, name, &value)
}
