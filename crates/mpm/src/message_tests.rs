use super::*;
use crate::methods::{METHODS, by_grpc_name, by_name};
use proptest::prelude::*;

fn of(kind: FieldKind) -> BoxedStrategy<Value> {
    let text = || "\\PC{0,20}".prop_map(Value::from);
    let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary);
    let list = |item: BoxedStrategy<Value>| {
        prop::collection::vec(item, 0..5).prop_map(Value::Array).boxed()
    };
    let map = move || prop::collection::vec((text(), text()), 0..4).prop_map(Value::Map);
    match kind {
        FieldKind::Token | FieldKind::Text => text().boxed(),
        FieldKind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        FieldKind::Board | FieldKind::Uint => any::<u64>().prop_map(Value::from).boxed(),
        FieldKind::Int => any::<i32>().prop_map(Value::from).boxed(),
        FieldKind::Double => any::<f64>().prop_map(Value::from).boxed(),
        FieldKind::Texts => list(text().boxed()),
        FieldKind::Uints => list(of(FieldKind::Uint)),
        FieldKind::Ints => list(of(FieldKind::Int)),
        FieldKind::Doubles => list(of(FieldKind::Double)),
        FieldKind::Map => map().boxed(),
        FieldKind::Maps => list(map().boxed()),
        FieldKind::Blobs => {
            prop::collection::vec((text(), bytes()), 0..4).prop_map(Value::Map).boxed()
        }
    }
}

/// Returns a method with arguments as MessagePack has them, and a result.
fn call() -> impl Strategy<Value = (&'static Method, Vec<Value>, Value)> {
    prop::sample::select(METHODS).prop_flat_map(|method: Method| {
        let method = by_grpc_name(method.grpc).unwrap();
        let token = method.request.iter().filter(|&&kind| kind == FieldKind::Token);
        let others = method.request.iter();
        let others = others.filter(|kind| !matches!(kind, FieldKind::Token | FieldKind::Board));
        let arguments: Vec<_> = token.chain(others).map(|&kind| of(kind)).collect();
        let result = match method.response {
            [] => Just(Value::Nil).boxed(),
            [kind] => of(*kind),
            kinds => {
                let all: Vec<_> = kinds.iter().map(|&kind| of(kind)).collect();
                all.prop_map(Value::Array).boxed()
            }
        };
        (Just(method), arguments, result)
    })
}

proptest! {
    #[test]
    fn a_call_and_its_result_come_back_as_they_were(
        (method, arguments, result) in call(),
        board in 0u32..4,
    ) {
        let board = method.request.contains(&FieldKind::Board).then_some(board);
        let request = encode_request(method, board, &arguments).unwrap();
        prop_assert_eq!(decode_request(method, &request, 100).unwrap(), (board, arguments));
        let response = encode_response(method, &result).unwrap();
        prop_assert_eq!(decode_response(method, &response, 100).unwrap(), result);
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(
        method in prop::sample::select(METHODS),
        bytes in prop::collection::vec(prop_oneof![0..40u8, any::<u8>()], 0..200),
    ) {
        let _ = decode_request(&method, &bytes, 10);
        let _ = decode_response(&method, &bytes, 10);
    }
}

#[test]
fn bytes_are_those_of_the_interface_definition() {
    let (method, board) = by_name("db_1_set_gain").unwrap();
    let arguments = ["T".into(), "RX1".into(), 1.0.into()];
    let bytes =
        [&[0x08, 1, 0x12, 1, b'T', 0x1A, 3, b'R', b'X', b'1', 0x21][..], &1f64.to_le_bytes()]
            .concat();
    assert_eq!(encode_request(method, board, &arguments).unwrap(), bytes);
    // The token stands behind the board there, and before the source here.
    let (method, board) = by_name("set_gpio_src").unwrap();
    let sources = Value::Array(vec!["PS".into(), "".into()]);
    let bytes = [0x0A, 1, b'T', 0x12, 1, b'G', 0x1A, 2, b'P', b'S', 0x1A, 0];
    assert_eq!(encode_request(method, board, &["T".into(), "G".into(), sources]).unwrap(), bytes);
    let (method, _) = by_name("get_mpm_compat_num").unwrap();
    let version = Value::Array(vec![7.into(), 0.into()]);
    assert_eq!(encode_response(method, &version).unwrap(), [0x0A, 2, 7, 0]);
    // A list that is not packed is the same.
    assert_eq!(decode_response(method, &[0x08, 7, 0x08, 0], 2).unwrap(), version);
    let (method, _) = by_name("get_device_info").unwrap();
    let info = Value::Map(vec![("a".into(), true.into()), ("n".into(), Value::Nil)]);
    let bytes = [0x0A, 11, 0x0A, 9, 0x0A, 1, b'a', 0x12, 4, b't', b'r', b'u', b'e'];
    assert_eq!(encode_response(method, &info).unwrap(), bytes);
}

#[test]
fn defaults_are_absent() {
    for (name, arguments) in [
        ("set_timekeeper_time", vec!["".into(), 0.into(), 0.into(), false.into()]),
        ("set_timekeeper_time", vec![]),
        ("db_0_set_gain", vec!["".into(), "".into(), 0.0.into()]),
    ] {
        let (method, board) = by_name(name).unwrap();
        assert_eq!(encode_request(method, board, &arguments).unwrap(), []);
    }
    let (method, _) = by_name("supports_feature").unwrap();
    assert_eq!(decode_response(method, &[], 0).unwrap(), Value::from(false));
}

#[test]
fn elements_are_bounded() {
    let (method, _) = by_name("get_clocks").unwrap();
    let two = [0x0A, 4, 0x0A, 0, 0x0A, 0];
    assert!(decode_response(method, &two, 5).is_ok());
    assert_eq!(decode_response(method, &two, 4), Err(ProtoError));
}

#[test]
fn an_argument_that_does_not_fit_is_named() {
    let (method, board) = by_name("db_0_set_gain").unwrap();
    let error = encode_request(method, board, &["T".into(), "RX1".into(), "x".into()]).unwrap_err();
    assert_eq!(error, "field 4 must be a number, not \"x\"");
    let many = vec![Value::from(""); 4];
    assert!(encode_request(method, board, &many).is_err());
}
