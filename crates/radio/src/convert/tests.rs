//! Every form gives the bits of the reference.

use super::*;

fn forms() -> impl Iterator<Item = Converter> {
    Form::ALL.into_iter().filter_map(Converter::with_form)
}

fn bits(samples: &[Complex32]) -> Vec<(u32, u32)> {
    samples.iter().map(|s| (s.re.to_bits(), s.im.to_bits())).collect()
}

/// A small generator, so that failures repeat.
fn noise(count: usize, mut state: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    })
}

#[test]
fn the_reference_follows_the_wire_format() {
    // I = 1, Q = -2, then full scale.
    let wire = [0x01, 0x00, 0xFE, 0xFF, 0xFF, 0x7F, 0x00, 0x80];
    let mut out = [Complex32::default(); 2];
    let scalar = Converter::with_form(Form::Scalar).unwrap();
    assert_eq!(scalar.sc16_to_fc32(&wire, &mut out, 0.5), 2);
    assert_eq!(out, [Complex32::new(0.5, -1.0), Complex32::new(16383.5, -16384.0)]);
    scalar.sc16_to_fc32(&wire, &mut out, SC16_SCALE);
    assert_eq!(out[1].re, 1.0);
}

#[test]
fn all_sixteen_bit_values_convert_alike_and_come_back() {
    let wire: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let scalar = Converter::with_form(Form::Scalar).unwrap();
    for scale in [SC16_SCALE, 1.0, 1.0 / 32768.0, 0.1] {
        let mut want = vec![Complex32::default(); wire.len() / 4];
        scalar.sc16_to_fc32(&wire, &mut want, scale);
        for converter in forms() {
            let mut got = vec![Complex32::default(); want.len()];
            assert_eq!(converter.sc16_to_fc32(&wire, &mut got, scale), want.len());
            assert_eq!(bits(&got), bits(&want), "{converter:?}, scale {scale}");
        }
    }
    for converter in forms() {
        let mut floats = vec![Complex32::default(); wire.len() / 4];
        converter.sc16_to_fc32(&wire, &mut floats, SC16_SCALE);
        let mut back = vec![0; wire.len()];
        converter.fc32_to_sc16(&floats, &mut back, 32767.0);
        assert!(back == wire, "{converter:?}");
    }
}

#[test]
fn every_alignment_and_size_converts_alike() {
    let bytes: Vec<u8> = noise(400, 1).map(|word| word as u8).collect();
    let scalar = Converter::with_form(Form::Scalar).unwrap();
    for converter in forms() {
        for offset in 0..8 {
            for count in 0..70 {
                let wire = &bytes[offset..offset + count * 4 + offset % 4];
                let mut want = vec![Complex32::default(); count + 3];
                let mut got = vec![Complex32::default(); count + 3 + offset];
                assert_eq!(scalar.sc16_to_fc32(wire, &mut want, SC16_SCALE), count);
                assert_eq!(converter.sc16_to_fc32(wire, &mut got[offset..], SC16_SCALE), count);
                assert_eq!(bits(&got[offset..]), bits(&want), "{converter:?}, {offset}, {count}");

                let mut want = vec![0xA5; count * 4 + 8];
                let mut got = vec![0xA5; count * 4 + 8 + offset];
                let floats: Vec<_> = noise(count, 7)
                    .map(|word| Complex32::new(f32::from_bits(word), word as f32 / 4e9))
                    .collect();
                assert_eq!(scalar.fc32_to_sc16(&floats, &mut want[..count * 4], 4e4), count);
                converter.fc32_to_sc16(&floats, &mut got[offset..][..count * 4], 4e4);
                assert_eq!(got[offset..], want, "{converter:?}, {offset}, {count}");
            }
        }
    }
}

#[test]
fn rounding_is_to_even_and_saturates() {
    let cases = [
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (-0.5, 0),
        (-1.5, -2),
        (32766.5, 32766),
        (32767.4, 32767),
        (32767.5, 32767),
        (1e9, 32767),
        (-32768.5, -32768),
        (-1e9, -32768),
        (f32::INFINITY, 32767),
        (f32::NEG_INFINITY, -32768),
        (f32::NAN, 0),
        (-0.0, 0),
        (f32::MIN_POSITIVE, 0),
    ];
    let floats: Vec<_> = cases.iter().map(|case| Complex32::new(case.0, -7.0)).collect();
    for converter in forms() {
        let mut wire = vec![0; floats.len() * 4];
        converter.fc32_to_sc16(&floats, &mut wire, 1.0);
        for (bytes, (value, want)) in wire.chunks(4).zip(cases) {
            let got = i16::from_le_bytes([bytes[0], bytes[1]]);
            assert_eq!(got, want, "{converter:?}, {value}");
            assert_eq!(bytes[2..], (-7i16).to_le_bytes());
        }
    }
}

#[test]
fn the_best_form_is_one_the_processor_has() {
    assert!(Converter::best().form().is_available());
}
