//! Emulated radios for the tests.

use std::time::Duration;

use millstream_client::{DeviceTime, GapPolicy, Radio, Received, RxOptions, RxStream, StreamStart};

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The longest time of a call that has to return at once, on a busy machine.
pub const PROMPT: Duration = Duration::from_secs(5);

/// The samples of a full packet.
pub const PACKET: u64 = 500;

/// Returns an emulated radio in this process that no busy machine makes lose samples.
pub fn radio(more: &str, rate_hz: f64) -> Radio {
    let text = format!("radio=emulated,rx_buffer_samples=67108864{more}");
    let radio = Radio::open(&text.parse().unwrap()).unwrap();
    assert_eq!(radio.rx(0).set_rate(rate_hz).unwrap(), rate_hz);
    radio
}

/// Returns the same with an antenna whose samples are their own times.
pub fn ramp(more: &str) -> Radio {
    radio(&format!(",antenna=ramp{more}"), 1e6)
}

/// Options by which reads report gaps.
pub fn reports() -> RxOptions {
    RxOptions::default().with_gaps(GapPolicy::Report)
}

/// Returns a stream of the first channel.
pub fn stream(radio: &Radio, options: RxOptions) -> RxStream {
    radio.rx(0).stream(options.with_samples_per_packet(PACKET as u32)).unwrap()
}

/// Returns the same, started.
pub fn started(radio: &Radio, options: RxOptions) -> RxStream {
    let stream = stream(radio, options);
    stream.start(StreamStart::now()).unwrap();
    stream
}

/// Returns the time of a read, ticks.
pub fn ticks(read: &Received) -> u64 {
    read.time.unwrap().ticks()
}

/// Returns whether a read brought nothing in its time.
pub fn is_empty(read: &Received) -> bool {
    *read == Received::default()
}

/// Returns a time by the radio's clock that lies ahead, on a sample of a rate of 1 MS/s.
pub fn soon(radio: &Radio, ahead_ms: u64) -> DeviceTime {
    let now_ns = radio.now().unwrap().ns() / 1000 * 1000;
    DeviceTime::from_ns(now_ns) + Duration::from_millis(ahead_ms)
}

/// Returns the low 32 bits of the time in a ramp's sample.
pub fn time_in([i, q]: [i16; 2]) -> u32 {
    u32::from(q as u16) << 16 | u32::from(i as u16)
}

/// Checks that samples of a ramp have the times from `ticks` on.
pub fn check_ramp(samples: &[[i16; 2]], ticks: u64) {
    for (offset, sample) in samples.iter().enumerate() {
        assert_eq!(time_in(*sample), (ticks + offset as u64) as u32, "sample {offset}");
    }
}
