//! Tests of the client against servers that misbehave.

use super::*;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

/// Returns a server that reads one request and answers with `bytes`, a piece at a time.
fn serve(pieces: Vec<Vec<u8>>, pause: Duration) -> (SocketAddrV4, thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).unwrap() > 0);
        for piece in pieces {
            if stream.write_all(&piece).is_err() {
                return;
            }
            thread::sleep(pause);
        }
        // Wait for the client to hang up, so that "no answer" is not "closed".
        let _ = stream.read(&mut request);
    });
    (address, server)
}

fn response(value: Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &value).unwrap();
    bytes
}

fn call(pieces: Vec<Vec<u8>>, pause_ms: u64) -> Result<Value, RpcError> {
    let (address, server) = serve(pieces, Duration::from_millis(pause_ms));
    let mut client = RpcClient::connect(address).unwrap();
    let result = client.call("spam", vec![1.into()], Duration::from_millis(200));
    drop(client);
    server.join().unwrap();
    result
}

#[test]
fn a_response_may_arrive_in_pieces_and_behind_an_older_one() {
    let old = response(Value::Array(vec![1.into(), 77.into(), Value::Nil, 0.into()]));
    let new = response(Value::Array(vec![1.into(), 0.into(), Value::Nil, 42.into()]));
    let mut pieces: Vec<_> = vec![old];
    pieces.extend(new.chunks(1).map(<[u8]>::to_vec));
    assert_eq!(call(pieces, 1).unwrap(), Value::from(42));
}

#[test]
fn an_error_of_the_device_is_passed_on_with_the_method() {
    let error = Value::Array(vec![1.into(), 0.into(), "no such antenna".into(), Value::Nil]);
    let text = call(vec![response(error)], 0).unwrap_err().to_string();
    assert!(text.contains("refused the call \"spam\": no such antenna"), "{text}");
}

#[test]
fn a_late_answer_in_pieces_is_passed_over_by_the_next_call() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    let mut client = RpcClient::connect(address).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let answer = |id: u32, result: &str| {
        response(Value::Array(vec![1.into(), id.into(), Value::Nil, result.into()]))
    };
    let late = answer(0, "late");
    server.write_all(&late[..5]).unwrap();
    let first = client.call("first", vec![], Duration::from_millis(50));
    assert!(matches!(first, Err(RpcError::Timeout { .. })), "{first:?}");
    server.write_all(&[&late[5..], &answer(1, "new")].concat()).unwrap();
    assert_eq!(client.call("second", vec![], CALL_TIMEOUT).unwrap(), Value::from("new"));
}

#[test]
fn silence_and_dripping_end_at_the_same_bound() {
    let text = call(vec![], 0).unwrap_err().to_string();
    assert!(text.contains("did not answer the call \"spam\" within 200 ms"), "{text}");
    // An array that announces more objects than come, one byte each 20 ms.
    let drip = std::iter::once(vec![0x9F]).chain((0..30).map(|_| vec![0x01])).collect();
    assert!(matches!(call(drip, 20), Err(RpcError::Timeout { .. })));
}

#[test]
fn hostile_responses_are_errors() {
    for (bytes, part) in [
        (vec![0x91; 200], "too deep"),
        // Refused because of the announced size, before the objects come.
        (vec![0xDB, 0xFF, 0xFF, 0xFF, 0xFF], "too long"),
        (vec![0xDD, 0xFF, 0xFF, 0xFF, 0xFF], "too many elements"),
        (vec![0xC0], "not a response"),
        (vec![0x94, 0x00, 0x00, 0xC0, 0xC0], "not a response"),
    ] {
        let text = call(vec![bytes], 0).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
        assert!(text.contains("\"spam\""), "{text}");
    }
}

#[test]
fn nobody_there_says_what_to_check() {
    let address = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
        address
    };
    let text = RpcClient::connect(address).unwrap_err().to_string();
    assert!(
        text.contains(&address.to_string()) && text.contains("(or emulated radio) runs"),
        "{text}"
    );
}
