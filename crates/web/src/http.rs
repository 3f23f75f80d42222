//! Heads of requests, and answers.

use crate::refusal::Refusal;
use httparse::Status;

/// The longest head of a request, bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 8192;
/// The most fields of a head.
const FIELDS_MAX: usize = 64;

/// The parts of a request that matter here.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RequestHead {
    /// Whether the answer has no body.
    pub head_only: bool,
    /// The address without its query.
    pub path: String,
    /// The query behind the address, without the question mark.
    pub query: String,
    /// The field Host.
    pub host: String,
    /// The field Origin.
    pub origin: Option<String>,
    /// The token of the field Authorization.
    pub bearer: Option<String>,
    /// The field If-None-Match.
    pub if_none_match: Option<String>,
    /// The key of a WebSocket handshake.
    pub socket_key: Option<String>,
}

impl RequestHead {
    /// Parses the start of `bytes`; `None` if there is no whole head yet. Returns the head and its
    /// length.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Refusal> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let length = match request.parse(bytes) {
            Ok(Status::Complete(length)) if length > HEAD_BYTES_MAX => return Err(Refusal::Head),
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => return Err(Refusal::Head),
            Ok(Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::Head),
            Err(_) => return Err(Refusal::Malformed),
        };
        let head_only = match request.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Err(Refusal::Method),
        };
        let target = request.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(Refusal::Malformed);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let fields = &*request.headers;
        let host = single(fields, "host")?.ok_or(Refusal::Host)?;
        let body = single(fields, "content-length")?.is_some_and(|length| length.trim() != "0");
        if body || single(fields, "transfer-encoding")?.is_some() {
            return Err(Refusal::Body);
        }
        let bearer = single(fields, "authorization")?;
        let bearer = bearer.and_then(|field| field.strip_prefix("Bearer ").map(str::to_owned));
        let head = Self {
            head_only,
            path: path.to_owned(),
            query: query.to_owned(),
            host: host.to_owned(),
            origin: single(fields, "origin")?.map(str::to_owned),
            bearer,
            if_none_match: single(fields, "if-none-match")?.map(str::to_owned),
            socket_key: socket_key(fields)?,
        };
        Ok(Some((head, length)))
    }

    /// Returns the token that the request brings.
    pub fn token(&self) -> Option<&str> {
        let of_query = || self.query.split('&').find_map(|part| part.strip_prefix("token="));
        self.bearer.as_deref().or_else(of_query)
    }
}

/// Returns the field of this name. A field that comes twice could mean two things.
fn single<'a>(fields: &[httparse::Header<'a>], name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut found = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let Some(field) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(Refusal::Malformed);
    }
    let text = std::str::from_utf8(field.value).map_err(|_| Refusal::Malformed)?;
    Ok(Some(text.trim()))
}

/// Returns the key of a handshake, if the request is one.
fn socket_key(fields: &[httparse::Header<'_>]) -> Result<Option<String>, Refusal> {
    let has = |name: &str, word: &str| {
        // These fields may come as several, which are then one list.
        let values = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        let mut texts = values.filter_map(|field| std::str::from_utf8(field.value).ok());
        texts.any(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let is_handshake = has("connection", "upgrade")
        && has("upgrade", "websocket")
        && has("sec-websocket-version", "13");
    let key = single(fields, "sec-websocket-key")?.filter(|_| is_handshake);
    Ok(key.map(str::to_owned))
}

/// Fields of every answer: no other page may use, frame or guess what is here.
const SAFE: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src \
'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n";

/// Returns a whole answer; `fields` are further fields, each with its line's end.
pub(crate) fn answer(
    status: &str,
    media_type: &str,
    fields: &str,
    body: &[u8],
    head_only: bool,
) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{SAFE}\
         {fields}\r\n"
    );
    let mut bytes = head.into_bytes();
    if !head_only {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// Returns the answer to a request that is refused.
pub(crate) fn refusal_answer(refusal: Refusal) -> Vec<u8> {
    let fields = match refusal {
        Refusal::Method => "Allow: GET, HEAD\r\nCache-Control: no-store\r\n",
        Refusal::Token => "WWW-Authenticate: Bearer\r\nCache-Control: no-store\r\n",
        Refusal::Handshake => {
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nCache-Control: no-store\r\n"
        }
        _ => "Cache-Control: no-store\r\n",
    };
    let text = format!("{}\n", refusal.text());
    answer(refusal.status(), "text/plain; charset=utf-8", fields, text.as_bytes(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestHead, Refusal> {
        RequestHead::parse(text.as_bytes()).map(|head| head.expect("a whole head").0)
    }

    #[test]
    fn a_request_has_its_parts() {
        let text = "GET /api/status?a=b&token=xyz HTTP/1.1\r\nhost: localhost:80\r\nOrigin: \
                    http://localhost:80\r\n\r\nrest";
        let (head, length) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.host.as_str()), ("/api/status", "localhost:80"));
        assert_eq!((head.token(), &text[length..]), (Some("xyz"), "rest"));
        assert_eq!(head.origin.as_deref(), Some("http://localhost:80"));
        let text = "HEAD / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer abc\r\n\r\n";
        let head = parse(text).unwrap();
        assert!(head.head_only && head.token() == Some("abc") && head.socket_key.is_none());
    }

    #[test]
    fn a_handshake_has_all_its_fields() {
        let fields = "Host: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Key: a2V5\r\n";
        let with = |more: &str| parse(&format!("GET /ws HTTP/1.1\r\n{fields}{more}\r\n"));
        let key = |more: &str| with(more).unwrap().socket_key;
        assert_eq!(key("Sec-WebSocket-Version: 13\r\n").as_deref(), Some("a2V5"));
        assert_eq!((key(""), key("Sec-WebSocket-Version: 8\r\n")), (None, None));
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        let get = |fields: &str| parse(&format!("GET / HTTP/1.1\r\n{fields}\r\n")).unwrap_err();
        assert_eq!(get("Host: a\r\nHost: b\r\n"), Refusal::Malformed);
        assert_eq!(get(""), Refusal::Host);
        assert_eq!(get("Host: a\r\nContent-Length: 5\r\n"), Refusal::Body);
        assert_eq!(get("Host: a\r\nTransfer-Encoding: chunked\r\n"), Refusal::Body);
        assert_eq!(get("Host : a\r\n"), Refusal::Malformed);
        let other = |text: &str| parse(text).unwrap_err();
        assert_eq!(other("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Method);
        assert_eq!(other("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Malformed);
        assert_eq!(other("\x16\x03\x01\x02\r\n\r\n"), Refusal::Malformed);
    }

    #[test]
    fn a_head_has_an_end() {
        assert_eq!(RequestHead::parse(b"GET / HTTP/1.1\r\nHost:"), Ok(None));
        let long = format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(HEAD_BYTES_MAX));
        assert_eq!(RequestHead::parse(long.as_bytes()), Err(Refusal::Head));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(RequestHead::parse(many.as_bytes()), Err(Refusal::Head));
    }
}
