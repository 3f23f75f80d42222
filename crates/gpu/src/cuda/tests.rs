//! Texts in CUDA C, without a GPU: g++ compiles them for this processor, where they calculate the
//! right results, and NVRTC compiles them for GPUs, where it is installed.

use super::text::{CudaText, translate};
use super::{cuda_devices, driver};
use crate::wgsl::{self, Limits, SLACK, Way};
use bytemuck::cast_slice;
use draw::{Draw, error};
use millstream_accel::Kernel;
use millstream_dsp::Sample;
use std::fmt::Write as _;
use std::fs;
use std::io::{Write, stderr};
use std::path::Path;
use std::process::Command;

#[path = "../../tests/all/draw.rs"]
mod draw;
#[path = "../../tests/all/reference.rs"]
mod reference;

const LIMITS: Limits = Limits { workgroup_bytes: 48 << 10, invocations: 256 };

/// Kernels of all ways to calculate, with frames.
fn kernels(draw: &mut Draw) -> Vec<(Kernel, usize)> {
    let real = |draw: &mut Draw, count| draw.taps(count, true).iter().map(|tap| tap.re).collect();
    let fir = |draw: &mut Draw, count, is_real, decimation| Kernel::Fir {
        taps: draw.taps(count, is_real),
        decimation,
    };
    vec![
        (fir(draw, 13, true, 1), 501),
        (fir(draw, 70, false, 1), 333),
        (fir(draw, 200, true, 7), 90),
        (fir(draw, 700, false, 1), 1000),
        (fir(draw, 4096, true, 3), 700),
        (Kernel::Channelizer { channels: 64, hop: 32, taps: real(draw, 500) }, 9),
        (Kernel::Channelizer { channels: 2, hop: 1, taps: real(draw, 5) }, 300),
        (Kernel::Channelizer { channels: 4096, hop: 4096, taps: real(draw, 9000) }, 1),
        (Kernel::Channelizer { channels: 15, hop: 5, taps: real(draw, 50) }, 20),
        (Kernel::PowerSpectrum { window: real(draw, 512), average: 3 }, 5),
        (Kernel::PowerSpectrum { window: real(draw, 32), average: 2 }, 600),
        (Kernel::PowerSpectrum { window: vec![1.0; 8192], average: 1 }, 1),
        (Kernel::PowerSpectrum { window: real(draw, 100), average: 3 }, 4),
    ]
}

/// Returns the program that calculates a batch with these texts.
fn program(way: &Way, texts: &[CudaText], results: usize, frames: usize) -> String {
    let mut text = String::from("#include \"block.h\"\n");
    for (number, one) in texts.iter().enumerate() {
        // Each step has a structure and a function of the same name.
        let source = one.source.replace("extern \"C\" ", "");
        let _ = writeln!(text, "namespace step{number} {{\n{source}static Step arguments;");
        text.push_str("static void call() { step(arguments); }\n}\n");
    }
    text.push_str("int main(int, char** files) {\n  FILE* in = fopen(files[1], \"rb\");\n");
    let constants = way.constants.len().next_multiple_of(2);
    let _ = writeln!(
        text,
        "  auto head = load<unsigned>(in, 2);
  auto x = load<float>(in, 2 * (head[1] + {SLACK}));
  auto c = load<float>(in, {constants});
  std::vector<float> s(2 * {} + 2), y({results}, 1e30f);",
        way.scratch
    );
    for (number, (one, step)) in texts.iter().zip(&way.steps).enumerate() {
        let (across, down) = step.groups.grid(frames);
        let _ = writeln!(
            text,
            "  {{ using namespace step{number};
    Step& a = arguments;
    a.p.frames = head[0];
    a.p.samples = head[1];
    a.x = reinterpret_cast<vec2f*>(x.data());
    a.c = reinterpret_cast<vec2f*>(c.data());
    a.r = c.data();
    a.s = reinterpret_cast<vec2f*>(s.data());
    a.y = reinterpret_cast<decltype(a.y)>(y.data());
    for (unsigned down = 0; down < {down}; down++)
      for (unsigned across = 0; across < {across}; across++) {{
        blockIdx = dim3(across, down, 0);
        block({}, call);
      }}
  }}",
            one.threads
        );
    }
    text.push_str("  FILE* out = fopen(files[2], \"wb\");\n");
    text.push_str("  fwrite(y.data(), sizeof(float), y.size(), out);\n  return fclose(out);\n}\n");
    text
}

/// Calculates a batch as a program for this processor.
fn calculate(
    folder: &Path,
    way: &Way,
    samples: &[Sample],
    frames: usize,
    words: usize,
) -> Vec<f32> {
    let texts: Vec<CudaText> = way.steps.iter().map(|step| translate(&step.source)).collect();
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/block.h");
    fs::copy(header, folder.join("block.h")).unwrap();
    fs::write(folder.join("main.cpp"), program(way, &texts, words * frames, frames)).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let compiled = Command::new("g++")
        .args(["-std=c++17", "-O0", "-o"])
        .args([file("main"), file("main.cpp")])
        .output()
        .expect("g++ is installed");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let mut input: Vec<u8> = cast_slice(&[frames as u32, samples.len() as u32]).to_vec();
    input.extend_from_slice(cast_slice(samples));
    input.extend_from_slice(cast_slice(&[Sample::new(0.0, 0.0); SLACK]));
    input.extend_from_slice(cast_slice(&way.constants));
    input.resize(input.len() + 4 * (way.constants.len() % 2), 0);
    fs::write(folder.join("in"), input).unwrap();
    let ran = Command::new(file("main")).args([file("in"), file("out")]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let bytes = fs::read(folder.join("out")).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|&one| f32::from_ne_bytes(one)).collect()
}

#[test]
fn texts_calculate_right_on_this_processor() {
    let folder = tempfile::tempdir().unwrap();
    let mut draw = Draw(7);
    let mut worst: f64 = 0.0;
    for (kernel, frames) in kernels(&mut draw) {
        let samples = draw.samples(kernel.shape().window(frames));
        let wanted = reference::results(&kernel, &samples, frames);
        for way in wgsl::ways(&kernel, frames, LIMITS).unwrap() {
            let words = kernel.shape().words;
            let results = calculate(folder.path(), &way, &samples, frames, words);
            let error = error(&results, &wanted);
            assert!(error <= 1e-5, "{kernel} by {}: {error:.1e}", way.name);
            worst = worst.max(error);
        }
    }
    println!("texts in CUDA C, on this processor: largest error {worst:.1e} of the RMS");
}

#[test]
fn texts_compile_for_gpus() {
    // SAFETY: loading NVRTC runs its code, which is what is tested.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        let _ = writeln!(stderr(), "\ngpu: NVRTC is not installed: no text in CUDA C was compiled");
        return;
    }
    let mut count = 0;
    for (kernel, frames) in kernels(&mut Draw(8)) {
        for way in wgsl::ways(&kernel, frames, LIMITS).unwrap() {
            for step in &way.steps {
                for architecture in ["compute_75", "compute_90"] {
                    let image = driver::compile(&translate(&step.source), architecture)
                        .unwrap_or_else(|error| panic!("{kernel} by {}: {error}", way.name));
                    let image = String::from_utf8(image).unwrap();
                    assert!(image.contains(".visible .entry step("), "{image}");
                    count += 1;
                }
            }
        }
    }
    println!("NVRTC compiled {count} texts");
}

#[test]
fn without_a_driver_the_error_names_what_is_missing() {
    // SAFETY: loading a library of NVIDIA runs its code, which is what is tested.
    if unsafe { cudarc::driver::sys::is_culib_present() } {
        return;
    }
    let Err(error) = cuda_devices() else { panic!("there is a device without a driver") };
    assert_eq!(
        error.to_string(),
        "this program cannot use a GPU with a driver of CUDA: libcuda.so, which comes with \
         NVIDIA's driver, is not there"
    );
}
