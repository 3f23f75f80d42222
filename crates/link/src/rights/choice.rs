//! The choice of the process that acts for a privileged link: the options `rights=` and `broker=`.

use std::path::PathBuf;

use crate::options;
use crate::options::{Parsed, Words, maybe};

/// The default path of a broker's socket.
pub const DEFAULT_BROKER: &str = "/run/millstream/grant.sock";

/// The environment variable by which `millstream host grant … -- COMMAND` names its broker.
pub const BROKER_VARIABLE: &str = "MILLSTREAM_GRANT";

/// The process that should act.
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

/// The path of a broker's socket.
const BROKER: Parsed<PathBuf> = Parsed {
    looks: "PATH",
    wants: "wants the path of a broker's socket",
    read: |text| (!text.is_empty()).then(|| text.into()),
    write: |path| path.display().to_string(),
};

options! {
    /// The options, parsed: part of those of links that need rights.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RightsOptions {
        /// the process that opens sockets and programs: this one or a broker
        choice as "rights": Choice = Choice::Auto, Words(&[
            ("auto", Choice::Auto),
            ("direct", Choice::Direct),
            ("broker", Choice::Broker),
        ]);
        /// path of the broker's socket (`millstream host grant`)
        broker: Option<PathBuf> = None, maybe(BROKER);
    }
}

impl RightsOptions {
    /// Returns the broker's path: from the options, else from the environment, else
    /// [`DEFAULT_BROKER`].
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
    use crate::Spec;

    #[test]
    fn its_own_options_are_taken_and_others_left() {
        let spec = Spec::parse("xdp:veth0,rights=broker,broker=/tmp/grant,mode=generic").unwrap();
        let (options, rest) = spec.split::<RightsOptions>().unwrap();
        assert_eq!(rest.to_string(), "xdp:veth0,mode=generic");
        let expected = RightsOptions { choice: Choice::Broker, broker: Some("/tmp/grant".into()) };
        assert_eq!(options, expected);
        assert_eq!(options.broker_path(), PathBuf::from("/tmp/grant"));
    }

    #[test]
    fn a_broker_has_a_path() {
        let spec = Spec::parse("xdp:veth0,broker=").unwrap();
        let error = spec.split::<RightsOptions>().unwrap_err().to_string();
        assert!(error.contains("\"broker=\": wants the path of a broker's socket"), "{error}");
    }
}
