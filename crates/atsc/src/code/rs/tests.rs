use super::*;
use crate::code::galois;
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = [u8; PAYLOAD_BYTES]> {
    proptest::collection::vec(any::<u8>(), PAYLOAD_BYTES).prop_map(|v| v.try_into().unwrap())
}

/// Returns distinct positions with non-zero error values.
fn errors(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<(usize, u8)>> {
    proptest::collection::btree_map(0..CODEWORD_BYTES, 1..=255u8, count)
        .prop_map(|m| m.into_iter().collect())
}

#[test]
fn a_codeword_is_zero_at_every_root_of_the_generator() {
    let codeword = encode(&std::array::from_fn(|i| (i * 7 + 3) as u8));
    for root in 0..20 {
        assert_eq!(galois::eval(&codeword, galois::exp(root)), 0, "alpha^{root}");
    }
}

proptest! {
    #[test]
    fn up_to_ten_wrong_bytes_are_corrected(payload in payload(), errors in errors(0..=10)) {
        let sent = encode(&payload);
        let mut received = sent;
        errors.iter().for_each(|(at, value)| received[*at] ^= value);
        prop_assert_eq!(decode(&mut received), Ok(errors.len()));
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn more_wrong_bytes_never_give_back_the_sent_word_as_clean(
        payload in payload(),
        errors in errors(11..=60),
    ) {
        let sent = encode(&payload);
        let mut received = sent;
        errors.iter().for_each(|(at, value)| received[*at] ^= value);
        let before = received;
        match decode(&mut received) {
            Err(Uncorrectable) => prop_assert_eq!(received, before),
            // Beyond the code's distance another codeword may be nearer; the result must be a
            // codeword.
            Ok(_) => {
                let mut again = received;
                prop_assert_eq!(decode(&mut again), Ok(0));
                prop_assert_ne!(received, sent);
            }
        }
    }
}

#[test]
fn eleven_wrong_bytes_are_flagged_nearly_always() {
    // A bounded-distance decoder accepts a random word about once in 10! times.
    let sent = encode(&[0x55; PAYLOAD_BYTES]);
    let mut flagged = 0;
    for trial in 0..500usize {
        let mut received = sent;
        (0..11).for_each(|i| received[(trial * 13 + i * 17) % CODEWORD_BYTES] ^= (i + 1) as u8);
        flagged += usize::from(decode(&mut received).is_err());
    }
    assert!(flagged >= 499, "{flagged} of 500");
}
