//! Every open link of this process: one for each interface, shared by all its ports.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use millstream_link::frame::{FrameLink, FrameOptions};
use millstream_link::options::{Options, UNKNOWN, names_for};
use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, open_frames};
use millstream_ring::Wait;

use crate::options::{Asked, EngineOptions, IoMode, bad};

use super::commands::{Contact, HostId, NoAnswer, WorkerOptions};
use super::inventory::{Inventory, LinkReport, ThreadReport};
use super::open_lock::OpenLock;
use super::served::{AttachedLink, OpenLink, datagram_memory};
use super::worker::{IoThread, LINKS_MAX};

/// Transmit buffers of all ports of a link together.
pub(super) const TRANSMIT_FRAMES: usize = 2048;

/// The key of a link: an interface in its network namespace, or a link without hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LinkKey {
    namespace: u64,
    what: String,
}

/// The open links and threads of this process.
#[derive(Default)]
struct State {
    links: Vec<(LinkKey, Arc<OpenLock>)>,
    workers: Vec<Weak<IoThread>>,
}

static STATE: Mutex<State> = Mutex::new(State { links: Vec::new(), workers: Vec::new() });

/// Locks the lists, for a moment: no thread opens, closes or requests anything while holding them.
/// A thread may be started meanwhile, so that no two have the same name.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an identifier that no link had before.
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
    let gate = state().gate(key(&asked));
    let _turn = gate.lock();
    let open = match usable(&gate)? {
        Some(open) => {
            if let Some(contradiction) = asked.contradiction(&open.asked) {
                return Err(contradiction.error(open.name()));
            }
            open
        }
        None => {
            let frames = frame_options(options, &asked);
            let link = open_frames(&asked.link.to_string(), &frames).map_err(with_our_options)?;
            let open = start(&gate, link, asked.clone())?;
            gate.opened(&open);
            open
        }
    };
    // If this fails for the first port, the link is closed again.
    open.port(bind, options, &asked)
}

/// Puts a stack on a link that was opened elsewhere, and starts driving it; `options` are those of
/// the engine, such as `address=10.0.0.2/24,io=inline`.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn attach(link: Box<dyn FrameLink>, options: &str) -> Result<AttachedLink, LinkError> {
    let name = link.info().name;
    let asked = Asked::parse(&format!("{name}:{options}"))?;
    if let Some((option, value)) = asked.link.options.first() {
        let hint = names_for(option, EngineOptions::NAMES, "the options here are: ");
        let (option, reason) = (format!("{option}={value}"), UNKNOWN.to_owned());
        return Err(LinkError::BadOption { option, reason, hint });
    }
    Ok(AttachedLink { link: start(&Arc::default(), link, asked)? })
}

/// Returns the link that is open here; a permanently broken link stays with its present holders
/// only.
fn usable(gate: &OpenLock) -> Result<Option<Arc<OpenLink>>, LinkError> {
    match gate.link() {
        Some(open) if open.is_usable()? => Ok(Some(open)),
        _ => Ok(None),
    }
}

fn start(
    gate: &Arc<OpenLock>,
    link: Box<dyn FrameLink>,
    asked: Asked,
) -> Result<Arc<OpenLink>, LinkError> {
    let interface = link.info().interface.clone();
    let default = interface.unwrap_or_else(|| link.info().name.to_owned());
    let wanted = asked.clone();
    OpenLink::start(gate, link, asked, || match wanted.engine.io.unwrap_or_default() {
        IoMode::Inline => Ok(None),
        IoMode::Thread => state().worker(&wanted, default).map(Some),
    })
}

impl State {
    /// Returns the lock of opening and closing a link.
    fn gate(&mut self, key: LinkKey) -> Arc<OpenLock> {
        // Every thread that takes the lock holds a reference.
        self.links.retain(|(_, gate)| Arc::strong_count(gate) > 1 || !gate.is_empty());
        if let Some((_, gate)) = self.links.iter().find(|(other, _)| *other == key) {
            return Arc::clone(gate);
        }
        let gate = Arc::default();
        self.links.push((key, Arc::clone(&gate)));
        gate
    }

    /// Returns the requested I/O thread, running.
    fn worker(&mut self, asked: &Asked, default: String) -> Result<Arc<IoThread>, LinkError> {
        self.workers.retain(|worker| worker.strong_count() > 0);
        if let Some(name) = &asked.engine.thread {
            let workers = self.workers.iter().filter_map(Weak::upgrade);
            if let Some(worker) = workers.into_iter().find(|w| w.contact.options.name == *name) {
                return join(worker, asked);
            }
        }
        let options = WorkerOptions {
            name: asked.engine.thread.clone().unwrap_or(default),
            cpu: asked.engine.cpu,
            priority: asked.engine.priority,
            wait: asked.engine.wait.unwrap_or(Wait::Adaptive),
        };
        let worker = Arc::new(IoThread::start(options)?);
        self.workers.push(Arc::downgrade(&worker));
        Ok(worker)
    }
}

/// Adds a link to a running thread, if that thread has the requested settings.
fn join(worker: Arc<IoThread>, asked: &Asked) -> Result<Arc<IoThread>, LinkError> {
    let WorkerOptions { name, cpu, priority, wait } = &worker.contact.options;
    let (cpu, priority, wait) = (*cpu, *priority, Some(*wait));
    let running = EngineOptions { cpu, priority, wait, ..EngineOptions::default() };
    let of_thread = |option: &str| ["cpu", "priority", "wait"].contains(&option);
    if let Some(contradiction) = asked.engine.contradiction(&running, of_thread) {
        return Err(contradiction.error(&format!("thread {name}")));
    }
    // Each link holds its thread.
    if Arc::strong_count(&worker) > LINKS_MAX {
        let reason = format!("has {LINKS_MAX} links already: name another thread");
        return Err(bad(format!("thread={name}"), &reason));
    }
    Ok(worker)
}

/// Collects the inventory.
pub(super) fn inventory() -> Inventory {
    let (contacts, gates) = {
        let state = state();
        let workers = state.workers.iter().filter_map(Weak::upgrade);
        let contacts: Vec<Contact> = workers.map(|worker| worker.contact.clone()).collect();
        let gates: Vec<_> = state.links.iter().map(|(_, gate)| Arc::clone(gate)).collect();
        (contacts, gates)
    };
    let threads = contacts.iter().map(thread_report).collect();
    let inline = gates.iter().filter_map(|gate| gate.inline());
    let inline = inline.filter_map(|inline| inline.host().as_mut().map(LinkReport::of));
    Inventory { threads, inline: inline.collect() }
}

fn thread_report(thread: &Contact) -> ThreadReport {
    let WorkerOptions { name, cpu, wait, .. } = &thread.options;
    let report = thread.report();
    let dead = matches!(report, Err(NoAnswer::Gone));
    let mut notes = thread.shared.notes();
    if matches!(report, Err(NoAnswer::Silent)) {
        notes.push("it does not answer: a call into its driver does not return".to_owned());
    }
    let (links, probe) = report.unwrap_or_default();
    let priority = thread.shared.priority.load(Ordering::Relaxed);
    ThreadReport {
        name: format!("ms-io-{name}"),
        tid: thread.shared.tid.load(Ordering::Relaxed),
        cpu: *cpu,
        priority: u8::try_from(priority).ok().filter(|priority| *priority > 0),
        wait: wait.name(),
        waits: thread.shared.waits.report(),
        notes,
        dead,
        links,
        probe,
    }
}

/// Returns the datagrams that a port wants its receive queue to hold.
pub(super) fn queue_wanted(options: &PortOptions, asked: &Asked, mtu: usize) -> usize {
    let by_bytes = options.recv_queue_bytes / datagram_memory(options, mtu);
    asked.engine.queue.unwrap_or(by_bytes.clamp(256, 4096))
}

/// Returns sizes with room for a few ports like the first one.
fn frame_options(options: &PortOptions, asked: &Asked) -> FrameOptions {
    let wanted = queue_wanted(options, asked, options.datagram_bytes_max);
    let receive_frames = (4 * wanted.next_power_of_two()).clamp(4096, 1 << 16);
    FrameOptions { receive_frames, transmit_frames: TRANSMIT_FRAMES }
}

/// Adds the engine's options to an error, because the link knows only its own.
pub(crate) fn with_our_options(error: LinkError) -> LinkError {
    match error {
        LinkError::BadOption { option, reason, hint } if reason == UNKNOWN => {
            let (wrong, _) = option.split_once('=').unwrap_or((&option, ""));
            let head = "the options of every frame link are: ";
            let reason = format!("{reason}; {}", names_for(wrong, EngineOptions::NAMES, head));
            LinkError::BadOption { option, reason, hint }
        }
        error => error,
    }
}

fn key(asked: &Asked) -> LinkKey {
    match asked.link.target.clone() {
        Some(what) => LinkKey { namespace: network_namespace(), what },
        None => LinkKey { namespace: 0, what: asked.link.name.clone() },
    }
}

/// Returns the number of the calling thread's network namespace.
fn network_namespace() -> u64 {
    rustix::fs::stat("/proc/thread-self/ns/net").map_or(0, |stat| stat.st_ino)
}
