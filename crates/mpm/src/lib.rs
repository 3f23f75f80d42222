//! The remote procedure calls of MPM, the management program of a networked radio: by
//! MessagePack-RPC up to UHD 4.10, by gRPC from 4.11 on. Host and emulated radio use the calls as
//! MessagePack has them, and this crate translates: [`METHODS`] says how.
//!
//! Nothing here has a socket, a thread or a clock: [`ClientEnd`] and [`GrpcServer`] take received
//! bytes and return bytes to send. So the limits, time-outs and poll loops of both sides are those
//! of MessagePack-RPC.

mod client;
mod grpc_client;
mod grpc_server;
mod message;
mod methods;
mod msgpack_client;
mod pipe;
mod status;

pub use client::{ClientEnd, ConnectionFault, RpcAnswer, RpcKind};
pub use grpc_server::{GrpcCall, GrpcServer, could_be_http2};
pub use message::{decode_request, decode_response, encode_request, encode_response};
pub use methods::{FieldKind, METHODS, Method, by_grpc_name, by_name, split_board};
pub use msgpack_client::{take_apart, take_object};
pub use status::{GrpcCode, GrpcStatus};

/// The largest response that is read, bytes.
pub const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The largest request that is read, bytes. The longest real one is `init` with its argument map.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The most elements of all lists and maps of a request.
pub const REQUEST_ITEMS_MAX: usize = 1024;

/// The most elements of all lists and maps of a response.
pub const RESPONSE_ITEMS_MAX: usize = 1 << 16;

#[cfg(test)]
mod ends_tests;
