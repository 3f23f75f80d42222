//! The commands of an I/O thread and the way to send them: every answer has a time limit.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millstream_link::LinkError;
use millstream_ring::{ChangeFlag, Doorbell, Wait};

use super::host::Host;
use super::inventory::{LinkReport, WaitStats};
use super::place::ThreadCpus;

/// The time limit of a command: a broker or a driver may have to act.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The time limit of a report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The time limit for a thread that did not answer the last time.
const SILENT_TIMEOUT: Duration = Duration::from_millis(100);

/// The settings of an I/O thread.
#[derive(Debug, Clone)]
pub(super) struct WorkerOptions {
    /// The name behind `ms-io-`.
    pub name: String,
    pub cpu: Option<usize>,
    pub priority: Option<u8>,
    pub wait: Wait,
}

/// The identifier of a link that some thread owns.
pub(super) type HostId = u64;

/// A function to call with a link; `None` if the thread does not have the link.
type Job = Box<dyn FnOnce(Option<&mut Host>) + Send>;

/// A command for a thread. Replies confirm its completion.
pub(super) enum ThreadCommand {
    Adopt(HostId, Box<Host>, SyncSender<()>),
    /// Closes a link.
    Release(HostId, SyncSender<()>),
    /// Calls a function with a link, on the link's thread.
    Do(HostId, Job),
    Report(SyncSender<(Vec<LinkReport>, u64)>),
    Stop,
}

/// The reason why a thread did not execute a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It has ended by a panic, or it does not have the link.
    Gone,
    /// It does not answer: some call into its driver does not return.
    Silent,
}

impl From<NoAnswer> for LinkError {
    fn from(why: NoAnswer) -> Self {
        let text = match why {
            NoAnswer::Gone => "the I/O thread has ended: close the ports on this link",
            NoAnswer::Silent => {
                "the I/O thread does not answer, because a call into its driver does not return: \
                 see the kernel's log (dmesg), and start this program again"
            }
        };
        Self::Setup { what: "I/O thread", source: std::io::Error::other(text) }
    }
}

/// The state that the thread shares with the senders of its commands.
#[derive(Debug)]
pub(super) struct ThreadShared {
    pub bell: Arc<Doorbell>,
    /// The change flag: there are commands.
    pub news: ChangeFlag,
    /// It did not answer the last time.
    silent: AtomicBool,
    pub tid: AtomicI32,
    /// Its actual SCHED_FIFO priority; 0 for the ordinary class.
    pub priority: AtomicI32,
    pub waits: WaitStats,
    pub place: ThreadCpus,
    /// The settings that could not be applied, for people.
    notes: Mutex<Vec<String>>,
}

impl ThreadShared {
    pub fn new(bell: Doorbell) -> Self {
        Self {
            bell: Arc::new(bell),
            news: ChangeFlag::new(),
            silent: AtomicBool::new(false),
            tid: AtomicI32::new(0),
            priority: AtomicI32::new(0),
            waits: WaitStats::default(),
            place: ThreadCpus::default(),
            notes: Mutex::default(),
        }
    }

    pub fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the thread did not answer the last time.
    pub fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }
}

/// A sender of commands to a thread; it does not keep the thread running.
#[derive(Clone)]
pub(super) struct Contact {
    pub options: WorkerOptions,
    pub shared: Arc<ThreadShared>,
    pub orders: Sender<ThreadCommand>,
}

impl Contact {
    fn order<T>(
        &self,
        timeout: Duration,
        make: impl FnOnce(SyncSender<T>) -> ThreadCommand,
    ) -> Result<T, NoAnswer> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.tell(make(reply))?;
        let timeout = if self.shared.is_silent() { SILENT_TIMEOUT } else { timeout };
        let answer = answer.recv_timeout(timeout);
        let silent = matches!(answer, Err(RecvTimeoutError::Timeout));
        self.shared.silent.store(silent, Ordering::Relaxed);
        answer.map_err(|_| if silent { NoAnswer::Silent } else { NoAnswer::Gone })
    }

    /// Sends a command without waiting for an answer.
    pub fn tell(&self, order: ThreadCommand) -> Result<(), NoAnswer> {
        self.orders.send(order).map_err(|_| NoAnswer::Gone)?;
        self.shared.news.tell();
        self.shared.bell.ring();
        Ok(())
    }

    /// Hands a link over: from now on only that thread can touch it.
    pub fn adopt(&self, id: HostId, host: Host) -> Result<(), NoAnswer> {
        let adopted =
            self.order(ANSWER_TIMEOUT, |reply| ThreadCommand::Adopt(id, Box::new(host), reply));
        if adopted.is_err() {
            // If the thread takes the link late, it closes it again.
            let (reply, _) = mpsc::sync_channel(1);
            let _ = self.tell(ThreadCommand::Release(id, reply));
        }
        adopted
    }

    /// Closes a link.
    pub fn release(&self, id: HostId) -> Result<(), NoAnswer> {
        self.order(ANSWER_TIMEOUT, |reply| ThreadCommand::Release(id, reply))
    }

    /// Calls `job` with a link, on the link's thread. After a timeout the call may still be made
    /// later.
    pub fn with<T: Send + 'static>(
        &self,
        id: HostId,
        job: impl FnOnce(&mut Host) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let done = self.order(ANSWER_TIMEOUT, |reply| {
            let job = move |host: Option<&mut Host>| {
                let _ = reply.send(host.map(job));
            };
            ThreadCommand::Do(id, Box::new(job))
        });
        done?.ok_or(NoAnswer::Gone)
    }

    /// Returns the reports of its links, and the probe's result on the thread.
    pub fn report(&self) -> Result<(Vec<LinkReport>, u64), NoAnswer> {
        self.order(REPORT_TIMEOUT, ThreadCommand::Report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_answer_is_not_waited_for_again_until_it_does() {
        let name = "test".to_owned();
        let options = WorkerOptions { name, cpu: None, priority: None, wait: Wait::Park };
        let shared = Arc::new(ThreadShared::new(Doorbell::new().unwrap()));
        let (orders, incoming) = mpsc::channel();
        let contact = Contact { options, shared, orders };
        let short = Duration::from_millis(5);
        assert_eq!(contact.order(short, ThreadCommand::Report).unwrap_err(), NoAnswer::Silent);
        // There is no thread to answer: without a limit this would take fifteen seconds.
        let began = std::time::Instant::now();
        assert_eq!(contact.release(1), Err(NoAnswer::Silent));
        assert!(began.elapsed() < ANSWER_TIMEOUT, "{:?}", began.elapsed());
        let thread = std::thread::spawn(move || {
            while let Ok(order) = incoming.recv() {
                match order {
                    ThreadCommand::Release(_, reply) => drop(reply.send(())),
                    ThreadCommand::Stop => return,
                    _ => {}
                }
            }
        });
        while contact.release(1).is_err() {}
        assert!(!contact.shared.is_silent());
        contact.tell(ThreadCommand::Stop).unwrap();
        thread.join().unwrap();
        assert_eq!(contact.release(1), Err(NoAnswer::Gone));
        let text = LinkError::from(NoAnswer::Silent).to_string();
        assert!(text.contains("dmesg"), "{text}");
    }
}
