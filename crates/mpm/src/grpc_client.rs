//! The client's end of a gRPC connection, with one call outstanding.

use std::net::SocketAddrV4;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use rmpv::Value;

use crate::client::{ConnectionFault, RpcAnswer};
use crate::grpc_server::{SERVICE_PATH, framed, unframed};
use crate::message::{decode_response, encode_request};
use crate::methods::{Method, by_name};
use crate::pipe::Pipe;
use crate::status::percent_decoded;
use crate::{RESPONSE_BYTES_MAX, RESPONSE_ITEMS_MAX};

/// The longest headers of a response, bytes as HTTP/2 counts them.
const HEADERS_BYTES_MAX: u32 = 16 * 1024;

/// The client's end of a connection.
pub struct GrpcClient {
    pipe: Pipe,
    server: SocketAddrV4,
    requests: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    call: Option<OpenCall>,
}

/// A call whose answer is not complete. Dropping it tells the server that it is given up.
struct OpenCall {
    id: u32,
    method: &'static Method,
    answer: OpenAnswer,
}

enum OpenAnswer {
    Awaited(ResponseFuture),
    Body { body: RecvStream, message: Vec<u8> },
}

impl GrpcClient {
    /// Returns the end of a new connection to `server`.
    pub fn new(server: SocketAddrV4) -> Self {
        let pipe = Pipe::default();
        let mut settings = Builder::new();
        settings
            .enable_push(false)
            .header_table_size(0)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .initial_window_size(RESPONSE_BYTES_MAX as u32)
            .initial_connection_window_size(RESPONSE_BYTES_MAX as u32);
        // Opening writes and does not read, and a pipe takes everything.
        let opening = pin!(settings.handshake(pipe.clone()));
        let (requests, connection) = match opening.poll(&mut context()) {
            Poll::Ready(Ok(opened)) => opened,
            _ => unreachable!("a pipe takes the first bytes"),
        };
        Self { pipe, server, requests, connection, call: None }
    }

    /// Prepares the bytes of a call, and gives up the one before.
    pub fn call(
        &mut self,
        id: u32,
        name: &str,
        arguments: &[Value],
        timeout: Duration,
    ) -> Result<(), ConnectionFault> {
        self.call = None;
        let (method, board) = by_name(name)
            .ok_or_else(|| ConnectionFault::Call(format!("{name} is not a method of gRPC")))?;
        let message = encode_request(method, board, arguments).map_err(ConnectionFault::Call)?;
        let uri = format!("http://{}{SERVICE_PATH}{}", self.server, method.grpc);
        let request = Request::post(uri)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-timeout", format!("{}m", timeout.as_millis()))
            .body(())
            .map_err(|error| ConnectionFault::Call(error.to_string()))?;
        // The stream of a call that was given up goes first.
        self.work()?;
        let (answer, mut body) = self.requests.send_request(request, false)?;
        body.send_data(framed(&message), true)?;
        self.call = Some(OpenCall { id, method, answer: OpenAnswer::Awaited(answer) });
        self.work()
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.pipe.receive(bytes);
    }

    /// Moves the bytes to send behind those in `unsent`.
    pub fn drain_into(&self, unsent: &mut Vec<u8>) {
        self.pipe.drain_into(unsent);
    }

    /// Returns the answer to the call, once it is complete.
    pub fn next_answer(&mut self) -> Result<Option<RpcAnswer>, ConnectionFault> {
        let working = self.work();
        let outcome = match &mut self.call {
            Some(call) => call.outcome()?,
            None => None,
        };
        match (outcome, self.call.take()) {
            (Some(outcome), Some(call)) => Ok(Some((call.id.into(), outcome))),
            (_, call) => {
                self.call = call;
                working?;
                // What was read has opened the window, which the server has to know.
                self.work().map(|()| None)
            }
        }
    }

    /// Lets h2 work on what came and what is to be sent.
    fn work(&mut self) -> Result<(), ConnectionFault> {
        match Pin::new(&mut self.connection).poll(&mut context()) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(error)) => Err(error.into()),
            Poll::Ready(Ok(())) => {
                Err(ConnectionFault::Malformed("the end of the connection".to_owned()))
            }
        }
    }
}

impl OpenCall {
    /// Reads what has come; returns the result, or the device's text, once all of it is there.
    fn outcome(&mut self) -> Result<Option<Result<Value, String>>, ConnectionFault> {
        let context = &mut context();
        loop {
            match &mut self.answer {
                OpenAnswer::Awaited(response) => {
                    let Poll::Ready(response) = Pin::new(response).poll(context) else {
                        return Ok(None);
                    };
                    let (head, body) = response?.into_parts();
                    if head.status != http::StatusCode::OK {
                        let what = format!("the HTTP status {}", head.status.as_u16());
                        return Err(ConnectionFault::Malformed(what));
                    }
                    // A call that failed may have nothing but headers.
                    if let Some(Err(text)) = status_of(&head.headers) {
                        return Ok(Some(Err(text)));
                    }
                    self.answer = OpenAnswer::Body { body, message: Vec::new() };
                }
                OpenAnswer::Body { body, message } => match body.poll_data(context) {
                    Poll::Pending => return Ok(None),
                    Poll::Ready(Some(data)) => {
                        let data = data?;
                        message.extend_from_slice(&data);
                        if message.len() > RESPONSE_BYTES_MAX {
                            return Err(ConnectionFault::Malformed("an answer too long".into()));
                        }
                        let _ = body.flow_control().release_capacity(data.len());
                    }
                    Poll::Ready(None) => {
                        let Poll::Ready(trailers) = body.poll_trailers(context) else {
                            return Ok(None);
                        };
                        let status = trailers?
                            .as_ref()
                            .and_then(status_of)
                            .unwrap_or_else(|| Err("the answer has no status".to_owned()));
                        let answer = unframed(message).and_then(|message| {
                            decode_response(self.method, message, RESPONSE_ITEMS_MAX).ok()
                        });
                        return match (status, answer) {
                            (Err(text), _) => Ok(Some(Err(text))),
                            (Ok(()), Some(result)) => Ok(Some(Ok(result))),
                            (Ok(()), None) => Err(ConnectionFault::Malformed(
                                "a message that cannot be decoded".to_owned(),
                            )),
                        };
                    }
                },
            }
        }
    }
}

/// Returns the status of a call: the server's text if it failed; `None` when there is none.
fn status_of(headers: &HeaderMap) -> Option<Result<(), String>> {
    let status = headers.get("grpc-status")?;
    if status == "0" {
        return Some(Ok(()));
    }
    let text = headers.get("grpc-message").map(|text| percent_decoded(text.as_bytes()));
    let text = text.filter(|text| !text.is_empty());
    Some(Err(text.unwrap_or_else(|| {
        format!("status {} of gRPC", String::from_utf8_lossy(status.as_bytes()))
    })))
}

/// h2 is asked again when bytes have come; nothing has to wake us.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
