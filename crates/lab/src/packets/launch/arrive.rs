//! The receiver, with the kernel's time stamps (`SO_TIMESTAMPNS`, socket(7)).

use std::io;
use std::mem;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{LaunchArrivals, marked};
use crate::packets::end::{EndAddress, SLEEP_MS};
use crate::packets::job::JobResult;
use crate::packets::plan::EndPlan;
use millstream_host::socket::{grow, set};
use millstream_link::launch::LaunchClock;

/// Bytes of the socket's queue.
const QUEUE_BYTES: usize = 8 << 20;

/// A plain socket of the kernel's UDP.
pub(in crate::packets) struct ArrivalEnd {
    socket: UdpSocket,
    local: SocketAddrV4,
}

impl ArrivalEnd {
    /// Opens it.
    ///
    /// # Errors
    /// The system's, in words.
    pub fn open(end: &EndPlan) -> Result<Self, String> {
        let open = || -> io::Result<Self> {
            let socket = UdpSocket::bind(SocketAddrV4::new(end.address, 0))?;
            socket.set_read_timeout(Some(Duration::from_millis(SLEEP_MS as u64)))?;
            grow(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, QUEUE_BYTES)?;
            set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
            let SocketAddr::V4(local) = socket.local_addr()? else { unreachable!("IPv4") };
            Ok(Self { socket, local })
        };
        open().map_err(|error| format!("cannot open a UDP socket with time stamps: {error}"))
    }

    pub fn address(&self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: self.local }
    }

    /// Receives until the stop request, and until nothing comes any more.
    ///
    /// # Errors
    /// The system's.
    pub fn play(&self, tolerance_ns: u64, stop: &AtomicBool) -> io::Result<JobResult> {
        let mut arrived = LaunchArrivals::default();
        let tolerance_ns = i64::try_from(tolerance_ns).unwrap_or(i64::MAX);
        let mut payload = [0; 64];
        loop {
            // Before the look: what was sent before the stop request is there by then.
            let last_look = stop.load(Ordering::Relaxed);
            match self.receive(&mut payload) {
                Ok((bytes, Some(stamp_ns))) => {
                    let Some((clock, at_ns)) = marked(&payload[..bytes]) else { continue };
                    let (now_ns, wall_ns) = both(clock);
                    let came_ns = now_ns.wrapping_sub(wall_ns.wrapping_sub(stamp_ns));
                    let offset_ns = came_ns.wrapping_sub(at_ns).cast_signed();
                    arrived.offsets.record(offset_ns);
                    arrived.early += u64::from(offset_ns < -tolerance_ns);
                    arrived.late += u64::from(offset_ns > tolerance_ns);
                }
                Ok((_, None)) => {
                    return Err(io::Error::other("the kernel gave a packet no time stamp"));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if last_look {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let came = arrived.offsets.count();
        Ok(JobResult { total: came, came, arrived: Some(arrived), ..JobResult::default() })
    }

    /// Receives a packet: the bytes of its payload, and when the kernel received it, nanoseconds of
    /// CLOCK_REALTIME.
    fn receive(&self, payload: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        // Aligned as cmsg(3) requires, with room for one time stamp.
        let mut control = [0u64; 8];
        let mut vector =
            libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
        // SAFETY: a plain C structure for which all-zero bytes are a valid value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = mem::size_of_val(&control) as _;
        // SAFETY: the header names the live payload and control buffers with their true lengths.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0) };
        let bytes = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has filled the control buffer and set its length; `CMSG_FIRSTHDR` and
        // `CMSG_NXTHDR` stay within it, and a `timespec` may be read unaligned.
        let stamp = unsafe {
            let mut at = libc::CMSG_FIRSTHDR(&raw const header);
            loop {
                match at.as_ref() {
                    None => break None,
                    Some(head)
                        if (head.cmsg_level, head.cmsg_type)
                            == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) =>
                    {
                        let value = libc::CMSG_DATA(at).cast::<libc::timespec>();
                        break Some(value.read_unaligned());
                    }
                    Some(_) => at = libc::CMSG_NXTHDR(&raw const header, at),
                }
            }
        };
        Ok((bytes, stamp.map(|stamp| nanoseconds(&stamp))))
    }
}

/// The longest between the readings of two clocks that belong together, nanoseconds.
const TOGETHER_NS: u64 = 5_000;

/// Returns a clock and CLOCK_REALTIME at the same moment, nanoseconds: a thread that loses its CPU
/// between the two reads them again.
fn both(clock: LaunchClock) -> (u64, u64) {
    let mut best = (u64::MAX, (0, 0));
    for _ in 0..8 {
        let (before_ns, wall_ns, after_ns) = (clock.now_ns(), wall_ns(), clock.now_ns());
        let apart_ns = after_ns.saturating_sub(before_ns);
        if apart_ns < best.0 {
            best = (apart_ns, (before_ns + apart_ns / 2, wall_ns));
        }
        if apart_ns <= TOGETHER_NS {
            break;
        }
    }
    best.1
}

/// CLOCK_REALTIME, nanoseconds.
fn wall_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn nanoseconds(time: &libc::timespec) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
