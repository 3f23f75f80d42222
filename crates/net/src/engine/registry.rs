//! Every open link of this process: one for each interface, whoever opens ports on it.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use millstream_link::frame::{FrameLink, FrameOptions};
use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, open_frames};
use millstream_ring::Wait;

use crate::options::{Asked, Contradiction, Io, OPTIONS_HELP, bad};

use super::inventory::{Inventory, LinkReport, ThreadReport};
use super::served::{Attached, Driver, OpenLink, datagram_memory};
use super::worker::{HostId, LINKS_MAX, Worker, WorkerOptions};

/// Buffers to transmit from, all ports of a link together.
pub(super) const TRANSMIT_FRAMES: usize = 2048;

/// What one link is known by: an interface in its network namespace, or a link without hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    namespace: u64,
    what: String,
}

/// What is open. Held only by whoever opens and closes; nothing here is on the way of a datagram.
#[derive(Default)]
pub(super) struct State {
    links: Vec<(Key, Weak<OpenLink>)>,
    workers: Vec<Weak<Worker>>,
}

static STATE: Mutex<State> = Mutex::new(State { links: Vec::new(), workers: Vec::new() });

/// Everything that opens or closes does it one after the other.
pub(super) fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that no link had before.
pub(super) fn next_id() -> HostId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Opens a port on the frame link that `link` names.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let asked = Asked::parse(link)?;
    let mut state = lock();
    let key = key(&asked);
    let open = match state.find(&key) {
        Some(open) => {
            if let Some(contradiction) = asked.contradiction(&open.asked) {
                return Err(contradiction.error(open.name()));
            }
            open
        }
        None => {
            let frames = frame_options(options, &asked);
            let link = open_frames(&asked.link_text(), &frames).map_err(with_our_options)?;
            let open = state.start(link, asked.clone())?;
            state.links.push((key, Arc::downgrade(&open)));
            open
        }
    };
    // If this fails and it was to be the first port, the link is closed again.
    open.port(bind, options, &asked)
}

/// Puts a stack on a link that was opened otherwise, and has it driven; `options` are those of
/// the engine, such as `address=10.0.0.2/24,io=inline`.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn attach(link: Box<dyn FrameLink>, options: &str) -> Result<Attached, LinkError> {
    let name = link.info().name;
    let asked = Asked::parse(&format!("{name}:{options}"))?;
    if let Some((option, value)) = asked.left_over() {
        return Err(bad(format!("{option}={value}"), "is not known"));
    }
    Ok(Attached { link: lock().start(link, asked)? })
}

impl State {
    /// The open link of this key; one that is broken for good is left to those who still have it.
    fn find(&mut self, key: &Key) -> Option<Arc<OpenLink>> {
        self.links.retain(|(_, link)| link.strong_count() > 0);
        let found = self.links.iter().position(|(other, _)| other == key)?;
        let open = self.links[found].1.upgrade().filter(|open| open.is_usable());
        if open.is_none() {
            self.links.remove(found);
        }
        open
    }

    fn start(
        &mut self,
        link: Box<dyn FrameLink>,
        asked: Asked,
    ) -> Result<Arc<OpenLink>, LinkError> {
        let interface = link.info().interface.clone();
        let default = interface.unwrap_or_else(|| link.info().name.to_owned());
        let wanted = asked.clone();
        OpenLink::start(link, asked, || match wanted.io.unwrap_or_default() {
            Io::Inline => Ok(None),
            Io::Thread => self.worker(&wanted, default).map(Some),
        })
    }

    /// The I/O thread that was asked for, running.
    fn worker(&mut self, asked: &Asked, default: String) -> Result<Arc<Worker>, LinkError> {
        self.workers.retain(|worker| worker.strong_count() > 0);
        if let Some(name) = &asked.thread {
            let workers = self.workers.iter().filter_map(Weak::upgrade);
            if let Some(worker) = workers.into_iter().find(|w| w.options.name == *name) {
                return join(worker, asked);
            }
        }
        let options = WorkerOptions {
            name: asked.thread.clone().unwrap_or(default),
            cpu: asked.cpu,
            priority: asked.priority,
            wait: asked.wait.unwrap_or(Wait::Adaptive),
        };
        let worker = Arc::new(Worker::start(options)?);
        self.workers.push(Arc::downgrade(&worker));
        Ok(worker)
    }
}

/// A thread that runs already takes a further link, if it is what was asked for.
fn join(worker: Arc<Worker>, asked: &Asked) -> Result<Arc<Worker>, LinkError> {
    let WorkerOptions { name, cpu, priority, wait } = &worker.options;
    let contradiction = Contradiction::between("cpu", asked.cpu, *cpu)
        .or_else(|| Contradiction::between("priority", asked.priority, *priority))
        .or_else(|| {
            let here = asked.wait.map(Wait::name);
            Contradiction::between("wait", here, Some(wait.name()))
        });
    if let Some(contradiction) = contradiction {
        return Err(contradiction.error(&format!("thread {name}")));
    }
    // Each link holds its thread.
    if Arc::strong_count(&worker) > LINKS_MAX {
        let reason = format!("has {LINKS_MAX} links already: name another thread");
        return Err(bad(format!("thread={name}"), &reason));
    }
    Ok(worker)
}

/// Takes stock of everything.
pub(super) fn inventory() -> Inventory {
    let state = lock();
    let workers: Vec<_> = state.workers.iter().filter_map(Weak::upgrade).collect();
    let links: Vec<_> = state.links.iter().filter_map(|(_, link)| link.upgrade()).collect();
    let threads = workers.iter().map(|worker| thread_report(worker)).collect();
    let inline = links.iter().filter_map(|link| match &link.driver {
        Driver::Inline(inline) => inline.host().as_mut().map(LinkReport::of),
        Driver::Thread(_) => None,
    });
    let inventory = Inventory { threads, inline: inline.collect() };
    // If one of these is the last holder by now, it closes here, while nobody opens.
    drop((workers, links));
    drop(state);
    inventory
}

fn thread_report(worker: &Worker) -> ThreadReport {
    let WorkerOptions { name, cpu, wait, .. } = &worker.options;
    let report = worker.report();
    let dead = report.is_err();
    let (links, probe) = report.unwrap_or_default();
    let priority = worker.shared.priority.load(Ordering::Relaxed);
    ThreadReport {
        name: format!("ms-io-{name}"),
        tid: worker.shared.tid.load(Ordering::Relaxed),
        cpu: *cpu,
        priority: u8::try_from(priority).ok().filter(|priority| *priority > 0),
        wait: wait.name(),
        waits: worker.shared.waits.report(),
        notes: worker.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        dead,
        links,
        probe,
    }
}

/// Datagrams that a port wants its receive queue to hold.
pub(super) fn queue_wanted(options: &PortOptions, asked: &Asked, mtu: usize) -> usize {
    let by_bytes = options.recv_queue_bytes / datagram_memory(options, mtu);
    asked.queue.unwrap_or(by_bytes.clamp(256, 4096))
}

/// Room for a few ports like the first one.
fn frame_options(options: &PortOptions, asked: &Asked) -> FrameOptions {
    let wanted = queue_wanted(options, asked, options.datagram_bytes_max);
    let receive_frames = (4 * wanted.next_power_of_two()).clamp(4096, 1 << 16);
    FrameOptions { receive_frames, transmit_frames: TRANSMIT_FRAMES }
}

/// The link knows its own options only; there are ours, too.
fn with_our_options(error: LinkError) -> LinkError {
    match error {
        LinkError::BadOption { option, reason, help } if reason == "is not known" => {
            let reason = format!("{reason}; options of every frame link: {OPTIONS_HELP}");
            LinkError::BadOption { option, reason, help }
        }
        error => error,
    }
}

fn key(asked: &Asked) -> Key {
    let link = asked.link.as_ref();
    let target = link.and_then(|link| link.target.clone());
    match target {
        Some(what) => Key { namespace: network_namespace(), what },
        None => Key { namespace: 0, what: link.map(|link| link.name.clone()).unwrap_or_default() },
    }
}

/// The number of the network namespace that the calling thread is in.
fn network_namespace() -> u64 {
    rustix::fs::stat("/proc/thread-self/ns/net").map_or(0, |stat| stat.st_ino)
}
