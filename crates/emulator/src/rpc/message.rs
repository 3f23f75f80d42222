//! MessagePack-RPC messages.

use millstream_wire::msgpack::MessageLimits;
use rmpv::Value;

/// The size limits of a request. The longest real one is `init` with its argument map.
pub const LIMITS: MessageLimits = MessageLimits { bytes: 16 * 1024, depth: 8, items: 1024 };

/// A call: `[0, msgid, "method", [args…]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// The id that the answer must repeat.
    pub msgid: u64,
    /// The method's name.
    pub method: String,
    /// Its arguments, the claim token first where the method needs one.
    pub args: Vec<Value>,
}

/// Decodes one object that a scan within [`LIMITS`] found complete; returns `None` when it is not a
/// request.
pub fn decode(mut bytes: &[u8]) -> Option<RpcRequest> {
    let Value::Array(parts) = rmpv::decode::read_value(&mut bytes).ok()? else { return None };
    let [kind, msgid, method, args] = <[Value; 4]>::try_from(parts).ok()?;
    let (Value::String(method), Value::Array(args)) = (method, args) else { return None };
    (kind.as_u64() == Some(0)).then_some(())?;
    Some(RpcRequest { msgid: msgid.as_u64()?, method: method.into_str()?, args })
}

/// Appends the answer `[1, msgid, error, result]` to `out`.
pub fn encode_reply(out: &mut Vec<u8>, msgid: u64, answer: Result<Value, String>) {
    let (error, result) = match answer {
        Ok(result) => (Value::Nil, result),
        Err(text) => (Value::from(text), Value::Nil),
    };
    let reply = Value::Array(vec![Value::from(1), Value::from(msgid), error, result]);
    rmpv::encode::write_value(out, &reply).expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::msgpack::{Scan, scan};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,300}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(|data| Value::Ext(7, data)),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..5).prop_map(Value::Map),
            ]
        })
    }

    // The scan and the decoder are written independently: they must agree on the end of an object.
    proptest! {
        #[test]
        fn an_object_ends_where_the_encoder_stopped(value in value(), tail in any::<[u8; 3]>()) {
            let mut bytes = encoded(value);
            prop_assume!(bytes.len() < LIMITS.bytes);
            let length = bytes.len();
            for cut in [0, length / 2, length - 1] {
                prop_assert_eq!(scan(&bytes[..cut], &LIMITS), Ok(Scan::NeedMore));
            }
            bytes.extend(tail);
            prop_assert_eq!(scan(&bytes, &LIMITS), Ok(Scan::Complete(length)));
        }

        #[test]
        fn what_is_complete_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            if let Ok(Scan::Complete(length)) = scan(&bytes, &LIMITS) {
                let mut rest = &bytes[..length];
                prop_assert!(rmpv::decode::read_value(&mut rest).is_ok());
                prop_assert!(rest.is_empty());
            }
        }
    }

    fn encoded(value: Value) -> Vec<u8> {
        let mut out = Vec::new();
        rmpv::encode::write_value(&mut out, &value).unwrap();
        out
    }

    #[test]
    fn a_request_is_taken_apart() {
        let bytes = encoded(Value::Array(vec![
            Value::from(0),
            Value::from(7),
            Value::from("claim"),
            Value::Array(vec![Value::from("UHD")]),
        ]));
        let want =
            RpcRequest { msgid: 7, method: "claim".to_owned(), args: vec![Value::from("UHD")] };
        assert_eq!(decode(&bytes), Some(want));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let args = || Value::Array(vec![]);
        for parts in [
            vec![],
            vec![Value::from(1), Value::from(7), Value::from("m"), args()],
            vec![Value::from(0), Value::from(-7), Value::from("m"), args()],
            vec![Value::from(0), Value::from(7), Value::from(5), args()],
            vec![Value::from(0), Value::from(7), Value::from("m"), Value::Nil],
            vec![Value::from(0), Value::from(7), Value::from("m"), args(), args()],
        ] {
            assert_eq!(decode(&encoded(Value::Array(parts))), None);
        }
        assert_eq!(decode(&encoded(Value::from(5))), None);
    }

    #[test]
    fn an_error_is_a_string_and_a_result_is_not() {
        let mut out = Vec::new();
        encode_reply(&mut out, 3, Err("no".to_owned()));
        assert_eq!(out, [0x94, 1, 3, 0xa2, b'n', b'o', 0xc0]);
        out.clear();
        encode_reply(&mut out, 3, Ok(Value::from(true)));
        assert_eq!(out, [0x94, 1, 3, 0xc0, 0xc3]);
    }
}
