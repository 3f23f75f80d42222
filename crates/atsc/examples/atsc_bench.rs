//! CPU seconds per signal second of the transmitter and of every stage of the receiver: `atsc_bench
//! [RATE_HZ] [SECONDS] [CN_DB] [DELAY_US:LEVEL_DB…]`. Each stage runs alone over the stored output
//! of the stage before it; the arguments set noise and echoes.

use millstream_atsc::Sample;
use millstream_atsc::monitor::Monitor;
use millstream_atsc::params::SEGMENT_SYMBOLS;
use millstream_atsc::rx::demodulator::Demodulator;
use millstream_atsc::rx::equalizer::Equalizer;
use millstream_atsc::rx::outer::{BlockDeinterleaver, correct, packet};
use millstream_atsc::rx::symbol_block::{BlockOrder, SymbolBlock};
use millstream_atsc::rx::trellis_decoder::TrellisDecoder;
use millstream_atsc::rx::{FrontEnd, Receiver, RxConfig};
use millstream_atsc::tx::{Echo, FrameBuilder, Impairments, TestSignal, Transmitter, TxConfig};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

/// Repetitions, of which the fastest counts.
const REPETITIONS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let sample_rate_hz = args.next().map_or(Ok(6.25e6), |a| a.parse())?;
    let seconds: f64 = args.next().map_or(Ok(1.0), |a| a.parse())?;
    let mut samples = vec![Sample::default(); (sample_rate_hz * seconds) as usize];
    let report = |stage: &str, cpu_s: f64| {
        println!("{stage:40} {:8.4} CPU s per signal s", cpu_s / seconds);
    };
    report("transmitter: packets to symbols", {
        let segments = (seconds * 12_935.0) as usize;
        fastest(|| {
            let mut frame = FrameBuilder::new();
            let mut segment = [0.0; SEGMENT_SYMBOLS];
            for _ in 0..segments {
                frame.next_segment(&mut next_packet(), &mut segment);
            }
            black_box(segment);
        })
    });
    let tx_config = TxConfig { sample_rate_hz, ..TxConfig::default() };
    let mut transmitter = Transmitter::new(tx_config)?;
    report(
        "transmitter: all",
        fastest(|| {
            transmitter.generate(&mut next_packet(), &mut samples);
        }),
    );
    let cn_db = args.next().map(|a| a.parse()).transpose()?;
    let echoes = args.map(|a| echo(&a)).collect::<Result<_, _>>()?;
    let impairments = Impairments { cn_db, echoes, ..Impairments::default() };
    let mut signal = TestSignal::new(tx_config, &impairments, 1)?;
    signal.generate(&mut next_packet(), &mut samples);
    receiver(sample_rate_hz, &samples, &report)
}

/// Parses `DELAY_US:LEVEL_DB` as an echo neither in phase nor in antiphase.
fn echo(text: &str) -> Result<Echo, Box<dyn Error>> {
    let (delay_us, level_db) = text.split_once(':').ok_or("an echo is DELAY_US:LEVEL_DB")?;
    let delay_s = delay_us.parse::<f64>()? * 1e-6;
    Ok(Echo { delay_s, level_db: level_db.parse()?, phase_deg: 72.0, doppler_hz: 0.0 })
}

fn receiver(
    sample_rate_hz: f64,
    samples: &[Sample],
    report: &impl Fn(&str, f64),
) -> Result<(), Box<dyn Error>> {
    let config = RxConfig { sample_rate_hz };
    let monitor = Arc::new(Monitor::new());
    report("receiver: demodulator", fastest(|| demodulate(sample_rate_hz, samples)));
    let mut segments = Vec::with_capacity(samples.len() / 400);
    report(
        "receiver: front end (with demodulator)",
        fastest(|| {
            segments.clear();
            let mut front_end = FrontEnd::new(config, monitor.clone()).expect("a checked rate");
            front_end.process(samples, &mut |segment| segments.push(*segment));
        }),
    );
    let mut equalized = Vec::with_capacity(segments.len());
    report(
        "receiver: equaliser",
        fastest(|| {
            equalized.clear();
            let mut equalizer = Equalizer::new();
            for segment in &segments {
                let mut out = *segment;
                if equalizer.process(segment, &mut out) {
                    equalized.push(out);
                }
            }
        }),
    );
    let mut blocks = Vec::with_capacity(segments.len());
    report(
        "receiver: trellis decoder",
        fastest(|| {
            blocks.clear();
            let mut trellis = TrellisDecoder::new();
            equalized.iter().for_each(|s| trellis.process(s, &mut |block| blocks.push(*block)));
        }),
    );
    let mut codewords = Vec::with_capacity(segments.len());
    report(
        "receiver: deinterleaver",
        fastest(|| {
            codewords.clear();
            let mut deinterleaver = BlockDeinterleaver::new();
            codewords.extend(blocks.iter().filter_map(|block| deinterleaver.process(block)));
        }),
    );
    report(
        "receiver: Reed-Solomon",
        fastest(|| {
            codewords.iter_mut().for_each(|codeword| correct(codeword, &monitor));
        }),
    );
    report(
        "receiver: derandomiser",
        fastest(|| {
            codewords.iter().for_each(|codeword| {
                black_box(packet(codeword, &monitor));
            });
        }),
    );
    let mut packets = 0;
    report(
        "receiver: all",
        fastest(|| {
            let mut receiver = Receiver::new(config).expect("a checked rate");
            packets = 0;
            receiver.process(samples, &mut |_| packets += 1);
        }),
    );
    println!("{packets} packets");
    Ok(())
}

fn demodulate(sample_rate_hz: f64, samples: &[Sample]) {
    let mut demodulator = Demodulator::new(sample_rate_hz, 0.0);
    let mut block = SymbolBlock::default();
    for chunk in samples.chunks(2048) {
        demodulator.push(chunk, false);
        while demodulator.next_block(&mut block, BlockOrder::default()) {}
    }
    black_box(block);
}

/// Returns a source of packets of pseudo-random bytes.
fn next_packet() -> impl FnMut(&mut [u8; 188]) {
    let mut state = 1u64;
    move |packet| {
        for eight in packet.chunks_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            eight.copy_from_slice(&state.to_be_bytes()[..eight.len()]);
        }
    }
}

/// Returns the CPU seconds of this thread for the fastest of [`REPETITIONS`] runs.
fn fastest(mut work: impl FnMut()) -> f64 {
    let cpu_s = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let once = |_| {
        let start = cpu_s();
        work();
        cpu_s() - start
    };
    (0..REPETITIONS).map(once).fold(f64::INFINITY, f64::min)
}
