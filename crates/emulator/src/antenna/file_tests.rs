use super::*;
use crate::antenna::parse;
use std::fs;

fn samples(count: usize) -> Vec<u8> {
    (0..count as u32).flat_map(|k| (k.wrapping_mul(2_654_435_761)).to_le_bytes()).collect()
}

fn error_of(spec: &str) -> String {
    parse(spec).err().expect("the antenna must be refused").to_string()
}

#[test]
fn a_file_repeats_over_timestamps_across_chunks_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let length = CHUNK_SAMPLES + 1001;
    let raw = samples(length);
    let path = dir.path().join("a,b.sc16");
    fs::write(&path, &raw).unwrap();
    let mut antenna = parse(&format!("file:{}", path.display())).unwrap();
    for tick in [0u64, 5, CHUNK_SAMPLES as u64 - 1, length as u64 - 2, 1 << 41, u64::MAX - 3000] {
        let mut out = vec![[0; 4]; 2000];
        antenna.fill(tick, &mut out);
        for (k, sample) in out.iter().enumerate() {
            let at = ((tick + k as u64) % length as u64) as usize * 4;
            assert_eq!(sample[..], raw[at..at + 4], "tick {tick} + {k}");
        }
    }
    assert_eq!(antenna.starved_samples(), 0);
}

#[test]
fn cf32_is_rounded_and_saturates() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bin");
    let values = [0.5f32, -1.0, 1.5, -1.5];
    fs::write(&path, values.map(f32::to_le_bytes).concat()).unwrap();
    let mut antenna = parse(&format!("file:{},format=cf32", path.display())).unwrap();
    let mut out = [[0; 4]; 2];
    antenna.fill(0, &mut out);
    assert_eq!(out, [sc16(16384, -32767), sc16(32767, -32768)]);
}

#[test]
fn sigmf_is_found_from_either_file() {
    let dir = tempfile::tempdir().unwrap();
    let meta = dir.path().join("rec.sigmf-meta");
    let data = dir.path().join("rec.sigmf-data");
    fs::write(&meta, r#"{"global": {"core:datatype": "ci16_le"}}"#).unwrap();
    fs::write(&data, samples(10)).unwrap();
    for path in [&meta, &data] {
        let mut out = [[0; 4]; 1];
        parse(&format!("file:{}", path.display())).unwrap().fill(13, &mut out);
        assert_eq!(out[0][..], samples(10)[12..16]);
    }
    fs::write(&meta, r#"{"global": {"core:datatype": "ru8"}}"#).unwrap();
    let text = error_of(&format!("file:{}", data.display()));
    assert!(text.contains("ru8") && text.contains("ci16_le"), "{text}");
    fs::write(&meta, "not json").unwrap();
    assert!(error_of(&format!("file:{}", data.display())).contains("not valid SigMF metadata"));
}

#[test]
fn what_says_that_the_data_are_no_plain_samples_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let meta = dir.path().join("rec.sigmf-meta");
    fs::write(dir.path().join("rec.sigmf-data"), samples(10)).unwrap();
    for (global, captures, reason) in [
        (r#""core:trailing_bytes": 8"#, "", "core:trailing_bytes is 8"),
        (r#""core:metadata_only": true"#, "", "core:metadata_only is true"),
        (r#""core:num_channels": 2"#, "", "core:num_channels is 2"),
        (
            r#""core:extensions": [{"name": "x", "optional": false}]"#,
            "",
            r#"optional = false, is "x""#,
        ),
        ("", r#"{"core:sample_start": 0, "core:header_bytes": 4}"#, "core:header_bytes is 4"),
        (r#""core:num_channels": 1.0, "core:trailing_bytes": null"#, "{}", ""),
        (r#""core:extensions": [{"name": "millstream", "optional": false}]"#, "", ""),
    ] {
        let more = if global.is_empty() { String::new() } else { format!(", {global}") };
        let text = format!(
            r#"{{"global": {{"core:datatype": "ci16_le"{more}}}, "captures": [{captures}]}}"#
        );
        fs::write(&meta, text).unwrap();
        let spec = format!("file:{}", meta.display());
        match reason {
            "" => drop(parse(&spec).unwrap()),
            reason => {
                let text = error_of(&spec);
                assert!(text.contains(reason) && text.contains("not supported here"), "{text}");
            }
        }
    }
}

#[test]
fn unusable_files_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut ts = vec![0u8; 188 * 4];
    ts.iter_mut().step_by(188).for_each(|byte| *byte = 0x47);
    let cases: [(&str, &[u8], &str); 7] = [
        ("empty.sc16", b"", "empty"),
        ("cut.sc16", &[1; 401], "truncated"),
        ("cut.cf32", &[0; 12], "truncated"),
        ("sound.sc16", b"RIFF1234WAVE", "WAV"),
        ("video.sc16", &ts, "atsc:FILE.ts"),
        ("noise.cf32", &[0xff; 16], "not 32-bit float I/Q"),
        ("picture.jpg", &[0; 16], "format=sc16"),
    ];
    for (name, content, reason) in cases {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let text = error_of(&format!("file:{}", path.display()));
        assert!(text.contains(reason) && text.contains(name), "{text}");
    }
    let text = error_of("file:/nonexistent/x.sc16");
    assert!(text.contains("/nonexistent/x.sc16") && text.contains("No such file"), "{text}");
    assert!(error_of(&format!("file:{},format=sc16", dir.path().display())).contains("regular"));
}

#[test]
fn a_file_cut_under_way_costs_zeros_and_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sc16");
    fs::write(&path, samples(1000)).unwrap();
    let mut antenna = parse(&format!("file:{}", path.display())).unwrap();
    fs::write(&path, samples(600)).unwrap();
    let mut out = [[9; 4]; 1000];
    antenna.fill(0, &mut out);
    assert_eq!(out[999], [0; 4]);
    assert_eq!(antenna.starved_samples(), 400);
}

#[test]
fn what_has_no_end_is_refused_wherever_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = |name: &str| {
        let path = folder.path().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path.display().to_string()
    };
    let [raw, stream, meta] = ["a.sc16", "a.ts", "a.sigmf-meta"].map(fifo);
    let specs = [format!("file:{raw}"), format!("atsc:{stream}"), format!("file:{meta}")];
    for spec in specs.iter().map(String::as_str).chain(["atsc:/dev/zero"]) {
        let error = crate::antenna::parse(spec).err().unwrap().to_string();
        assert!(error.contains("not a regular file"), "{spec}: {error}");
    }
    let error = crate::scene::Scene::load(meta.as_ref()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
