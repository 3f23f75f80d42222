//! Emulated radios for the tests.

use std::time::Duration;

use millstream_client::{
    ClientArgs, ClientRadio, RxOptions, RxReader, StreamDirection, StreamStart,
};

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The longest time of a call that has to return at once, on a busy machine.
pub const PROMPT: Duration = Duration::from_secs(5);

/// The samples of a full packet.
pub const PACKET: u64 = 500;

/// Returns an emulated radio in this process that no busy machine makes lose samples.
pub fn radio(more: &str, rate_hz: f64) -> ClientRadio {
    let text = format!("radio=emulated,rx_buffer_samples=67108864{more}");
    let radio = ClientRadio::open(&text.parse::<ClientArgs>().unwrap()).unwrap();
    assert_eq!(radio.set_rate(StreamDirection::Rx, 0, rate_hz).unwrap(), rate_hz);
    radio
}

/// Returns the same with an antenna whose samples are their own times.
pub fn ramp(more: &str) -> ClientRadio {
    radio(&format!(",antenna=ramp{more}"), 1e6)
}

/// Returns a stream of the first channel.
pub fn reader(radio: &ClientRadio, options: RxOptions) -> RxReader {
    radio.reader(&[0], options.with_samples_per_packet(PACKET as u32)).unwrap()
}

/// Returns the same, started.
pub fn started(radio: &ClientRadio, options: RxOptions) -> RxReader {
    let reader = reader(radio, options);
    reader.start(StreamStart::default()).unwrap();
    reader
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
