//! Opening a link: from options to a port and its properties.

use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_dpdk::{Eal, EalOptions, Part, Port, PortWanted};

use super::advice;
use super::device::{DeviceName, Driver};
use super::link::{BURST, CONNECT, DpdkLink, LOOK};
use super::options::DpdkOptions;
use crate::coarse;
use crate::frame::{Copies, ETHERNET_BYTES_MAX, FrameMemory, FrameOptions, LinkInfo, Mode};
use crate::{LinkError, Spec};

const NAME: &str = super::LINK.name;

/// The default of the largest IP packet in memory.
const MEMORY_MTU: u16 = 9000;

/// The least room for data in a buffer; some drivers refuse less (2048 and their headroom).
const FRAME_BYTES_MIN: usize = 2048;

/// Free huge pages below which DPDK does not use them, bytes.
const HUGE_MIN: u64 = 256 << 20;

/// Opens the link that `spec` names.
pub(super) fn open(spec: &Spec, sizes: &FrameOptions) -> Result<DpdkLink, LinkError> {
    let options = DpdkOptions::from_spec(spec)?;
    advice::check_pci(&options)?;
    unlink_stale(&options);
    once_without_copies(&options)?;
    let eal = start(&options)?;
    let wanted = wanted(&options, sizes);
    let port = Port::open(&wanted).map_err(|error| advice::port(&options, error))?;
    let (base, bytes) = port.memory();
    let base = NonNull::new(base as *mut u8).ok_or(LinkError::Setup {
        what: "place the buffers",
        source: io::ErrorKind::OutOfMemory.into(),
    })?;
    // A frame has 31 bits for its buffer, in units of 64 bytes.
    if bytes >= (1 << 31) * 64 {
        let apart = "DPDK's buffers lie more than 128 GiB apart: free huge pages of one node";
        let apart = io::Error::other(apart);
        return Err(LinkError::Setup { what: "place the buffers", source: apart });
    }
    // SAFETY: the pools lie there, and stay as long as one of their buffers is in use (`Port`).
    let memory = Arc::new(unsafe { FrameMemory::borrowed(base, bytes) });
    let info = info(&options, &wanted, &port, &eal);
    let in_rings = |ring: usize| ring * usize::from(wanted.queues);
    let (receive, transmit) = (in_rings(port.rings().0), in_rings(port.rings().1));
    let (driver, started) = (options.device.driver(), port.is_started());
    let mut link = DpdkLink {
        info,
        memory,
        port,
        buffers: (
            wanted.receive_frames as usize + receive,
            wanted.transmit_frames as usize + transmit,
        ),
        lent: (0, 0),
        drops: driver.is_some() && !options.own.wait,
        full_since: None,
        reconnects: driver == Some(Driver::Memif)
            && options.argument("role") != Some("server")
            && !is_without_copies(&options),
        turn: 0,
        parts: vec![Part::new(0, 0, 0); BURST],
        counters: Default::default(),
        rules: Vec::new(),
        unsteered: 0,
        down: None,
        next_ask: Duration::ZERO,
        next_restart: coarse::now() + if started { CONNECT } else { LOOK },
    };
    // The first frame sent should not meet a link that is not up yet.
    link.settle();
    if matches!(options.device, DeviceName::Pci(_)) {
        link.await_carrier();
    }
    Ok(link)
}

fn start(options: &DpdkOptions) -> Result<Eal, LinkError> {
    let huge = options.own.huge.unwrap_or_else(|| free_huge_bytes() >= HUGE_MIN);
    // The thread that opens a link is often pinned; DPDK's own threads must not run on its CPU.
    let cpus = millstream_cpu::thread::process_cpus().unwrap_or_default().iter().collect();
    let physical = options.own.unsafe_uio;
    let wanted = EalOptions { huge, memory_mib: options.own.memory_mib, physical, cpus };
    let eal = millstream_dpdk::start(&wanted).map_err(|error| advice::eal(options, error))?;
    match options.own.huge {
        Some(asked) if asked != eal.huge && !eal.shared => {
            let (there, word) = if eal.huge { ("with", "on") } else { ("without", "off") };
            let hint = format!(
                "the first link of this process has started DPDK {there} huge pages: leave out \
                 huge=, or use huge={word} for all links"
            );
            let source = io::ErrorKind::InvalidInput.into();
            Err(advice::failed(&options.device, "start DPDK", source, hint))
        }
        _ => Ok(eal),
    }
}

/// Returns the bytes in free huge pages of the usual size.
fn free_huge_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let value = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next());
        word.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    value("HugePages_Free") * (value("Hugepagesize") << 10)
}

/// Allows a memif client without copies only once: it gives its peer EAL's own descriptor of its
/// memory, and closes that with the connection. With the next connection DPDK 22.11 would close
/// whatever has the number by then.
fn once_without_copies(options: &DpdkOptions) -> Result<(), LinkError> {
    static USED: AtomicBool = AtomicBool::new(false);
    if !is_without_copies(options) || !USED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let hint =
        "DPDK's memif allows zero-copy only once in a process: leave out zero-copy=".to_owned();
    let source = io::ErrorKind::Unsupported.into();
    Err(advice::failed(&options.device, "look at zero-copy=trust-peer", source, hint))
}

fn is_without_copies(options: &DpdkOptions) -> bool {
    options.device.driver() == Some(Driver::Memif) && options.argument("zero-copy") == Some("yes")
}

/// Removes a socket without an owner, which would prevent the next bind there.
fn unlink_stale(options: &DpdkOptions) {
    let is = |name: &str, value: &str| options.argument(name) == Some(value);
    let argument = match options.device.driver() {
        Some(Driver::Vhost) if !is("client", "1") => "iface",
        // Without it the names of memif's sockets end with their process.
        Some(Driver::Memif) if is("role", "server") && is("socket-abstract", "no") => "socket",
        _ => return,
    };
    if let Some(path) = options.argument(argument).map(Path::new) {
        if is_stale(path).unwrap_or(false) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether there is a socket's file at a path, and no socket of it. It does not connect: a client
/// that disconnects at once ends the process of a memif server.
fn is_stale(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    // Refused when it has no owner; otherwise of the wrong type, which its owner does not notice.
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None)?;
    let tried = socket.connect(&socket2::SockAddr::unix(path)?);
    Ok(tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Returns the required properties of the port.
fn wanted(options: &DpdkOptions, sizes: &FrameOptions) -> PortWanted {
    let driver = options.device.driver();
    let mtu = options.own.mtu.or(driver.map(|_| MEMORY_MTU)).unwrap_or(0);
    // A device that does not report its MTU has frames of the usual length.
    let frame = usize::from(if mtu == 0 { 1500 } else { mtu }) + ETHERNET_BYTES_MAX;
    let frame_bytes = frame.next_multiple_of(64).max(FRAME_BYTES_MIN) as u16;
    PortWanted {
        devargs: devargs(options, frame_bytes),
        queues: options.own.queues,
        ring: options.own.ring.unwrap_or(0),
        receive_frames: sizes.receive_frames as u32,
        transmit_frames: sizes.transmit_frames as u32,
        frame_bytes,
        mtu,
        guarded: driver == Some(Driver::Memif),
        checksums: options.own.checksums,
    }
}

/// Returns the device in EAL's form: the given arguments, and those that follow from the other
/// options.
fn devargs(options: &DpdkOptions, frame_bytes: u16) -> String {
    let mut words = vec![options.device.eal_name()];
    words.extend(options.driver.iter().map(|(name, value)| format!("{name}={value}")));
    let mut add = |name: &str, value: String| {
        if options.argument(name).is_none() {
            words.push(format!("{name}={value}"));
        }
    };
    match options.device.driver() {
        Some(Driver::Memif) => {
            add("bsize", frame_bytes.to_string());
            if let Some(ring) = options.own.ring {
                add("rsize", ring.ilog2().min(14).to_string());
            }
            if options.argument("role") != Some("server") {
                add("role", "client".to_owned());
            }
        }
        Some(Driver::Vhost | Driver::VirtioUser) => {
            add("queues", options.own.queues.to_string());
            if options.device.driver() == Some(Driver::VirtioUser) {
                add("queue_size", options.own.ring.unwrap_or(1024).to_string());
            }
        }
        Some(Driver::Ring) | None => {}
    }
    words.join(",")
}

fn info(options: &DpdkOptions, wanted: &PortWanted, port: &Port, eal: &Eal) -> LinkInfo {
    let mtu = if wanted.mtu == 0 { port.mtu() } else { wanted.mtu.into() };
    let (checks, completes, _) = port.offloads();
    let mut detail = format!("driver {}, {} descriptors", port.driver(), port.rings().0);
    detail += if eal.huge { ", huge pages" } else { ", no huge pages" };
    if eal.shared {
        detail += ", the application's EAL";
    }
    if let Some(node) = port.numa_node() {
        detail += &format!(", memory node {node}");
    }
    let sums = [(checks, "checked"), (completes, "completed")];
    let sums: Vec<_> = sums.iter().filter(|(does, _)| *does).map(|(_, what)| *what).collect();
    if !sums.is_empty() {
        detail += &format!(", checksums {} by the device", sums.join(" and "));
    }
    if options.own.unsafe_uio {
        detail += "; UNSAFE: without an IOMMU the device can write to any memory";
    }
    let ring = port.rings().0 * usize::from(wanted.queues);
    let mut info = LinkInfo::new(NAME, port.mac(), mtu);
    if matches!(options.device, DeviceName::Pci(_)) {
        info.mode = Mode::ZeroCopy;
    }
    info.copies = match options.device.driver() {
        // Over virtio the process with the vhost end copies both ways.
        None | Some(Driver::VirtioUser | Driver::Ring) => Copies::NONE,
        Some(Driver::Vhost) => Copies::ONCE,
        Some(Driver::Memif) if is_without_copies(options) => Copies::default(),
        Some(Driver::Memif) => Copies::ONCE,
    };
    info.detail = detail;
    info.queues = wanted.queues.into();
    info.receive_frames = ring;
    info.receive_parts = wanted.receive_frames as usize + ring;
    info.forwards = true;
    info.completes_checksums = completes;
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_nobody_has_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(is_stale(&path).is_err(), "there is nothing");
        std::fs::write(&path, "somebody's samples").unwrap();
        assert!(!is_stale(&path).unwrap(), "a file is none");
        std::fs::remove_file(&path).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(!is_stale(&path).unwrap());
        assert!(listener.accept().is_err(), "it has not heard of it");
        // A dropped listener would not do: a process that another test is starting has a copy of it
        // until it executes its program.
        let (path, kind) = (folder.path().join("stale"), rustix::fs::FileType::Socket);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(is_stale(&path).unwrap());
    }
}
