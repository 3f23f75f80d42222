//! Rules of every registered block with floats: what is wrong in a stream passes, and leaves the
//! block as it was.

use super::registry::{ITEMS, Run, cases};
use millstream_blocks::single_pole::SinglePole;
use millstream_dsp::chunks::Chunks;
use millstream_flow::blocks::{VectorSink, VectorSource};
use millstream_flow::{Each, Graph, Plan, WaitMode};

/// Numbers that no signal has.
const WRONG: [f32; 6] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -1e38, 1e-40];

/// Returns the floats of each output, of a stream in whose middle `wrong` lies.
fn outputs(name: &str, values: &str, wrong: &[f32]) -> Vec<Vec<f32>> {
    let mut run = Run::new(name, values, 4096);
    run.feed_changed(0, ITEMS, &|floats| {
        let at = floats.len() / 4;
        floats[at..at + wrong.len()].copy_from_slice(wrong);
    });
    run.end();
    run.mock.run().unwrap();
    run.collect();
    let floats = |bytes: &Vec<u8>| -> Vec<f32> {
        bytes.in_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    run.outputs.iter().map(floats).collect()
}

/// Returns values with which a block forgets within the stream.
fn quick<'a>(name: &str, values: &'a str) -> &'a str {
    match name {
        // The gain is zero after a number near the largest one, and grows by this much of an item.
        "agc" if values.is_empty() => "speed = 0.02",
        "power_spectrum" => "size = 64",
        _ => values,
    }
}

#[test]
fn nothing_wrong_in_a_stream_outlives_the_memory_of_a_block() {
    for (name, values) in &cases() {
        let run = Run::new(name, values, 64);
        let has_floats = |size: usize, name: &str| size >= 4 && !name.contains("i16");
        let all = run.ports.inputs.iter().chain(&run.ports.outputs);
        let mut all = all.map(|port| (port.item.size_bytes(), port.item.to_string()));
        if run.is_source() || !all.all(|(size, item)| has_floats(size, &item)) {
            continue;
        }
        let values = quick(name, values);
        let undisturbed = outputs(name, values, &[]);
        for wrong in WRONG {
            let disturbed = outputs(name, values, &[wrong]);
            for (right, found) in undisturbed.iter().zip(&disturbed) {
                assert_eq!(right.len(), found.len(), "{name} {values} after {wrong}");
                let last = right.len() - right.len() / 4;
                let scale = right[last..].iter().fold(1.0_f32, |most, x| most.max(x.abs()));
                let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * scale;
                let near = right[last..].iter().zip(&found[last..]).all(is_near);
                assert!(near, "{name} {values} does not forget {wrong}");
            }
        }
    }
}

#[test]
fn a_filter_behind_a_signal_that_has_ended_leaves_the_subnormal_range_out() {
    for alpha in [0.5, 0.05] {
        let mut signal = vec![0.0_f32; 10_000];
        signal[0] = 1.0;
        let (sink, collected) = VectorSink::<f32>::new();
        let mut graph = Graph::new();
        graph.add("signal", VectorSource::new(signal)).unwrap();
        graph.add("filter", Each::new(SinglePole::<f32>::new(alpha).unwrap())).unwrap();
        graph.add("sink", sink).unwrap();
        graph.chain(&["signal", "filter", "sink"]).unwrap();
        let plan = Plan::single(&graph, WaitMode::Park);
        graph.run(&plan).unwrap();
        let decay = collected.take();
        assert!(decay.iter().all(|x| !x.is_subnormal()), "such numbers cost many cycles each");
        // The least step that is not flushed.
        assert!(
            decay.len() == 10_000 && decay[9_999] <= f32::MIN_POSITIVE / alpha as f32,
            "{alpha}: {}",
            decay[9_999]
        );
    }
}
