//! Tests that every form gives the bits of the reference, for every pair of formats.

use num_complex::{Complex, Complex32, Complex64};
use proptest::prelude::*;

use super::*;

mod examples;

/// Values at which errors are likely, and any others.
fn odd_float() -> impl Strategy<Value = f64> {
    let limits = [127.0, 128.0, 2047.0, 2048.0, 32767.0, 32768.0, 65536.0, 2147483648.0];
    prop_oneof![
        4 => -40000.0..40000.0,
        2 => (prop::sample::select(limits.to_vec()), -4..=4i32, any::<bool>())
            .prop_map(|(limit, quarters, negative)| {
                let value = limit + f64::from(quarters) / 4.0;
                if negative { -value } else { value }
            }),
        1 => any::<f64>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, 0.5, -0.5, 1.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY,
            f64::MAX, f64::MIN, f64::MIN_POSITIVE, 1e-40, 1e10, -1e10,
        ]),
    ]
}

fn odd_scale() -> impl Strategy<Value = f64> {
    let usual = [1.0, -1.0, 0.0, 1.0 / 32767.0, 16.0, 1.0 / 256.0, 256.0, 32767.0];
    prop_oneof![3 => prop::sample::select(usual.to_vec()), 1 => odd_float()]
}

/// A user's sample that the tests can make.
trait Made: HostSample {
    fn made(i: f64, q: f64) -> Self;
}

impl Made for Complex32 {
    fn made(i: f64, q: f64) -> Self {
        Complex::new(i as f32, q as f32)
    }
}

impl Made for Complex64 {
    fn made(i: f64, q: f64) -> Self {
        Complex::new(i, q)
    }
}

impl Made for [i16; 2] {
    fn made(i: f64, q: f64) -> Self {
        [i as i16, q as i16]
    }
}

impl Made for [i8; 2] {
    fn made(i: f64, q: f64) -> Self {
        [i as i8, q as i8]
    }
}

/// Returns `len` items of memory that begin `offset` bytes behind a multiple of 64, or at the next
/// aligned place.
fn placed<T: bytemuck::Pod>(memory: &mut [Complex64], offset: usize, len: usize) -> &mut [T] {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(memory);
    let start = bytes.as_ptr().align_offset(64) + offset.next_multiple_of(align_of::<T>());
    bytemuck::cast_slice_mut(&mut bytes[start..start + len * size_of::<T>()])
}

fn memory(len: usize) -> Vec<Complex64> {
    vec![Complex64::new(1.5, -2.5); len + 64]
}

/// Not-a-number has many bit patterns, and the rule leaves that of a product open.
fn to_user_agrees<U: Made>(wire: Wire, bytes: &[u8], count: usize, at: usize, scale: f64) {
    let scale = U::real(scale);
    let reference = Converter::with_form(wire, ConvertForm::Scalar).unwrap();
    let mut want = vec![U::zeroed(); count];
    let done = reference.to_user(bytes, &mut want, scale);
    for form in ConvertForm::ALL {
        let Some(converter) = Converter::with_form(wire, form) else { continue };
        let mut memory = memory(count + 1);
        let got: &mut [U] = placed(&mut memory, at, count + 1);
        let (got, beyond) = got.split_at_mut(count);
        let untouched = bytemuck::bytes_of(&beyond[0]).to_vec();
        assert_eq!(converter.to_user(bytes, got, scale), done);
        let same = bytemuck::cast_slice::<_, u8>(&got[..done])
            == bytemuck::cast_slice::<_, u8>(&want[..done]);
        assert!(same, "{wire:?} to {} {form:?}, {count} samples at {at}", U::NAME);
        assert_eq!(bytemuck::bytes_of(&beyond[0]), untouched, "wrote beyond the end");
    }
}

fn to_wire_agrees<U: Made>(wire: Wire, values: &[(f64, f64)], room: usize, at: usize, scale: f64) {
    let scale = U::real(scale);
    let samples: Vec<U> = values.iter().map(|&(i, q)| U::made(i, q)).collect();
    let reference = Converter::with_form(wire, ConvertForm::Scalar).unwrap();
    let mut want = vec![0xA5; room];
    let done = reference.to_wire(&samples, &mut want, scale);
    for form in ConvertForm::ALL {
        let Some(converter) = Converter::with_form(wire, form) else { continue };
        let mut memory = memory(room);
        let got: &mut [u8] = placed(&mut memory, at, room);
        got.fill(0xA5);
        assert_eq!(converter.to_wire(&samples, got, scale), done);
        assert!(got == want, "{} to {wire:?} {form:?}, {done} samples at {at}", U::NAME);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_form_gives_the_users_samples_of_the_reference(
        wire in prop::sample::select(Wire::ALL.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..700),
        skip in 0..16usize,
        count in 0..220usize,
        at in 0..64usize,
        scale in odd_scale(),
    ) {
        let bytes = &bytes[skip.min(bytes.len())..];
        to_user_agrees::<Complex32>(wire, bytes, count, at, scale);
        to_user_agrees::<Complex64>(wire, bytes, count, at, scale);
        to_user_agrees::<[i16; 2]>(wire, bytes, count, at, scale);
        to_user_agrees::<[i8; 2]>(wire, bytes, count, at, scale);
    }

    #[test]
    fn rounding_is_that_of_the_standard_library(value in odd_float()) {
        use super::sample::{round_f32, round_f64};
        prop_assert_eq!(round_f64(value) as i16, value.round_ties_even() as i16);
        let value = value as f32;
        prop_assert_eq!(round_f32(value) as i16, value.round_ties_even() as i16);
        prop_assert_eq!(round_f32(value) as i8, value.round_ties_even() as i8);
    }

    #[test]
    fn every_form_gives_the_packed_samples_of_the_reference(
        wire in prop::sample::select(Wire::ALL.to_vec()),
        values in prop::collection::vec((odd_float(), odd_float()), 0..220),
        room in 0..700usize,
        at in 0..64usize,
        scale in odd_scale(),
    ) {
        to_wire_agrees::<Complex32>(wire, &values, room, at, scale);
        to_wire_agrees::<Complex64>(wire, &values, room, at, scale);
        to_wire_agrees::<[i16; 2]>(wire, &values, room, at, scale);
        to_wire_agrees::<[i8; 2]>(wire, &values, room, at, scale);
    }
}

/// Runs conversions of 1000 samples for docs/evidence/arm64_cost.py.
fn cost<U: Made>(wire: Wire, to_user: bool) {
    let mut bytes = vec![0x15; wire.bytes_of(1000)];
    let mut samples = [U::made(0.25, -0.5); 1000];
    let [plain, fast] = [ConvertForm::Scalar, ConvertForm::best()]
        .map(|form| Converter::with_form(wire, form).unwrap());
    let (from, to) = (U::real(U::FULL_SCALE / 3e4), U::real(3e4 / U::FULL_SCALE));
    let data = std::cell::RefCell::new((&mut bytes[..], &mut samples[..]));
    let convert = |converter: Converter| {
        let (bytes, samples) = &mut *data.borrow_mut();
        let count = match to_user {
            true => converter.to_user(bytes, samples, from),
            false => converter.to_wire(samples, bytes, to),
        };
        assert_eq!(count, 1000);
    };
    millstream_testkit::cost::repeat(|| convert(plain), || convert(fast));
}

macro_rules! costs {
    ($($name:ident: $wire:ident, $user:ty, $to_user:literal;)*) => {$(
        #[test]
        #[ignore = "counted by docs/evidence/arm64_cost.py"]
        fn $name() {
            cost::<$user>(Wire::$wire, $to_user);
        }
    )*};
}

costs! {
    cost_of_sc16_to_fc32: Sc16, Complex32, true;
    cost_of_fc32_to_sc16: Sc16, Complex32, false;
    cost_of_sc12_to_fc32: Sc12, Complex32, true;
    cost_of_fc32_to_sc12: Sc12, Complex32, false;
    cost_of_sc8_to_fc32: Sc8, Complex32, true;
    cost_of_fc32_to_sc8: Sc8, Complex32, false;
    cost_of_sc16_to_fc64: Sc16, Complex64, true;
    cost_of_fc64_to_sc16: Sc16, Complex64, false;
    cost_of_sc16_to_sc8: Sc16, [i8; 2], true;
}
