//! Tests of accesses by packets and a clock of their own.

use std::cell::Cell;
use std::sync::LazyLock;

use millstream_link::port::Datagram;
use millstream_wire::{Epid, Width, chdr};

use super::*;
use crate::Clock;
use crate::control::ControlReceiver;
use crate::rpc::{ClaimLoss, RpcError};
use crate::testing::{FakeSocket, fake_pair};

thread_local! {
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn now() -> Instant {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGIN + PASSED.get()
}

fn sleep(time: Duration) {
    PASSED.set(PASSED.get() + time);
}

/// A client whose time passes where it waits, and the device's socket.
struct Bench {
    control: Control,
    receiver: ControlReceiver,
    device: FakeSocket,
}

impl Bench {
    fn new() -> Self {
        let (port, device) = fake_pair();
        let address = device.address();
        let (control, receiver) =
            Control::without_thread(port.tx, address, (Width::W64, Protocol::V1), Epid(1), Epid(2));
        Self { control: control.on(Clock::simulated(now, sleep)), receiver, device }
    }

    fn begin(&self, access: RegisterAccess) -> AwaitedAccess {
        self.control.begin(access).unwrap()
    }

    /// Returns the next request that was sent.
    fn request(&mut self) -> CtrlRepr {
        let (bytes, _) = self.device.receive();
        CtrlRepr::parse(&chdr::Packet::parse(&bytes, Width::W64).unwrap()).unwrap()
    }

    fn answer(&mut self, request: &CtrlRepr, word: u32) {
        let answer = request.ack(0, ControlStatus::Ok, DataWords::one(word));
        let mut bytes = [0; 64];
        let length = answer.emit(Width::W64, &mut bytes).unwrap();
        self.receiver.hear(&Datagram { payload: &bytes[..length], source: self.device.address() });
    }
}

#[test]
fn two_accesses_of_one_register_each_get_their_own_answer() {
    let mut bench = Bench::new();
    let read = RegisterAccess::read(3, 0x10);
    let (mut first, mut second) = (bench.begin(read), bench.begin(read));
    let requests = [bench.request(), bench.request()];
    bench.answer(&requests[1], 1);
    assert!(bench.control.poll(&mut first).is_none());
    assert_eq!(bench.control.poll(&mut second).unwrap().unwrap(), 1);
    bench.answer(&requests[0], 0);
    assert_eq!(bench.control.poll(&mut first).unwrap().unwrap(), 0);
    // Nobody awaits it a second time.
    drop((first, second));
    bench.answer(&requests[0], 0);
    assert_eq!(bench.control.counters().stray_acks.load(Ordering::Relaxed), 1);
}

#[test]
fn an_access_is_repeated_after_its_time_and_a_wait_ends_before_that() {
    let mut bench = Bench::new();
    let begin = now();
    let mut access = bench.begin(RegisterAccess::read(3, 0x10));
    bench.control.wait(&access, Some(begin + Duration::from_millis(30)));
    assert_eq!(now() - begin, Duration::from_millis(30));
    let error = loop {
        match bench.control.poll(&mut access) {
            None => bench.control.wait(&access, None),
            Some(outcome) => break outcome.unwrap_err(),
        }
    };
    assert_eq!(now() - begin, TRIES * ACK_TIMEOUT);
    assert!(matches!(error, RadioError::Silent { attempts: TRIES, wait_ms: 200, .. }), "{error}");
    assert!(error.to_string().contains("no firewall drops UDP"), "{error}");
    let numbers: Vec<u8> = (0..TRIES).map(|_| bench.request().ctrl_seq).collect();
    assert_eq!((numbers, bench.device.is_quiet()), (vec![0, 1, 2, 3, 4], true));

    // The answer to an earlier attempt counts.
    let mut write = bench.begin(RegisterAccess::write(3, 0x10, 7));
    let request = bench.request();
    bench.control.wait(&write, None);
    assert!(bench.control.poll(&mut write).is_none());
    bench.answer(&request, 0);
    assert!(bench.control.poll(&mut write).unwrap().is_ok());
    // A write with an effect of its own is sent once.
    let mut once = bench.begin(RegisterAccess::write_once(3, 0x10, 7));
    bench.control.wait(&once, None);
    let error = bench.control.poll(&mut once).unwrap().unwrap_err();
    assert!(matches!(error, RadioError::Silent { attempts: 1, .. }), "{error}");
}

#[test]
fn a_device_that_has_forgotten_this_host_is_no_matter_of_a_firewall() {
    let bench = Bench::new();
    let loss = ClaimLoss::default();
    bench.control.set_claim(loss.clone());
    loss.note(&RpcError::Connect {
        address: bench.device.address(),
        source: std::io::ErrorKind::BrokenPipe.into(),
    });
    let mut access = bench.begin(RegisterAccess::write_once(3, 0x10, 7));
    bench.control.wait(&access, None);
    let error = bench.control.poll(&mut access).unwrap().unwrap_err().to_string();
    assert!(error.contains("its claim was lost before") && !error.contains("firewall"), "{error}");
}

#[test]
fn the_number_of_an_access_that_still_waits_is_given_to_no_other() {
    let mut bench = Bench::new();
    let read = RegisterAccess::read(3, 0x10);
    let mut waiting = bench.begin(read);
    let request = bench.request();
    for _ in 0..2 * Protocol::V1.sequence_modulus() {
        drop(bench.begin(read));
        assert_ne!(bench.request().ctrl_seq, request.ctrl_seq);
    }
    bench.answer(&request, 9);
    assert_eq!(bench.control.poll(&mut waiting).unwrap().unwrap(), 9);
}
