//! io_uring beside recvmmsg, sendmmsg, GSO and GRO, over loopback UDP: CPU time of a packet on each
//! side. `udp_io_uring.py` compiles and runs it.
//!
//! All `unsafe` calls are system calls, or fill the structures for them. They point to buffers of
//! the same function, which outlive the ring, with their true lengths.
use io_uring::{IoUring, cqueue, opcode, types};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SOL_UDP: i32 = 17;
const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;
/// Sets a socket option.
fn set<T>(s: &UdpSocket, l: i32, n: i32, v: T) {
    let r = unsafe {
        libc::setsockopt(s.as_raw_fd(), l, n, (&raw const v).cast(), size_of::<T>() as u32)
    };
    assert_eq!(r, 0, "setsockopt {n}");
}
/// CPU time of this thread, nanoseconds.
fn cpu() -> u64 {
    let mut t: libc::timespec = unsafe { std::mem::zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
/// Keeps this thread on a CPU.
fn pin(c: usize) {
    unsafe {
        let mut s: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(c, &mut s);
        libc::sched_setaffinity(0, size_of_val(&s), &s);
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Tx {
    Mmsg,
    Gso,
    Ring,
    RingZc,
    RingGso,
    RingGsoZc,
}
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rx {
    Mmsg,
    Gro,
    Multi,
    MultiGro,
}

/// Datagrams of a train.
fn train(payload: usize) -> usize {
    (65_507 / payload).min(64)
}

/// Sends until the stop request; returns packets and CPU time, nanoseconds.
fn send(how: Tx, s: &UdpSocket, payload: usize, stop: &AtomicBool) -> (u64, u64) {
    let gso = matches!(how, Tx::Gso | Tx::RingGso | Tx::RingGsoZc);
    let per = if gso { train(payload) } else { 1 };
    if gso {
        set(s, SOL_UDP, UDP_SEGMENT, payload as i32);
    }
    // One call sends 64 packets, or the trains that hold about as many.
    let msgs = (64 / per).max(1);
    let mut bytes = vec![1u8; msgs * per * payload];
    let mut iov: Vec<libc::iovec> = (0..msgs)
        .map(|i| libc::iovec {
            iov_base: bytes[i * per * payload..].as_mut_ptr().cast(),
            iov_len: per * payload,
        })
        .collect();
    let mut heads: Vec<libc::mmsghdr> = (0..msgs)
        .map(|i| unsafe {
            let mut h: libc::mmsghdr = std::mem::zeroed();
            h.msg_hdr.msg_iov = &mut iov[i];
            h.msg_hdr.msg_iovlen = 1;
            h
        })
        .collect();
    let fd = types::Fixed(0);
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(256).unwrap();
    ring.submitter().register_files(&[s.as_raw_fd()]).unwrap();
    let (mut sent, mut seen_err) = (0u64, 0u64);
    let from = cpu();
    while !stop.load(Ordering::Relaxed) {
        match how {
            Tx::Mmsg | Tx::Gso => {
                let n =
                    unsafe { libc::sendmmsg(s.as_raw_fd(), heads.as_mut_ptr(), msgs as u32, 0) };
                if n > 0 { sent += n as u64 * per as u64 } else { seen_err += 1 }
            }
            _ => {
                let zc = matches!(how, Tx::RingZc | Tx::RingGsoZc);
                {
                    let mut sq = ring.submission();
                    for (i, head) in heads.iter().enumerate() {
                        let e = match how {
                            Tx::Ring => {
                                opcode::Send::new(fd, iov[i].iov_base.cast(), iov[i].iov_len as u32)
                                    .build()
                            }
                            Tx::RingZc => opcode::SendZc::new(
                                fd,
                                iov[i].iov_base.cast(),
                                iov[i].iov_len as u32,
                            )
                            .build(),
                            Tx::RingGso => opcode::SendMsg::new(fd, &head.msg_hdr).build(),
                            _ => opcode::SendMsgZc::new(fd, &head.msg_hdr).build(),
                        };
                        unsafe { sq.push(&e).unwrap() };
                    }
                }
                let mut want = msgs;
                ring.submit_and_wait(msgs).unwrap();
                while want > 0 {
                    let mut any = false;
                    for c in ring.completion() {
                        any = true;
                        if cqueue::notif(c.flags()) {
                            want -= 1;
                            continue;
                        }
                        if c.result() > 0 {
                            sent += per as u64
                        } else {
                            seen_err += 1
                        }
                        if !(zc && cqueue::more(c.flags())) {
                            want -= 1;
                        }
                    }
                    if want > 0 && !any {
                        ring.submit_and_wait(1).unwrap();
                    }
                }
            }
        }
    }
    let spent = cpu() - from;
    if gso {
        set(s, SOL_UDP, UDP_SEGMENT, 0i32);
    }
    if seen_err > 1000 {
        eprintln!("{how:?}: {seen_err} errors");
    }
    (sent, spent)
}

/// Receives until the stop request; returns packets and CPU time, nanoseconds.
fn receive(how: Rx, s: &UdpSocket, payload: usize, stop: &AtomicBool) -> (u64, u64) {
    let gro = matches!(how, Rx::Gro | Rx::MultiGro);
    set(s, SOL_UDP, UDP_GRO, i32::from(gro));
    let slots = if gro { 16 } else { 64 };
    let slot = if gro { 65_536 } else { payload.next_multiple_of(64) };
    let mut got = 0u64;
    let from = cpu();
    let spent;
    match how {
        Rx::Mmsg | Rx::Gro => {
            let mut bytes = vec![0u8; slots * slot];
            let mut names = vec![unsafe { std::mem::zeroed::<libc::sockaddr_in>() }; slots];
            let mut iov: Vec<libc::iovec> = (0..slots)
                .map(|i| libc::iovec {
                    iov_base: bytes[i * slot..].as_mut_ptr().cast(),
                    iov_len: slot,
                })
                .collect();
            let mut heads: Vec<libc::mmsghdr> = (0..slots)
                .map(|i| unsafe {
                    let mut h: libc::mmsghdr = std::mem::zeroed();
                    h.msg_hdr.msg_iov = &mut iov[i];
                    h.msg_hdr.msg_iovlen = 1;
                    h.msg_hdr.msg_name = (&raw mut names[i]).cast();
                    h
                })
                .collect();
            while !stop.load(Ordering::Relaxed) {
                for h in &mut heads {
                    h.msg_hdr.msg_namelen = 16;
                }
                let n = unsafe {
                    libc::recvmmsg(
                        s.as_raw_fd(),
                        heads.as_mut_ptr(),
                        slots as u32,
                        libc::MSG_WAITFORONE,
                        std::ptr::null_mut(),
                    )
                };
                for h in heads.iter().take(n.max(0) as usize) {
                    got += (h.msg_len as usize).div_ceil(payload) as u64;
                }
            }
            spent = cpu() - from;
        }
        _ => {
            // A buffer ring: room for the header that the kernel writes before each payload.
            let head_room = 16 + 16;
            let each = slot + head_room;
            let count = if gro { 32 } else { 256u16 } as u16;
            let mut bytes = vec![0u8; each * count as usize];
            let mut ring: IoUring = IoUring::builder()
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_cqsize(1024)
                .build(8)
                .unwrap();
            ring.submitter().register_files(&[s.as_raw_fd()]).unwrap();
            let size = count as usize * 16;
            let mem = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size.max(4096),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_ANONYMOUS | libc::MAP_PRIVATE,
                    -1,
                    0,
                )
            };
            let entries = mem as *mut types::BufRingEntry;
            let tail_at = unsafe { types::BufRingEntry::tail(entries) }
                as *const std::sync::atomic::AtomicU16;
            let mut tail = 0u16;
            let base = bytes.as_mut_ptr();
            let mut put = |bid: u16| unsafe {
                let e = &mut *entries.add((tail & (count - 1)) as usize);
                e.set_addr(base.add(bid as usize * each) as u64);
                e.set_len(each as u32);
                e.set_bid(bid);
                tail = tail.wrapping_add(1);
                (*tail_at).store(tail, Ordering::Release);
            };
            unsafe {
                ring.submitter().register_buf_ring_with_flags(mem as u64, count, 1, 0).unwrap()
            };
            for b in 0..count {
                put(b)
            }
            let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
            head.msg_namelen = 16;
            let mut armed = false;
            let ts = types::Timespec::new().nsec(20_000_000);
            let args = types::SubmitArgs::new().timespec(&ts);
            while !stop.load(Ordering::Relaxed) {
                if !armed {
                    let e = opcode::RecvMsgMulti::new(types::Fixed(0), &head, 1).build();
                    unsafe { ring.submission().push(&e).unwrap() };
                    armed = true;
                }
                match ring.submitter().submit_with_args(1, &args) {
                    Ok(_) => {}
                    Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {}
                    Err(e) => panic!("{e}"),
                }
                let done: &mut _ = &mut ring.completion();
                for c in done {
                    if !cqueue::more(c.flags()) {
                        armed = false
                    }
                    if c.result() < 0 {
                        continue;
                    }
                    let bid = cqueue::buffer_select(c.flags()).unwrap();
                    let buffer = unsafe {
                        std::slice::from_raw_parts(
                            base.add(bid as usize * each),
                            c.result() as usize,
                        )
                    };
                    let out = types::RecvMsgOut::parse(buffer, &head).unwrap();
                    got += (out.payload_data().len()).div_ceil(payload) as u64;
                    put(bid);
                }
            }
            spent = cpu() - from;
            drop(ring);
            unsafe { libc::munmap(mem, size.max(4096)) };
        }
    }
    (got, spent)
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(5, |n| n.parse().unwrap());
    let cases = [
        (Tx::Mmsg, Rx::Mmsg),
        (Tx::Mmsg, Rx::Multi),
        (Tx::Gso, Rx::Mmsg),
        (Tx::Gso, Rx::Multi),
        (Tx::Gso, Rx::Gro),
        (Tx::Gso, Rx::MultiGro),
        (Tx::Ring, Rx::Mmsg),
        (Tx::RingZc, Rx::Mmsg),
        (Tx::RingGso, Rx::Gro),
        (Tx::RingGsoZc, Rx::Gro),
    ];
    let mut all: BTreeMap<(usize, usize), Vec<[f64; 3]>> = BTreeMap::new();
    for _ in 0..rounds {
        for payload in [64usize, 8000] {
            for (at, (tx, rx)) in cases.iter().copied().enumerate() {
                let to = UdpSocket::bind("127.0.0.1:0").unwrap();
                set(&to, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20);
                to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                let from = UdpSocket::bind("127.0.0.1:0").unwrap();
                set(&from, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 4 << 20);
                from.connect(to.local_addr().unwrap()).unwrap();
                let stop = Arc::new(AtomicBool::new(false));
                let (a, b) = (stop.clone(), stop.clone());
                let begun = Instant::now();
                let r = std::thread::spawn(move || {
                    pin(1);
                    receive(rx, &to, payload, &a)
                });
                let t = std::thread::spawn(move || {
                    pin(0);
                    send(tx, &from, payload, &b)
                });
                std::thread::sleep(Duration::from_millis(300));
                stop.store(true, Ordering::Relaxed);
                let (sent, tx_ns) = t.join().unwrap();
                let (got, rx_ns) = r.join().unwrap();
                let s = begun.elapsed().as_secs_f64();
                all.entry((payload, at)).or_default().push([
                    tx_ns as f64 / sent.max(1) as f64,
                    rx_ns as f64 / got.max(1) as f64,
                    got as f64 / s / 1e3,
                ]);
            }
        }
    }
    println!(
        "{:>7} {:<22} {:>24} {:>24} {:>26}",
        "payload",
        "sender > receiver",
        "send ns (min-max)",
        "recv ns (min-max)",
        "thousand/s (min-max)"
    );
    for ((payload, at), runs) in &all {
        let col = |i: usize| {
            let mut v: Vec<f64> = runs.iter().map(|r| r[i]).collect();
            v.sort_by(f64::total_cmp);
            format!("{:.0} ({:.0}-{:.0})", v[v.len() / 2], v[0], v[v.len() - 1])
        };
        println!(
            "{payload:>7} {:<22} {:>24} {:>24} {:>26}",
            format!("{:?} > {:?}", cases[*at].0, cases[*at].1),
            col(0),
            col(1),
            col(2)
        );
    }
}
