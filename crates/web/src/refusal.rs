//! Why the server does not serve a client. Each reason has a counter.

use std::collections::BTreeMap;

/// Declares the refusals: name in counters, HTTP status, and what the client may do.
macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:literal, $text:literal;)+) => {
        /// A reason for a refusal.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum Refusal {
            $($(#[$doc])* $variant,)+
        }

        impl Refusal {
            const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name of its counter.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the status of the answer, with its usual phrase.
            pub fn status(self) -> &'static str {
                match self {
                    $(Self::$variant => $status,)+
                }
            }

            /// Returns what is wrong and what to do.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

refusals! {
    /// A name that is not this machine's.
    Host = "host", "421 Misdirected Request",
        "the Host of the request is not this machine: use its IP address, its name, or localhost";
    /// A page of another server.
    Origin = "origin", "403 Forbidden",
        "the Origin of the request is another server: open the dashboard at its own address";
    /// No token, or a wrong one.
    Token = "token", "401 Unauthorized",
        "a token is needed: use the address that the command printed, which contains it";
    /// A method that changes things.
    Method = "method", "405 Method Not Allowed", "only GET and HEAD are answered";
    /// No such address.
    Path = "path", "404 Not Found",
        "there is no such address; /, /ws, /metrics and /api/report are some that exist";
    /// More than the largest head.
    Head = "head", "431 Request Header Fields Too Large",
        "the head of a request has at most 8192 bytes and 64 fields";
    /// Bytes that are no request.
    Malformed = "malformed", "400 Bad Request", "this is no valid HTTP/1.1 request";
    /// A request with a body.
    Body = "body", "413 Content Too Large", "a request has no body";
    /// Too slow a request.
    Slow = "slow", "408 Request Timeout", "the head of a request has to come within 5 s";
    /// Too many connections.
    Full = "full", "503 Service Unavailable",
        "64 connections are open: close one, or try again later";
    /// An address of WebSocket without its handshake.
    Handshake = "handshake", "426 Upgrade Required", "/ws is for WebSocket, version 13";
    /// A WebSocket message that is too long.
    Long = "long", "", "a message has at most 4096 bytes";
    /// Bytes that are no WebSocket frame.
    Frame = "frame", "", "this is no valid WebSocket frame";
    /// A binary message.
    Binary = "binary", "", "messages are text in JSON";
    /// Text that is no message of the protocol.
    Message = "message", "", "too many messages that are not of this protocol";
    /// A client that takes nothing.
    Asleep = "asleep", "", "nothing was taken or heard for 60 s";
}

/// The number of refusals, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RefusalCounts([u64; Refusal::ALL.len()]);

impl RefusalCounts {
    pub fn add(&mut self, refusal: Refusal) {
        self.0[refusal as usize] += 1;
    }

    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        Refusal::ALL.iter().map(|refusal| (refusal.name(), self.0[*refusal as usize])).collect()
    }
}
