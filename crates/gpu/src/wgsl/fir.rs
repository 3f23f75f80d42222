//! A filter, tap by tap.

use super::{Groups, KernelStep, TERMS, Way, add, add_pairs, line, plain};
use millstream_dsp::Sample;
use std::fmt::Write;

/// Invocations of a workgroup.
const THREADS: usize = 128;
/// Results of an invocation without decimation: each sample is read once for all of them.
const RESULTS: usize = 4;

/// Makes the kernel.
pub fn program(taps: &[Sample], decimation: usize) -> Way {
    let mut constants = vec![];
    let real = taps.iter().all(|tap| tap.im == 0.0);
    // Zeros fill up to four; the samples that they meet are there, and finite (`SLACK`).
    let filled = taps.len().next_multiple_of(4);
    let mut turned: Vec<Sample> = taps.iter().rev().copied().collect();
    turned.resize(filled, Sample::default());
    let begin = if real {
        2 * add(&mut constants, &turned.iter().map(|tap| tap.re).collect::<Vec<_>>())
    } else {
        add_pairs(&mut constants, &turned)
    };
    let results = if decimation == 1 { RESULTS } else { 1 };
    let (tap, times) = if real { ("r", "h{t} * x{i}") } else { ("c", "mul(h{t}, x{i})") };
    let product =
        |t: usize, i: usize| times.replace("{t}", &t.to_string()).replace("{i}", &i.to_string());

    let mut body = String::new();
    line!(body, "  let first = item * {}u;", results * decimation);
    for k in 0..results {
        line!(body, "  var sum{k} = vec2f();");
    }
    // The samples x0 … of four taps for all results; the last three are the next round's first.
    for k in 0..results - 1 {
        line!(body, "  var x{k} = x[first + {k}u];");
    }
    // Sums of sums: the error grows with the number of terms in each.
    line!(body, "  for (var begin = 0u; begin < {filled}u; begin += {TERMS}u) {{");
    for k in 0..results {
        line!(body, "  var a{k} = vec2f();");
    }
    line!(body, "  for (var j = begin; j < min(begin + {TERMS}u, {filled}u); j += 4u) {{");
    for k in 0..4 {
        line!(body, "  let h{k} = {tap}[{begin}u + j + {k}u];");
        let i = results - 1 + k;
        line!(body, "  let x{i} = x[first + j + {i}u];");
    }
    for k in 0..4 {
        for m in 0..results {
            line!(body, "  a{m} += {};", product(k, m + k));
        }
    }
    for k in 0..results - 1 {
        line!(body, "  x{k} = x{};", k + 4);
    }
    line!(body, "  }}");
    for k in 0..results {
        line!(body, "  sum{k} += a{k};");
    }
    line!(body, "  }}");
    for k in 0..results {
        line!(body, "  if (item * {results}u + {k}u < p.frames) {{");
        line!(body, "    y[item * {results}u + {k}u] = sum{k};\n  }}");
    }
    let groups = Groups { per_frame: 1, more: 0, share: THREADS, unit: results };
    let source = plain(false, THREADS, &groups.expression(), "", &body);
    Way {
        name: format!("direct, {} taps", if real { "real" } else { "complex" }),
        constants,
        scratch: 0,
        steps: vec![KernelStep { source, groups }],
    }
}
