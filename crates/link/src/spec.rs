//! Link strings, such as `udp`, `udp:gro=off`, `xdp:eth1` or `xdp:eth1,mode=generic`: a link's
//! name; then, behind a colon and with commas between them, the interface (or device, or file) that
//! the link works on, if it works on one, and options `name=value`.

use std::fmt;

use crate::LinkError;
use crate::options::{self, BadOption, Line, NO_PAIR, Options};

/// The parts of a link string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The link's registered name.
    pub name: String,
    /// The object that the link works on, such as an interface or a file: the first word without
    /// `=`.
    pub target: Option<String>,
    /// Options in the order written.
    pub options: Vec<(String, String)>,
}

impl Spec {
    /// Splits `text` into its parts.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] when an option is not of the form `name=value`.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let (name, rest) = split_name(text);
        let words = rest.split(',').filter(|word| !word.trim().is_empty());
        let (mut words, options) = Line::of(words)?.into_parts();
        let target = words.pop_front();
        match words.pop_front() {
            Some(word) => Err(bad(&word, NO_PAIR)),
            None => Ok(Self { name: name.to_owned(), target, options }),
        }
    }

    /// Reads all options.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] for a name or a value that `O` does not have.
    pub fn read<O: Options>(&self) -> Result<O, LinkError> {
        Ok(options::read(&self.options)?)
    }

    /// Reads the options that `O` has, and leaves the others.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] for a value that `O` does not have.
    pub fn split<O: Options>(&self) -> Result<(O, Self), LinkError> {
        let own = |(name, _): &(String, String)| O::NAMES.contains(&name.as_str());
        let (own, others): (Vec<_>, _) = self.options.iter().cloned().partition(own);
        Ok((options::read(&own)?, Self { options: others, ..self.clone() }))
    }

    /// Takes out every value of a common option, which is not the link's own, in the order written.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let options = std::mem::take(&mut self.options).into_iter();
        let (taken, left): (Vec<_>, _) = options.partition(|(key, _)| key == name);
        self.options = left;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Reads all options of a link that works on no object.
    ///
    /// # Errors
    /// As [`Spec::read`], and when the link string has a target.
    pub fn read_alone<O: Options>(&self) -> Result<O, LinkError> {
        self.target.as_deref().map_or_else(|| self.read(), |target| Err(bad(target, NO_PAIR)))
    }

    /// Returns the interface that the link string names.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] when there is none.
    pub fn interface(&self) -> Result<&str, LinkError> {
        let name = &self.name;
        let reason = || format!("names no interface: write {name}:INTERFACE, such as {name}:eth1");
        self.target.as_deref().ok_or_else(|| bad(name, &reason()))
    }
}

impl fmt::Display for Spec {
    /// Writes the spec as a link string.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<_> = self.target.iter().cloned().chain(options).collect();
        let colon = if words.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.name, words.join(","))
    }
}

/// Splits a link string into its name and the rest behind the colon.
pub(crate) fn split_name(text: &str) -> (&str, &str) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    (name.trim(), rest)
}

/// Returns an option error.
pub(crate) fn bad(option: &str, reason: &str) -> LinkError {
    BadOption::new(option, reason).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_has_no_options() {
        let spec = Spec::parse(" udp ").unwrap();
        assert_eq!(spec, Spec { name: "udp".into(), target: None, options: vec![] });
    }

    #[test]
    fn options_follow_the_colon() {
        let spec = Spec::parse("udp:gro=off, busy_poll_us=50").unwrap();
        let pairs = [("gro", "off"), ("busy_poll_us", "50")];
        assert_eq!(spec.options, pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn the_first_word_may_be_what_the_link_works_on() {
        let spec = Spec::parse("xdp:veth0,mode=generic").unwrap();
        assert_eq!(spec.target.as_deref(), Some("veth0"));
        assert_eq!(spec.options, [("mode".to_owned(), "generic".to_owned())]);
        assert_eq!(spec.to_string(), "xdp:veth0,mode=generic");
        let error = Spec::parse("xdp:mode=generic,veth0").unwrap_err().to_string();
        assert!(error.contains("\"veth0\": is not of the form name=value"), "{error}");
    }

    #[test]
    fn an_option_without_a_value_says_what_exists() {
        let error = crate::check_options("udp:gro").unwrap_err().to_string();
        let names = "gro, gso, wait, busy_poll_us, prefer_busy_poll, busy_poll_budget, launch";
        let expected = format!(
            "link option \"gro\": is not of the form name=value; options of this link: {names}; \
             `millstream host net links udp` describes them"
        );
        assert_eq!(error, expected);
    }

    #[test]
    fn some_options_are_read_and_others_left() {
        let spec = Spec::parse("xdp:veth0,rights=direct,mode=generic").unwrap();
        let (rights, rest) = spec.split::<crate::rights::RightsOptions>().unwrap();
        assert_eq!(rights.choice, crate::rights::Choice::Direct);
        assert_eq!(rest.to_string(), "xdp:veth0,mode=generic");
    }
}
