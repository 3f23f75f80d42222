//! Troubles of the program that emulates a radio, in words. A host cannot see them: it sees zeros,
//! or overruns of the device.

use millstream_emulator::CounterSnapshot;

/// A kind of trouble, and its present description.
pub type Trouble = (&'static str, String);

/// Every kind with a non-zero count.
pub fn of(counters: &CounterSnapshot) -> Vec<Trouble> {
    let deaf = [
        ("the CHDR port", counters.chdr_receive_errors),
        ("the discovery port", counters.discovery_receive_errors),
        ("the port for echoes", counters.echo_receive_errors),
    ];
    let deaf = deaf.into_iter().map(|(port, count)| {
        let text = format!(
            "{port} could not be read {count} times, so the radio missed packets: check that its \
             interface is still there and up (`millstream host net show`)"
        );
        (port, count, text)
    });
    let &CounterSnapshot { rx_starved_samples: starved, rx_overruns: overruns, .. } = counters;
    let own = counters.rx_overruns_own;
    let skipped = counters.loopback_skipped_samples;
    let unwritten = counters.tx_out_lost_samples;
    let coerced = counters.rate_coercions;
    const HELP: &str = "lower the rate or --time-scale, or give the radio CPUs that no other \
         program uses (`taskset`)";
    let others = [
        (
            "starved antenna",
            starved,
            format!(
                "{starved} samples were sent as zeros, because this machine did not make or read \
                 the antenna's signal in time; the host is not the cause; {HELP}"
            ),
        ),
        (
            "own overruns",
            own,
            format!(
                "{own} of {overruns} overruns are the emulated radio's own: this machine did not \
                 run it in time, and hosts count them as device_overrun; {HELP}"
            ),
        ),
        (
            "skipped loopback",
            skipped,
            format!(
                "{skipped} samples of a loopback were not heard, because this program had been \
                 stopped meanwhile"
            ),
        ),
        (
            "transmit file",
            unwritten,
            format!(
                "{unwritten} samples that were transmitted are missing in --tx-out: the disk is \
                 too slow, or full"
            ),
        ),
        (
            "rates",
            coerced,
            format!(
                "hosts asked {coerced} times for a rate outside an E320's 0.22 to 61.44 MS/s, and \
                 got the nearest: give --any-rate to allow any rate"
            ),
        ),
    ];
    let all = deaf.chain(others).filter(|(_, count, _)| *count > 0);
    all.map(|(kind, _, text)| (kind, text)).collect()
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
