//! Link strings: `NAME`, `NAME:INTERFACE` or `NAME:INTERFACE,option=value,option=value`.

use std::fmt;
use std::ops::RangeInclusive;

use crate::LinkError;

/// A link string taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The link's registered name.
    pub name: String,
    /// What the link works on, such as an interface or a file: the first word without `=`.
    pub target: Option<String>,
    /// Options in the order written.
    pub options: Vec<(String, String)>,
}

impl Spec {
    /// Takes `text` apart; `help` is what an error shows as the options that exist.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] when an option is not of the form `name=value`.
    pub fn parse(text: &str, help: &'static str) -> Result<Self, LinkError> {
        let (name, rest) = split_name(text);
        let mut words = rest.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
        let target = words.next_if(|word| !word.contains('=')).map(str::to_owned);
        let options = words
            .map(|option| match option.split_once('=') {
                Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
                None => Err(bad(option, "is not of the form name=value", help)),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), target, options })
    }

    /// Its options, one by one; `help` is what an error shows as the options that exist.
    pub fn fields(&self, help: &'static str) -> impl Iterator<Item = Field<'_>> {
        self.options.iter().map(move |(name, value)| Field { name, value, help })
    }

    /// Takes an option out that is not the link's own; the last one, if it is there twice.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let taken = self.options.extract_if(.., |(key, _)| key == name).last();
        taken.map(|(_, value)| value)
    }

    /// Takes every option of that name out, in the order written.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let taken = self.options.extract_if(.., |(key, _)| key == name);
        taken.map(|(_, value)| value).collect()
    }

    /// That the link was given nothing to work on.
    ///
    /// # Errors
    /// [`LinkError::BadOption`] when it was.
    pub fn no_target(&self, help: &'static str) -> Result<(), LinkError> {
        match &self.target {
            None => Ok(()),
            Some(target) => Err(bad(target, "is not of the form name=value", help)),
        }
    }
}

impl fmt::Display for Spec {
    /// As it is written in a link string.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<_> = self.target.iter().cloned().chain(options).collect();
        let colon = if words.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.name, words.join(","))
    }
}

/// One option, with what an error about it needs.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// What stands before the equals sign.
    pub name: &'a str,
    /// What stands behind it.
    pub value: &'a str,
    help: &'static str,
}

impl Field<'_> {
    /// The error that this option is not one of the link's.
    pub fn unknown(&self) -> LinkError {
        self.refuse("is not known")
    }

    /// An error about this option.
    pub fn refuse(&self, reason: &str) -> LinkError {
        bad(&format!("{}={}", self.name, self.value), reason, self.help)
    }

    /// Its value as a switch.
    pub fn on_off(&self) -> Result<bool, LinkError> {
        match self.value {
            "on" | "1" | "true" => Ok(true),
            "off" | "0" | "false" => Ok(false),
            _ => Err(self.refuse("wants on or off")),
        }
    }

    /// Its value as a whole number, `what` it counts.
    pub fn number<T>(&self, what: &str, range: RangeInclusive<T>) -> Result<T, LinkError>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let number = self.value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            self.refuse(&format!("wants {what} from {} to {}", range.start(), range.end()))
        })
    }

    /// Its value as one of several words.
    pub fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, LinkError> {
        let found = choices.iter().find(|(word, _)| *word == self.value);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.refuse(&format!("wants one of: {}", words.join(", ")))
        })
    }
}

/// The name part of a link string and the rest behind the colon.
pub(crate) fn split_name(text: &str) -> (&str, &str) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    (name.trim(), rest)
}

/// An option error.
pub(crate) fn bad(option: &str, reason: &str, help: &'static str) -> LinkError {
    LinkError::BadOption { option: option.to_owned(), reason: reason.to_owned(), help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_has_no_options() {
        let spec = Spec::parse(" udp ", "").unwrap();
        assert_eq!(spec, Spec { name: "udp".into(), target: None, options: vec![] });
    }

    #[test]
    fn options_follow_the_colon() {
        let spec = Spec::parse("udp:gro=off, busy_poll_us=50", "").unwrap();
        let pairs = [("gro", "off"), ("busy_poll_us", "50")];
        assert_eq!(spec.options, pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn the_first_word_may_be_what_the_link_works_on() {
        let spec = Spec::parse("xdp:veth0,mode=generic", "").unwrap();
        assert_eq!(spec.target.as_deref(), Some("veth0"));
        assert_eq!(spec.options, [("mode".to_owned(), "generic".to_owned())]);
        assert_eq!(spec.to_string(), "xdp:veth0,mode=generic");
        let error = Spec::parse("xdp:mode=generic,veth0", "mode=auto").unwrap_err().to_string();
        assert!(error.contains("\"veth0\": is not of the form name=value"), "{error}");
    }

    #[test]
    fn a_value_is_checked_and_the_error_says_what_is_wanted() {
        let spec = Spec::parse("xdp:veth0,a=off,b=7,c=skb", "").unwrap();
        let [a, b, c] = spec.fields("help").collect::<Vec<_>>().try_into().unwrap();
        assert!(!a.on_off().unwrap());
        assert_eq!(b.number("frames", 1..=8u32).unwrap(), 7);
        assert_eq!(c.one_of(&[("native", 1), ("skb", 2)]).unwrap(), 2);
        let text = |error: LinkError| error.to_string();
        assert!(text(c.on_off().unwrap_err()).contains("\"c=skb\": wants on or off"));
        let error = text(b.number("frames", 8..=9u32).unwrap_err());
        assert!(error.contains("\"b=7\": wants frames from 8 to 9"), "{error}");
        let error = text(a.one_of(&[("native", 1), ("skb", 2)]).unwrap_err());
        assert!(error.contains("wants one of: native, skb"), "{error}");
        assert!(text(a.unknown()).contains("\"a=off\": is not known"));
    }

    #[test]
    fn an_option_without_a_value_says_what_exists() {
        let help = "gro=on|off";
        let spec = Spec::parse("udp:gro", help).unwrap();
        let error = spec.no_target(help).unwrap_err().to_string();
        assert_eq!(
            error,
            "link option \"gro\": is not of the form name=value; options of this link: gro"
        );
    }
}
