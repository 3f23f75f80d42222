//! What a user says of a device in place of its address.

use crate::RadioError;
use crate::discover::DeviceInfo;
use std::fmt;
use std::net::Ipv4Addr;

/// What the user knows of a device, besides its address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceIdentity {
    /// Its type, such as `e3xx`.
    pub device_type: Option<String>,
    /// Its product, such as `e320`.
    pub product: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
}

impl DeviceIdentity {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a device's description of itself, by its field, is of this device.
    pub fn fits<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        let fits = |wanted: &Option<String>, name: &str| {
            wanted.as_ref().is_none_or(|wanted| field(name) == wanted.as_str())
        };
        fits(&self.device_type, "type")
            && fits(&self.product, "product")
            && fits(&self.serial, "serial")
    }
}

impl DeviceIdentity {
    /// Returns the address of the only device of this description. A device that answers at several
    /// addresses has one serial number at all of them.
    pub(crate) fn only_of(&self, all: &[DeviceInfo]) -> Result<Ipv4Addr, RadioError> {
        let wanted = if self.is_empty() { String::new() } else { format!(" with {self}") };
        let fitting = all.iter().filter(|one| self.fits(|name| one.field(name)));
        let fitting: Vec<_> = fitting.collect();
        let [first, others @ ..] = &fitting[..] else {
            return Err(RadioError::NotFound { wanted });
        };
        let serial = first.field("serial");
        if others.iter().any(|other| serial.is_empty() || other.field("serial") != serial) {
            let named = |one: &&DeviceInfo| {
                let [product, serial] = ["product", "serial"].map(|name| one.field(name));
                format!("{product} at {} (serial {serial})", one.address)
            };
            let found: Vec<_> = fitting.iter().map(named).collect();
            return Err(RadioError::Ambiguous { wanted, found: found.join(", ") });
        }
        Ok(first.address)
    }
}

impl fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all =
            [("type", &self.device_type), ("product", &self.product), ("serial", &self.serial)];
        let all = all.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let all: Vec<_> = all.map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceArgs;

    #[test]
    fn without_an_address_the_only_device_is_taken() {
        let device = |last, serial: &str| DeviceInfo {
            address: Ipv4Addr::new(192, 168, 10, last),
            fields: [("product", "n320"), ("serial", serial)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        let only = |text: &str, all: &[DeviceInfo]| {
            let args: DeviceArgs = text.parse().unwrap();
            args.identity.only_of(all).map_err(|error| error.to_string())
        };
        let all = [device(2, "A"), device(3, "A"), device(9, "B")];
        assert_eq!(only("", &all[..2]), Ok(all[0].address), "one device with two addresses");
        assert_eq!(only("serial=B", &all), Ok(all[2].address));
        let error = only("product=n320", &all).unwrap_err();
        let start = "several devices with product=n320 answer: n320 at 192.168.10.2 (serial A), ";
        assert!(error.starts_with(start) && error.contains("choose one with addr="), "{error}");
        let error = only("", &[device(2, ""), device(3, "")]).unwrap_err();
        assert!(error.starts_with("several devices answer: "), "{error}");
        let error = only("", &[]).unwrap_err();
        assert!(error.starts_with("no device answers in the networks of this machine"), "{error}");
        let error = only("serial=C", &all).unwrap_err();
        assert!(error.starts_with("no device with serial=C answers"), "{error}");
    }
}
