//! The client's end of a connection of either kind.

use std::net::SocketAddrV4;
use std::time::Duration;

use rmpv::Value;

use crate::grpc_client::GrpcClient;
use crate::msgpack_client::MsgpackClient;

/// The id of a call, and its result or the device's text.
pub type RpcAnswer = (u64, Result<Value, String>);

/// How calls travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RpcKind {
    /// MessagePack-RPC: up to UHD 4.10.
    #[default]
    Msgpack,
    /// gRPC: from UHD 4.11 on.
    Grpc,
}

/// Why a connection is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionFault {
    /// The server speaks gRPC, and has not read the MessagePack call. It is to be repeated on a new
    /// connection.
    #[error("gRPC in place of MessagePack")]
    SpeaksGrpc,
    /// What the peer sent is not valid, as described.
    #[error("{0}")]
    Malformed(String),
    /// The call cannot be encoded, as described. Nothing was sent, and the connection is as it was.
    #[error("{0}")]
    Call(String),
}

impl From<h2::Error> for ConnectionFault {
    fn from(error: h2::Error) -> Self {
        Self::Malformed(format!("bytes that cannot be decoded ({error})"))
    }
}

/// The client's end of a connection, with one call outstanding: a call before is given up.
pub struct ClientEnd(End);

enum End {
    Msgpack(MsgpackClient),
    Grpc(Box<GrpcClient>),
}

impl std::fmt::Debug for ClientEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClientEnd").field(&self.kind()).finish()
    }
}

impl ClientEnd {
    /// Returns the end of a new connection to `server`.
    pub fn new(kind: RpcKind, server: SocketAddrV4) -> Self {
        Self(match kind {
            RpcKind::Msgpack => End::Msgpack(MsgpackClient::default()),
            RpcKind::Grpc => End::Grpc(Box::new(GrpcClient::new(server))),
        })
    }

    /// Returns how calls travel.
    pub fn kind(&self) -> RpcKind {
        match &self.0 {
            End::Msgpack(_) => RpcKind::Msgpack,
            End::Grpc(_) => RpcKind::Grpc,
        }
    }

    /// Prepares the bytes of a call. `timeout` is told to a server that wants to know it.
    ///
    /// # Errors
    /// [`ConnectionFault`].
    pub fn call(
        &mut self,
        id: u32,
        method: &str,
        arguments: Vec<Value>,
        timeout: Duration,
    ) -> Result<(), ConnectionFault> {
        match &mut self.0 {
            End::Msgpack(client) => {
                client.call(id, method, arguments);
                Ok(())
            }
            End::Grpc(client) => client.call(id, method, &arguments, timeout),
        }
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            End::Msgpack(client) => client.receive(bytes),
            End::Grpc(client) => client.receive(bytes),
        }
    }

    /// Returns the next complete answer, which may be that of a call that was given up.
    ///
    /// # Errors
    /// [`ConnectionFault`].
    pub fn next_answer(&mut self) -> Result<Option<RpcAnswer>, ConnectionFault> {
        match &mut self.0 {
            End::Msgpack(client) => client.next_answer(),
            End::Grpc(client) => client.next_answer(),
        }
    }

    /// Moves the bytes to send behind those in `unsent`. There may be some after each call of
    /// another function.
    pub fn drain_into(&mut self, unsent: &mut Vec<u8>) {
        match &mut self.0 {
            End::Msgpack(client) => client.drain_into(unsent),
            End::Grpc(client) => client.drain_into(unsent),
        }
    }
}
