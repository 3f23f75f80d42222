//! Who is served: this machine's own names, its own page, and who knows the token.

use crate::http::RequestHead;
use crate::refusal::Refusal;
use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;

/// The rules of one server.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The token that clients need; `None` where only this machine reaches the server.
    token: Option<String>,
    /// The machine's name.
    name: String,
}

impl Guard {
    pub fn new(needs_token: bool) -> io::Result<Self> {
        let token = if needs_token { Some(random_hex()?) } else { None };
        // Without a name the IP addresses remain.
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Self { token, name: name.trim().to_owned() })
    }

    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Checks where a request comes from: every answer needs that.
    pub fn check_source(&self, head: &RequestHead) -> Result<(), Refusal> {
        // The name only: a forwarded connection may have another port.
        if !self.is_own(host_of(&head.host)) {
            return Err(Refusal::Host);
        }
        match &head.origin {
            Some(origin) => {
                let there = origin.strip_prefix("http://").ok_or(Refusal::Origin)?;
                let same = there.eq_ignore_ascii_case(&head.host);
                if same { Ok(()) } else { Err(Refusal::Origin) }
            }
            None => Ok(()),
        }
    }

    /// Checks the token: every answer with data needs that.
    pub fn check_token(&self, head: &RequestHead) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = head.token().unwrap_or_default().as_bytes();
        // The time says nothing about where the difference is.
        let differs = given.iter().zip(token.as_bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        let same = given.len() == token.len() && differs == 0;
        if same { Ok(()) } else { Err(Refusal::Token) }
    }

    fn is_own(&self, host: &str) -> bool {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        address.unwrap_or(host).parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || (!self.name.is_empty() && host.eq_ignore_ascii_case(&self.name))
    }
}

/// Returns the host without its port.
fn host_of(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.find(']').map_or(authority, |end| &authority[..=end]);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Returns 128 random bits.
pub(crate) fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(host: &str, origin: Option<&str>, query: &str) -> RequestHead {
        RequestHead {
            host: host.to_owned(),
            origin: origin.map(str::to_owned),
            query: query.to_owned(),
            ..RequestHead::default()
        }
    }

    #[test]
    fn only_own_names_are_hosts() {
        let guard = Guard { token: None, name: "box".to_owned() };
        let check = |host: &str| guard.check_source(&head(host, None, ""));
        for own in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[fe80::1]", "box:9"]
        {
            assert_eq!(check(own), Ok(()), "{own}");
        }
        for foreign in ["", ":80", "evil.example", "localhost.evil.example:80", "box.evil", "[::1"]
        {
            assert_eq!(check(foreign), Err(Refusal::Host), "{foreign}");
        }
        let nameless = Guard { token: None, name: String::new() };
        assert_eq!(nameless.check_source(&head("", None, "")), Err(Refusal::Host));
    }

    #[test]
    fn an_origin_is_the_host_itself() {
        let guard = Guard { token: None, name: String::new() };
        let check = |origin| guard.check_source(&head("localhost:80", Some(origin), ""));
        assert_eq!(check("http://localhost:80"), Ok(()));
        for foreign in ["null", "http://localhost:81", "https://localhost:80", "http://evil", ""] {
            assert_eq!(check(foreign), Err(Refusal::Origin), "{foreign}");
        }
    }

    #[test]
    fn a_token_is_all_of_it() {
        let guard = Guard::new(true).unwrap();
        let token = guard.token().unwrap().to_owned();
        assert_eq!(token.len(), 32);
        assert_ne!(token, random_hex().unwrap());
        let check = |query: &str| guard.check_token(&head("", None, query));
        assert_eq!(check(&format!("token={token}")), Ok(()));
        let (short, long) = (format!("token={}", &token[1..]), format!("token={token}0"));
        for wrong in ["", "token=", &short, &long, "token=00000000000000000000000000000000"] {
            assert_eq!(check(wrong), Err(Refusal::Token), "{wrong}");
        }
        assert_eq!(Guard::new(false).unwrap().check_token(&head("", None, "")), Ok(()));
    }
}
