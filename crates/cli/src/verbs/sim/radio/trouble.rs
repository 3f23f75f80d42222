//! Troubles of the program that emulates a radio, in words. A host cannot see them: it sees zeros,
//! or overruns of the device.

use millstream_emulator::CounterSnapshot;

/// A kind of trouble, and its present description.
pub type Trouble = (&'static str, String);

const DEAF: &str = "could not be read {n} times, so the radio missed packets: check that its \
     interface is still there and up (`millstream host net show`)";
const STARVED: &str = "{n} samples were sent as zeros, because this machine did not make or read \
     the antenna's signal in time; the host is not the cause; ";
const OWN: &str = "overruns are the emulated radio's own: this machine did not run it in time, and \
     hosts count them as device_overrun; ";
const HELP: &str = "lower the rate or --time-scale, or give the radio CPUs that no other program \
     uses (`taskset`)";
const SKIPPED: &str = "{n} samples of a loopback were not heard, because this program had been \
     stopped meanwhile";
const UNWRITTEN: &str = "{n} samples that were transmitted are missing in --tx-out: the disk is \
     too slow, or full";
const COERCED: &str = "hosts asked {n} times for a rate outside an E320's 0.22 to 61.44 MS/s, and \
     got the nearest: give --any-rate to allow any rate";

/// Every kind with a non-zero count.
pub fn of(counters: &CounterSnapshot) -> Vec<Trouble> {
    let own = format!("{{n}} of {} {OWN}{HELP}", counters.rx_overruns);
    let deaf = |port| format!("{port} {DEAF}");
    let all = [
        ("the CHDR port", counters.chdr_receive_errors, deaf("the CHDR port")),
        ("the discovery port", counters.discovery_receive_errors, deaf("the discovery port")),
        ("the port for echoes", counters.echo_receive_errors, deaf("the port for echoes")),
        ("starved antenna", counters.rx_starved_samples, format!("{STARVED}{HELP}")),
        ("own overruns", counters.rx_overruns_own, own),
        ("skipped loopback", counters.loopback_skipped_samples, SKIPPED.to_owned()),
        ("transmit file", counters.tx_out_lost_samples, UNWRITTEN.to_owned()),
        ("rates", counters.rate_coercions, COERCED.to_owned()),
    ];
    let all = all.into_iter().filter(|(_, count, _)| *count > 0);
    all.map(|(kind, count, text)| (kind, text.replace("{n}", &count.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_radio_that_works_has_no_trouble_and_each_kind_is_named_with_its_count() {
        let mut counters = CounterSnapshot::default();
        (counters.rx_packets, counters.rx_overruns) = (7, 3);
        assert_eq!(of(&counters), []);
        counters.chdr_receive_errors = 5;
        counters.rx_starved_samples = 6_590_788;
        counters.rx_overruns_own = 2;
        let found = of(&counters);
        let said = |part: &str| found.iter().any(|(_, text)| text.starts_with(part));
        assert!(said("the CHDR port could not be read 5 times"), "{found:?}");
        assert!(said("6590788 samples were sent as zeros"), "{found:?}");
        assert!(said("2 of 3 overruns are the emulated radio's own"), "{found:?}");
        assert_eq!(found.len(), 3);
    }
}
