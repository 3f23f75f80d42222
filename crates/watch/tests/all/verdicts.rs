//! One loss of each kind, and what is said of it.

use millstream_watch::{
    CaptureAccount, Certainty, DroppedPacket, Hop, HopReading, InterfaceReading, Judge, JudgedLoss,
    LossKind, LossSource, SocketReading, StackReading, ThreadReading, ThreadWait,
};
use millstream_wire::chdr::Width;
use millstream_wire::ctrl::{CtrlRepr, DataWords, Op, Protocol};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{PACKETS_UNLIMITED, SequenceGap, StatusRepr, StreamCondition};

use crate::packets::{HOST, RADIO, SAMPLES, TICKS, data, packet, status, take};

const MS: u64 = 1_000_000;
const START: u64 = 1_000_000 * MS;

/// A reading of a host whose program's one thread reads the socket.
fn reading(ms: u64, change: impl Fn(&mut HopReading)) -> HopReading {
    let mut reading = HopReading {
        at_ns: START + ms * MS,
        interfaces: vec![InterfaceReading {
            name: "eth0".into(),
            ring_full: Some(5),
            damaged: Some(0),
            receive_dropped: Some(0),
            send_dropped: Some(0),
            queue_dropped: Some(3),
            ring_entries: Some((512, 4096)),
        }],
        backlog_dropped: Some(9),
        stack: StackReading { send_dropped: Some(0), ..StackReading::default() },
        sockets: vec![SocketReading {
            local: HOST,
            remote: None,
            inode: 77,
            pid: Some(4700),
            queued_bytes: 0,
            buffer_bytes: 425_984,
            send_queued_bytes: 0,
            dropped: 2,
        }],
        threads: vec![ThreadReading {
            pid: 4700,
            tid: 4711,
            name: "rx_samples".into(),
            cpu: 1,
            state: 'S',
            cpu_ns: 0,
            run_delay_ns: Some(0),
            major_faults: 0,
            migrations: None,
            reads: Some(77),
        }],
        ..HopReading::default()
    };
    change(&mut reading);
    reading
}

/// A stream with a packet each millisecond, and a reading each 20 ms. `change` changes a reading by
/// its time in milliseconds.
struct Run {
    account: CaptureAccount,
    judge: Judge,
}

impl Run {
    fn receive(is_lost: impl Fn(u64) -> bool, change: impl Fn(u64, &mut HopReading)) -> Self {
        let mut account = CaptureAccount::new();
        let report = StatusRepr {
            capacity_bytes: 1 << 20,
            capacity_packets: PACKETS_UNLIMITED,
            ..StatusRepr::default()
        };
        take(&mut account, START, &packet(HOST, RADIO, &status(Width::W64, report)));
        for n in (0..400).filter(|n| !is_lost(*n)) {
            let bytes = packet(RADIO, HOST, &sample_packet(n));
            take(&mut account, START + n * MS, &bytes);
        }
        Self::with_readings(account, change)
    }

    fn send(is_lost: impl Fn(u64) -> bool, change: impl Fn(u64, &mut HopReading)) -> Self {
        let mut account = CaptureAccount::new();
        for n in (0..400).filter(|n| !is_lost(*n)) {
            take(&mut account, START + n * MS, &packet(HOST, RADIO, &sample_packet(n)));
        }
        Self::with_readings(account, change)
    }

    fn with_readings(account: CaptureAccount, change: impl Fn(u64, &mut HopReading)) -> Self {
        let mut judge = Judge::new();
        for ms in (0..4000).step_by(20) {
            judge.reading(reading(ms, |reading| change(ms, reading)));
        }
        Self { account, judge }
    }

    fn message(&mut self, ms: u64, event: Event, ticks: u64) {
        let repr = CtrlRepr {
            op: Op::Write,
            address: event.address(0),
            timestamp: Some(ticks),
            data: DataWords::new(&[event.code()]).unwrap(),
            ..CtrlRepr::default()
        };
        let mut bytes = vec![0; Protocol::V1.packet_len(&repr, Width::W64)];
        Protocol::V1.emit(&repr, Width::W64, &mut bytes).unwrap();
        take(&mut self.account, START + ms * MS, &packet(RADIO, HOST, &bytes));
    }

    fn losses(&mut self) -> Vec<JudgedLoss> {
        let mut losses = self.judge.settle(&self.account, START + 4000 * MS);
        losses.extend(self.judge.finish(&self.account));
        losses
    }

    fn only(&mut self) -> JudgedLoss {
        let losses = self.losses();
        let [loss] = &losses[..] else { panic!("{losses:#?}") };
        loss.clone()
    }
}

fn sample_packet(n: u64) -> Vec<u8> {
    data(Width::W64, n as u16, n * SAMPLES * TICKS)
}

fn dropped(n: u64, reason: &str, is_sent: bool) -> DroppedPacket {
    let (source, destination) = if is_sent { (HOST, RADIO) } else { (RADIO, HOST) };
    DroppedPacket {
        at_ns: START + n * MS,
        reason: reason.into(),
        namespace: None,
        segments: 1,
        source,
        destination,
        header: sample_packet(n).first_chunk().copied(),
    }
}

#[track_caller]
fn is(loss: &JudgedLoss, hop: Hop, certainty: Certainty, packets: u64) {
    let verdict = &loss.verdict;
    let found = (verdict.hop, verdict.certainty, loss.packets);
    assert_eq!(found, (hop, certainty, packets), "{loss:#?}");
    if certainty != Certainty::Between {
        assert_eq!(verdict.hop, verdict.until);
    }
}

#[track_caller]
fn says(loss: &JudgedLoss, words: &[&str]) {
    let text = [&loss.verdict.evidence[..], &loss.verdict.remedies].concat().join("\n");
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

#[test]
fn a_thread_that_waited_is_why_its_socket_had_no_room() {
    let mut run = Run::receive(
        |_| false,
        |ms, reading| {
            reading.sockets[0].dropped += if ms >= 200 { 12 } else { 0 };
        },
    );
    run.judge.wait(ThreadWait {
        tid: 4711,
        from_ns: START + 170 * MS,
        until_ns: START + 188 * MS,
        cpu: 1,
        instead: Some((9, "kworker/1:1".into())),
    });
    let loss = run.only();
    is(&loss, Hop::Socket, Certainty::Sure, 12);
    assert_eq!((loss.source, loss.samples), (LossSource::Counter, Some(12 * SAMPLES)));
    says(
        &loss,
        &[
            "(4711) was ready and waited 18.0 ms for CPU 1, which ran kworker/1:1",
            "425984 bytes: about 14",
            "taskset -cp CPU 4711",
            "net.core.rmem_max=1048576",
        ],
    );
}

#[test]
fn what_the_kernel_names_is_counted_once() {
    let mut run = Run::receive(
        |_| false,
        |ms, reading| {
            reading.sockets[0].dropped += if ms >= 200 { 12 } else { 0 };
        },
    );
    for n in 180..189 {
        run.judge.dropped(dropped(n, "SOCKET_RCVBUFF", false));
    }
    let losses = run.losses();
    let [named, counted] = &losses[..] else { panic!("{losses:#?}") };
    is(named, Hop::Socket, Certainty::Sure, 9);
    is(counted, Hop::Socket, Certainty::Sure, 3);
    assert_eq!((named.source, counted.source), (LossSource::Dropped, LossSource::Counter));
}

#[test]
fn one_counter_that_grew_by_what_is_missing_is_the_hop() {
    let is_lost = |n| (100..107).contains(&n);
    let mut run = Run::receive(is_lost, |ms, reading| {
        reading.interfaces[0].ring_full = Some(if ms > 103 { 12 } else { 5 });
    });
    let loss = run.only();
    is(&loss, Hop::Card, Certainty::Sure, 7);
    says(&loss, &["The ring of eth0 had no room for 7 packets", "ethtool -G eth0 rx 4096"]);
    // It grew by more: others' packets are among them.
    let mut run = Run::receive(is_lost, |ms, reading| {
        reading.backlog_dropped = Some(if ms > 103 { 1000 } else { 9 });
    });
    is(&run.only(), Hop::Backlog, Certainty::Perhaps, 7);
    // It grows without losses of this flow, too.
    let mut run = Run::receive(is_lost, |ms, reading| {
        let at_loss = if ms > 103 { 7 } else { 0 };
        reading.backlog_dropped = Some(9 + at_loss + if ms > 40 { 7 } else { 0 });
    });
    let loss = run.only();
    is(&loss, Hop::Backlog, Certainty::Perhaps, 7);
    says(&loss, &["which it does without losses of these flows, too"]);
}

#[test]
fn packets_that_no_counter_of_this_host_counts_were_lost_outside() {
    let is_lost = |n| n == 100;
    let mut run = Run::receive(is_lost, |_, _| ());
    is(&run.only(), Hop::Wire, Certainty::Sure, 1);
    let mut run = Run::receive(is_lost, |_, reading| reading.interfaces[0].ring_full = None);
    let loss = run.only();
    is(&loss, Hop::Wire, Certainty::Between, 1);
    assert_eq!(loss.verdict.until, Hop::Card);
    let mut run = Run::receive(is_lost, |ms, reading| {
        reading.capture_missed = if ms > 100 { 4 } else { 0 };
    });
    let loss = run.only();
    assert_eq!(loss.kind, LossKind::NotCaptured);
    says(&loss, &["The capture itself missed 4 packets", "Perhaps nothing was lost"]);
    // The card never saw it whole.
    let mut run = Run::receive(is_lost, |ms, reading| {
        reading.interfaces[0].damaged = Some(u64::from(ms > 100));
    });
    let loss = run.only();
    is(&loss, Hop::Wire, Certainty::Sure, 1);
    says(&loss, &["cable"]);
}

#[test]
fn without_readings_a_loss_lies_between_hops() {
    let mut run = Run::receive(|n| n == 100, |_, _| ());
    run.judge = Judge::new();
    let loss = run.only();
    is(&loss, Hop::Wire, Certainty::Between, 1);
    assert_eq!(loss.verdict.until, Hop::Backlog);
}

#[test]
fn a_full_queue_on_the_way_out_is_found_by_name_and_by_count() {
    let is_lost = |n| (100..103).contains(&n);
    let mut run = Run::send(is_lost, |_, _| ());
    (100..103).for_each(|n| run.judge.dropped(dropped(n, "QDISC_OVERLIMIT", true)));
    is(&run.only(), Hop::SendQueue, Certainty::Sure, 3);
    let mut run = Run::send(is_lost, |ms, reading| {
        let by = if ms > 101 { 3 } else { 0 };
        reading.interfaces[0].queue_dropped = Some(3 + by);
        reading.stack.send_dropped = Some(2 * by);
    });
    is(&run.only(), Hop::SendQueue, Certainty::Sure, 3);
    let loss = Run::send(is_lost, |_, _| ()).only();
    is(&loss, Hop::Stack, Certainty::Between, 3);
    assert_eq!(loss.verdict.until, Hop::SendQueue);
    // Nothing follows that would show a gap.
    let mut run = Run::send(|n| n >= 390, |_, _| ());
    (390..400).for_each(|n| run.judge.dropped(dropped(n, "QDISC_OVERLIMIT", true)));
    let loss = run.only();
    is(&loss, Hop::SendQueue, Certainty::Sure, 10);
    assert_eq!(loss.source, LossSource::Dropped);
}

#[test]
fn what_the_radio_misses_and_left_here_lies_behind_this_host() {
    let mut run = Run::send(|_| false, |_, _| ());
    let gap = SequenceGap {
        kind: millstream_wire::chdr::PacketType::TimedData,
        expected: 50,
        actual: 54,
    };
    let report = StatusRepr {
        status: StreamCondition::SequenceError,
        error_info: gap.to_info(),
        ..StatusRepr::default()
    };
    let bytes = packet(RADIO, HOST, &status(Width::W64, report));
    take(&mut run.account, START + 60 * MS, &bytes);
    let loss = run.only();
    is(&loss, Hop::Radio, Certainty::Between, 4);
    assert_eq!(loss.verdict.until, Hop::Wire);
}

#[test]
fn a_gap_that_shows_late_has_been_told() {
    // The flow pauses: nothing shows the gap until long behind it.
    let mut run = Run::with_readings(CaptureAccount::new(), |_, _| ());
    for n in 100..104 {
        run.judge.dropped(dropped(n, "CPU_BACKLOG", false));
    }
    let mut account = CaptureAccount::new();
    for n in 0..100 {
        take(&mut account, START + n * MS, &packet(RADIO, HOST, &sample_packet(n)));
    }
    let first = run.judge.settle(&account, START + 900 * MS);
    let [loss] = &first[..] else { panic!("{first:#?}") };
    is(loss, Hop::Backlog, Certainty::Sure, 4);
    for n in 104..200 {
        take(&mut account, START + (900 + n) * MS, &packet(RADIO, HOST, &sample_packet(n)));
    }
    assert_eq!(account.flows()[0].lost_before(), 4);
    assert_eq!(run.judge.settle(&account, START + 4000 * MS), []);
    assert_eq!(run.judge.finish(&account), []);
}

#[test]
fn a_train_counts_as_many_as_it_has() {
    let mut run = Run::receive(|n| (100..103).contains(&n), |_, _| ());
    run.judge.dropped(DroppedPacket { segments: 3, ..dropped(100, "CPU_BACKLOG", false) });
    is(&run.only(), Hop::Backlog, Certainty::Sure, 3);
}

#[test]
fn a_gap_that_two_hops_have_made_is_two_losses() {
    let mut run = Run::receive(|n| (100..110).contains(&n), |_, _| ());
    (100..104).for_each(|n| run.judge.dropped(dropped(n, "CPU_BACKLOG", false)));
    let losses = run.losses();
    let [outside, backlog] = &losses[..] else { panic!("{losses:#?}") };
    let (backlog, outside) = match backlog.verdict.hop {
        Hop::Backlog => (backlog, outside),
        _ => (outside, backlog),
    };
    is(backlog, Hop::Backlog, Certainty::Sure, 4);
    is(outside, Hop::Wire, Certainty::Sure, 6);
}

/// A stream whose radio stops to send behind packet 99, at 99 ms, and reports an overrun some
/// milliseconds later. The next report to it comes `report_ms` behind packet 99. It goes on with
/// packets that it has kept, and then leaves out the time of 50 packets.
struct Overrun {
    /// The packets for which there is room, unless reports ended so many milliseconds earlier.
    room: u64,
    mute_ms: u64,
    message_ms: u64,
    report_ms: u64,
    kept: u64,
}

impl Overrun {
    fn run(self, change: impl Fn(u64, &mut HopReading)) -> Run {
        let length = sample_packet(0).len() as u64;
        let report = |packets: u64| {
            let repr = StatusRepr {
                capacity_bytes: (8 + 2 * self.mute_ms) * length,
                capacity_packets: PACKETS_UNLIMITED,
                count_packets: packets,
                count_bytes: packets * length,
                ..StatusRepr::default()
            };
            packet(HOST, RADIO, &status(Width::W64, repr))
        };
        let mut run = Run { account: CaptureAccount::new(), judge: Judge::new() };
        take(&mut run.account, START, &report(0));
        for n in 0..100 {
            if n > 8 && n < 93 + self.room - self.mute_ms {
                take(&mut run.account, START + n * MS, &report(n));
            }
            let bytes = packet(RADIO, HOST, &sample_packet(n));
            take(&mut run.account, START + n * MS + 1000, &bytes);
        }
        let last = 100 + self.kept;
        run.message(99 + self.message_ms, Event::RxOverrun, last * SAMPLES * TICKS);
        take(&mut run.account, START + (99 + self.report_ms) * MS, &report(100));
        for n in 100..last {
            let bytes = packet(RADIO, HOST, &sample_packet(n));
            take(&mut run.account, START + (99 + self.report_ms) * MS + n, &bytes);
        }
        for n in last..last + 100 {
            let ticks = (n + 50) * SAMPLES * TICKS;
            let bytes = packet(RADIO, HOST, &data(Width::W64, n as u16, ticks));
            take(&mut run.account, START + (n + 50) * MS, &bytes);
        }
        Run::with_readings(run.account, change)
    }
}

#[test]
fn a_stopped_program_uses_up_the_radios_credit() {
    for kept in [0, 10] {
        let mut run = Overrun { room: 0, mute_ms: 0, message_ms: 20, report_ms: 45, kept }.run(
            |ms, reading| {
                if (60..140).contains(&ms) {
                    reading.threads[0].state = 'T';
                    reading.sockets[0].queued_bytes = 400_000;
                }
            },
        );
        let loss = run.only();
        is(&loss, Hop::Program, Certainty::Sure, 0);
        assert_eq!((loss.kind, loss.samples), (LossKind::NotSent, Some(50 * SAMPLES)));
        says(&loss, &["used up for 20.0 ms", "was stopped", "400000 of 425984", "-CONT 4700"]);
        // Nothing else shows that the program was late.
        let overrun = || Overrun { room: 0, mute_ms: 0, message_ms: 20, report_ms: 45, kept };
        let mut run = overrun().run(|_, reading| reading.sockets[0].queued_bytes = 50_000);
        is(&run.only(), Hop::Program, Certainty::Perhaps, 0);
        // It had read all.
        is(&overrun().run(|_, _| ()).only(), Hop::Radio, Certainty::Between, 0);
    }
}

#[test]
fn a_radio_that_stops_with_credit_or_for_a_round_trip_has_itself_failed() {
    let mut run =
        Overrun { room: 0, mute_ms: 0, message_ms: 1, report_ms: 2, kept: 0 }.run(|_, _| ());
    is(&run.only(), Hop::Radio, Certainty::Perhaps, 0);
    // Or the reports did not reach it.
    let mut run =
        Overrun { room: 6, mute_ms: 0, message_ms: 20, report_ms: 45, kept: 0 }.run(|_, _| ());
    is(&run.only(), Hop::Radio, Certainty::Between, 0);
}

#[test]
fn a_program_that_answers_no_packets_is_late_also_with_room_left() {
    let overrun = Overrun { room: 0, mute_ms: 15, message_ms: 20, report_ms: 45, kept: 0 };
    let loss = overrun.run(|_, _| ()).only();
    is(&loss, Hop::Program, Certainty::Perhaps, 0);
    says(&loss, &["no report for 42.0 ms"]);
}

#[test]
fn packets_of_another_namespace_or_of_no_stream_are_no_loss() {
    let mut run = Run::receive(|_| false, |_, reading| reading.namespace = Some(1));
    for n in 100..110 {
        let elsewhere = dropped(n, "SOCKET_RCVBUFF", false);
        run.judge.dropped(DroppedPacket { namespace: Some(2), ..elsewhere.clone() });
        let stranger = std::net::SocketAddrV4::new(*HOST.ip(), 9);
        run.judge.dropped(DroppedPacket { destination: stranger, ..elsewhere });
    }
    assert_eq!(run.losses(), []);
}

#[test]
fn a_program_that_closes_its_stream_loses_nothing() {
    let closes = |packets: std::ops::Range<u64>| {
        let mut run = Run::receive(|_| false, |_, _| ());
        packets.for_each(|n| run.judge.dropped(dropped(n, "NO_SOCKET", false)));
        run
    };
    assert_eq!(closes(398..400).losses(), []);
    // It has opened it again.
    is(&closes(200..210).only(), Hop::Program, Certainty::Sure, 10);
}

#[test]
fn messages_of_a_radio_need_no_flow() {
    let mut run = Run::with_readings(CaptureAccount::new(), |_, _| ());
    run.message(100, Event::RxLateCommand, 1234);
    run.message(200, Event::RxOverrun, 1234);
    let losses = run.losses();
    let [late, overrun] = &losses[..] else { panic!("{losses:#?}") };
    is(late, Hop::Program, Certainty::Sure, 0);
    is(overrun, Hop::Radio, Certainty::Perhaps, 0);
    assert_eq!((late.kind, overrun.kind), (LossKind::LateCommand, LossKind::Overrun));
}

#[test]
fn an_underflow_is_the_programs_unless_packets_were_lost_before_it() {
    let mut run = Run::send(|_| false, |_, _| ());
    run.message(200, Event::TxUnderrun, 1234);
    is(&run.only(), Hop::Program, Certainty::Perhaps, 0);
    let mut run = Run::send(
        |_| false,
        |ms, reading| {
            reading.threads[0].run_delay_ns = Some(if ms > 190 { 30 * MS } else { 0 });
        },
    );
    run.message(200, Event::TxUnderrun, 1234);
    let loss = run.only();
    is(&loss, Hop::Program, Certainty::Sure, 0);
    says(&loss, &["waited 30.0 ms of", "taskset -cp CPU 4711"]);
    let mut run = Run::send(|n| n == 190, |_, _| ());
    run.message(200, Event::TxUnderrun, 1234);
    let losses = run.losses();
    let [_, underflow] = &losses[..] else { panic!("{losses:#?}") };
    is(underflow, Hop::Stack, Certainty::Between, 0);
}
