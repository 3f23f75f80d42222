//! The processor time of the crate `radio`'s own `recv`, as `peers/soapy_rate.cpp` measures
//! that of SoapySDR's `readStream`.
//!
//! `recv_cost ARGS RATE_HZ SECONDS` prints one line of JSON.

use std::error::Error;
use std::time::{Duration, Instant};

use millstream_cpu::sched::Class;
use millstream_cpu::usage::thread_cpu_time;
use millstream_radio::{Device, DeviceArgs, RxArgs, RxEvent};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [args, rate, seconds] = &arguments[..] else {
        return Err("usage: recv_cost ARGS RATE_HZ SECONDS".into());
    };
    let mut device = Device::open(args.parse::<DeviceArgs>()?)?;
    let rate_hz = device.set_rate(rate.parse()?)?;
    let mut stream = device.rx_stream(RxArgs::new(0))?;
    let mut buffer = vec![[0_i16; 2]; 65_536];
    if let Ok(cpu) = std::env::var("SOAPY_RATE_CPU") {
        millstream_cpu::thread::pin_current_thread(cpu.parse()?)?;
        millstream_cpu::sched::set_current_thread(Class::Fifo(20))?;
    }
    stream.start_continuous(None)?;
    for _ in 0..20 {
        stream.recv(&mut buffer, Duration::from_millis(100))?;
    }
    let (begin, cpu) = (Instant::now(), thread_cpu_time());
    let length = Duration::try_from_secs_f64(seconds.parse()?)?;
    let (mut samples, mut calls, mut overflows) = (0_u64, 0_u64, 0_u64);
    while begin.elapsed() < length {
        let meta = stream.recv(&mut buffer, Duration::from_millis(100))?;
        calls += 1;
        samples += meta.samples as u64;
        overflows += u64::from(!matches!(meta.event, RxEvent::None | RxEvent::Timeout));
    }
    let (wall, used) = (begin.elapsed(), thread_cpu_time() - cpu);
    println!(
        "{{\"rate_hz\": {rate_hz}, \"samples\": {samples}, \"wall_s\": {:.3}, \"calls\": {calls}, \
         \"overflows\": {overflows}, \"timeouts\": 0, \"errors\": 0, \"cpu_s\": {:.4}}}",
        wall.as_secs_f64(),
        used.as_secs_f64()
    );
    stream.finish().balance()?;
    Ok(())
}
