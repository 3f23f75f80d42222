//! Tests of devices with arbitrary registers: the host returns an error with a reason.

use std::time::{Duration, Instant};

use crate::common::{Action, Meddler, args, patient, radio};
use millstream_radio::{Device, DeviceArgs, RadioError};
use millstream_wire::Width;
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::{CtrlRepr, DataWords, Op};
use millstream_wire::regs::radio::SAMPLE_WIDTH;

/// Answers register reads with other words, if `other` has one for the port and address.
fn answering(mut other: impl FnMut(u16, u32) -> Option<u32> + Send + 'static) -> Meddler {
    Meddler::new(move |bytes| {
        let packet = Packet::parse(bytes, Width::W64).and_then(|packet| CtrlRepr::parse(&packet));
        let Ok(answer) = packet else { return Action::Pass };
        if !answer.is_ack || answer.op != Op::Read {
            return Action::Pass;
        }
        let Some(word) = other(answer.dst_port, answer.address) else { return Action::Pass };
        let mut bytes = vec![0; 64];
        let answer = CtrlRepr { data: DataWords::one(word), ..answer };
        let length = answer.emit(Width::W64, &mut bytes).unwrap();
        bytes.truncate(length);
        Action::Replace(bytes)
    })
}

fn args_of(meddler: Meddler) -> (millstream_emulator::RunningRadio, DeviceArgs) {
    let (radio, mut args_of) = radio(patient());
    args_of.open_port = Some(meddler.open_port());
    (radio, args_of)
}

#[test]
fn any_sample_width_is_taken_or_refused_with_a_reason() {
    let usable = [32 << 16 | 1, 32 << 16 | 8, 8 << 16 | 1];
    for word in
        [0, 0xFFFF, 32 << 16, 32 << 16 | 0xFFFF, 16 << 16 | 1, u32::MAX].into_iter().chain(usable)
    {
        let meddler =
            answering(move |port, address| (port != 0 && address == SAMPLE_WIDTH).then_some(word));
        let (_radio, args_of) = args_of(meddler);
        let device = Device::open(args_of).unwrap();
        match device.rx_stream(args()) {
            Ok(stream) => {
                assert!(usable.contains(&word), "{word:#x}");
                assert!(stream.samples_per_packet() <= 500, "{word:#x}");
            }
            Err(RadioError::Unusable { reason, .. }) => {
                assert!(!usable.contains(&word), "{word:#x}: {reason}");
                let part = if word == 32 << 16 | 0xFFFF {
                    "a packet on this network"
                } else {
                    "at a time"
                };
                assert!(reason.contains(part), "{word:#x}: {reason}");
            }
            Err(error) => panic!("{word:#x}: {error}"),
        }
    }
}

#[test]
fn registers_full_of_noise_end_in_an_error_or_a_device_and_in_time() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut state = seed | 1;
    for every in [2, 3, 5, 8, 13, 21, 34, 55] {
        let mut draw = state;
        let meddler = answering(move |_, _| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            ((draw >> 33) % every == 0).then_some((draw >> 20) as u32)
        });
        state = state.wrapping_add(1 << 40);
        let (_radio, mut args_of) = args_of(meddler);
        args_of.open_max = Duration::from_secs(2);
        let began = Instant::now();
        match Device::open(args_of) {
            Ok(device) => {
                for channel in 0..device.rx_channels() {
                    let _ = device.rx_stream(millstream_radio::RxArgs::new(channel));
                }
            }
            Err(error) => println!("one in {every}: {error}"),
        }
        println!("one in {every}: {:?}", began.elapsed());
    }
}

#[test]
fn a_device_that_answers_everything_slowly_is_given_up_in_all() {
    let meddler = answering(|_, _| {
        std::thread::sleep(Duration::from_millis(30));
        None
    });
    let (_radio, mut args_of) = args_of(meddler);
    args_of.open_max = Duration::from_millis(400);
    let began = Instant::now();
    let error = Device::open(args_of).unwrap_err();
    // At least two dozen reads would take longer; any time beyond that is the machine's.
    assert!(matches!(error, RadioError::OpenTooSlow { .. }), "{error}, {:?}", began.elapsed());
    let text = error.to_string();
    assert!(
        text.contains("took longer than 0.4 s to open it") && text.contains("open_max_s=N"),
        "{text}"
    );
}
