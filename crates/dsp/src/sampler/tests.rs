use super::*;

/// The integer value of 1.0 in the rows of these tests.
const ONE: f64 = 8192.0;

/// Returns a triangle of width two: linear interpolation.
fn triangle(t: f64) -> Complex<f64> {
    Complex::new((1.0 - t.abs()).max(0.0), 0.0)
}

fn row(of: impl Fn(usize) -> Complex<f64>, len: usize) -> Vec<IntSample> {
    (0..len).map(|n| of(n) * ONE).map(|x| [x.re.round() as i16, x.im.round() as i16]).collect()
}

#[test]
fn outputs_lie_between_the_samples_at_their_times() {
    let line = |n: usize| Complex::new(n as f64 / 128.0, n as f64 / -256.0);
    let row = row(line, 400);
    for step in [0.1, 0.5807, 1.0, 2.33] {
        let sampler = Sampler::new(256, 3.0, 1.001 * step, triangle);
        let times = Times { start: 7.3, step };
        let mut out = [[0.0; 104]; 2];
        sampler.sample(OutputPart::Real, times, (&row, ONE), Levelling::default(), &mut out[0]);
        sampler.sample(
            OutputPart::Imaginary,
            times,
            (&row, ONE),
            Levelling::default(),
            &mut out[1],
        );
        for (k, (x, y)) in out[0].iter().zip(out[1]).enumerate() {
            let exact = 7.3 + step * k as f64;
            assert!((f64::from(*x) * 128.0 - exact).abs() < 0.5 / 256.0 + 0.02, "{step} {k}: {x}");
            assert!((y + 0.5 * x).abs() < 2e-4, "{x} {y}");
        }
    }
}

#[test]
fn a_complex_response_turns() {
    let response = |t: f64| triangle(t / 4.0) * Complex::new(0.15, -0.2);
    let sampler = Sampler::new(64, 4.0, 0.6, response);
    let row = row(|_| Complex::new(0.5, 0.25), 64);
    for (part, exact) in [(OutputPart::Real, 0.5), (OutputPart::Imaginary, -0.25)] {
        let mut out = [0.0; 8];
        let times = Times { start: 20.2, step: 0.58 };
        sampler.sample(part, times, (&row, ONE), Levelling::default(), &mut out);
        assert!(out.iter().all(|x| (x - exact).abs() < 1e-3), "{part:?}: {out:?}");
    }
}

#[test]
fn what_is_asked_to_be_there_suffices() {
    for (half_span, step) in [(1.0, 0.3), (23.0, 0.5807), (40.5, 2.3), (100.0, 1.0)] {
        let sampler = Sampler::new(16, half_span, step, triangle);
        for mu in [0.0, 0.5, 0.999_999] {
            let start = sampler.before() as f64 + mu;
            let len = sampler.before() + sampler.after() + (GROUP as f64 * step) as usize + 1;
            let row = row(|_| Complex::new(1.0, 0.0), len);
            let mut out = [0.0; GROUP];
            let times = Times { start, step };
            sampler.sample(OutputPart::Real, times, (&row, ONE), Levelling::default(), &mut out);
            assert!(out.iter().all(|x| (x - 1.0).abs() < 1e-3), "{out:?}");
        }
    }
}

#[test]
#[should_panic(expected = "samples around every time")]
fn samples_that_are_missing_are_no_outputs() {
    let sampler = Sampler::new(16, 23.0, 0.6, triangle);
    let row = row(|_| Complex::new(1.0, 0.0), 59);
    let times = Times { start: 30.0, step: 0.58 };
    sampler.sample(OutputPart::Real, times, (&row, ONE), Levelling::default(), &mut [0.0; 8]);
}

#[test]
fn outputs_are_levelled_and_measured() {
    let sampler = Sampler::new(16, 3.0, 1.0, triangle);
    let row = row(|n| Complex::new([0.1, 0.3, 0.9, -0.5][n % 4], 0.0), 100);
    let levelling = Levelling { offset: 0.2, limit: 0.5, gain: 10.0 };
    let mut out = [0.0; 16];
    let times = Times { start: 8.0, step: 1.0 };
    let means = sampler.sample(OutputPart::Real, times, (&row, ONE), levelling, &mut out);
    for (y, exact) in out.iter().zip([-1.0, 1.0, 5.0, -5.0].into_iter().cycle()) {
        assert!((y - exact).abs() < 0.01, "{out:?}");
    }
    assert!(means.plain.abs() < 1e-3, "{means:?}");
    assert!((means.square - 0.13).abs() < 1e-3, "{means:?}");
}

type Kernel = fn(&Run<'_>, &mut [[f32; GROUP]]) -> Sums;

/// Returns every copy that this processor runs.
fn kernels() -> Vec<(&'static str, Kernel)> {
    let mut kernels: Vec<(&str, Kernel)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if crate::simd::has_avx2_fma() {
            // SAFETY: the processor has the features, and the runs of these tests fit.
            kernels.push(("256", |run, out| unsafe { avx2::sample_256(run, out) }));
        }
        #[cfg(avx512)]
        if crate::simd::has_vnni() {
            // SAFETY: the processor has the features, and the runs of these tests fit.
            kernels.push(("512", |run, out| unsafe { avx512::sample_512(run, out) }));
        }
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: the runs of these tests fit.
    kernels.push(("neon", |run, out| unsafe { neon::sample(run, out) }));
    kernels
}

#[test]
fn the_fast_copies_give_the_same_bits_at_the_loudest() {
    for step in [0.5807, 1.16, 2.3] {
        let response = |t: f64| Complex::from_polar((-t * t / 90.0).exp(), 2.7 * t);
        let sampler = Sampler::new(256, 23.0, 1.001 * step, response);
        let loud = |i: usize| [((i * 37) % 5) as i16, ((i * 53) % 7) as i16];
        let row: Vec<IntSample> = (0..1200)
            .map(|i| loud(i).map(|x| if x > 2 { i16::MAX } else { x.wrapping_sub(3) << 14 }))
            .collect();
        for (rows, groups) in sampler.rows.iter().zip([13, 37]) {
            let rows = bytemuck::cast_slice(rows);
            let (at, step) = (sampler.fixed(100.7), sampler.fixed(step));
            let levelling = Levelling { offset: 1e3, limit: 3e5, gain: 0.7 };
            let run = Run { sampler: &sampler, rows, row: &row, at, step, scale: 1e-3, levelling };
            assert!(run.fits(groups));
            let mut plain = vec![[0.0; GROUP]; groups];
            let sums = sample_plain(&run, &mut plain);
            assert!(sums[1].iter().all(|sum| *sum > 0.0));
            for (name, kernel) in kernels() {
                let mut fast = vec![[0.0; GROUP]; groups];
                assert_eq!(kernel(&run, &mut fast), sums, "{name} at {step}");
                assert_eq!(fast, plain, "{name} at {step}");
            }
        }
    }
}

#[test]
#[ignore = "counted by docs/evidence/arm64_cost.py"]
fn cost_of_the_sampler() {
    let response = |t: f64| Complex::from_polar((-t * t / 90.0).exp(), 2.7 * t);
    let sampler = Sampler::new(256, 19.5, 0.6, response);
    assert_eq!(sampler.window, 48);
    let row = vec![[1234, -4321]; 800];
    let run = Run {
        sampler: &sampler,
        rows: bytemuck::cast_slice(&sampler.rows[0]),
        row: &row,
        at: sampler.fixed(100.7),
        step: sampler.fixed(0.58),
        scale: 1e-3,
        levelling: Levelling { offset: 1e3, limit: 3e5, gain: 0.7 },
    };
    assert!(run.fits(100));
    let [mut plain, mut fast] = [[[0.0; GROUP]; 100]; 2];
    millstream_testkit::cost::repeat(
        || assert!(sample_plain(&run, &mut plain)[1][0] > 0.0),
        || assert!(run.run(&mut fast)[1][0] > 0.0),
    );
}
