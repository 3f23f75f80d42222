//! The client's end of a MessagePack-RPC connection.

use millstream_wire::msgpack::{MessageLimits, Scan, ScanError, scan};
use rmpv::Value;

use crate::client::{ConnectionFault, RpcAnswer};
use crate::{RESPONSE_BYTES_MAX, RESPONSE_ITEMS_MAX};

/// The limits of a response. The deepest real one has three levels; the longest are logs.
const LIMITS: MessageLimits =
    MessageLimits { bytes: RESPONSE_BYTES_MAX, depth: 8, items: RESPONSE_ITEMS_MAX as u64 };

/// The client's end of a connection.
#[derive(Debug, Default)]
pub struct MsgpackClient {
    /// Received bytes that are not yet a complete response. After a call that timed out, they are
    /// the start of its late answer.
    unread: Vec<u8>,
    unsent: Vec<u8>,
}

impl MsgpackClient {
    /// Prepares the bytes of a call.
    pub fn call(&mut self, id: u32, method: &str, arguments: Vec<Value>) {
        let request = Value::Array(vec![0.into(), id.into(), method.into(), arguments.into()]);
        rmpv::encode::write_value(&mut self.unsent, &request).expect("a vector takes all bytes");
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Moves the bytes to send behind those in `unsent`.
    pub fn drain_into(&mut self, unsent: &mut Vec<u8>) {
        unsent.append(&mut self.unsent);
    }

    /// Returns the next complete answer.
    pub fn next_answer(&mut self) -> Result<Option<RpcAnswer>, ConnectionFault> {
        // A gRPC server speaks first, and its first bytes are a SETTINGS frame: three bytes of
        // length, of which the first is 0, and the kind 4. A response begins with 0x94.
        if let [0, rest @ ..] = &self.unread[..] {
            return match rest.get(2) {
                None => Ok(None),
                Some(4) => Err(ConnectionFault::SpeaksGrpc),
                Some(_) => Err(no_response()),
            };
        }
        match take_object(&mut self.unread) {
            Ok(None) => Ok(None),
            Ok(Some(object)) => object.and_then(take_apart).ok_or_else(no_response).map(Some),
            Err(error) => {
                let what = format!("bytes that cannot be decoded ({error})");
                Err(ConnectionFault::Malformed(what))
            }
        }
    }
}

fn no_response() -> ConnectionFault {
    ConnectionFault::Malformed("a message that is not a response".to_owned())
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
pub fn take_apart(response: Value) -> Option<RpcAnswer> {
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
