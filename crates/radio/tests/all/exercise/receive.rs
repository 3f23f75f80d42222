//! Histories of a receive stream: the device's packets, the network's faults, and the caller's
//! actions.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use millstream_link::port::Datagram;
use millstream_radio::channel::RxChannel;
use millstream_radio::control::{Control, ControlReceiver};
use millstream_radio::stream::StreamPath;
use millstream_radio::topology::Endpoint;
use millstream_radio::{Clock, RxArgs, RxError, RxEvent, RxMember, RxStreamer, StreamRate};
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Op, Protocol};
use millstream_wire::mgmt::{MgmtRepr, Node, NodeInfo, Op as Hop};
use millstream_wire::regs::radio::{SAMPLE_WIDTH, TIME_HI, TIME_LO, async_msg::Event};
use millstream_wire::regs::sep::{OSTRM_CTRL_STATUS, STATUS_FC_ENABLED};
use millstream_wire::stream::{CommandOp, CommandRepr};
use millstream_wire::{Epid, Width};

use super::ports::{Air, DEVICE, Device, now, pass, port};

const SPP: u64 = 10;
const HOST: Epid = Epid(1);
const STREAM: Epid = Epid(9);
const SEP: Epid = Epid(2);
const PORT: u16 = 2;
const TICKS_HZ: f64 = 1e9;

/// Ticks of a sample, by bits of a history's first byte: of a radio alone, and behind a DDC.
const TICKS_PER_SAMPLE: [u32; 4] = [1, 1, 3, 16];

/// The device's time.
static TIME: AtomicU64 = AtomicU64::new(0);

/// Registers that answer like a radio's, at once.
#[derive(Default)]
struct Block {
    /// The host's receiver of the answers; taken out while it handles a message.
    host: Option<ControlReceiver>,
    /// The device's messages that the host acknowledged.
    told: u64,
}

impl Device for Block {
    fn hear(&mut self, datagram: &[u8]) {
        let packet = Packet::parse(datagram, Width::W64).expect("the host writes packets");
        let request = CtrlRepr::parse(&packet).expect("the host writes requests");
        if request.is_ack {
            self.told += 1;
            return;
        }
        let time = TIME.load(Ordering::Relaxed);
        let word = match request.address {
            SAMPLE_WIDTH => 32 << 16 | 1,
            TIME_HI => (time >> 32) as u32,
            TIME_LO => time as u32,
            _ => 0,
        };
        let data = if request.op == Op::Read { DataWords::one(word) } else { request.data };
        let mut bytes = [0; 64];
        let answer = request.ack(0, ControlStatus::Ok, data);
        let length = answer.emit(Width::W64, &mut bytes).expect("it is that long");
        let host = self.host.as_mut().expect("it asks nothing while it hears a message");
        host.hear(&Datagram { payload: &bytes[..length], source: DEVICE });
    }
}

/// The one channel of all histories, and its device.
struct Shared {
    channel: RxChannel,
    block: Arc<Mutex<Block>>,
}

fn shared() -> MutexGuard<'static, Shared> {
    static SHARED: OnceLock<Mutex<Shared>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let block = Arc::new(Mutex::new(Block::default()));
        let tx = port(&block, &Air::default()).tx;
        let (control, host) =
            Control::without_thread(tx, DEVICE, (Width::W64, Protocol::V1), HOST, SEP);
        block.lock().unwrap().host = Some(host);
        let channel = RxChannel::new(&Arc::new(control), PORT, 0).expect("it answers");
        Mutex::new(Shared { channel, block })
    });
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device's end of the stream.
#[derive(Default)]
struct Sender {
    air: Air,
    seq: u16,
    ticks: u64,
    ticks_per_sample: u64,
    /// The number of ends that it still sends when polled; then it is silent.
    ends: u32,
}

impl Sender {
    fn data(&self, seq: u16, ticks: u64, samples: u64, eob: bool) -> Vec<u8> {
        let repr = DataRepr {
            dst_epid: STREAM,
            seq,
            timestamp: Some(ticks),
            eob,
            eov: false,
            payload_len: samples as usize * 4,
        };
        let mut bytes = vec![0; repr.packet_len(Width::W64)];
        let header = repr.emit(Width::W64, &mut bytes).expect("it is that long");
        for (index, sample) in (0..).zip(bytes[header..].chunks_exact_mut(4)) {
            let ticks = ticks.wrapping_add(index * self.ticks_per_sample);
            sample.copy_from_slice(&(ticks as u32).to_le_bytes());
        }
        bytes
    }

    fn next(&mut self, samples: u64, eob: bool) -> Vec<u8> {
        let bytes = self.data(self.seq, self.ticks, samples, eob);
        self.skip(1, samples);
        bytes
    }

    fn skip(&mut self, packets: u16, samples: u64) {
        self.seq = self.seq.wrapping_add(packets);
        self.jump(samples.wrapping_mul(self.ticks_per_sample));
    }

    fn jump(&mut self, ticks: u64) {
        self.ticks = self.ticks.wrapping_add(ticks);
        TIME.store(self.ticks, Ordering::Relaxed);
    }

    fn command(&self, op: CommandOp, packets: u64, bytes: u64) {
        let (dst_epid, src_epid) = (STREAM, SEP);
        let packets = packets % (1 << 40);
        let repr = CommandRepr { dst_epid, seq: 0, src_epid, op, op_data: 0, packets, bytes };
        let mut buffer = vec![0; 64];
        let length = repr.emit(Width::W64, &mut buffer).expect("it is that long");
        buffer.truncate(length);
        self.air.put(buffer);
    }
}

impl Device for Sender {
    fn hear(&mut self, datagram: &[u8]) {
        let packet = Packet::parse(datagram, Width::W64).expect("the host writes packets");
        let Ok(mut request) = MgmtRepr::parse(&packet) else { return };
        let mut started = false;
        while request.hops().count() > 1 {
            let answer = |op| match op {
                Hop::InfoReq => Some(Hop::InfoResp(NodeInfo {
                    device_id: 1,
                    instance: 0,
                    node: Node::StreamEndpoint {
                        control: true,
                        data: true,
                        inputs: 1,
                        outputs: 1,
                        reports_errors: false,
                    },
                })),
                Hop::CfgRead { address } => {
                    Some(Hop::CfgReadResp { address, value: STATUS_FC_ENABLED })
                }
                Hop::CfgWrite { address: OSTRM_CTRL_STATUS, .. } => {
                    started = true;
                    None
                }
                _ => None,
            };
            request.execute(answer).expect("the host asks what can be answered");
        }
        let mut bytes = vec![0; 4096];
        let length = request.emit(Width::W64, &mut bytes).expect("it fits");
        bytes.truncate(length);
        self.air.put(bytes);
        if started {
            self.seq = 0;
            self.command(CommandOp::Init, 0, 0);
        }
    }

    fn is_listened_to(&mut self) {
        if let Some(left) = self.ends.checked_sub(1) {
            self.ends = left;
            let last = self.next(1, true);
            self.air.put(last);
        }
    }
}

struct History {
    stream: RxStreamer,
    sender: Arc<Mutex<Sender>>,
    air: Air,
    /// Delayed packets.
    held: Vec<Vec<u8>>,
    /// Samples still contain their time.
    intact: bool,
}

/// Runs a whole history from `bytes`: a byte for the action and one for its size.
pub fn receive(bytes: &[u8]) {
    let Some((&first, steps)) = bytes.split_first() else { return };
    let shared = shared();
    let air = Air::default();
    let ticks_per_sample = TICKS_PER_SAMPLE[usize::from(first >> 1 & 3)];
    let ticks_per_sample = NonZeroU32::new(ticks_per_sample).expect("none is 0");
    let rate = StreamRate { ticks_hz: TICKS_HZ, ticks_per_sample };
    let mut sender =
        Sender { air: air.clone(), ticks_per_sample: rate.ticks(1), ..Sender::default() };
    sender.jump(1 << 40);
    let sender = Arc::new(Mutex::new(sender));
    let path = StreamPath {
        device: DEVICE,
        width: Width::W64,
        frame_bytes: 16 + 4 * SPP as usize,
        entry_port: 0,
        endpoint: Endpoint { port: 1, instance: 0, epid: SEP, control: true, data: true },
        epid: STREAM,
        rate,
        clock: Clock::simulated(now, pass),
    };
    let silence = if first & 1 == 0 { Duration::from_secs(3600) } else { Duration::ZERO };
    let channel = shared.channel.lease().expect("one history at a time");
    let port = port(&sender, &air);
    let stream = RxMember::open(port, path, channel, &RxArgs::new(0), silence);
    let stream = RxStreamer::one(stream.expect("the device does as it should"));
    let mut history = History { stream, sender, air, held: Vec::new(), intact: true };
    for step in steps.chunks_exact(2) {
        if history.step(step[0], step[1], &shared.block).is_err() {
            break;
        }
        history.stream.ledger().balance().expect("it balances at any time");
    }
    history.sender.lock().unwrap().ends = 3;
    let ledger = history.stream.finish();
    ledger.balance().expect("it balances at the end");
    assert_eq!(ledger.held, 0);
}

impl History {
    fn step(&mut self, what: u8, amount: u8, block: &Mutex<Block>) -> Result<(), RxError> {
        let (more, count) = (what >> 4, u64::from(amount));
        let sender = Arc::clone(&self.sender);
        let mut sender = sender.lock().unwrap();
        match what % 16 {
            0..=2 => (0..1 + amount % 8).for_each(|_| self.air.put(sender.next(SPP, false))),
            3 => sender.skip(u16::from(amount) << more, SPP * (count << more)),
            4 => self.held.push(sender.next(SPP, false)),
            5 => {
                let all = self.held.len();
                self.held.rotate_left(if all == 0 { 0 } else { usize::from(amount) % all });
                self.held.pop().into_iter().for_each(|packet| self.air.put(packet));
            }
            6 => {
                let (seq, ticks) = (sender.seq, sender.ticks);
                let before = SPP * count * sender.ticks_per_sample;
                let old = (seq.wrapping_sub(amount.into()), ticks.wrapping_sub(before));
                self.air.put(sender.data(old.0, old.1, SPP, more == 0));
            }
            7 => sender.jump((i64::from(amount as i8) << (4 * more)) as u64),
            8 => {
                let last = sender.next(1 + count % SPP, true);
                self.air.put(last);
            }
            9 => {
                let mut cut = sender.next(SPP, false);
                cut.truncate(amount.into());
                self.air.put(cut);
            }
            10 => {
                let mut flipped = sender.next(SPP, false);
                flipped[usize::from(amount) % 16] ^= 1 << (more % 8);
                self.air.put(flipped);
                self.intact = false;
            }
            11 => {
                let op =
                    [CommandOp::Resync, CommandOp::Ping, CommandOp::Init][usize::from(more) % 3];
                sender.command(op, count << (3 * more), count << (4 * more));
            }
            12 => {
                let event = if more & 1 == 0 { Event::RxOverrun } else { Event::RxLateCommand };
                tell(block, event, sender.ticks.wrapping_sub(count));
            }
            13 => {
                drop(sender);
                return self.command(more, count);
            }
            _ => {
                drop(sender);
                return self.take(1 + usize::from(amount), 1 + usize::from(more));
            }
        }
        Ok(())
    }

    /// Executes the caller's command; a rejection is allowed.
    fn command(&mut self, what: u8, count: u64) -> Result<(), RxError> {
        let (at, samples) = (self.sender.lock().unwrap().ticks, 1 + count);
        let packet = self.stream.rate().ticks(SPP);
        let outcome = match what % 8 {
            0 => self.stream.start_continuous(None),
            1 => self.stream.start_continuous(Some(at.wrapping_add(packet * (count % 4)))),
            2 => self.stream.start_finite(samples, None),
            3 => self.stream.start_finite(samples, Some(at)),
            4 => self.stream.queue_finite(samples, None),
            5 => self.stream.queue_finite(samples, Some(at.wrapping_add(packet * count))),
            6 => self.stream.stop(),
            _ => {
                let delivered = self.stream.ledger().delivered;
                self.stream.refuse(delivered.min(count));
                Ok(())
            }
        };
        match outcome {
            Err(RxError::Radio(error)) => panic!("the device answers: {error}"),
            _ => Ok(()),
        }
    }

    /// Receives `turns` times into `room` places, and checks every sample.
    fn take(&mut self, room: usize, turns: usize) -> Result<(), RxError> {
        let mut block = vec![[0i16; 2]; room];
        for _ in 0..turns {
            let before = self.stream.ledger().delivered;
            let meta = self.stream.recv(&mut block, Duration::ZERO)?;
            assert_eq!(self.stream.ledger().delivered - before, meta.samples as u64);
            assert!(meta.samples == 0 || meta.event == RxEvent::None);
            let Some(ticks) = meta.time_ticks.filter(|_| self.intact) else { continue };
            for (index, [low, high]) in (0..).zip(&block[..meta.samples]) {
                let ramp = u32::from(*high as u16) << 16 | u32::from(*low as u16);
                assert_eq!(ramp, ticks.wrapping_add(self.stream.rate().ticks(index)) as u32);
            }
        }
        Ok(())
    }
}

/// Sends an asynchronous message of the device to the host.
fn tell(block: &Mutex<Block>, event: Event, ticks: u64) {
    static SEQ: AtomicU64 = AtomicU64::new(0);
    let seq = SEQ.fetch_add(1, Ordering::Relaxed);
    let message = CtrlRepr {
        dst_epid: HOST,
        src_epid: SEP,
        dst_port: PORT,
        src_port: PORT,
        seq: seq as u16,
        ctrl_seq: (seq % 64) as u8,
        timestamp: Some(ticks),
        address: Event::RxOverrun.address(0),
        op: Op::Write,
        data: DataWords::one(event.code()),
        ..CtrlRepr::default()
    };
    let mut bytes = [0; 64];
    let length = message.emit(Width::W64, &mut bytes).expect("it is that long");
    let (mut host, told) = {
        let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
        (block.host.take().expect("it is not elsewhere"), block.told)
    };
    host.hear(&Datagram { payload: &bytes[..length], source: DEVICE });
    let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
    block.host = Some(host);
    assert_eq!(block.told, told + 1, "it acknowledges each");
}
