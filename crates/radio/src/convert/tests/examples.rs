//! Tests of the formats by example, and of properties of all values.

use super::*;

fn converters(wire: Wire) -> impl Iterator<Item = Converter> {
    ConvertForm::ALL.into_iter().filter_map(move |form| Converter::with_form(wire, form))
}

#[test]
fn sc16_is_little_endian_i_then_q() {
    // I = 1, Q = -2, then the limits.
    let wire = [0x01, 0x00, 0xFE, 0xFF, 0xFF, 0x7F, 0x00, 0x80];
    for converter in converters(Wire::Sc16) {
        let mut out = [Complex32::default(); 2];
        assert_eq!(converter.to_user(&wire, &mut out, 0.5), 2);
        assert_eq!(out, [Complex32::new(0.5, -1.0), Complex32::new(16383.5, -16384.0)]);
        converter.to_user(&wire, &mut out, SC16_SCALE);
        assert_eq!(out[1].re, 1.0);
    }
}

/// UHD's `sc12_item32_le` makes these bytes from these values.
#[test]
fn sc12_packs_four_samples_into_three_little_endian_words() {
    let wire = [0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87, 0x98, 0xA9, 0xBA, 0xCB];
    let values = [[0x433, 0x221], [0x108, 0x776], [0x655, 0x4CB], [-0x456, -0x668]];
    for converter in converters(Wire::Sc12) {
        let mut out = [[0i16; 2]; 4];
        assert_eq!(converter.to_user(&wire, &mut out, 1.0), 4);
        assert_eq!(out, values, "{converter:?}");
        let mut back = [0; 12];
        assert_eq!(converter.to_wire(&out, &mut back, 1.0), 4);
        assert_eq!(back, wire, "{converter:?}");
    }
}

#[test]
fn a_last_group_that_is_not_full_is_filled_up_with_zeros() {
    for converter in converters(Wire::Sc12) {
        let samples = [[-1i16, -1]; 33];
        let mut out = [0xA5; 110];
        assert_eq!(converter.to_wire(&samples, &mut out, 1.0), 33);
        let (whole, last) = out.split_at(96);
        assert!(whole.iter().all(|byte| *byte == 0xFF), "{converter:?}");
        assert_eq!(last[..12], [0, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(last[12..], [0xA5; 2], "beyond the last group");
        let mut few = [0; 23];
        assert_eq!(converter.to_wire(&samples, &mut few, 1.0), 4, "whole groups only");
        assert_eq!(converter.to_user(&few, &mut [[0i16; 2]; 9], 1.0), 4);
        assert_eq!((Wire::Sc12.bytes_of(33), Wire::Sc12.bytes_of(0)), (108, 0));
    }
}

#[test]
fn all_wire_values_come_back_from_every_type() {
    fn comes_back<U: HostSample>(wire: Wire, bytes: &[u8]) {
        for converter in converters(wire) {
            let count = 4 * bytes.len() / wire.bytes_of(4);
            let mut user = vec![U::zeroed(); count];
            let (scale, inverse) = (U::real(1.0 / 4096.0), U::real(4096.0));
            let (scale, inverse) =
                if U::TWIN.is_none() { (scale, inverse) } else { (U::ONE, U::ONE) };
            assert_eq!(converter.to_user(bytes, &mut user, scale), count);
            let mut back = vec![0; bytes.len()];
            assert_eq!(converter.to_wire(&user, &mut back, inverse), count);
            assert!(back == bytes, "{} {converter:?}", U::NAME);
        }
    }
    let all_pairs: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let (sc12, _) = all_pairs.split_at(all_pairs.len() / 12 * 12);
    for (wire, bytes) in [(Wire::Sc16, &all_pairs[..]), (Wire::Sc12, sc12), (Wire::Sc8, &all_pairs)]
    {
        comes_back::<Complex32>(wire, bytes);
        comes_back::<Complex64>(wire, bytes);
        comes_back::<[i16; 2]>(wire, bytes);
    }
    comes_back::<[i8; 2]>(Wire::Sc8, &all_pairs);
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
        (32767.5, 32767),
        (1e9, 32767),
        (1e20, 32767),
        (-32768.5, -32768),
        (-1e20, -32768),
        (f64::INFINITY, 32767),
        (f64::NEG_INFINITY, -32768),
        (f64::NAN, 0),
        (-0.0, 0),
        (f64::MIN_POSITIVE, 0),
    ];
    fn check<U: Made>(wire: Wire, cases: &[(f64, i16)]) {
        let (low, high) = match wire {
            Wire::Sc16 => (-32768, 32767),
            Wire::Sc12 => (-2048, 2047),
            Wire::Sc8 => (-128, 127),
        };
        let samples: Vec<U> = cases.iter().map(|case| U::made(case.0, -7.0)).collect();
        for converter in converters(wire) {
            let mut bytes = vec![0; wire.bytes_of(samples.len())];
            converter.to_wire(&samples, &mut bytes, U::ONE);
            let mut got = vec![[0i16; 2]; samples.len()];
            converter.to_user(&bytes, &mut got, 1.0);
            let want: Vec<_> = cases.iter().map(|case| [case.1.clamp(low, high), -7]).collect();
            assert_eq!(got, want, "{} {converter:?}", U::NAME);
        }
    }
    for wire in Wire::ALL {
        check::<Complex32>(wire, &cases);
        check::<Complex64>(wire, &cases);
    }
}

#[test]
fn full_scale_goes_to_full_scale() {
    for wire in Wire::ALL {
        let largest = wire.full_scale() as i16;
        let mut bytes = vec![0; wire.bytes_of(4)];
        let converter = Converter::new(wire);
        converter.to_wire(&[[largest, -largest]; 4], &mut bytes, 1.0);
        let mut floats = [Complex32::default(); 4];
        converter.to_user(&bytes, &mut floats, Complex32::scale_from(wire));
        assert!((floats[3] - Complex32::new(1.0, -1.0)).norm() < 1e-6, "{wire:?}");
        let mut small = [[0i8; 2]; 4];
        converter.to_user(&bytes, &mut small, <[i8; 2]>::scale_from(wire));
        assert_eq!(small, [[127, -127]; 4], "{wire:?}");
        let mut back = vec![0; bytes.len()];
        converter.to_wire(&floats, &mut back, Complex32::scale_to(wire));
        assert_eq!(back, bytes, "{wire:?}");
    }
}

/// Results of this size bypass the caches, in the middle.
#[test]
fn large_results_are_the_same() {
    let count = (8 << 20) / 4 + 77;
    let wire: Vec<u8> = (0..4 * count as u32).map(|k| (k.wrapping_mul(40503) >> 7) as u8).collect();
    let scalar = Converter::with_form(Wire::Sc16, ConvertForm::Scalar).unwrap();
    let mut want = vec![Complex32::default(); count];
    let mut got = want.clone();
    scalar.to_user(&wire, &mut want[1..], 0.25);
    let mut back = vec![0; 4 * count];
    for converter in converters(Wire::Sc16) {
        got.fill(Complex32::default());
        assert_eq!(converter.to_user(&wire, &mut got[1..], 0.25), count - 1);
        assert!(got == want, "{converter:?}");
        assert_eq!(converter.to_wire(&got[1..], &mut back[4..], 4.0), count - 1);
        assert!(back[4..] == wire[..wire.len() - 4], "{converter:?}");
    }
}

#[test]
fn the_best_form_is_one_the_processor_has() {
    assert!(ConvertForm::best().is_available());
    assert_eq!(Converter::new(Wire::Sc8).form(), ConvertForm::best());
}
