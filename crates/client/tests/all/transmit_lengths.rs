//! Bursts of a given length, written with buffers of any length through windows of any size.

use millstream_client::{StreamStart, TxOptions};

use crate::common::{PATIENCE, radio, soon};
use crate::draw::Draw;

#[test]
fn each_burst_has_its_samples_and_the_next_one_loses_none() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for window in [4096, 10_000, 32_768] {
        let radio = radio(&format!(",tx_buffer_samples={window}"), 4e6);
        assert_eq!(radio.tx(0).set_rate(4e6).unwrap(), 4e6);
        let stream = radio.tx(0).stream(TxOptions::default()).unwrap();
        let memory = vec![[1000_i16; 2]; 4 * window];
        let mut total = 0;
        for case in 0..8 {
            let burst = 1 + draw.below(3 * window as u64);
            let time = (draw.below(2) == 0).then(|| soon(&radio, 60));
            stream.start(StreamStart { time, samples: Some(burst) }).unwrap();
            let mut sent = 0;
            let mut ended = false;
            while !ended {
                // Buffers reach past the end of the burst, and past the window.
                let length = 1 + draw.below(memory.len() as u64) as usize;
                let done = stream.write(&[&memory[..length]], None, false, PATIENCE).unwrap();
                assert!(done.samples > 0 || done.end_of_burst, "{window} {case}: nothing taken");
                sent += done.samples as u64;
                ended = done.end_of_burst;
                assert_eq!(ended, sent == burst, "{window} {case}: {sent} of {burst}");
                assert!(ended || done.samples == length, "{window} {case}: a part of a buffer");
            }
            assert!(!stream.is_active());
            let rest = stream.write(&[&memory[..1]], None, false, PATIENCE).unwrap();
            assert_eq!(rest.samples, 0, "{window} {case}: a sample behind the end");
            total += burst;
        }
        assert_eq!(stream.ledger(0).unwrap().accepted, total, "window {window}");
    }
}
