//! A parser of untrusted bytes, field by field: lengths first, and no read beyond the end.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::{ADDRESSES_MAX, Malformed, NAME_BYTES_MAX, PORTS_MAX, RANGES_MAX};
use crate::frame::Steer;

/// The rest of a message.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed::Short)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn flag(&mut self, what: &'static str) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Value(what)),
        }
    }

    pub fn text(&mut self, bytes_max: usize, what: &'static str) -> Result<String, Malformed> {
        let length = self.length(bytes_max, what)?;
        let text = std::str::from_utf8(self.bytes(length)?);
        text.map(str::to_owned).map_err(|_| Malformed::Value(what))
    }

    /// Returns a name that the kernel accepts for an interface: no space, no `/`, nothing
    /// unprintable.
    pub fn name(&mut self) -> Result<String, Malformed> {
        let name = self.text(NAME_BYTES_MAX, "interface")?;
        let good = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
        let special = name.is_empty() || name == "." || name == "..";
        if special || !name.bytes().all(good) {
            Err(Malformed::Value("interface"))
        } else {
            Ok(name)
        }
    }

    fn length(&mut self, most: usize, what: &'static str) -> Result<usize, Malformed> {
        let length = usize::from(self.u16()?);
        if length <= most { Ok(length) } else { Err(Malformed::Value(what)) }
    }

    pub fn steer(&mut self) -> Result<Steer, Malformed> {
        let (everything, own_addresses) = (self.flag("everything")?, self.flag("own_addresses")?);
        let vlan = match self.u16()? {
            u16::MAX => None,
            number @ 0..4096 => Some(number),
            _ => return Err(Malformed::Value("vlan")),
        };
        let addresses = (0..self.length(ADDRESSES_MAX, "addresses")?)
            .map(|_| Ok(Ipv4Addr::from(self.array::<4>()?)))
            .collect::<Result<_, _>>()?;
        let udp_ports = self.numbers(PORTS_MAX, "ports")?;
        let ethertypes = self.numbers(ADDRESSES_MAX, "Ethernet types")?;
        Ok(Steer { everything, addresses, udp_ports, own_addresses, vlan, ethertypes })
    }

    fn numbers(&mut self, most: usize, what: &'static str) -> Result<Vec<u16>, Malformed> {
        (0..self.length(most, what)?).map(|_| self.u16()).collect()
    }

    pub fn ranges(&mut self) -> Result<Vec<RangeInclusive<u16>>, Malformed> {
        let count = self.length(RANGES_MAX, "ranges of ports")?;
        let range = |_| match (self.u16()?, self.u16()?) {
            (first, last) if first <= last => Ok(first..=last),
            _ => Err(Malformed::Value("range of ports")),
        };
        (0..count).map(range).collect()
    }

    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Long(self.0.len())) }
    }
}
