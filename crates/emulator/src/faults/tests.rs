//! Tests of the counts of a radio's faults, and of their times.

use super::machine::FaultKind;
use super::*;

fn faults() -> (Faults, Arc<DeviceFaults>) {
    let machine = Arc::new(DeviceFaults::new(1e6, 1.0));
    (Faults::new(Arc::clone(&machine), millstream_wire::chdr::Width::W64), machine)
}

#[test]
fn a_fault_has_a_number_and_a_state_until_it_is_removed() {
    let (faults, _) = faults();
    let lose = faults.add(" lose to_host data count=1 ").unwrap();
    let stall = faults.add("stall ms=1 at_tick=5").unwrap();
    assert_ne!(lose, stall);
    let list = faults.list();
    assert_eq!((list[0].id, list[0].fault.as_str()), (lose, "lose to_host data count=1"));
    assert!(list.iter().all(|state| !state.done && state.hit == 0));
    assert_eq!(faults.remove(stall).unwrap().id, stall);
    assert_eq!((faults.remove(stall), faults.clear()), (None, 1));
    assert!(faults.list().is_empty());
}

#[test]
fn an_event_strikes_when_its_time_has_come_and_once() {
    let (faults, machine) = faults();
    faults.add("stall ms=2 at_tick=500").unwrap();
    let withdrawn = faults.add("reboot at_tick=400").unwrap();
    faults.add("rpc_down ms=1").unwrap();
    let instant_of = |tick| tick * 10;
    let kind = |now| machine.next(now, instant_of).map(|event| event.kind);
    assert_eq!(kind(0), Ok(FaultKind::RpcDown { ns: 1_000_000 }), "at once");
    assert_eq!(kind(0), Err(Some(4_000)));
    faults.remove(withdrawn);
    assert_eq!(kind(4_999), Err(Some(5_000)));
    let event = machine.next(5_000, instant_of).unwrap();
    event.struck.store(true, Ordering::Relaxed);
    assert_eq!(kind(6_000), Err(None));
    assert_eq!((faults.list()[0].hit, faults.list()[0].done), (1, true));
}

#[test]
fn a_reboot_is_silence_and_a_time_that_starts_at_zero() {
    let (_, machine) = faults();
    let keeper = machine.reboot(1_000_000, 500_000);
    assert!(machine.is_silent(1_499_999) && !machine.is_silent(1_500_000));
    assert!(machine.is_rpc_down(1_499_999) && !machine.is_rpc_down(1_500_000));
    assert_eq!((keeper.now(1_200_000), keeper.now(2_500_000)), (0, 1_000));
    assert_eq!(machine.take_management(), [Management::Reboot(keeper)]);
    assert_eq!(machine.take_management(), []);
}
