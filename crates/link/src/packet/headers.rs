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

/// The most ports and interfaces of a filter, which tests them one by one: a program holds 4096
/// instructions (`BPF_MAXINSNS`).
const PORTS_MAX: usize = 900;
const INTERFACES_MAX: usize = 200;

/// The bytes before the IPv4 header of an Ethernet frame. The kernel removes the outer VLAN tag
/// before a packet socket sees it.
const ETHERNET_BYTES: u32 = 14;

/// The kinds of devices, `ARPHRD_` of `linux/if_arp.h`, that begin with an Ethernet header.
const ETHERNETS: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];

/// Which datagrams are wanted: UDP over IPv4, the first fragment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderFilter {
    /// Ports, of which either end has one: at most 900; empty for all.
    pub ports: Vec<u16>,
    /// Numbers of interfaces: at most 200; empty for all.
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
    /// Those of setsockopt(2), mmap(2) and bind(2); `InvalidInput` for too many ports or
    /// interfaces.
    pub fn begin(socket: OwnedFd, filter: &HeaderFilter) -> io::Result<Self> {
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket::set_number(fd, libc::PACKET_VERSION, version)?;
        socket::attach(fd, &program(filter)?)?;
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
    /// That of setsockopt(2); `InvalidInput` for too many ports or interfaces.
    pub fn want(&self, filter: &HeaderFilter) -> io::Result<()> {
        socket::attach(self.socket.as_fd(), &program(filter)?)
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

/// A program being written.
#[derive(Default)]
struct Code(Vec<sock_filter>);

impl Code {
    fn put(&mut self, kind: u32, jt: u8, jf: u8, k: u32) {
        self.0.push(sock_filter { code: kind as u16, jt, jf, k });
    }

    /// A ← what the kernel stores with the frame.
    fn load_known(&mut self, what: i32) {
        self.put(BPF_LD | BPF_W | BPF_ABS, 0, 0, (libc::SKF_AD_OFF + what) as u32);
    }

    /// Goes on if A is `k`, else drops the frame.
    fn want(&mut self, k: u32) {
        self.put(EQUAL, 1, 0, k);
        self.put(RETURN, 0, 0, 0);
    }
}

const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
const RETURN: u32 = BPF_RET | BPF_K;

/// Drops what is no first part of a UDP datagram, and stores both ports; the IPv4 header begins at
/// `base`. Offsets relative to that header, which the kernel has (`SKF_NET_OFF`), would not find
/// what is in a packet's pages.
fn ports_at(base: u32) -> Code {
    let mut code = Code::default();
    code.put(BPF_LD | BPF_B | BPF_ABS, 0, 0, base + 9);
    code.want(17);
    // Later fragments have no ports.
    code.put(BPF_LD | BPF_H | BPF_ABS, 0, 0, base + 6);
    code.put(BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x1fff);
    code.put(RETURN, 0, 0, 0);
    code.put(BPF_LDX | BPF_B | BPF_MSH, 0, 0, base);
    for end in [0, 1] {
        code.put(BPF_LD | BPF_H | BPF_IND, 0, 0, base + 2 * end);
        code.put(libc::BPF_ST, 0, 0, end);
    }
    code
}

/// Returns the program that passes the wanted datagrams, cut.
fn program(filter: &HeaderFilter) -> io::Result<Vec<sock_filter>> {
    let HeaderFilter { ports, interfaces, bytes } = filter;
    if ports.len() > PORTS_MAX || interfaces.len() > INTERFACES_MAX {
        let why = format!("at most {PORTS_MAX} ports and {INTERFACES_MAX} interfaces are watched");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut code = Code::default();
    code.load_known(libc::SKF_AD_PROTOCOL);
    code.want(0x0800);
    if !interfaces.is_empty() {
        code.load_known(libc::SKF_AD_IFINDEX);
        for (number, interface) in interfaces.iter().enumerate() {
            // Over the tests that are left, and the end, by a jump that reaches everywhere.
            code.put(EQUAL, 0, 1, *interface);
            let left = (interfaces.len() - number - 1) * 2 + 1;
            code.put(BPF_JMP | libc::BPF_JA, 0, 0, left as u32);
        }
        code.put(RETURN, 0, 0, 0);
    }
    // What the loopback interface sends comes in there again.
    code.load_known(libc::SKF_AD_HATYPE);
    code.put(EQUAL, 0, 3, libc::ARPHRD_LOOPBACK.into());
    code.load_known(libc::SKF_AD_PKTTYPE);
    code.put(EQUAL, 0, 1, libc::PACKET_OUTGOING.into());
    code.put(RETURN, 0, 0, 0);
    let [framed, plain] = [ports_at(ETHERNET_BYTES), ports_at(0)];
    code.load_known(libc::SKF_AD_HATYPE);
    let [one, other] = ETHERNETS;
    code.put(EQUAL, 2, 0, one.into());
    code.put(EQUAL, 1, 0, other.into());
    code.put(BPF_JMP | libc::BPF_JA, 0, 0, framed.0.len() as u32 + 1);
    code.0.extend(framed.0);
    code.put(BPF_JMP | libc::BPF_JA, 0, 0, plain.0.len() as u32);
    code.0.extend(plain.0);
    if !ports.is_empty() {
        for end in [0, 1] {
            code.put(BPF_LD | libc::BPF_MEM, 0, 0, end);
            for port in ports {
                code.put(EQUAL, 0, 1, (*port).into());
                code.put(RETURN, 0, 0, *bytes);
            }
        }
        code.put(RETURN, 0, 0, 0);
    } else {
        code.put(RETURN, 0, 0, *bytes);
    }
    Ok(code.0)
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
    fn too_many_ports_are_refused_and_as_many_as_fit_are_taken() {
        let with = |ports: u16, interfaces: u32| HeaderFilter {
            ports: (1..=ports).collect(),
            interfaces: (1..=interfaces).collect(),
            bytes: 60,
        };
        assert!(program(&with(900, 200)).unwrap().len() <= 4096);
        for filter in [with(901, 0), with(0, 201)] {
            assert_eq!(program(&filter).unwrap_err().kind(), io::ErrorKind::InvalidInput);
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
