//! The test of the forms on the processor that they run on, before the first one is chosen.
//!
//! Every form gives the same bits in our tests. But processors, emulators and hypervisors have
//! executed vector instructions wrongly, and a wrong sample looks like a radio's fault.

use super::{ConvertForm, Converter, HostSample, Wire};
use num_complex::{Complex32, Complex64};

/// Samples of a conversion: several blocks of the widest form, whole groups of `sc12`, and a rest.
const SAMPLES: usize = 4 * 33;

/// The result of the test.
#[derive(Debug)]
pub(super) struct SelfTest {
    /// The fastest form that is right.
    pub(super) best: ConvertForm,
    /// Forms that this processor should have, and that give wrong results.
    pub(super) wrong: Vec<ConvertForm>,
}

impl SelfTest {
    /// Tests the forms that this processor has, from the fastest, until one is right.
    pub(super) fn run() -> Self {
        let has = ConvertForm::ALL.into_iter().rev().filter(|form| form.is_available());
        Self::choose(has, |form| is_right(form, |_| {}))
    }

    fn choose(
        forms: impl Iterator<Item = ConvertForm>,
        is_right: impl Fn(ConvertForm) -> bool,
    ) -> Self {
        let mut wrong = Vec::new();
        for form in forms {
            // The scalar form is the reference.
            if form == ConvertForm::Scalar || is_right(form) {
                return Self { best: form, wrong };
            }
            wrong.push(form);
        }
        Self { best: ConvertForm::Scalar, wrong }
    }
}

/// Whether all conversions of a form give the bits of the scalar one; `spoil` may change its
/// results, for tests.
fn is_right(form: ConvertForm, spoil: impl Fn(&mut [u8])) -> bool {
    Wire::ALL.into_iter().all(|wire| {
        agrees::<Complex32>(wire, form, &spoil)
            && agrees::<Complex64>(wire, form, &spoil)
            && agrees::<[i16; 2]>(wire, form, &spoil)
            && agrees::<[i8; 2]>(wire, form, &spoil)
    })
}

fn agrees<U: HostSample>(wire: Wire, form: ConvertForm, spoil: &impl Fn(&mut [u8])) -> bool {
    let [scalar, tested] = [ConvertForm::Scalar, form].map(|form| Converter { wire, form });
    let mut packet = [0; 4 * SAMPLES];
    let packet = &mut packet[..wire.bytes_of(SAMPLES)];
    fill(packet);
    let (mut expected, mut samples) = ([U::zeroed(); SAMPLES], [U::zeroed(); SAMPLES]);
    scalar.to_user(packet, &mut expected, U::scale_from(wire));
    tested.to_user(packet, &mut samples, U::scale_from(wire));
    spoil(bytemuck::cast_slice_mut(&mut samples));
    if bytemuck::cast_slice::<_, u8>(&samples) != bytemuck::cast_slice::<_, u8>(&expected) {
        return false;
    }
    // Back, with results that are rounded, and that are too large for the format.
    let scale: f64 = U::scale_to(wire).into();
    [1.0, 0.3, 1.7].into_iter().all(|factor| {
        let scale = U::real(scale * factor);
        let (mut one, mut other) = ([0; 4 * SAMPLES], [0; 4 * SAMPLES]);
        scalar.to_wire(&expected, &mut one[..packet.len()], scale);
        tested.to_wire(&expected, &mut other[..packet.len()], scale);
        spoil(&mut other[..packet.len()]);
        one == other
    })
}

/// Fills a packet with bytes in which no value repeats soon, and the limits occur (Knuth's linear
/// congruential generator of MMIX).
fn fill(packet: &mut [u8]) {
    let mut state = 1_u64;
    for byte in packet.iter_mut() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    packet[..8].copy_from_slice(&[0xFF, 0x7F, 0x00, 0x80, 0xFF, 0xFF, 0x00, 0x00]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn every_form_of_this_processor_is_right() {
        let start = Instant::now();
        let found = SelfTest::run();
        println!("the test took {:?}", start.elapsed());
        assert_eq!(found.wrong, []);
        let mut has = ConvertForm::ALL.into_iter().filter(|form| form.is_available());
        assert!(has.all(|form| is_right(form, |_| {})));
    }

    #[test]
    fn a_form_with_one_wrong_bit_is_found_and_another_is_taken() {
        let [narrow, wide] = [ConvertForm::Avx2, ConvertForm::Avx512];
        let best = ConvertForm::best();
        for at in [0, 17, SAMPLES - 1] {
            let wrong = |form| is_right(form, |bytes: &mut [u8]| bytes[at] ^= 0x10);
            assert!(!wrong(best), "bit of byte {at}");
            // What one form says stands here for each, whatever the processor has.
            let one_wrong =
                SelfTest::choose([wide, narrow].into_iter(), |form| form != wide || wrong(best));
            assert_eq!((one_wrong.best, &one_wrong.wrong[..]), (narrow, &[wide][..]));
            let forms = [wide, narrow, ConvertForm::Scalar].into_iter();
            let all_wrong = SelfTest::choose(forms, |_| wrong(best));
            assert_eq!(
                (all_wrong.best, all_wrong.wrong),
                (ConvertForm::Scalar, vec![wide, narrow])
            );
        }
    }
}
