//! One connection with one call outstanding.

use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use rmpv::Value;
use rmpv::decode::read_value_with_max_depth;

use super::deadline::DeadlineReader;
use super::{CALL_TIMEOUT, RESPONSE_BYTES_MAX, RpcError};

/// Deepest nesting of a response. The deepest real one has three levels.
const DEPTH_MAX: usize = 16;

/// A connection to a device's RPC server.
#[derive(Debug)]
pub struct RpcClient {
    stream: TcpStream,
    address: SocketAddrV4,
    next_id: u32,
}

impl RpcClient {
    /// Connects.
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
        Ok(Self { stream, address, next_id: 0 })
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Calls `method` and waits for its result up to `timeout`.
    ///
    /// # Errors
    /// Any [`RpcError`]. After one other than [`RpcError::Remote`] the connection is of no use.
    pub fn call(
        &mut self,
        method: &str,
        arguments: Vec<Value>,
        timeout: Duration,
    ) -> Result<Value, RpcError> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let request = Value::Array(vec![0.into(), id.into(), method.into(), arguments.into()]);
        let until = Instant::now() + timeout;
        self.send(&request, timeout).map_err(|source| self.broken(method, source, timeout))?;
        let mut reader =
            DeadlineReader { stream: &self.stream, until, bytes_left: RESPONSE_BYTES_MAX };
        loop {
            let response = read_value_with_max_depth(&mut reader, DEPTH_MAX)
                .map_err(|error| self.unreadable(method, error, timeout))?;
            let (answered, outcome) = take_apart(response)
                .ok_or_else(|| self.protocol(method, "something that is no response"))?;
            // An older id answers a call that was given up.
            if answered == u64::from(id) {
                return outcome.map_err(|message| RpcError::Remote {
                    method: method.to_owned(),
                    address: self.address,
                    message,
                });
            }
        }
    }

    /// An error that says that the result of `method` is of the wrong kind.
    pub fn protocol(&self, method: &str, what: impl Into<String>) -> RpcError {
        RpcError::Protocol { method: method.to_owned(), address: self.address, what: what.into() }
    }

    fn send(&mut self, request: &Value, timeout: Duration) -> io::Result<()> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, request).map_err(io::Error::other)?;
        self.stream.set_write_timeout(Some(timeout))?;
        self.stream.write_all(&bytes)
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

    fn unreadable(&self, method: &str, error: rmpv::decode::Error, timeout: Duration) -> RpcError {
        use rmpv::decode::Error;
        match error {
            Error::InvalidMarkerRead(source) | Error::InvalidDataRead(source) => {
                if source.kind() == io::ErrorKind::InvalidData {
                    return self.protocol(method, source.to_string());
                }
                self.broken(method, source, timeout)
            }
            Error::DepthLimitExceeded => self.protocol(method, "too deep a structure"),
        }
    }
}

/// `[1, id, error, result]` as id and outcome.
fn take_apart(response: Value) -> Option<(u64, Result<Value, String>)> {
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
