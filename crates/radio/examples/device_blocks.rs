//! Uses the blocks of a device that are no radio, as far as it has them: counts packets of
//! NullSrcSink, measures a tone of SigGen, and records and plays samples with Replay.
//!
//!     cargo run -p millstream-radio --example device_blocks -- addr=192.168.10.2

use std::time::Duration;

use millstream_radio::noc::{BlockReceiver, GeneratorSignal, NullSrcSink, Replay, SigGen};
use millstream_radio::{Complex32, Device, DeviceArgs, RadioError};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Outcome {
    let usage = "give the device arguments, for example addr=192.168.10.2";
    let args: DeviceArgs = std::env::args().nth(1).ok_or(usage)?.parse()?;
    let device = Device::open(args)?;
    for block in &device.blocks().blocks {
        println!("{} with NoC id {:08X}", device.blocks().name(block.index), block.noc_id);
    }
    for (name, check) in
        [("NullSrcSink", null as fn(&Device) -> Outcome), ("SigGen", tone), ("Replay", replay)]
    {
        if device
            .blocks()
            .blocks
            .iter()
            .any(|block| device.blocks().name(block.index).starts_with(name))
        {
            check(&device)?;
        }
    }
    Ok(())
}

/// Receives until the slice is full.
fn fill<T: millstream_radio::convert::HostSample>(
    stream: &mut BlockReceiver,
    samples: &mut [T],
) -> Result<usize, RadioError> {
    let mut count = 0;
    while count < samples.len() {
        let received = stream.recv(&mut samples[count..], PATIENCE)?;
        count += received.samples;
        if received.samples == 0 || received.end_of_burst {
            break;
        }
    }
    Ok(count)
}

fn null(device: &Device) -> Outcome {
    let block = NullSrcSink::open(device)?;
    let mut stream = device.block_receiver(block.place())?;
    let packet = block.start(stream.samples_per_packet() / 2)?;
    let mut samples = vec![[0i16; 2]; 100 * packet];
    let count = fill(&mut stream, &mut samples)?;
    block.stop()?;
    let (received, made) = (*stream.counters(), block.source_counters()?);
    println!("NullSrcSink: {count} samples, {received:?}; the block says {made:?}");
    // The sink takes what the source made.
    let mut sink = device.block_sender(block.place())?;
    let sent = sink.send(&samples[..count], true, PATIENCE)?;
    let taken = sink.finish(PATIENCE)?;
    println!("NullSrcSink: {sent} samples sent, all taken: {taken}; {:?}", block.sink_counters()?);
    if count < samples.len() || received.lost_packets > 0 || !taken {
        return Err("samples are missing".into());
    }
    Ok(())
}

fn tone(device: &Device) -> Outcome {
    let block = SigGen::open(device, 0)?;
    let mut stream = device.block_receiver(block.place())?;
    block.set(GeneratorSignal::Sine { cycles_per_sample: 0.125, amplitude: 0.5 })?;
    block.start(stream.samples_per_packet().min(1000))?;
    let mut samples = vec![Complex32::default(); 20_000];
    let count = fill(&mut stream, &mut samples)?;
    block.stop()?;
    let samples = &samples[..count];
    let turns = samples.windows(2).map(|pair| pair[1] * pair[0].conj()).sum::<Complex32>();
    let frequency = turns.arg() / std::f32::consts::TAU;
    let power = samples.iter().map(Complex32::norm_sqr).sum::<f32>() / count as f32;
    let amplitude = power.sqrt();
    println!("SigGen: {count} samples, {frequency} cycles a sample, amplitude {amplitude}");
    if (frequency - 0.125).abs() > 1e-3 || (amplitude - 0.5).abs() > 0.01 {
        return Err("that is not the tone that was set".into());
    }
    Ok(())
}

fn replay(device: &Device) -> Outcome {
    let block = Replay::open(device, 0)?;
    println!("Replay: memory of {} samples", block.memory_samples());
    let wanted: Vec<[i16; 2]> = (0..20_000i16).map(|n| [n, -n]).collect();
    block.record(4096, wanted.len() as u64)?;
    let mut sender = device.block_sender(block.place())?;
    let sent = sender.send(&wanted, true, PATIENCE)?;
    let taken = sender.finish(PATIENCE)?;
    println!("Replay: {sent} samples sent, all taken: {taken}, recorded {}", block.recorded()?);
    for at in [None, Some(device.time_ticks()? + device.tick_rate_hz() as u64 / 10)] {
        let mut stream = device.block_receiver(block.place())?;
        block.play(4096, wanted.len() as u64, stream.samples_per_packet(), true, at)?;
        let mut samples = vec![[0i16; 2]; wanted.len()];
        let first = stream.recv(&mut samples, PATIENCE)?;
        let count = first.samples + fill(&mut stream, &mut samples[first.samples..])?;
        println!("Replay: played {count} samples, the first at {:?}", first.time_ticks);
        if samples != wanted || first.time_ticks != at {
            return Err("what was played is not what was recorded".into());
        }
    }
    Ok(())
}
