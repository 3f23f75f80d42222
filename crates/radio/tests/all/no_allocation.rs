//! Tests that a receive stream allocates nothing in the steady state.

use crate::common::{PATIENCE, device};
use millstream_radio::{Complex32, RxArgs};
use millstream_testkit::allocations;

#[test]
fn receiving_allocates_nothing_and_reports_once_per_period() {
    let (_radio, device) = device(4e6);
    let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
    stream.start_finite(2_000_000, None).unwrap();
    let mut buffer = vec![Complex32::default(); 4096];
    stream.recv(&mut buffer, PATIENCE).unwrap();
    let before = allocations();
    while stream.is_running() {
        stream.recv(&mut buffer, PATIENCE).unwrap();
    }
    assert_eq!(allocations(), before);
    assert_eq!(stream.ledger().delivered, 2_000_000);
    // 16 reports per window of credit, at most one per packet, and a few after silences.
    let counters = stream.counters();
    println!("{counters:?}");
    let (packet_bytes, period_bytes) =
        (8016, stream.members()[0].credit_window_bytes().div_ceil(16));
    let packets_per_report = period_bytes.div_ceil(packet_bytes);
    let due = counters.packets / packets_per_report;
    assert!((due..due + 20).contains(&counters.reports), "{due} due, {}", counters.reports);
}
