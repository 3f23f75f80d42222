//! The server's end of a gRPC connection: bytes in, calls out; answers in, bytes out.
//!
//! h2 bounds what a peer can make it keep: the streams at a time, the length of headers, the data
//! of a stream (its window), frames that cost more than they carry. The length of a request is
//! bounded here.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use rmpv::Value;

use crate::client::ConnectionFault;
use crate::message::{decode_request, encode_response};
use crate::methods::{Method, by_grpc_name};
use crate::pipe::Pipe;
use crate::status::{GrpcCode, GrpcStatus, percent_encoded};
use crate::{REQUEST_BYTES_MAX, REQUEST_ITEMS_MAX};

/// The path of a method, before its name.
pub(crate) const SERVICE_PATH: &str = "/mpm_server.MpmServerService/";

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The most calls of a client at a time. UHD has one on each of its connections.
const STREAMS_MAX: u32 = 16;

/// The longest headers of a request, bytes as HTTP/2 counts them.
const HEADERS_BYTES_MAX: u32 = 8 * 1024;

/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Returns whether a connection that begins with `bytes` can be one of HTTP/2. A MessagePack call
/// never begins like this.
pub fn could_be_http2(bytes: &[u8]) -> bool {
    let common = bytes.len().min(PREFACE.len());
    bytes[..common] == PREFACE[..common]
}

/// The server's end of a connection.
pub struct GrpcServer {
    pipe: Pipe,
    state: ServerState,
    requests: Vec<OpenRequest>,
}

enum ServerState {
    Opening(Handshake<Pipe, Bytes>),
    Open(Connection<Pipe, Bytes>),
    /// The client has said that it ends the connection.
    Ended,
}

/// A request that is not complete.
struct OpenRequest {
    method: Result<&'static Method, GrpcStatus>,
    body: RecvStream,
    message: Vec<u8>,
    respond: SendResponse<Bytes>,
}

/// A call, which waits for [`GrpcServer::answer`].
pub struct GrpcCall {
    /// The method.
    pub method: &'static Method,
    /// The number of the daughterboard, for its methods.
    pub board: Option<u32>,
    /// The arguments of the same MessagePack call, the token first where it needs one.
    pub arguments: Vec<Value>,
    respond: SendResponse<Bytes>,
}

impl Default for GrpcServer {
    fn default() -> Self {
        Self::new()
    }
}

impl GrpcServer {
    /// Returns the end of a new connection. Its first bytes can be sent at once.
    pub fn new() -> Self {
        let pipe = Pipe::default();
        let mut settings = Builder::new();
        settings
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .max_local_error_reset_streams(Some(STREAMS_MAX as usize));
        let state = ServerState::Opening(settings.handshake(pipe.clone()));
        Self { pipe, state, requests: Vec::new() }
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.pipe.receive(bytes);
    }

    /// Returns the next complete call, answers what is none, and prepares the bytes to send.
    ///
    /// # Errors
    /// [`ConnectionFault`]: the connection must be closed, behind the bytes that are to be sent.
    pub fn next_call(&mut self) -> Result<Option<GrpcCall>, ConnectionFault> {
        loop {
            self.accept()?;
            let Some(index) = self.complete_request()? else { return Ok(None) };
            let OpenRequest { method, message, mut respond, .. } = self.requests.remove(index);
            let decoded = method.and_then(|method| {
                let message = unframed(&message).ok_or_else(GrpcStatus::undecodable)?;
                let decoded = decode_request(method, message, REQUEST_ITEMS_MAX);
                let (board, arguments) = decoded.map_err(|_| GrpcStatus::undecodable())?;
                Ok((method, board, arguments))
            });
            match decoded {
                Ok((method, board, arguments)) => {
                    return Ok(Some(GrpcCall { method, board, arguments, respond }));
                }
                Err(status) => refuse(&mut respond, &status),
            }
        }
    }

    /// Answers a call.
    pub fn answer(&mut self, mut call: GrpcCall, answer: Result<Value, GrpcStatus>) {
        let answer = answer.and_then(|result| {
            encode_response(call.method, &result).map_err(|text| GrpcStatus {
                code: GrpcCode::Internal,
                message: format!("Runtime error in {}: {text}", call.method.grpc),
            })
        });
        match answer {
            Ok(message) => respond(&mut call.respond, &message),
            Err(status) => refuse(&mut call.respond, &status),
        }
    }

    /// Moves the bytes to send behind those in `unsent`: all, once [`Self::next_call`] has found no
    /// further call.
    pub fn drain_into(&self, unsent: &mut Vec<u8>) {
        self.pipe.drain_into(unsent);
    }

    /// Lets h2 work on what came and what is to be sent, until it has nothing left to do.
    fn accept(&mut self) -> Result<(), ConnectionFault> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match &mut self.state {
                ServerState::Opening(handshake) => {
                    match std::pin::Pin::new(handshake).poll(&mut context) {
                        Poll::Ready(opened) => self.state = ServerState::Open(opened?),
                        Poll::Pending => return Ok(()),
                    }
                }
                ServerState::Open(connection) => match connection.poll_accept(&mut context) {
                    Poll::Ready(Some(accepted)) => {
                        let (request, respond) = accepted?;
                        let method = method_of(&request);
                        let (body, message) = (request.into_body(), Vec::new());
                        self.requests.push(OpenRequest { method, body, message, respond });
                    }
                    Poll::Ready(None) => self.state = ServerState::Ended,
                    Poll::Pending => return Ok(()),
                },
                ServerState::Ended => return Ok(()),
            }
        }
    }

    /// Reads the bodies of requests; returns the index of one that is complete.
    fn complete_request(&mut self) -> Result<Option<usize>, ConnectionFault> {
        let mut index = 0;
        while index < self.requests.len() {
            match self.requests[index].read()? {
                BodyState::Complete => return Ok(Some(index)),
                BodyState::Open => index += 1,
                BodyState::Given => drop(self.requests.remove(index)),
            }
        }
        // Windows may have been given back: h2 tells that to the peer.
        self.accept().map(|()| None)
    }
}

/// What became of the body of a request.
enum BodyState {
    Complete,
    Open,
    /// The client has given the call up.
    Given,
}

impl OpenRequest {
    fn read(&mut self) -> Result<BodyState, ConnectionFault> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match self.body.poll_data(&mut context) {
                Poll::Ready(Some(Ok(data))) => {
                    self.message.extend_from_slice(&data);
                    if self.message.len() > PREFIX_BYTES + REQUEST_BYTES_MAX {
                        return Err(ConnectionFault::Malformed("a request too long".to_owned()));
                    }
                    // It fails for a stream that has ended, whose window is of no use.
                    let _ = self.body.flow_control().release_capacity(data.len());
                }
                Poll::Ready(Some(Err(_))) => return Ok(BodyState::Given),
                Poll::Ready(None) => return Ok(BodyState::Complete),
                Poll::Pending => return Ok(BodyState::Open),
            }
        }
    }
}

fn method_of(request: &Request<RecvStream>) -> Result<&'static Method, GrpcStatus> {
    let name = request.uri().path().strip_prefix(SERVICE_PATH);
    name.and_then(by_grpc_name).ok_or_else(GrpcStatus::no_method)
}

/// Returns a message with what stands before it.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let length = message.len() as u32;
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// Returns the only message of a body; `None` when it is compressed, or not exactly one.
pub(crate) fn unframed(body: &[u8]) -> Option<&[u8]> {
    let (prefix, message) = body.split_first_chunk::<PREFIX_BYTES>()?;
    let [compressed, length @ ..] = *prefix;
    (compressed == 0 && u32::from_be_bytes(length) as usize == message.len()).then_some(message)
}

fn respond(respond: &mut SendResponse<Bytes>, message: &[u8]) {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(0));
    // It fails when the client has given the call up, or the connection.
    if let Ok(mut stream) = respond.send_response(head(), false) {
        let _ = stream.send_data(framed(message), false);
        let _ = stream.send_trailers(trailers);
    }
}

fn refuse(respond: &mut SendResponse<Bytes>, status: &GrpcStatus) {
    let mut response = head();
    let headers = response.headers_mut();
    headers.insert("grpc-status", HeaderValue::from(status.code.number()));
    if let Ok(text) = HeaderValue::try_from(percent_encoded(&status.message)) {
        headers.insert("grpc-message", text);
    }
    let _ = respond.send_response(response, true);
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    response
}
