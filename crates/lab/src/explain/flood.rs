//! A flood of network interrupts: trains over a veth pair, in two network namespaces of this
//! process, that software hands to another CPU (RPS, Documentation/networking/scaling.rst). The
//! namespaces end with the process.

use millstream_cpu::thread::pin_current_thread;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::io::{self, BufRead, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The line that the flood prints when it is ready.
pub const READY: &str = "ready";

const NEAR: &str = "10.213.0.1";
const FAR: &str = "10.213.0.2";
/// Bytes of a datagram, and the datagrams of a train: small ones, so that each costs.
const DATAGRAM: usize = 64;
const TRAIN: usize = 64;

/// Floods CPU `onto` from CPU `from`, from each line `on` to the line `off`, until `input` ends.
///
/// # Errors
/// When namespaces or the pair cannot be created (both need root), or the reader of the output has
/// gone.
pub fn serve(
    from: usize,
    onto: usize,
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> io::Result<()> {
    // SAFETY: this thread's network and mounts become its own; descriptors stay as they are.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET | UnshareFlags::NEWNS)? };
    let far = own_network()?;
    // SAFETY: as above, for a second network; `far` keeps the first one.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
    let near = own_network()?;
    ip("link add msflood0 type veth peer name msflood1")?;
    ip(&format!("addr add {NEAR}/24 dev msflood0"))?;
    ip("link set msflood0 up")?;
    let place = format!("/proc/{}/fd/{}", std::process::id(), far.as_raw_fd());
    ip(&format!("link set msflood1 netns {place}"))?;
    enter(&far)?;
    ip(&format!("addr add {FAR}/24 dev msflood1"))?;
    ip("link set msflood1 up")?;
    steer(onto)?;
    let sink = UdpSocket::bind((FAR, 4711))?;
    enter(&near)?;
    let source = UdpSocket::bind((NEAR, 0))?;
    source.connect((FAR, 4711))?;
    trains(&source)?;
    flood(from, &source, input, output)?;
    drop(sink);
    Ok(())
}

fn own_network() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty())?)
}

fn enter(network: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

fn ip(arguments: &str) -> io::Result<()> {
    let done = Command::new("ip").args(arguments.split(' ')).output()?;
    if done.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(io::Error::other(format!("the command `ip {arguments}` failed: {reason}")))
}

/// Steers the packets of the far end to one CPU.
fn steer(onto: usize) -> io::Result<()> {
    // The mounts of this thread are its own: only here /sys shows the far network.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    let word = onto / 32;
    let mask = format!("{:x}{}", 1u32 << (onto % 32), ",00000000".repeat(word));
    std::fs::write("/sys/class/net/msflood1/queues/rx-0/rps_cpus", mask)
}

/// Makes the kernel segment what is sent as late as it can (udp(7), UDP_SEGMENT).
fn trains(socket: &UdpSocket) -> io::Result<()> {
    const UDP_SEGMENT: libc::c_int = 103;
    millstream_host::socket::set(socket, libc::SOL_UDP, UDP_SEGMENT, &(DATAGRAM as libc::c_int))
}

fn flood(
    from: usize,
    source: &UdpSocket,
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> io::Result<()> {
    let (on, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let listener = (Arc::clone(&on), Arc::clone(&over));
    std::thread::Builder::new().name("ms-orders".to_owned()).spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            listener.0.store(line == "on", Ordering::Relaxed);
        }
        listener.1.store(true, Ordering::Relaxed);
    })?;
    pin_current_thread(from).map_err(io::Error::other)?;
    writeln!(output, "{READY}")?;
    output.flush()?;
    let train = vec![0; DATAGRAM * TRAIN];
    while !over.load(Ordering::Relaxed) {
        if on.load(Ordering::Relaxed) {
            // A failed send does not matter: the next one follows.
            let _ = source.send(&train);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    Ok(())
}
