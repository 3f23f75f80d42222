//! Tests of effects of the machine on the radio, on simulated time.

use super::test_bench::*;
use super::*;

/// A port that has no space for packets of samples.
#[derive(Default)]
struct NoRoom(millstream_link::port::FrameLoan);

impl PortTx for NoRoom {
    fn loan(&mut self) -> &mut millstream_link::port::FrameLoan {
        &mut self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(9000, 64)
    }

    fn send(&mut self, _: &[u8], _: SocketAddrV4) -> std::io::Result<()> {
        Ok(())
    }

    fn send_train(&mut self, _: &[u8], _: usize, _: SocketAddrV4) -> std::io::Result<()> {
        Ok(())
    }

    fn lend(&mut self, _: usize) -> std::io::Result<()> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

/// Device time is modulo 2^64, and a host may set it to any value.
#[test]
fn samples_at_the_end_of_time_are_lost_like_others() {
    let mut bench = Bench::streaming(RATE_HZ);
    // Longer packets than the discarded pieces.
    bench.write(0x1028, 2_000, None);
    let mut keeper = bench.device.keeper;
    keeper.set_now(0, u64::MAX - 1_000);
    bench.device.execute(DeviceCommand::Time(keeper));
    bench.send_by(NoRoom::default());
    let request = bench.request(2, Op::Write, 0x1014, 2, None);
    bench.control(request);
    bench.run(4_000);
    let counters = bench.counters.snapshot();
    assert_eq!((counters.rx_packets, counters.send_errors), (2, 2), "both were lost");
}

/// An overrun that a host's ledger assigns to the device is here the fault of the emulating
/// machine.
#[test]
fn an_overrun_of_a_radio_that_was_not_run_is_its_own() {
    let stream = |capacity_bytes| {
        let mut bench = Bench::new();
        bench.connect();
        bench.open_stream(capacity_bytes);
        bench.write(0x1014, 2, None);
        bench.run(1_000);
        bench
    };
    let overruns = |bench: &Bench| {
        let counters = bench.counters.snapshot();
        (counters.rx_overruns, counters.rx_overruns_own)
    };
    // A host that grants no credit: the radio is polled until the buffer of 5 000 samples is full.
    let mut bench = stream(4 * PACKET_BYTES as u64);
    bench.run(20_000);
    assert_eq!(overruns(&bench), (1, 0));
    // A host that does, and a radio whose thread does not run for the time of two buffers.
    let mut bench = stream(1 << 30);
    bench.now_ns = 11_000 * US;
    bench.device.advance(bench.now_ns);
    assert_eq!(overruns(&bench), (1, 1));
}
