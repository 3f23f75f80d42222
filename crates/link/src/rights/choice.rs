//! Who acts for a link that needs privileges: the options `rights=` and `broker=`.

use std::path::PathBuf;

use crate::LinkError;
use crate::spec::bad;

/// Where a broker listens unless it is told otherwise.
pub const DEFAULT_BROKER: &str = "/run/millstream/grant.sock";

/// The environment variable by which `millstream host grant … -- COMMAND` names its broker.
pub const BROKER_VARIABLE: &str = "MILLSTREAM_GRANT";

/// What a link string may say about rights; part of the help of the links that need them.
pub const OPTIONS_HELP: &str = "rights=auto|direct|broker (who opens sockets and programs), \
     broker=PATH (socket of `millstream host grant`)";

/// Who should act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Choice {
    /// This process if it is privileged, else a broker.
    #[default]
    Auto,
    /// This process.
    Direct,
    /// A broker.
    Broker,
}

/// The options, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RightsOptions {
    /// Who should act.
    pub choice: Choice,
    /// Where the broker listens, if it was said.
    pub broker: Option<PathBuf>,
}

impl RightsOptions {
    /// Takes one option of a link string; whether it was one of these. `help` is what an error
    /// shows as the options of the link.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] for a value that cannot be used.
    pub fn take(&mut self, name: &str, value: &str, help: &'static str) -> Result<bool, LinkError> {
        let wrong = |reason| Err(bad(&format!("{name}={value}"), reason, help));
        match (name, value) {
            ("rights", "auto") => self.choice = Choice::Auto,
            ("rights", "direct") => self.choice = Choice::Direct,
            ("rights", "broker") => self.choice = Choice::Broker,
            ("rights", _) => return wrong("wants auto, direct or broker"),
            ("broker", "") => return wrong("wants the path of a broker's socket"),
            ("broker", path) => self.broker = Some(path.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Where the broker listens: as said, else as the environment says, else [`DEFAULT_BROKER`].
    #[must_use]
    pub fn broker_path(&self) -> PathBuf {
        let said = self.broker.clone();
        said.or_else(|| std::env::var_os(BROKER_VARIABLE).map(PathBuf::from))
            .unwrap_or_else(|| DEFAULT_BROKER.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_options_are_taken_and_others_left() {
        let mut options = RightsOptions::default();
        assert!(options.take("rights", "broker", "").unwrap());
        assert!(options.take("broker", "/tmp/grant", "").unwrap());
        assert!(!options.take("mode", "generic", "").unwrap());
        let expected = RightsOptions { choice: Choice::Broker, broker: Some("/tmp/grant".into()) };
        assert_eq!(options, expected);
        assert_eq!(options.broker_path(), PathBuf::from("/tmp/grant"));
    }

    #[test]
    fn a_bad_value_says_what_is_wanted() {
        let mut options = RightsOptions::default();
        for (name, value, reason) in [
            ("rights", "root", "\"rights=root\": wants auto, direct or broker"),
            ("broker", "", "\"broker=\": wants the path"),
        ] {
            let error = options.take(name, value, "rights=…").unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
