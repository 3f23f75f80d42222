//! Receiving by the contract of readers.

use std::time::Duration;

use millstream_client::{ClientArgs, ClientRadio, RxOptions, RxReadEvent, StreamDirection};
use millstream_client::{RxReader, StreamStart};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens an emulated radio whose samples are their own times.
fn ramp(more: &str, rate_hz: f64) -> ClientRadio {
    let text = format!("radio=emulated,antenna=ramp,rx_buffer_samples=67108864{more}");
    let radio = ClientRadio::open(&text.parse::<ClientArgs>().unwrap()).unwrap();
    assert_eq!(radio.set_rate(StreamDirection::Rx, 0, rate_hz).unwrap(), rate_hz);
    radio
}

fn started(radio: &ClientRadio, options: RxOptions) -> RxReader {
    let reader = radio.reader(&[0], options.with_samples_per_packet(500)).unwrap();
    reader.start(StreamStart::default()).unwrap();
    reader
}

/// Returns the low 32 bits of the time in a ramp's sample.
fn time_in([i, q]: [i16; 2]) -> u32 {
    u32::from(q as u16) << 16 | u32::from(i as u16)
}

#[test]
fn a_gap_is_counted_exactly_and_the_stream_goes_on() {
    let radio = ramp(",fault=lose to_host data skip=100 every=1000 count=3", 1e6);
    let reader = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 4096];
    let (mut next, mut gaps, mut abrupt) = (None, Vec::new(), 0);
    while gaps.len() < 3 {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        match read.event {
            RxReadEvent::None => {
                assert!(next.is_none_or(|next| next == read.time_ticks), "contiguous");
                for (offset, sample) in samples[..read.samples].iter().enumerate() {
                    assert_eq!(time_in(*sample), (read.time_ticks + offset as u64) as u32);
                }
                next = Some(read.time_ticks + read.samples as u64);
                abrupt += usize::from(read.abrupt_end);
            }
            RxReadEvent::Gap(gap) => {
                assert_eq!(Some(gap.resume_ticks), next.map(|next| next + gap.samples));
                assert_eq!(gap.resume_ns, gap.resume_ticks as i64 * 1000);
                next = Some(gap.resume_ticks);
                gaps.push(gap.samples);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(gaps, [500, 500, 500]);
    assert!(abrupt >= 1, "{abrupt}");
    for _ in 0..3 {
        assert!(reader.take_status(Duration::ZERO).is_some());
    }
    assert_eq!(reader.take_status(Duration::ZERO), None);
}
