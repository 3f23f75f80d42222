//! I/O threads: their wait modes, their scheduling class, and the notice of their end.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_cpu::proc::Stat;
use millstream_cpu::thread::{pin_current_thread, process_cpus};
use millstream_link::LinkError;
use millstream_link::frame::{
    Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer,
};
use millstream_link::loopback::{LoopLink, LoopOptions, pair};
use millstream_link::port::{Port, PortOptions};
use millstream_net::engine::{ThreadReport, attach, inventory};

use crate::{Net, PATIENCE, any, collect};

fn thread(name: &str) -> ThreadReport {
    let all = inventory().threads;
    all.into_iter().find(|thread| thread.name == name).expect("the thread is there")
}

/// A link with a defect: it panics on request.
struct Defective {
    link: LoopLink,
    panic: Arc<AtomicBool>,
}

impl FrameLink for Defective {
    fn info(&self) -> &LinkInfo {
        self.link.info()
    }
    fn memory(&self) -> &Arc<FrameMemory> {
        self.link.memory()
    }
    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        self.link.steer(steer)
    }
    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        assert!(!self.panic.load(Ordering::Relaxed), "a defect, on purpose");
        self.link.receive(frames)
    }
    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.link.give_back(frames);
    }
    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.link.reserve(frames, count)
    }
    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.link.transmit(frames)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.link.flush()
    }
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.poll_fd()
    }
    fn counters(&mut self) -> LinkCounters {
        self.link.counters()
    }
    fn census(&self) -> FrameCounts {
        self.link.census()
    }
}

#[test]
fn a_thread_that_panics_ends_its_ports_with_an_error() {
    let (link, _other, cable) = pair(&LoopOptions::default()).unwrap();
    let panic = Arc::new(AtomicBool::new(false));
    let defective = Defective { link, panic: Arc::clone(&panic) };
    let link = attach(Box::new(defective), "address=10.0.0.1/24,thread=defect").unwrap();
    let mut port = link.open(any(), &PortOptions::default()).unwrap();
    let waiter = std::thread::spawn(move || {
        let error = port.rx.recv_batch(Duration::from_secs(3600)).unwrap_err();
        (port, error)
    });
    std::thread::sleep(Duration::from_millis(20));
    panic.store(true, Ordering::Relaxed);
    cable.set(millstream_link::loopback::CableState::Up);
    let (mut port, error) = waiter.join().unwrap();
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    let to = "10.0.0.2:9".parse().unwrap();
    assert_eq!(port.tx.send(b"x", to).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    assert!(thread("ms-io-defect").dead);
    let text = link.open(any(), &PortOptions::default()).err().unwrap().to_string();
    assert!(text.contains("the I/O thread has ended"), "{text}");
    drop((port, link));
}

#[test]
fn a_thread_waits_as_it_was_told() {
    let look = |wait: &str| {
        let name = format!("w{}", &wait[..2]);
        let net = Net::new(&format!("thread={name},wait={wait}"), &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        let until = Instant::now() + PATIENCE;
        loop {
            near.tx.send(b"tick", far.local).unwrap();
            collect(&mut far, 1);
            std::thread::sleep(Duration::from_millis(3));
            let waits = thread(&format!("ms-io-{name}")).waits;
            let enough = if wait == "spin" { waits.spinning_ns } else { waits.sleeping_ns };
            assert!(Instant::now() < until, "{waits:?}");
            if enough > 50_000_000 {
                break waits;
            }
        }
    };
    let spin = look("spin");
    assert_eq!((spin.sleeps, spin.yielding_ns), (0, 0), "{spin:?}: it never yields");
    let park = look("park");
    assert_eq!((park.spinning_ns, park.yielding_ns), (0, 0), "{park:?}");
    let adaptive = look("adaptive");
    assert!(adaptive.sleeping_ns > adaptive.spinning_ns, "{adaptive:?}: mostly idle, it sleeps");
}

#[test]
fn a_thread_runs_wherever_the_process_may_however_its_opener_is_pinned() {
    let all = process_cpus().unwrap();
    let cpu = all.iter().next().unwrap();
    std::thread::spawn(move || {
        pin_current_thread(cpu).unwrap();
        let _net = Net::new("thread=wide", &LoopOptions::default());
        let path = format!("/proc/self/task/{}/status", thread("ms-io-wide").tid);
        let status = std::fs::read_to_string(path).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(list.unwrap().trim(), all.to_string());
    })
    .join()
    .unwrap();
}

#[test]
fn a_user_that_spins_on_the_cpu_of_its_thread_gets_its_datagrams_soon() {
    let cpu = process_cpus().unwrap().iter().next().unwrap();
    std::thread::spawn(move || {
        pin_current_thread(cpu).unwrap();
        let options = format!("thread=crowd,cpu={cpu},wait=spin,user_wait=spin");
        let net = Net::new(&options, &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        for _ in 0..2000 {
            near.tx.send(b"tick", far.local).unwrap();
            collect(&mut far, 1);
        }
        let waits = thread("ms-io-crowd").waits;
        assert!(waits.yielding_ns > 0, "it gives way, too: {waits:?}");
    })
    .join()
    .unwrap();
}

#[test]
fn a_real_time_class_is_had_or_its_refusal_is_told() {
    let net = Net::new("thread=rt,priority=7,wait=park", &LoopOptions::default());
    let (mut near, mut far) = (net.near(), net.far());
    near.tx.send(b"hello", far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"hello", "it works in any case");
    let report = thread("ms-io-rt");
    match report.priority {
        Some(priority) => {
            assert_eq!((priority, report.notes.len()), (7, 0));
            let stat = Stat::read(format!("/proc/self/task/{}", report.tid).as_ref()).unwrap();
            assert_eq!([40, 41].map(|number| stat.field(number)), [Some(7), Some(1)]);
        }
        None => assert!(report.notes[0].contains("it runs in the ordinary class")),
    }
}

/// Of two users of one link the patient one sleeps, though the link string makes users spin: its
/// waits take next to no CPU time.
#[test]
fn a_patient_user_sleeps_where_others_spin() {
    let (end, _other, _cable) = pair(&LoopOptions::default()).unwrap();
    let link = attach(Box::new(end), "address=10.0.0.1/24,io=inline,user_wait=spin").unwrap();
    let open = |patient| {
        let options = PortOptions { patient, ..PortOptions::default() };
        link.open(any(), &options).unwrap()
    };
    let (spins, sleeps) = (open(false), open(true));
    let cost = |port: Port| {
        let (mut rx, before) = (port.rx, millstream_cpu::usage::thread_cpu_time());
        assert_eq!(rx.recv_batch(Duration::from_millis(400)).unwrap(), 0);
        millstream_cpu::usage::thread_cpu_time() - before
    };
    let patient = std::thread::scope(|scope| {
        let patient = scope.spawn(|| cost(sleeps));
        cost(spins);
        patient.join().unwrap()
    });
    assert!(patient < Duration::from_millis(100), "it took {patient:?} of 400 ms");
}

/// A patient user leaves polling to others until it has sent something. Then it soon polls itself,
/// because the others may wait for its answer.
#[test]
fn a_patient_user_soon_has_its_answer_when_others_stop_polling() {
    let (end, other, _cable) = pair(&LoopOptions::default()).unwrap();
    let link = attach(Box::new(end), "address=10.0.0.1/24,io=inline").unwrap();
    let there = attach(Box::new(other), "address=10.0.0.2/24").unwrap();
    let patient = PortOptions { patient: true, ..PortOptions::default() };
    let mut stream = link.open(any(), &PortOptions::default()).unwrap();
    let Port { mut rx, mut tx, .. } = link.open(any(), &patient).unwrap();
    let mut echo = there.open(any(), &PortOptions::default()).unwrap();
    let (to, ended) = (echo.local, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let count = echo.rx.recv_batch(Duration::from_millis(20)).unwrap();
                // The answer comes after the woken user has looked in vain.
                std::thread::sleep(Duration::from_micros(300));
                for index in 0..count {
                    let datagram = echo.rx.datagram(index);
                    echo.tx.send(datagram.payload, datagram.source).unwrap();
                }
            }
        });
        let (arrived, arrivals) = std::sync::mpsc::channel();
        let ended = &ended;
        // Also after a failure, or the threads would not end.
        let _end = OnDrop(|| ended.store(true, Ordering::Relaxed));
        scope.spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                if rx.recv_batch(Duration::from_millis(50)).unwrap() > 0 {
                    arrived.send(Instant::now()).unwrap();
                }
            }
        });
        let answer = |_| {
            let until = Instant::now() + Duration::from_millis(10);
            while Instant::now() < until {
                assert_eq!(stream.rx.recv_batch(Duration::ZERO).unwrap(), 0);
            }
            let sent = Instant::now();
            tx.send(b"request", to).unwrap();
            arrivals.recv_timeout(PATIENCE).unwrap() - sent
        };
        let mut all: Vec<_> = (0..40).map(answer).collect();
        all.sort();
        // A nap takes 4 ms. A busy machine delays single answers.
        assert!(all[14] < Duration::from_millis(3), "{all:?}");
    });
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
