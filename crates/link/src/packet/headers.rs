//! The first bytes of the datagrams that pass a host's interfaces in either direction, for an
//! observer: the flow is not changed, and nothing is transmitted.
//!
//! A ring of `TPACKET_V3` packs the cut frames into blocks, which suits an observer: it wakes once
//! a block or every [`BLOCK_MS`], whatever the rate. A filter in the kernel passes the wanted
//! datagrams only, and cuts them. Sources: packet(7), `Documentation/networking/packet_mmap.rst`,
//! `Documentation/networking/filter.rst`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{
    BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_MSH,
    BPF_RET, BPF_W, sock_filter,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::socket;

/// The longest time that a packet waits in a block that is not full, milliseconds.
pub const BLOCK_MS: u32 = 10;

/// The size of a block: contiguous memory that is available on a machine that has run for long.
const BLOCK_BYTES: usize = 1 << 17;

/// The most blocks: 16 MiB, about 50 000 cut frames.
const BLOCKS: usize = 128;

/// The most ports and interfaces that a filter tests one by one; with more of them all pass.
const TESTS_MAX: usize = 1000;

/// The kinds of devices, `ARPHRD_` of `linux/if_arp.h`, that begin with an Ethernet header.
const ETHERNETS: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];

/// Which datagrams are wanted: UDP over IPv4, the first fragment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderFilter {
    /// Ports, of which either end has one; empty for all.
    pub ports: Vec<u16>,
    /// Numbers of interfaces; empty for all.
    pub interfaces: Vec<u32>,
    /// Bytes of each frame that are wanted.
    pub bytes: u32,
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy)]
pub struct PassingFrame<'a> {
    /// The number of the interface.
    pub interface: u32,
    /// When it passed, nanoseconds of `CLOCK_REALTIME`.
    pub at_ns: u64,
    /// Whether this host sent it.
    pub is_outgoing: bool,
    /// Whether it begins with an Ethernet header; else with that of IPv4.
    pub is_ethernet: bool,
    /// Bytes of the whole frame.
    pub length: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
}

/// A capture of headers.
#[derive(Debug)]
pub struct HeaderCapture {
    socket: OwnedFd,
    ring: NonNull<u8>,
    /// The block that the kernel fills next.
    next: usize,
    missed: u64,
}

// SAFETY: the mapping may be used from any thread, and is reached through one owner at a time.
unsafe impl Send for HeaderCapture {}

impl HeaderCapture {
    /// Opens a packet socket in the network namespace of this thread. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// The error of socket(2).
    pub fn socket() -> io::Result<OwnedFd> {
        Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
    }

    /// Begins a capture by a socket of the family `AF_PACKET`, type `SOCK_RAW`, which is not bound.
    ///
    /// # Errors
    /// Those of setsockopt(2), mmap(2) and bind(2).
    pub fn begin(socket: OwnedFd, filter: &HeaderFilter) -> io::Result<Self> {
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket::set_number(fd, libc::PACKET_VERSION, version)?;
        socket::attach(fd, &program(filter))?;
        // SAFETY: the struct is plain data, and all zeros is one.
        let mut request: libc::tpacket_req3 = unsafe { std::mem::zeroed() };
        request.tp_block_size = BLOCK_BYTES as u32;
        request.tp_block_nr = BLOCKS as u32;
        // The kernel packs frames of any length; these two must only agree with the blocks.
        request.tp_frame_size = 2048;
        request.tp_frame_nr = (BLOCKS * BLOCK_BYTES / 2048) as u32;
        request.tp_retire_blk_tov = BLOCK_MS;
        socket::set(fd, libc::PACKET_RX_RING, &request)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let bytes = BLOCKS * BLOCK_BYTES;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let ring = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0)? };
        let ring = NonNull::new(ring.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let capture = Self { socket, ring, next: 0, missed: 0 };
        socket::bind(capture.socket.as_fd(), 0, true)?;
        Ok(capture)
    }

    /// Wants other datagrams from now on.
    ///
    /// # Errors
    /// That of setsockopt(2).
    pub fn want(&self, filter: &HeaderFilter) -> io::Result<()> {
        socket::attach(self.socket.as_fd(), &program(filter))
    }

    /// Waits until there are frames, or the time is over.
    ///
    /// # Errors
    /// That of poll(2); a signal is none.
    pub fn wait(&self, longest: Duration) -> io::Result<()> {
        let longest = Timespec::try_from(longest).ok();
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], longest.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls `each` with all frames that are there, in the order in which they passed; returns
    /// their number.
    pub fn read(&mut self, mut each: impl FnMut(&PassingFrame<'_>)) -> u64 {
        let mut frames = 0;
        // Once around the ring: a kernel that fills it as fast as we read must not hold us.
        for _ in 0..BLOCKS {
            let status = self.status(self.next);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the block is ours until its status says otherwise, and whole in the mapping.
            let block = unsafe {
                std::slice::from_raw_parts(
                    self.ring.as_ptr().add(self.next * BLOCK_BYTES),
                    BLOCK_BYTES,
                )
            };
            frames += frames_of(block, &mut each);
            self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % BLOCKS;
        }
        frames
    }

    /// Returns the frames for which the ring had no room since the beginning.
    ///
    /// # Errors
    /// That of getsockopt(2).
    pub fn missed(&mut self) -> io::Result<u64> {
        self.missed += socket::drops(self.socket.as_fd())?;
        Ok(self.missed)
    }

    /// Returns the status of a block: `block_status` of `struct tpacket_hdr_v1`.
    fn status(&self, block: usize) -> &AtomicU32 {
        assert!(block < BLOCKS);
        // SAFETY: it lies in the mapping, is aligned, and both sides treat it as an atomic.
        unsafe { AtomicU32::from_ptr(self.ring.as_ptr().add(block * BLOCK_BYTES + 8).cast()) }
    }
}

impl Drop for HeaderCapture {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no slice of it is left.
        let _ = unsafe { munmap(self.ring.as_ptr().cast(), BLOCKS * BLOCK_BYTES) };
    }
}

impl AsFd for HeaderCapture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads the number at an offset in the machine's order, as the kernel writes them.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
    u32::from_ne_bytes(word.unwrap_or_default())
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
    u16::from_ne_bytes(half.unwrap_or_default())
}

/// Calls `each` with the frames of a block (`struct tpacket_block_desc`).
fn frames_of(block: &[u8], each: &mut impl FnMut(&PassingFrame<'_>)) -> u64 {
    use std::mem::offset_of;
    // The address, `struct sockaddr_ll`, is behind the header of a frame.
    const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(16);
    let (count, mut at) = (word(block, 12), word(block, 16) as usize);
    let mut frames = 0;
    for _ in 0..count {
        let Some(frame) = block.get(at..) else { break };
        let field = |offset: usize| word(frame, offset);
        let start = half(frame, offset_of!(libc::tpacket3_hdr, tp_mac)).into();
        let length = field(offset_of!(libc::tpacket3_hdr, tp_snaplen)) as usize;
        let bytes = frame.get(start..).and_then(|rest| rest.get(..length));
        let address = frame.get(ADDRESS..).unwrap_or_default();
        let kind = half(address, offset_of!(libc::sockaddr_ll, sll_hatype));
        let seconds: u64 = field(offset_of!(libc::tpacket3_hdr, tp_sec)).into();
        if let Some(bytes) = bytes {
            let nanoseconds: u64 = field(offset_of!(libc::tpacket3_hdr, tp_nsec)).into();
            let passed = address.get(offset_of!(libc::sockaddr_ll, sll_pkttype));
            frames += 1;
            each(&PassingFrame {
                interface: word(address, offset_of!(libc::sockaddr_ll, sll_ifindex)),
                at_ns: seconds * 1_000_000_000 + nanoseconds,
                is_outgoing: passed == Some(&libc::PACKET_OUTGOING),
                is_ethernet: ETHERNETS.contains(&kind),
                length: field(offset_of!(libc::tpacket3_hdr, tp_len)),
                bytes,
            });
        }
        match field(offset_of!(libc::tpacket3_hdr, tp_next_offset)) as usize {
            0 => break,
            next => at += next,
        }
    }
    frames
}

/// Returns the program that passes the wanted datagrams, cut. Offsets count from the IPv4 header,
/// so that the kind of the interface does not matter.
fn program(filter: &HeaderFilter) -> Vec<sock_filter> {
    let mut code = Vec::new();
    let mut put = |kind: u32, jt: u8, jf: u8, k: u32| {
        code.push(sock_filter { code: kind as u16, jt, jf, k });
    };
    let (net, known) = (|at: i32| (libc::SKF_NET_OFF + at) as u32, libc::SKF_AD_OFF);
    let known = |what: i32| (known + what) as u32;
    let (load, equal) = (BPF_LD | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K);
    let ret = BPF_RET | BPF_K;
    // Passes the next instruction if A is `k`, else drops the frame.
    put(load | BPF_W, 0, 0, known(libc::SKF_AD_PROTOCOL));
    put(equal, 1, 0, 0x0800);
    put(ret, 0, 0, 0);
    put(load | BPF_B, 0, 0, net(9));
    put(equal, 1, 0, 17);
    put(ret, 0, 0, 0);
    // Later fragments have no ports.
    put(load | BPF_H, 0, 0, net(6));
    put(BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x1fff);
    put(ret, 0, 0, 0);
    // What the loopback interface sends comes in there again.
    put(load | BPF_W, 0, 0, known(libc::SKF_AD_HATYPE));
    put(equal, 0, 3, libc::ARPHRD_LOOPBACK.into());
    put(load | BPF_W, 0, 0, known(libc::SKF_AD_PKTTYPE));
    put(equal, 0, 1, libc::PACKET_OUTGOING.into());
    put(ret, 0, 0, 0);
    let interfaces = &filter.interfaces;
    if !interfaces.is_empty() && interfaces.len() <= TESTS_MAX {
        put(load | BPF_W, 0, 0, known(libc::SKF_AD_IFINDEX));
        for (number, interface) in interfaces.iter().enumerate() {
            // Over the tests that are left, and the end, by a jump that reaches everywhere.
            put(equal, 0, 1, *interface);
            put(BPF_JMP | libc::BPF_JA, 0, 0, ((interfaces.len() - number - 1) * 2 + 1) as u32);
        }
        put(ret, 0, 0, 0);
    }
    if !filter.ports.is_empty() && filter.ports.len() <= TESTS_MAX {
        put(BPF_LDX | BPF_B | BPF_MSH, 0, 0, net(0));
        for end in [0, 2] {
            put(BPF_LD | BPF_H | BPF_IND, 0, 0, net(end));
            for port in &filter.ports {
                put(equal, 0, 1, (*port).into());
                put(ret, 0, 0, filter.bytes);
            }
        }
        put(ret, 0, 0, 0);
    } else {
        put(ret, 0, 0, filter.bytes);
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Instant;

    #[test]
    fn the_beginnings_of_wanted_datagrams_are_seen_once_with_their_length() {
        let Ok(socket) = HeaderCapture::socket() else {
            eprintln!("skipped: packet sockets need CAP_NET_RAW");
            return;
        };
        let [one, two] = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        let filter = HeaderFilter { ports: vec![port(&two)], interfaces: vec![], bytes: 60 };
        let mut capture = HeaderCapture::begin(socket, &filter).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..1000u16 {
            let length = 8 + usize::from(number);
            let mut datagram = vec![0; length];
            datagram[..2].copy_from_slice(&number.to_be_bytes());
            one.send_to(&datagram, two.local_addr().unwrap()).unwrap();
            two.recv(&mut datagram).unwrap();
            one.send_to(&datagram, other.local_addr().unwrap()).unwrap();
        }
        let (mut seen, begun) = (0u16, Instant::now());
        while seen < 1000 && begun.elapsed() < Duration::from_secs(20) {
            capture.wait(Duration::from_millis(100)).unwrap();
            capture.read(|frame| {
                let length = 14 + 28 + 8 + usize::from(seen);
                assert_eq!(frame.length as usize, length);
                assert_eq!(frame.bytes.len(), length.min(60));
                assert_eq!(frame.bytes[42..44], seen.to_be_bytes());
                assert!(frame.is_ethernet && !frame.is_outgoing && frame.interface > 0);
                seen += 1;
            });
        }
        assert_eq!((seen, capture.missed().unwrap()), (1000, 0));
        // Other interfaces, other ports: nothing.
        for filter in [
            HeaderFilter { interfaces: vec![999_998, 999_999], ..filter.clone() },
            HeaderFilter { ports: vec![1, port(&two).wrapping_add(1)], ..filter.clone() },
        ] {
            capture.want(&filter).unwrap();
            one.send_to(&[0; 9], two.local_addr().unwrap()).unwrap();
            capture.wait(Duration::from_millis(50)).unwrap();
            let others = capture.read(|frame| assert_ne!(frame.length, 14 + 28 + 9));
            assert_eq!(others, 0);
        }
    }

    #[test]
    fn damaged_blocks_end_the_reading() {
        for length in 0..200 {
            for fill in [0, 1, 16, 48, 0xff] {
                let block = vec![fill; length];
                frames_of(&block, &mut |frame| assert!(frame.bytes.len() <= 200));
            }
        }
    }
}
