//! Management requests without a port or a clock: bytes go out, replies and time come in.

use std::time::Instant;

use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::{Epid, Width};

use super::{TRANSACTION_TIMEOUT, TRIES};

/// The longest request, bytes: a dozen items at the largest width.
pub(crate) const REQUEST_BYTES_MAX: usize = 4096;

/// A request, what it is about, and how often it is sent before silence is the answer.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    what: &'static str,
    request: Box<MgmtRepr>,
    tries: u32,
}

impl Question {
    /// Returns a request of `hops` and a closing hop for the answers.
    pub fn new(what: &'static str, hops: &[&[Op]]) -> Self {
        let mut request = Box::new(MgmtRepr::request(Epid::NONE, 0));
        let closing: &[Op] = &[Op::Nop];
        let pushed = hops.iter().chain([&closing]).try_for_each(|hop| request.push_hop(hop));
        pushed.expect("requests are a handful of known operations");
        Self { what, request, tries: TRIES }
    }

    /// Sets how often it is sent.
    pub fn with_tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Returns what it is about.
    pub fn what(&self) -> &'static str {
        self.what
    }
}

/// The requests of one of this host's endpoints, one after the other. Each is sent again while no
/// reply comes: all of them may be repeated without harm.
#[derive(Debug)]
pub(crate) struct Asker {
    epid: Epid,
    width: Width,
    seq: u16,
    state: AskerState,
}

/// The state of a request.
#[derive(Debug)]
enum AskerState {
    /// There is none.
    Idle,
    /// Sent so many times, since the number `first_seq`; the last one counts as lost after `until`.
    /// Before the first one that is `None`.
    Asked {
        question: Question,
        first_seq: u16,
        attempts: u32,
        until: Option<Instant>,
    },
    Answered(Vec<Op>),
}

/// What a request needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AskerStep {
    /// Send the first bytes of the buffer.
    Send(usize),
    /// Wait for a packet, no longer than until then.
    Wait(Instant),
    /// There is no reply after so many attempts.
    Silent { what: &'static str, attempts: u32 },
    /// These are the answers, or there was no request.
    Answered(Vec<Op>),
}

impl Asker {
    pub fn new(epid: Epid, width: Width) -> Self {
        Self { epid, width, seq: 0, state: AskerState::Idle }
    }

    /// Begins a request, in place of the one before.
    pub fn ask(&mut self, mut question: Question) {
        question.request.src_epid = self.epid;
        let (first_seq, attempts, until) = (self.seq, 0, None);
        self.state = AskerState::Asked { question, first_seq, attempts, until };
    }

    /// Takes a management packet.
    pub fn take(&mut self, reply: &MgmtRepr) {
        let AskerState::Asked { first_seq, .. } = self.state else { return };
        // Any of those sent.
        if reply.seq.wrapping_sub(first_seq) < self.seq.wrapping_sub(first_seq) {
            let answers = reply.hops().next().unwrap_or(&[]);
            let answers = answers.iter().copied().filter(Op::is_response).collect();
            self.state = AskerState::Answered(answers);
        }
    }

    /// Returns what is to be done at `now`. The buffer has space for any request.
    pub fn step(&mut self, now: Instant, out: &mut [u8]) -> AskerStep {
        let (question, attempts, until) = match &mut self.state {
            AskerState::Idle => return AskerStep::Answered(Vec::new()),
            AskerState::Answered(answers) => {
                let answers = std::mem::take(answers);
                self.state = AskerState::Idle;
                return AskerStep::Answered(answers);
            }
            AskerState::Asked { question, attempts, until, .. } => (question, attempts, until),
        };
        if let Some(until) = until.filter(|until| now < *until) {
            return AskerStep::Wait(until);
        }
        if *attempts == question.tries {
            return AskerStep::Silent { what: question.what, attempts: *attempts };
        }
        *attempts += 1;
        *until = Some(now + TRANSACTION_TIMEOUT);
        question.request.seq = self.seq;
        self.seq = self.seq.wrapping_add(1);
        let length = question.request.emit(self.width, out);
        AskerStep::Send(length.expect("the buffer has space for any request"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millstream_wire::chdr::Packet;

    use super::*;

    const WHAT: &str = "a question";

    fn asker() -> Asker {
        let mut asker = Asker::new(Epid(7), Width::W64);
        asker.ask(Question::new(WHAT, &[&[Op::CfgRead { address: 8 }, Op::Return]]));
        asker
    }

    /// Returns the reply to a request.
    fn reply(request: &[u8]) -> MgmtRepr {
        let mut repr = MgmtRepr::parse(&Packet::parse(request, Width::W64).unwrap()).unwrap();
        assert_eq!(repr.src_epid, Epid(7));
        let read = |op: Op| match op {
            Op::CfgRead { address } => Some(Op::CfgReadResp { address, value: 3 }),
            _ => None,
        };
        repr.execute(read).unwrap();
        repr
    }

    #[test]
    fn a_request_is_repeated_until_its_reply_comes() {
        let (mut asker, mut out, mut now) = (asker(), [0; 4096], Instant::now());
        let mut first = None;
        for _ in 0..4 {
            let AskerStep::Send(length) = asker.step(now, &mut out) else { panic!("no packet") };
            first.get_or_insert(out[..length].to_vec());
            let until = now + TRANSACTION_TIMEOUT;
            assert_eq!(asker.step(now, &mut out), AskerStep::Wait(until));
            now = until;
        }
        // The reply to any of them will do, and one to a request before them will not.
        let mut other = reply(&first.clone().unwrap());
        other.seq = other.seq.wrapping_sub(1);
        asker.take(&other);
        assert!(matches!(asker.step(now, &mut out), AskerStep::Send(_)));
        asker.take(&reply(&first.unwrap()));
        let answers = vec![Op::CfgReadResp { address: 8, value: 3 }];
        assert_eq!(asker.step(now, &mut out), AskerStep::Answered(answers));
        assert_eq!(asker.step(now, &mut out), AskerStep::Answered(Vec::new()));
    }

    #[test]
    fn silence_ends_after_the_last_attempt() {
        let (mut asker, mut out, begin) = (asker(), [0; 4096], Instant::now());
        let (mut now, mut sent) = (begin, 0);
        loop {
            match asker.step(now, &mut out) {
                AskerStep::Send(_) => sent += 1,
                AskerStep::Wait(until) => now = until,
                AskerStep::Silent { what, attempts } => {
                    assert_eq!((what, attempts, sent), (WHAT, TRIES, TRIES));
                    assert_eq!(now - begin, Duration::from_secs(1));
                    return;
                }
                AskerStep::Answered(answers) => panic!("{answers:?}"),
            }
        }
    }
}
