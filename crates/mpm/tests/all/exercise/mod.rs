//! Harnesses for any bytes: property tests and fuzz targets share them.

#![allow(dead_code, reason = "each target calls one of these")]

use millstream_mpm::{
    ClientEnd, GrpcCode, GrpcServer, GrpcStatus, METHODS, RpcKind, decode_request, decode_response,
    encode_request, encode_response,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

const ITEMS: usize = 100;

/// A message: the first byte chooses the method. What can be decoded can be encoded, and comes back
/// as it was.
pub fn message(bytes: &[u8]) {
    let Some((&choice, message)) = bytes.split_first() else { return };
    let method = &METHODS[usize::from(choice) % METHODS.len()];
    // Bytes are compared, as there are values that do not equal themselves (NaN).
    if let Ok((board, arguments)) = decode_request(method, message, ITEMS) {
        let encoded = encode_request(method, board, &arguments).unwrap();
        let (board, arguments) = decode_request(method, &encoded, ITEMS).unwrap();
        assert_eq!(encode_request(method, board, &arguments).unwrap(), encoded);
    }
    if let Ok(result) = decode_response(method, message, ITEMS) {
        let encoded = encode_response(method, &result).unwrap();
        let result = decode_response(method, &encoded, ITEMS).unwrap();
        assert_eq!(encode_response(method, &result).unwrap(), encoded);
    }
}

/// The bytes of a connection, at its server and at clients of both kinds, whole and in pieces.
pub fn connection(bytes: &[u8]) {
    for piece in [bytes.len().max(1), 5] {
        server(bytes, piece);
        for kind in [RpcKind::Msgpack, RpcKind::Grpc] {
            client(bytes, piece, kind);
        }
    }
}

fn server(bytes: &[u8], piece: usize) {
    let mut server = GrpcServer::new();
    let mut unsent = Vec::new();
    server.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00");
    for piece in bytes.chunks(piece) {
        server.receive(piece);
        loop {
            match server.next_call() {
                Ok(None) => break,
                Ok(Some(call)) => {
                    let message = format!("{:?}", call.arguments);
                    let status = GrpcStatus { code: GrpcCode::Internal, message };
                    server.answer(call, Err(status));
                }
                Err(_) => return,
            }
        }
        server.drain_into(&mut unsent);
    }
    // Nothing makes it say much more than it hears.
    assert!(unsent.len() <= 1000 + 20 * bytes.len(), "{} of {}", unsent.len(), bytes.len());
}

fn client(bytes: &[u8], piece: usize, kind: RpcKind) {
    let mut client = ClientEnd::new(kind, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));
    client.call(1, "get_device_info", vec![], Duration::from_secs(2)).unwrap();
    let mut unsent = Vec::new();
    for piece in bytes.chunks(piece) {
        client.receive(piece);
        loop {
            match client.next_answer() {
                Ok(None) => break,
                Ok(Some(_)) => {}
                Err(_) => return,
            }
        }
        client.drain_into(&mut unsent);
    }
    assert!(unsent.len() <= 1000 + 20 * bytes.len(), "{} of {}", unsent.len(), bytes.len());
}
