//! The control channel: faults and counters from outside while the radio runs.
//!
//! Over TCP, with one JSON object per line in each direction. A request has an `op`; a reply has
//! `ok`, and `error` if that is false.

use crate::counters::Counters;
use crate::faults::{FaultState, Faults};
use crate::tcp::{Malformed, Service, TcpEvent};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest request, bytes.
const LINE_BYTES_MAX: usize = 4096;

const REQUESTS: &str = "{\"op\":\"add\",\"fault\":TEXT}, {\"op\":\"remove\",\"id\":N}, \
    {\"op\":\"list\"}, {\"op\":\"clear\"} or {\"op\":\"counters\"}";

/// The reply to a request that could be done.
#[derive(Serialize)]
#[serde(untagged)]
enum Reply {
    Added { id: u64 },
    Removed { fault: FaultState },
    Listed { faults: Vec<FaultState> },
    Cleared { removed: usize },
    Counted { counters: BTreeMap<&'static str, u64> },
    Refused { error: String },
}

/// A reply as it is sent.
#[derive(Serialize)]
struct ReplyLine {
    #[serde(flatten)]
    reply: Reply,
    ok: bool,
}

/// The control channel as a [`Service`].
pub(crate) struct ControlChannel {
    pub faults: Faults,
    pub counters: Arc<Counters>,
}

impl Service for ControlChannel {
    type Session = ();

    fn begin(&mut self, _unsent: &mut Vec<u8>) {}

    fn answer(
        &mut self,
        _session: &mut (),
        unread: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
        _now_ns: u64,
    ) -> Result<bool, Malformed> {
        let end = unread.iter().position(|&byte| byte == b'\n');
        if end.unwrap_or(unread.len()) > LINE_BYTES_MAX {
            let reason = format!("a request has at most {LINE_BYTES_MAX} bytes");
            append(unsent, Reply::Refused { error: reason });
            return Err(Malformed);
        }
        let Some(end) = end else { return Ok(false) };
        let reply = self.reply(&unread[..end]);
        unread.drain(..=end);
        self.counters.control_channel_requests.inc();
        let refused = matches!(reply, Reply::Refused { .. });
        self.counters.control_channel_errors.add(u64::from(refused));
        append(unsent, reply);
        Ok(true)
    }

    fn step(&mut self, _now_ns: u64) -> bool {
        true
    }

    fn note(&self, event: TcpEvent) {
        if event != TcpEvent::Accepted {
            self.counters.control_channel_refused.inc();
        }
    }
}

impl ControlChannel {
    fn reply(&self, line: &[u8]) -> Reply {
        let request = serde_json::from_slice(line)
            .map_err(|error| format!("not JSON: {error}; accepted: {REQUESTS}"));
        let done = request.and_then(|request| self.execute(&request));
        done.unwrap_or_else(|error| Reply::Refused { error })
    }

    fn execute(&self, request: &Value) -> Result<Reply, String> {
        Ok(match request["op"].as_str() {
            Some("add") => {
                let text = request["fault"].as_str().ok_or("`fault` must be a text")?;
                Reply::Added { id: self.faults.add(text).map_err(|e| e.to_string())? }
            }
            Some("remove") => {
                let id = request["id"].as_u64().ok_or("`id` must be the number of a fault")?;
                Reply::Removed { fault: self.faults.remove(id).ok_or_else(|| self.unknown(id))? }
            }
            Some("list") => Reply::Listed { faults: self.faults.list() },
            Some("clear") => Reply::Cleared { removed: self.faults.clear() },
            Some("counters") => {
                let entries = self.counters.snapshot().entries().into_iter();
                Reply::Counted { counters: entries.collect() }
            }
            _ => return Err(format!("there is no such request; the requests are: {REQUESTS}")),
        })
    }

    fn unknown(&self, id: u64) -> String {
        let known: Vec<_> = self.faults.list().iter().map(|state| state.id.to_string()).collect();
        match known.is_empty() {
            true => format!("there is no fault {id}; no fault is active"),
            false => format!("there is no fault {id}; there are: {}", known.join(", ")),
        }
    }
}

fn append(unsent: &mut Vec<u8>, reply: Reply) {
    let ok = !matches!(reply, Reply::Refused { .. });
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *unsent, &ReplyLine { reply, ok });
    unsent.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::DeviceFaults;
    use millstream_wire::chdr::Width;
    use serde_json::json;

    fn channel() -> ControlChannel {
        let faults = Faults::new(Arc::new(DeviceFaults::new(1e6, 1.0)), Width::W64);
        ControlChannel { faults, counters: Arc::default() }
    }

    fn ask(channel: &mut ControlChannel, line: &str) -> Value {
        let (mut unread, mut unsent) = (format!("{line}\nrest").into_bytes(), Vec::new());
        assert!(channel.answer(&mut (), &mut unread, &mut unsent, 0).unwrap());
        assert_eq!(unread, b"rest");
        assert_eq!(unsent.iter().filter(|&&byte| byte == b'\n').count(), 1, "one line");
        serde_json::from_slice(&unsent).unwrap()
    }

    #[test]
    fn faults_come_and_go_by_their_numbers() {
        let mut channel = channel();
        let add = r#"{"op":"add","fault":"lose to_host data count=3"}"#;
        assert_eq!(ask(&mut channel, add), json!({ "ok": true, "id": 1 }));
        assert_eq!(ask(&mut channel, add)["id"], 2);
        let list = ask(&mut channel, r#"{"op":"list"}"#);
        let want = json!({ "id": 1, "fault": "lose to_host data count=3", "matched": 0, "hit": 0,
            "held": 0, "overflowed": 0, "done": false });
        assert_eq!((&list["faults"][0], list["faults"].as_array().unwrap().len()), (&want, 2));
        assert_eq!(ask(&mut channel, r#"{"op":"remove","id":1}"#)["fault"], want);
        assert_eq!(ask(&mut channel, r#"{"op":"clear"}"#)["removed"], 1);
        let counters = &ask(&mut channel, r#"{"op":"counters"}"#)["counters"];
        assert_eq!(counters["control_channel_requests"], 5);
    }

    #[test]
    fn what_cannot_be_done_says_why_and_what_can() {
        let mut channel = channel();
        for (line, part) in [
            ("", "not JSON"),
            ("[1, 2", "not JSON"),
            ("[]", "there is no such request; the requests are: {\"op\":\"add\""),
            (r#"{"op":"explode"}"#, "no such request"),
            (r#"{"op":"add"}"#, "`fault` must be a text"),
            (r#"{"op":"add","fault":"lose"}"#, "`direction` is missing; give one of"),
            (r#"{"op":"remove","id":7}"#, "there is no fault 7; no fault is active"),
            (r#"{"op":"remove","id":-1}"#, "must be the number of a fault"),
        ] {
            let reply = ask(&mut channel, line);
            assert_eq!(reply["ok"], false);
            assert!(reply["error"].as_str().unwrap().contains(part), "{reply}");
        }
        assert_eq!(channel.counters.snapshot().control_channel_errors, 8);
    }

    #[test]
    fn a_line_without_end_is_cut_off_with_a_reason() {
        let mut channel = channel();
        let (mut unread, mut unsent) = (vec![b'x'; LINE_BYTES_MAX], Vec::new());
        assert!(!channel.answer(&mut (), &mut unread, &mut unsent, 0).unwrap());
        unread.push(b'x');
        channel.answer(&mut (), &mut unread, &mut unsent, 0).unwrap_err();
        assert!(String::from_utf8(unsent).unwrap().contains("at most 4096 bytes"));
    }

    #[test]
    fn many_requests_at_once_are_answered_to_a_peer_that_reads() {
        use crate::tcp::Server;
        use std::io::{BufRead, BufReader, Write};
        use std::net::{TcpListener, TcpStream};
        use std::sync::atomic::{AtomicBool, Ordering};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let channel = channel();
        let counters = Arc::clone(&channel.counters);
        let server = Server::new(listener, channel).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| server.run(&stop));
            // One read of the server gives more replies than may stay unsent.
            stream.write_all("{\"op\":\"counters\"}\n".repeat(200).as_bytes()).unwrap();
            let lines = BufReader::new(stream).lines().take(200);
            let answered = lines.map_while(Result::ok).filter(|line| line.contains("\"ok\":true"));
            let answered = answered.count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(answered, 200);
        });
        assert_eq!(counters.snapshot().control_channel_refused, 0);
    }

    #[test]
    fn faults_are_bounded() {
        let mut channel = channel();
        for fault in ["stall ms=1", "lose to_host any"] {
            let add = json!({ "op": "add", "fault": fault }).to_string();
            let adds = (0..100).filter(|_| ask(&mut channel, &add)["ok"] == true).count();
            assert_eq!(adds, crate::faults::FAULTS_MAX);
            let error = ask(&mut channel, &add)["error"].take();
            assert!(error.as_str().unwrap().contains("already 64 faults"), "{error}");
            ask(&mut channel, r#"{"op":"clear"}"#);
        }
    }
}
