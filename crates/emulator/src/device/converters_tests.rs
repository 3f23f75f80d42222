//! The stock image on simulated time: DDC and DUC between the host and the radio.

use super::gain_timeline::GainTimeline;
use super::rx_chain::{ChainInput, RxChain};
use super::rx_channel::Stretch;
use super::test_bench::*;
use super::*;
use crate::antenna::{Antenna, RampAntenna, Sc16, ToneAntenna};
use crate::front_end::Reception;
use crate::personality::DeviceKind;
use crate::scene::Scene;
use crate::time::SampleClock;
use millstream_dsp::chunks::Chunks;
use millstream_testkit::allocations;
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::ctrl::ControlStatus;
use millstream_wire::regs::dsp::{self, DspMap, Rate};
use millstream_wire::regs::front_end::RxAntenna;

const DUC_PORT: u16 = 2;
const DDC_PORT: u16 = 3;
const FIFO_PORT: u16 = 5;

fn stock(antenna: impl Antenna + 'static) -> Bench {
    let silence = AntennaSource::Signal(Box::new(RampAntenna));
    let sources = [AntennaSource::Signal(Box::new(antenna)), silence];
    let mut bench = Bench::being(DeviceKind::E320, sources, RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.now_ns = 1_000 * US;
    bench
}

fn tone(freq_hz: f64) -> ToneAntenna {
    let mut tone = ToneAntenna::new(freq_hz, 0.5);
    tone.prepare(RATE_HZ);
    tone
}

impl Bench {
    fn ddc(&mut self, offset: u32, value: u32, at: Option<u64>) {
        let ack = self.write_block(DDC_PORT, offset, value, at).expect("no request has to wait");
        assert_eq!(ack.status, ControlStatus::Ok);
    }

    fn decimate(&mut self, factor: u32) {
        let rate = Rate::new(factor, 3, 255).unwrap();
        self.ddc(dsp::DDC_RATE, rate.word(), None);
        self.ddc(dsp::INPUTS, factor, None);
        self.ddc(dsp::OUTPUTS, 1, None);
        self.ddc(dsp::SCALE, rate.ddc_scale(), None);
    }
}

/// Returns the data packets among `sent`: time, samples, end of burst.
fn packets(sent: &[Vec<u8>]) -> Vec<(u64, Vec<Sc16>, bool)> {
    let parse = |packet: &Vec<u8>| {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        let data = DataRepr::parse(&packet).ok()?;
        Some((data.timestamp.unwrap(), packet.payload().in_chunks().0.to_vec(), data.eob))
    };
    sent.iter().filter_map(parse).collect()
}

fn magnitude([a, b, c, d]: Sc16) -> f64 {
    f64::from(i16::from_le_bytes([a, b])).hypot(f64::from(i16::from_le_bytes([c, d])))
}

#[test]
fn a_decimated_packet_has_the_time_of_its_first_input_and_the_last_one_has_eob() {
    for decimation in [1, 4, 30] {
        let mut bench = stock(tone(100.0));
        bench.open_stream(1 << 30);
        bench.decimate(decimation);
        bench.write(0x101C, 0, None);
        bench.write(0x1018, 250 * decimation + decimation / 2, None);
        bench.write(0x1014, 1, None);
        let got = packets(&bench.run(20_000));
        let shape: Vec<_> = got.iter().map(|one| (one.0, one.1.len(), one.2)).collect();
        let at = |packet: u64| 1_000 + packet * 100 * u64::from(decimation);
        assert_eq!(shape, [(at(0), 100, false), (at(1), 100, false), (at(2), 50, true)]);
        let level = magnitude(got[1].1[50]);
        assert!((level / 16_384.0 - 1.0).abs() < 0.02, "{decimation}: {level}");
    }
}

#[test]
fn without_a_rate_change_the_stock_image_sends_the_antennas_samples() {
    let mut bench = stock(RampAntenna);
    bench.open_stream(1 << 30);
    bench.decimate(1);
    bench.write(0x1014, 2, None);
    assert_eq!(data(&bench.run(3_000)).len(), 20);
}

#[test]
fn a_timed_shift_acts_at_its_tick_and_holds_up_nothing() {
    let mut bench = stock(tone(0.0));
    bench.open_stream(1 << 30);
    bench.decimate(1);
    bench.write(0x1014, 2, None);
    bench.ddc(dsp::PHASE_INCREMENT, 0x4000_0000, Some(1_550));
    // A request behind it is answered at once, as `ddc` checks.
    bench.ddc(dsp::CONFIG, 1, None);
    let samples: Vec<_> = packets(&bench.run(2_000)).into_iter().flat_map(|one| one.1).collect();
    let still = samples[0];
    assert!(samples[..551].iter().all(|sample| *sample == still), "the phase restarts at 0");
    assert_ne!(samples[551], still);
    assert_eq!(samples[554], still);
}

#[test]
fn a_rate_written_while_samples_flow_ends_the_burst_at_a_packet() {
    let mut bench = stock(tone(0.0));
    bench.open_stream(1 << 30);
    bench.decimate(2);
    bench.write(0x1014, 2, None);
    bench.run(1_450);
    bench.decimate(4);
    let got: Vec<_> =
        packets(&bench.run(2_500)).iter().map(|one| (one.0, one.1.len(), one.2)).collect();
    assert_eq!(got[..3], [(1_400, 100, true), (1_600, 100, false), (2_000, 100, false)]);
}

#[test]
fn after_a_power_failure_the_converters_have_no_settings() {
    let mut bench = stock(tone(0.0));
    bench.open_stream(1 << 30);
    bench.decimate(2);
    bench.device.execute(DeviceCommand::PowerCycle(bench.device.keeper));
    bench.connect();
    bench.open_stream(1 << 30);
    bench.write(0x1014, 2, None);
    let got = packets(&bench.run(1_500));
    assert_eq!((got.len(), got[0].1[50]), (5, [0; 4]), "a scale of 0");
}

#[test]
fn a_duc_transmits_each_sample_for_as_many_ticks_as_it_interpolates() {
    let loopback =
        AntennaSource::Loopback(crate::antenna::Loopback { channel: 0, delay_samples: 0 });
    let silence = AntennaSource::Signal(Box::new(RampAntenna));
    let mut bench = Bench::being(DeviceKind::E320, [loopback, silence], RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.now_ns = 1_000 * US;
    bench.open_stream(1 << 30);
    bench.decimate(1);
    let rate = Rate::new(4, 3, 255).unwrap();
    for (offset, value) in [
        (dsp::DUC_RATE, rate.word()),
        (dsp::INPUTS, 1),
        (dsp::OUTPUTS, 4),
        (dsp::SCALE, rate.duc_scale()),
    ] {
        bench.write_block(DUC_PORT, offset, value, None);
    }
    bench.write(0x1014, 2, None);
    bench.receive(&stream_command(millstream_wire::stream::CommandOp::Init, 1 << 20, 0));
    let (timestamp, payload_len) = (Some(2_000), 4 * 200);
    let repr = DataRepr { timestamp, eob: true, payload_len, ..DataRepr::default() };
    let mut packet = samples_from(0, repr);
    let header = packet.len() - payload_len;
    packet[header..].in_chunks_mut().0.fill([0x00, 0x40, 0, 0]);
    bench.receive(&packet);
    let sent = bench.run(4_000);
    let samples: Vec<_> = packets(&sent).into_iter().flat_map(|one| one.1).collect();
    let loud: Vec<_> = (0..samples.len()).filter(|n| magnitude(samples[*n]) > 8_000.0).collect();
    // Ticks 2000 to 2800, later by the delay of the filters: 23 and 46 ticks.
    let (first, last) = (1_000 + loud[0], 1_000 + loud[loud.len() - 1]);
    assert!((2_050..2_080).contains(&first) && (2_795..2_800).contains(&last), "{first} {last}");
    let level = magnitude(samples[1_500]);
    assert!((level / 16_384.0 - 1.0).abs() < 0.01, "{level}");
    let ack = messages(&sent)[0];
    assert_eq!((ack.data.first(), ack.timestamp), (3, Some(2_801)));
    assert_eq!(bench.counters.snapshot().tx_samples, 200);
}

#[test]
fn the_memory_block_has_a_description_and_no_memory() {
    let mut bench = stock(RampAntenna);
    let mut read = |address| {
        let request = bench.request(FIFO_PORT, Op::Read, address, 0, None);
        bench.control(request)[0].data.first()
    };
    assert_eq!([0x00, 0x80, 0x10].map(&mut read), [0xF1F0_0000, 0xF1F0_0000, 0]);
}

#[test]
fn a_scene_and_a_ddc_allocate_nothing_while_samples_flow() {
    let scene = SceneReceiver::open(&Scene::default(), 1, 12).unwrap();
    let mut chain = RxChain::new(ChainInput::Scene(Box::new(scene)), 1 << 16, Some(DspMap::DDC_V0));
    chain.prepare(16e6);
    let rate = Rate::new(4, 3, 255).unwrap();
    for (offset, value) in [
        (dsp::DDC_RATE, rate.word()),
        (dsp::INPUTS, 4),
        (dsp::SCALE, rate.ddc_scale()),
        (dsp::PHASE_INCREMENT, 0x0123_4500),
    ] {
        chain.ddc().unwrap().write(offset, value, None);
    }
    let keeper = DeviceClock::new(SampleClock::new(0, 0, 16e6, 1.0));
    let antenna = Some(RxAntenna::Rx2);
    let reception = Reception { lo_hz: 2.4e9, gain_db: 40.0, bandwidth_hz: 10e6, antenna };
    let (gain, mut out) = (GainTimeline::new(), vec![Sc16::default(); 4_000]);
    let mut step = |index: u64| {
        let ticks = 16_000 * index..16_000 * (index + 1);
        let stretch = Stretch { ticks, begins: index == 0, decimation: 4 };
        chain.record(&stretch, &keeper, &reception, (&gain, None));
        chain.take(&mut out);
    };
    step(0);
    let before = allocations();
    (1..20).for_each(&mut step);
    assert_eq!(allocations(), before);
    let level = 10.0 * (out.iter().map(|one| magnitude(*one).powi(2)).sum::<f64>() / 4e3).log10();
    // The beacon of -50 dBm.
    assert!((level - 20.0 * 32_768f64.log10() + 10.0).abs() < 0.5, "{level}");
}

/// Returns the samples of a scene's station at 1 GHz behind a DDC at 125 MS/s, with the clock at
/// this share of the wall clock.
fn heard_at_125_ms(decimation: u32, shift: u32, time_scale: f64, scale: u32) -> Vec<Sc16> {
    let text = "[[station]]\nkind = \"tone\"\nfrequency = 1e9\nlevel = -50";
    let scene = SceneReceiver::open(&Scene::parse(text).unwrap(), 1, 16).unwrap();
    let mut chain = RxChain::new(ChainInput::Scene(Box::new(scene)), 1 << 16, Some(DspMap::DDC_V0));
    let rate = Rate::new(decimation, 3, 255).unwrap();
    for (offset, value) in [
        (dsp::DDC_RATE, rate.word()),
        (dsp::INPUTS, decimation),
        (dsp::SCALE, scale),
        (dsp::PHASE_INCREMENT, shift),
    ] {
        chain.ddc().unwrap().write(offset, value, None);
    }
    let keeper = DeviceClock::new(SampleClock::new(0, 0, 125e6, time_scale));
    let antenna = Some(RxAntenna::Rx2);
    let reception = Reception { lo_hz: 0.99e9, gain_db: 40.0, bandwidth_hz: 100e6, antenna };
    let (gain, mut out) = (GainTimeline::new(), vec![Sc16::default(); 2_000]);
    let until = 2_000 * u64::from(decimation);
    // In pieces that are not whole samples.
    for (index, start) in (0..until).step_by(9_999).enumerate() {
        let ticks = start..until.min(start + 9_999);
        let stretch = Stretch { ticks, begins: index == 0, decimation: decimation.into() };
        chain.record(&stretch, &keeper, &reception, (&gain, None));
    }
    chain.take(&mut out);
    out
}

/// At a rate for which no machine is fast enough, a scene is heard at the rate behind the DDC, with
/// the same frequencies and levels.
#[test]
fn a_scene_sounds_the_same_whether_every_sample_is_processed_or_not() {
    use crate::converter::test_signals::{amplitude_at, power_db, unpacked};
    let full = 20.0 * 32_768f64.log10();
    for decimation in [25, 40, 125] {
        let rate_hz = 125e6 / f64::from(decimation);
        // The station is 10 MHz up; the shift brings it to a twentieth of the rate.
        let shift = dsp::phase_increment(rate_hz / 20.0 - 10e6, 125e6);
        let scale = Rate::new(decimation, 3, 255).unwrap().ddc_scale();
        for time_scale in [0.1, 1.0] {
            let got = unpacked(&heard_at_125_ms(decimation, shift, time_scale, scale));
            let level = 20.0 * amplitude_at(&got[1_000..], 0.05).log10() - full;
            assert!((level + 10.0).abs() < 0.2, "{decimation} {time_scale}: {level}");
        }
        // Far from the band nothing but noise is heard, and with half of the scale half.
        let away = unpacked(&heard_at_125_ms(decimation, 0, 1.0, scale));
        assert!(power_db(&away) - full < -50.0, "{}", power_db(&away) - full);
        let half = unpacked(&heard_at_125_ms(decimation, shift, 1.0, scale / 2));
        let level = 20.0 * amplitude_at(&half[1_000..], 0.05).log10() - full;
        assert!((level + 16.02).abs() < 0.2, "{decimation}: {level}");
        let silent = heard_at_125_ms(decimation, shift, 1.0, 0);
        assert!(silent.iter().all(|sample| *sample == [0; 4]));
    }
}
