//! The link of an interface, by its name in the file.

use std::borrow::Cow;

use millstream_link::LINKS;
use millstream_link::entry::{LinkEntry, Target};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A link that an interface can get: one that works on an interface of the kernel, or on a device
/// that the kernel has given up.
#[derive(Clone, Copy, Debug)]
pub struct LinkName(&'static LinkEntry);

impl LinkName {
    /// Every link that an interface can get.
    pub fn all() -> impl Iterator<Item = Self> {
        let fits =
            |entry: &&LinkEntry| matches!(entry.target, Target::Interface { .. } | Target::Device);
        LINKS.into_iter().filter(fits).map(Self)
    }

    /// Returns the link of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::all().find(|link| link.name() == name)
    }

    /// Returns the link's entry in the registry.
    #[must_use]
    pub fn entry(self) -> &'static LinkEntry {
        self.0
    }

    /// Its name in link strings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it takes the device from the kernel.
    #[must_use]
    pub fn takes_device(self) -> bool {
        matches!(self.0.target, Target::Device)
    }
}

impl From<&'static LinkEntry> for LinkName {
    fn from(entry: &'static LinkEntry) -> Self {
        Self(entry)
    }
}

impl Default for LinkName {
    /// The first link that works on an interface.
    fn default() -> Self {
        Self(LINKS.into_iter().find(|entry| entry.takes_interface()).unwrap_or(LINKS[0]))
    }
}

impl PartialEq for LinkName {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Serialize for LinkName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for LinkName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(from)?;
        Self::of(&name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(|link| format!("`{}`", link.name())).collect();
            let known = known.join(", ");
            D::Error::custom(format!("unknown link `{name}`, expected one of {known}"))
        })
    }
}
