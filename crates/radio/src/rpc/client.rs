//! One connection with one call outstanding.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use millstream_mpm::{ClientEnd, ConnectionFault, RpcKind};
use rmpv::Value;

use super::claim::ClaimLoss;
use super::keeper::{ClaimToKeep, KeptClaim};
use super::{CALL_TIMEOUT, RpcError, patience};
use crate::deadline::deadline;

/// A connection to a device's RPC server.
#[derive(Debug)]
pub struct RpcClient {
    stream: TcpStream,
    address: SocketAddrV4,
    next_id: u32,
    /// The connection without its socket.
    end: ClientEnd,
}

/// Why a call failed.
#[derive(Debug)]
enum CallFault {
    Rpc(RpcError),
    OfConnection(ConnectionFault),
}

impl From<RpcError> for CallFault {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl From<ConnectionFault> for CallFault {
    fn from(fault: ConnectionFault) -> Self {
        Self::OfConnection(fault)
    }
}

impl RpcClient {
    /// Connects to a server, which is taken to speak MessagePack-RPC until it says something else.
    ///
    /// # Errors
    /// [`RpcError::Connect`].
    pub fn connect(address: SocketAddrV4) -> Result<Self, RpcError> {
        Self::connect_as(RpcKind::Msgpack, address)
    }

    fn connect_as(kind: RpcKind, address: SocketAddrV4) -> Result<Self, RpcError> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&SocketAddr::V4(address), CALL_TIMEOUT)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = connect().map_err(|source| RpcError::Connect { address, source })?;
        Ok(Self { stream, address, next_id: 0, end: ClientEnd::new(kind, address) })
    }

    /// Replaces the connection by a new one.
    ///
    /// # Errors
    /// [`RpcError::Connect`]; the old connection stays then.
    pub fn reconnect(&mut self) -> Result<(), RpcError> {
        self.reconnect_as(self.end.kind())
    }

    /// Speaks as `other` has found out that the server does.
    ///
    /// # Errors
    /// [`RpcError::Connect`].
    pub(super) fn speak_as(&mut self, other: &Self) -> Result<(), RpcError> {
        match other.end.kind() {
            kind if kind == self.end.kind() => Ok(()),
            kind => self.reconnect_as(kind),
        }
    }

    fn reconnect_as(&mut self, kind: RpcKind) -> Result<(), RpcError> {
        let next_id = self.next_id;
        *self = Self { next_id, ..Self::connect_as(kind, self.address)? };
        Ok(())
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Hands the connection over to the thread that renews claims.
    pub(super) fn keep(self, token: Value, lost: ClaimLoss) -> io::Result<KeptClaim> {
        let Self { stream, address, next_id, end } = self;
        KeptClaim::new(ClaimToKeep { stream, end, address, token, next_id, lost })
    }

    /// Calls `method` and waits for its result up to `timeout`.
    ///
    /// A device that speaks gRPC says so before it reads the first call, which is then repeated on
    /// a new connection.
    ///
    /// # Errors
    /// Any [`RpcError`]. After [`RpcError::Broken`] and [`RpcError::Protocol`] the connection is
    /// unusable.
    pub fn call(
        &mut self,
        method: &str,
        arguments: Vec<Value>,
        timeout: Duration,
    ) -> Result<Value, RpcError> {
        let until = deadline(timeout);
        match self.call_until(method, arguments.clone(), timeout, until) {
            Err(CallFault::OfConnection(ConnectionFault::SpeaksGrpc)) => {
                self.reconnect_as(RpcKind::Grpc)?;
                self.call_until(method, arguments, timeout, until)
            }
            outcome => outcome,
        }
        .map_err(|fault| match fault {
            CallFault::Rpc(error) => error,
            CallFault::OfConnection(ConnectionFault::Call(message)) => {
                self.refused(method, message)
            }
            CallFault::OfConnection(fault) => self.protocol(method, fault.to_string()),
        })
    }

    fn call_until(
        &mut self,
        method: &str,
        arguments: Vec<Value>,
        timeout: Duration,
        until: Instant,
    ) -> Result<Value, CallFault> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.end.call(id, method, arguments, timeout)?;
        loop {
            self.send(timeout).map_err(|source| self.broken(method, source, timeout))?;
            match self.end.next_answer()? {
                Some((answered, outcome)) if answered == u64::from(id) => {
                    return outcome.map_err(|message| self.refused(method, message).into());
                }
                // An older id belongs to a call that was given up.
                Some(_) => continue,
                None => {}
            }
            if timeout > CALL_TIMEOUT && patience::is_over() {
                let (method, address) = (method.to_owned(), self.address);
                return Err(RpcError::Interrupted { method, address }.into());
            }
            self.read(until).map_err(|source| self.broken(method, source, timeout))?;
        }
    }

    /// Reads available bytes, or waits for them until a point in time, however slowly they come.
    fn read(&mut self, until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.min(patience::LOOK)))?;
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.end.receive(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // The next part of the wait, or its end.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the error for a result of `method` with the wrong kind.
    pub fn protocol(&self, method: &str, what: impl Into<String>) -> RpcError {
        RpcError::Protocol { method: method.to_owned(), address: self.address, what: what.into() }
    }

    /// Returns the error for a call that the device, or gRPC, does not take.
    fn refused(&self, method: &str, message: String) -> RpcError {
        RpcError::Remote { method: method.to_owned(), address: self.address, message }
    }

    /// Sends what is to be sent.
    fn send(&mut self, timeout: Duration) -> io::Result<()> {
        let mut unsent = Vec::new();
        self.end.drain_into(&mut unsent);
        if unsent.is_empty() {
            return Ok(());
        }
        self.stream.set_write_timeout(Some(timeout))?;
        self.stream.write_all(&unsent)
    }

    fn broken(&self, method: &str, source: io::Error, timeout: Duration) -> RpcError {
        let (method, address) = (method.to_owned(), self.address);
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let timeout_ms = timeout.as_millis() as u64;
                RpcError::Timeout { method, address, timeout_ms }
            }
            _ => RpcError::Broken { method, address, source },
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "grpc_tests.rs"]
mod grpc_tests;
