//! The `key=value` part of a fault.

/// Longest time that can be given, milliseconds: an hour.
const MS_MAX: f64 = 3_600_000.0;

/// Keys and their values; each may be asked for once, and none may be left over.
pub(super) struct Keys<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Keys<'a> {
    /// # Errors
    /// What is wrong with the first word that is no `key=value`, or comes twice.
    pub fn new(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not of the form key=value"))?;
            if keys.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` is there twice"));
            }
            keys.push((key, value));
        }
        Ok(Self(keys))
    }

    /// A value that `accept` understands, if the key is there.
    fn take<T>(
        &mut self,
        key: &str,
        wants: &str,
        accept: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(index) = self.0.iter().position(|(other, _)| *other == key) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(index);
        accept(value).map(Some).ok_or_else(|| format!("`{key}={value}` wants {wants}"))
    }

    /// A whole number from `least` on.
    pub fn number(&mut self, key: &str, least: u64) -> Result<Option<u64>, String> {
        let wants = format!("a whole number from {least} on");
        self.take(key, &wants, |value| value.parse().ok().filter(|&number| number >= least))
    }

    /// A whole number from 1 to `most`.
    pub fn small(&mut self, key: &str, most: u32) -> Result<Option<u32>, String> {
        let wants = format!("a whole number from 1 to {most}");
        self.take(key, &wants, |value| value.parse().ok().filter(|n| (1..=most).contains(n)))
    }

    /// A number of 16 bits.
    pub fn id(&mut self, key: &str) -> Result<Option<u16>, String> {
        self.take(key, "an endpoint id, 0 to 65535", |value| value.parse().ok())
    }

    /// A whole number with a sign.
    pub fn signed(&mut self, key: &str) -> Result<Option<i64>, String> {
        self.take(key, "a whole number, which may be negative", |value| value.parse().ok())
    }

    /// A probability.
    pub fn chance(&mut self, key: &str) -> Result<Option<f64>, String> {
        let accept = |value: &str| value.parse().ok().filter(|p| (0.0..=1.0).contains(p));
        self.take(key, "a probability from 0 to 1", accept)
    }

    /// A time in milliseconds, as nanoseconds.
    pub fn ms(&mut self, key: &str) -> Result<Option<u64>, String> {
        let accept = |value: &str| {
            let ms = value.parse().ok().filter(|ms| (0.0..=MS_MAX).contains(ms))?;
            Some((ms * 1e6).round() as u64)
        };
        self.take(key, "milliseconds from 0 to 3600000", accept)
    }

    /// # Errors
    /// The first key that nobody asked for.
    pub fn finish(self) -> Result<(), String> {
        match self.0.first() {
            Some((key, _)) => Err(format!("`{key}` is no key of this fault")),
            None => Ok(()),
        }
    }
}
