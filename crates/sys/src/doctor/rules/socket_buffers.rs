//! How much a socket may hold (Documentation/admin-guide/sysctl/net.rst, rmem_max and wmem_max).

use crate::doctor::{Finding, Rule, Topic, View};

/// What a receiver may queue.
pub const RECEIVE: Rule = Rule {
    id: "receive-buffer",
    topic: Topic::Network,
    why: "a receiver that is late by more than its socket holds loses packets",
    check: |view| check(view, "proc/sys/net/core/rmem_max", "receive"),
};

/// What a sender may queue.
pub const SEND: Rule = Rule {
    id: "send-buffer",
    topic: Topic::Network,
    why: "a sender whose socket is full waits, and a transmit stream underflows",
    check: |view| check(view, "proc/sys/net/core/wmem_max", "send"),
};

/// 168 ms of the stream below: longer than any time slice.
const WANTED: i64 = 32 << 20;

/// 50 MS/s of 16-bit complex samples, bytes a millisecond. The kernel counts its own structures too
/// (`truesize`), so that a socket holds less than that.
const BYTES_PER_MS: f64 = 200e3;

fn check(view: &View, path: &str, way: &str) -> Vec<Finding> {
    let Some((bytes, seen)) = view.number(path) else { return Vec::new() };
    let holds_ms = bytes as f64 / BYTES_PER_MS;
    let says = format!("a {way} socket holds at most {holds_ms:.1} ms of a 50 MS/s stream");
    let finding = match bytes >= WANTED {
        true => Finding::good(says),
        false => Finding::costs(says)
            .cost("an unprivileged process loses packets when it is later than that")
            .mend_by_write(path, WANTED.to_string()),
    };
    vec![finding.seen([seen])]
}

#[cfg(test)]
mod tests {
    use super::{RECEIVE, SEND};
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    #[test]
    fn a_small_buffer_holds_little() {
        let found = Machine::new().with("proc/sys/net/core/rmem_max", "212992\n").one(&RECEIVE);
        assert_eq!(found.verdict, Costs);
        assert_eq!(found.says, "a receive socket holds at most 1.1 ms of a 50 MS/s stream");
        assert_eq!(found.mend.unwrap().command, "sysctl -w net.core.rmem_max=33554432");
        let large = Machine::new().with("proc/sys/net/core/wmem_max", "67108864\n");
        assert_eq!((large.verdict(&SEND), large.verdict(&RECEIVE)), (Good, Absent));
    }
}
