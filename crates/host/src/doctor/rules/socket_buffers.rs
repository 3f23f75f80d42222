//! The limits of socket buffers (Documentation/admin-guide/sysctl/net.rst, rmem_max and wmem_max).

use crate::doctor::{Finding, MachineFiles, Verdict};

/// Checks the limit of a receiver's queue.
pub fn receive(view: &MachineFiles) -> Vec<Finding> {
    check(view, "proc/sys/net/core/rmem_max", "receive", Verdict::Fails)
}

/// Checks the limit of a sender's queue.
pub fn send(view: &MachineFiles) -> Vec<Finding> {
    // The radio's own buffer makes up for a small socket buffer.
    check(view, "proc/sys/net/core/wmem_max", "send", Verdict::Matters)
}

/// The bytes of a 16-bit complex sample. The kernel counts its own structures too (`truesize`), so
/// a socket holds less than its number of bytes.
const BYTES_A_SAMPLE: f64 = 4.0;

/// Shorter than a time slice of another process, milliseconds.
const SHORT_MS: f64 = 5.0;

/// Longer than any wait of a thread that gets its CPU time, milliseconds.
const ENOUGH_MS: f64 = 50.0;

/// The requested size where the present one is too small, milliseconds, at least [`LEAST`] and at
/// most the kernel's maximum.
const WANTED_MS: f64 = 100.0;
const LEAST: u64 = 32 << 20;
const MOST: u64 = 1 << 30;

/// Checks the limit in the file `path`; `where_short` is the verdict on a queue that holds too
/// little.
fn check(view: &MachineFiles, path: &str, way: &str, where_short: Verdict) -> Vec<Finding> {
    let Some((bytes, seen)) = view.number(path) else { return Vec::new() };
    let bytes_a_ms = view.rate_hz() * BYTES_A_SAMPLE / 1e3;
    let holds_ms = bytes as f64 / bytes_a_ms;
    let rate = view.rate_hz() / 1e6;
    let says = format!("a {way} socket holds at most {holds_ms:.1} ms of a {rate} MS/s stream");
    let wanted = ((bytes_a_ms * WANTED_MS) as u64).next_power_of_two().clamp(LEAST, MOST);
    let verdict = match holds_ms {
        ENOUGH_MS.. => Verdict::Good,
        // The largest possible size.
        _ if bytes >= MOST as i64 => Verdict::Unknown,
        SHORT_MS.. => Verdict::Minor,
        _ => where_short,
    };
    let finding = Finding::of(verdict, says).seen([seen]);
    vec![match verdict.costs() {
        true => finding
            .cost("an unprivileged process loses packets when it is later than that")
            .mend_by_write(path, wanted.to_string()),
        false => finding,
    }]
}

#[cfg(test)]
mod tests {
    use super::{receive, send};
    use crate::doctor::Verdict::{Absent, Fails, Good, Matters, Minor, Unknown};
    use crate::doctor::machine::TestMachine;
    use crate::doctor::{Focus, MachineFiles};

    fn machine(bytes: &str) -> TestMachine {
        TestMachine::new().with("proc/sys/net/core/rmem_max", bytes)
    }

    #[test]
    fn a_small_buffer_holds_little() {
        let found = machine("212992\n").one(receive);
        assert_eq!(found.verdict, Fails);
        assert_eq!(found.says, "a receive socket holds at most 1.1 ms of a 50 MS/s stream");
        assert_eq!(found.mend.unwrap().command, "sysctl -w net.core.rmem_max=33554432");
        let large = TestMachine::new().with("proc/sys/net/core/wmem_max", "67108864\n");
        assert_eq!((large.verdict(send), large.verdict(receive)), (Good, Absent));
        let small = TestMachine::new().with("proc/sys/net/core/wmem_max", "212992\n");
        assert_eq!(small.verdict(send), Matters);
    }

    #[test]
    fn the_rate_decides_how_much_is_enough() {
        // The size that UHD requests: 125 ms at 50 MS/s.
        assert_eq!(machine("25000000\n").verdict(receive), Good);
        let at = |bytes: &str, rate_hz| {
            let focus = Focus { rate_hz: Some(rate_hz), ..Focus::default() };
            receive(&MachineFiles::of(machine(bytes).view().root(), focus)).remove(0)
        };
        assert_eq!(at("212992\n", 1e6).verdict, Good);
        assert_eq!(at("212992\n", 2e6).verdict, Minor);
        assert_eq!(
            at("212992\n", 2e6).says,
            "a receive socket holds at most 26.6 ms of a 2 MS/s stream"
        );
        let wide = at("25000000\n", 500e6);
        assert_eq!((wide.verdict, &*wide.mend.unwrap().writes[0].text), (Minor, "268435456"));
        assert_eq!(at("1073741824\n", 50e9).verdict, Unknown, "the kernel takes no more");
    }
}
