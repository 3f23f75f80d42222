//! The right to command the radio: one session at a time, which must renew it.

/// A claim without a call for this long is void.
pub const SILENCE_NS_MAX: u64 = 5_000_000_000;

/// The current claim, if any.
#[derive(Debug, Default)]
pub struct CurrentClaim {
    holder: Option<Holder>,
    granted: u64,
}

#[derive(Debug)]
struct Holder {
    token: String,
    session: String,
    heard_ns: u64,
}

impl CurrentClaim {
    /// Grants the radio to `session` and returns the token; the error is the name of the present
    /// holder.
    pub fn claim(&mut self, session: &str, now_ns: u64) -> Result<String, String> {
        if let Some(holder) = &self.holder {
            return Err(holder.session.clone());
        }
        self.granted += 1;
        // 16 characters by convention. It is not a secret: it distinguishes sessions, and protects
        // nothing.
        let token = format!("{:016x}", self.granted.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ now_ns);
        let session = session.chars().take(64).collect();
        self.holder = Some(Holder { token: token.clone(), session, heard_ns: now_ns });
        Ok(token)
    }

    /// Returns whether `token` is the holder's; if it is, the claim is renewed.
    pub fn renew(&mut self, token: &[u8], now_ns: u64) -> bool {
        match &mut self.holder {
            Some(holder) if holder.token.as_bytes() == token => {
                holder.heard_ns = now_ns;
                true
            }
            _ => false,
        }
    }

    /// Ends the claim.
    pub fn release(&mut self) {
        self.holder = None;
    }

    /// Ends the claim if its holder has been silent for too long; returns whether it did.
    pub fn expire(&mut self, now_ns: u64) -> bool {
        let silent = |holder: &Holder| now_ns.saturating_sub(holder.heard_ns) > SILENCE_NS_MAX;
        let expired = self.holder.as_ref().is_some_and(silent);
        if expired {
            self.holder = None;
        }
        expired
    }

    /// Returns whether a session holds the radio.
    pub fn is_held(&self) -> bool {
        self.holder.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_session_is_told_who_holds_the_radio() {
        let mut claim = CurrentClaim::default();
        let token = claim.claim("first", 0).unwrap();
        assert_eq!(token.len(), 16);
        assert_eq!(claim.claim("second", 1), Err("first".to_owned()));
        claim.release();
        assert_ne!(claim.claim("second", 1).unwrap(), token);
    }

    #[test]
    fn silence_ends_a_claim_and_speech_keeps_it() {
        let mut claim = CurrentClaim::default();
        let token = claim.claim("x", 0).unwrap();
        assert!(!claim.expire(SILENCE_NS_MAX));
        assert!(claim.renew(token.as_bytes(), SILENCE_NS_MAX));
        assert!(!claim.expire(2 * SILENCE_NS_MAX));
        assert!(claim.expire(2 * SILENCE_NS_MAX + 1));
        assert!(!claim.renew(token.as_bytes(), 2 * SILENCE_NS_MAX + 1));
        assert!(!claim.expire(3 * SILENCE_NS_MAX), "it ends once");
    }

    #[test]
    fn a_wrong_token_is_not_heard() {
        let mut claim = CurrentClaim::default();
        claim.claim("x", 0).unwrap();
        assert!(!claim.renew(b"", 0));
        assert!(!claim.renew(b"0123456789abcdef", 0));
    }
}
