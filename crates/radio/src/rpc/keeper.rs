//! The thread that renews all claims of a network namespace.
//!
//! It begins with the first claim and ends with the last one: a program with many devices has one
//! such thread, and one without a device has none.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use millstream_mpm::ClientEnd;
use rmpv::Value;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::CALL_TIMEOUT;
use super::claim::ClaimLoss;
use super::renewal::{Renewal, RenewalStep};

/// The threads, by their places.
static KEEPERS: LazyLock<Mutex<KeeperMap>> = LazyLock::new(Mutex::default);

type KeeperMap = HashMap<KeeperPlace, Arc<Keeper>>;

/// Where a thread renews claims. A connection that is opened again has to be in the network
/// namespace of the first one, and a thread inherits that of the one that starts it. A process that
/// was forked off has none of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KeeperPlace {
    process: u32,
    namespace: u64,
}

impl KeeperPlace {
    /// Returns that of the calling thread.
    fn here() -> Self {
        let namespace = rustix::fs::stat("/proc/thread-self/ns/net").map_or(0, |stat| stat.st_ino);
        Self { process: std::process::id(), namespace }
    }
}

/// The most reads of one connection before the others have their turn.
const READS: usize = 16;

/// The most bytes that wait for a device to read them: it makes us answer, and takes no answer.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// The longest that the drop of a claim waits: the device's answer takes less, or counts as none.
const RELEASE_MAX: Duration = Duration::from_secs(2 * CALL_TIMEOUT.as_secs());

/// A claim to renew.
#[derive(Debug)]
pub struct ClaimToKeep {
    pub stream: TcpStream,
    /// The connection without its socket.
    pub end: ClientEnd,
    pub address: SocketAddrV4,
    pub token: Value,
    /// The id of the connection's next call.
    pub next_id: u32,
    pub lost: ClaimLoss,
}

/// A claim that is being renewed. Dropping it gives the claim back.
#[derive(Debug)]
pub struct KeptClaim {
    keeper: Arc<Keeper>,
    /// The claim's loss is shared, so it also tells claims apart.
    lost: ClaimLoss,
}

impl KeptClaim {
    /// Hands a claim over to the thread, which is started if need be.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn new(claim: ClaimToKeep) -> io::Result<Self> {
        claim.stream.set_nonblocking(true)?;
        let place = KeeperPlace::here();
        let lost = claim.lost.clone();
        let mut keepers = locked(&KEEPERS);
        let keeper = match keepers.get(&place) {
            Some(keeper) => Arc::clone(keeper),
            None => {
                let keeper = Arc::new(Keeper::new(place)?);
                let own = Arc::clone(&keeper);
                thread::Builder::new().name("radio-claims".into()).spawn(move || own.work())?;
                keepers.insert(place, Arc::clone(&keeper));
                keeper
            }
        };
        // Under the lock, so that the thread does not end meanwhile.
        keeper.push(KeeperJob::Keep(claim));
        drop(keepers);
        Ok(Self { keeper, lost })
    }
}

impl Drop for KeptClaim {
    /// Waits until the device has answered, or the time for that is over.
    fn drop(&mut self) {
        let (done, wait) = mpsc::channel();
        self.keeper.push(KeeperJob::Release(self.lost.clone(), done));
        // The other end is dropped when the claim is over.
        let _ = wait.recv_timeout(RELEASE_MAX);
    }
}

#[derive(Debug)]
enum KeeperJob {
    Keep(ClaimToKeep),
    Release(ClaimLoss, mpsc::Sender<()>),
}

/// What the thread and the owners of claims share.
#[derive(Debug)]
struct Keeper {
    place: KeeperPlace,
    /// `None` once the thread has ended.
    jobs: Mutex<Option<Vec<KeeperJob>>>,
    /// An eventfd(2) that wakes the thread.
    bell: OwnedFd,
}

impl Keeper {
    fn new(place: KeeperPlace) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = rustix::event::eventfd(0, flags)?;
        Ok(Self { place, jobs: Mutex::new(Some(Vec::new())), bell })
    }

    fn push(&self, job: KeeperJob) {
        // A release of a claim whose thread has ended is dropped, which tells that it is over.
        let mut jobs = locked(&self.jobs);
        let Some(jobs) = jobs.as_mut() else { return };
        jobs.push(job);
        // It fails only when the bell has been rung 2⁶⁴ - 2 times.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Renews claims until there are none.
    fn work(&self) {
        let began = Instant::now();
        let mut claims: Vec<RenewedClaim> = Vec::new();
        loop {
            let jobs = locked(&self.jobs).as_mut().map(std::mem::take);
            for job in jobs.into_iter().flatten() {
                match job {
                    KeeperJob::Keep(claim) => claims.push(RenewedClaim::new(claim, began)),
                    KeeperJob::Release(lost, done) => {
                        // One that is over is released already; dropping `done` tells that.
                        if let Some(claim) = claims.iter_mut().find(|claim| claim.lost.is(&lost)) {
                            claim.release(done, began.elapsed());
                        }
                    }
                }
            }
            claims.retain_mut(|claim| claim.attend(began.elapsed()));
            if claims.is_empty() {
                let mut keepers = locked(&KEEPERS);
                let mut jobs = locked(&self.jobs);
                if jobs.as_ref().is_none_or(Vec::is_empty) {
                    *jobs = None;
                    keepers.remove(&self.place);
                    return;
                }
                continue;
            }
            self.sleep(&claims, began);
        }
    }

    /// Sleeps until a connection has something, a job comes, or something is due.
    fn sleep(&self, claims: &[RenewedClaim], began: Instant) {
        let due = claims.iter().filter_map(|claim| claim.renewal.due()).min();
        let left = due.map(|due| due.saturating_sub(began.elapsed()));
        // Rounded up: a wake-up that is early would find nothing to do, and sleep again.
        let left = left.and_then(|left| Timespec::try_from(left + Duration::from_micros(1)).ok());
        let mut watched = vec![PollFd::new(&self.bell, PollFlags::IN)];
        watched.extend(claims.iter().filter_map(RenewedClaim::watched));
        if rustix::event::poll(&mut watched, left.as_ref()).is_err() {
            // Interrupted, or out of memory.
            thread::sleep(Duration::from_millis(1));
        }
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

/// A claim with its connection.
struct RenewedClaim {
    renewal: Renewal,
    address: SocketAddrV4,
    /// `None` while there is no connection.
    stream: Option<TcpStream>,
    /// The connection is being opened.
    opening: bool,
    /// Bytes that the connection has not taken yet.
    unsent: Vec<u8>,
    lost: ClaimLoss,
    /// Dropped when the claim is over.
    done: Option<mpsc::Sender<()>>,
    over: bool,
}

impl RenewedClaim {
    fn new(claim: ClaimToKeep, began: Instant) -> Self {
        let ClaimToKeep { stream, end, address, token, next_id, lost } = claim;
        Self {
            renewal: Renewal::new(end, address, token, next_id, began.elapsed()),
            address,
            stream: Some(stream),
            opening: false,
            unsent: Vec::new(),
            lost,
            done: None,
            over: false,
        }
    }

    fn release(&mut self, done: mpsc::Sender<()>, now: Duration) {
        self.done = Some(done);
        let step = self.renewal.release(now);
        self.take(step, now);
    }

    /// Does what can be done without waiting; false when the claim is over.
    fn attend(&mut self, now: Duration) -> bool {
        if let Some(step) = self.renewal.at(now) {
            self.take(step, now);
        }
        if self.opening {
            self.look_at_opening(now);
        }
        self.send(now);
        self.receive(now);
        !self.over
    }

    /// The descriptor, and what it has to be ready for.
    fn watched(&self) -> Option<PollFd<'_>> {
        let stream = self.stream.as_ref()?;
        let sends = self.opening || !self.unsent.is_empty();
        let also = if sends { PollFlags::OUT } else { PollFlags::empty() };
        Some(PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN | also))
    }

    fn take(&mut self, step: RenewalStep, now: Duration) {
        match step {
            RenewalStep::Send(bytes) => {
                self.unsent.extend_from_slice(&bytes);
                self.send(now);
            }
            RenewalStep::Connect => {
                self.unsent.clear();
                match connect(self.address) {
                    Ok(stream) => (self.stream, self.opening) = (Some(stream), true),
                    Err(_) => self.opened(false, now),
                }
            }
            RenewalStep::Lost(error) => {
                self.lost.note(&error);
                self.over = true;
            }
            RenewalStep::Over => self.over = true,
        }
    }

    /// Checks whether a connection that was being opened is open now, or has failed.
    fn look_at_opening(&mut self, now: Duration) {
        let Some(stream) = &self.stream else { return };
        let mut watched = [PollFd::new(stream, PollFlags::OUT)];
        let ready = rustix::event::poll(&mut watched, Some(&Timespec::default()));
        if !matches!(ready, Ok(0)) {
            let is_open = matches!(stream.take_error(), Ok(None)) && ready.is_ok();
            self.opened(is_open, now);
        }
    }

    fn opened(&mut self, is_open: bool, now: Duration) {
        self.opening = false;
        if !is_open {
            self.stream = None;
        }
        if let Some(step) = self.renewal.connected(is_open, now) {
            self.take(step, now);
        }
    }

    fn send(&mut self, now: Duration) {
        while !self.over && !self.opening && !self.unsent.is_empty() {
            let Some(stream) = &mut self.stream else { return };
            match stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.broke(error, now),
            }
        }
    }

    fn receive(&mut self, now: Duration) {
        let mut chunk = [0; 4096];
        // A device that never stops sending must not keep the other claims waiting.
        for _ in 0..READS {
            if self.over || self.opening {
                return;
            }
            let Some(stream) = &mut self.stream else { return };
            match stream.read(&mut chunk) {
                Ok(0) => return self.broke(io::ErrorKind::UnexpectedEof.into(), now),
                Ok(count) => {
                    let step = self.renewal.received(&chunk[..count], now);
                    self.renewal.drain_into(&mut self.unsent);
                    if self.unsent.len() > UNSENT_BYTES_MAX {
                        let cause = "the device does not read";
                        return self.broke(io::Error::other(cause), now);
                    }
                    if let Some(step) = step {
                        self.take(step, now);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.broke(error, now),
            }
        }
    }

    fn broke(&mut self, error: io::Error, now: Duration) {
        self.stream = None;
        if let Some(step) = self.renewal.broke(error, now) {
            self.take(step, now);
        }
    }
}

/// Begins to open a connection.
fn connect(address: SocketAddrV4) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Locks what every holder leaves whole, so that a panic of one does no harm.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
