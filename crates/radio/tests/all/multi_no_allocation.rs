//! Tests that a group allocates nothing in the steady state.

use crate::common::{PATIENCE, device};
use millstream_radio::{Complex32, RxArgs};
use millstream_testkit::allocations;

#[test]
fn receiving_two_channels_allocates_nothing() {
    let (_radio, device) = device(4e6);
    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    group.start_finite(2_000_000, None).unwrap();
    let (mut first, mut second) =
        (vec![Complex32::default(); 4096], vec![Complex32::default(); 4096]);
    let mut receive = || group.recv_all(&mut [&mut first, &mut second], PATIENCE).unwrap();
    receive();
    let before = allocations();
    while !receive().end_of_burst {}
    assert_eq!(allocations(), before);
    assert!(group.ledgers().all(|ledger| ledger.delivered == 2_000_000));
}
