//! One connection with one call outstanding.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use millstream_wire::msgpack::{MessageLimits, Scan, ScanError, scan};
use rmpv::Value;

use super::claim::ClaimLoss;
use super::keeper::{ClaimToKeep, KeptClaim};
use super::renewal::undecodable;
use super::{CALL_TIMEOUT, RESPONSE_BYTES_MAX, RpcError, patience};
use crate::deadline::deadline;

/// The limits of a response. The deepest real one has three levels; the longest are logs.
const LIMITS: MessageLimits = MessageLimits { bytes: RESPONSE_BYTES_MAX, depth: 8, items: 1 << 16 };

/// A connection to a device's RPC server.
#[derive(Debug)]
pub struct RpcClient {
    stream: TcpStream,
    address: SocketAddrV4,
    next_id: u32,
    /// Received bytes that are not yet a complete response. After a call that timed out, they are
    /// the start of its late answer.
    unread: Vec<u8>,
}

impl RpcClient {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`RpcError::Connect`].
    pub fn connect(address: SocketAddrV4) -> Result<Self, RpcError> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&SocketAddr::V4(address), CALL_TIMEOUT)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = connect().map_err(|source| RpcError::Connect { address, source })?;
        Ok(Self { stream, address, next_id: 0, unread: Vec::new() })
    }

    /// Replaces the connection by a new one.
    ///
    /// # Errors
    /// [`RpcError::Connect`]; the old connection stays then.
    pub fn reconnect(&mut self) -> Result<(), RpcError> {
        let next_id = self.next_id;
        *self = Self { next_id, ..Self::connect(self.address)? };
        Ok(())
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Hands the connection over to the thread that renews claims.
    pub(super) fn keep(self, token: Value, lost: ClaimLoss) -> io::Result<KeptClaim> {
        let Self { stream, address, next_id, .. } = self;
        KeptClaim::new(ClaimToKeep { stream, address, token, next_id, lost })
    }

    /// Calls `method` and waits for its result up to `timeout`.
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
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let until = deadline(timeout);
        self.send(&request(id, method, arguments), timeout)
            .map_err(|source| self.broken(method, source, timeout))?;
        loop {
            let (answered, outcome) = self
                .receive(method, until, timeout)?
                .and_then(take_apart)
                .ok_or_else(|| self.protocol(method, "a message that is not a response"))?;
            // An older id belongs to a call that was given up.
            if answered == u64::from(id) {
                return outcome.map_err(|message| RpcError::Remote {
                    method: method.to_owned(),
                    address: self.address,
                    message,
                });
            }
        }
    }

    /// Receives the next object of the stream; `None` when it cannot be decoded.
    fn receive(
        &mut self,
        method: &str,
        until: Instant,
        timeout: Duration,
    ) -> Result<Option<Value>, RpcError> {
        loop {
            let taken = take_object(&mut self.unread)
                .map_err(|error| self.protocol(method, undecodable(error)))?;
            if let Some(object) = taken {
                return Ok(object);
            }
            if timeout > CALL_TIMEOUT && patience::is_over() {
                let (method, address) = (method.to_owned(), self.address);
                return Err(RpcError::Interrupted { method, address });
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
        self.stream.set_read_timeout(Some(left.min(patience::SLICE)))?;
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.unread.extend_from_slice(&chunk[..count]);
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

    fn send(&mut self, request: &[u8], timeout: Duration) -> io::Result<()> {
        self.stream.set_write_timeout(Some(timeout))?;
        self.stream.write_all(request)
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

/// Returns the bytes of a call.
pub(super) fn request(id: u32, method: &str, arguments: Vec<Value>) -> Vec<u8> {
    let request = Value::Array(vec![0.into(), id.into(), method.into(), arguments.into()]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &request).expect("a vector takes all bytes");
    bytes
}

/// Takes the first complete object off the received bytes: `Some(None)` when it cannot be decoded.
///
/// # Errors
/// When more or deeper objects are announced than the limits allow.
pub fn take_object(unread: &mut Vec<u8>) -> Result<Option<Option<Value>>, ScanError> {
    let Scan::Complete(length) = scan(unread, &LIMITS)? else { return Ok(None) };
    let value = rmpv::decode::read_value(&mut &unread[..length]).ok();
    unread.drain(..length);
    Ok(Some(value))
}

/// Splits `[1, id, error, result]` into id and outcome; `None` when it is not a response.
pub fn take_apart(response: Value) -> Option<(u64, Result<Value, String>)> {
    let Value::Array(parts) = response else { return None };
    let [kind, id, error, result]: [Value; 4] = parts.try_into().ok()?;
    if kind.as_u64()? != 1 {
        return None;
    }
    let outcome = match error {
        Value::Nil => Ok(result),
        Value::String(text) => Err(text.as_str().unwrap_or("(no text)").to_owned()),
        other => Err(other.to_string()),
    };
    Some((id.as_u64()?, outcome))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
