//! MessagePack-RPC messages (facts section 3).

use rmpv::Value;

/// A call: `[0, msgid, "method", [args…]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What the answer must repeat.
    pub msgid: u64,
    /// The method's name.
    pub method: String,
    /// Its arguments, the claim token first where the method needs one.
    pub args: Vec<Value>,
}

/// Reads one complete object; `None` when it is no request.
pub fn decode(mut bytes: &[u8]) -> Option<Request> {
    let Value::Array(parts) = rmpv::decode::read_value(&mut bytes).ok()? else { return None };
    let [kind, msgid, method, args] = <[Value; 4]>::try_from(parts).ok()?;
    let (Value::String(method), Value::Array(args)) = (method, args) else { return None };
    (kind.as_u64() == Some(0)).then_some(())?;
    Some(Request { msgid: msgid.as_u64()?, method: method.into_str()?, args })
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
        let want = Request { msgid: 7, method: "claim".to_owned(), args: vec![Value::from("UHD")] };
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
