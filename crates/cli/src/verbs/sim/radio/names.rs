//! Addresses, serial numbers and files of several radios.

use anyhow::Context;
use std::net::SocketAddrV4;

/// The address of radio `index`: ports count up, except port 0, which means any.
pub fn nth_port(address: SocketAddrV4, index: u8) -> anyhow::Result<SocketAddrV4> {
    let port = match address.port() {
        0 => Some(0),
        port => port.checked_add(index.into()),
    };
    let port = port.with_context(|| {
        format!(
            "--control {address}: radio {index} would need a port above 65535: give a lower port"
        )
    })?;
    Ok(SocketAddrV4::new(*address.ip(), port))
}

/// The serial number `steps` after this one. Hexadecimal ones count as such; in others the digits
/// at the end count, or some are appended.
pub fn successor(serial: &str, steps: u8) -> String {
    if let (1.., Some(value)) = (steps, hexadecimal(serial)) {
        return format!("{:0width$X}", value.saturating_add(steps.into()), width = serial.len());
    }
    let stem = serial.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &serial[stem.len()..];
    match (steps, digits.parse::<u64>()) {
        (0, _) => serial.to_owned(),
        (_, Ok(value)) => {
            let value = value.saturating_add(steps.into());
            format!("{stem}{value:0width$}", width = digits.len())
        }
        (_, Err(_)) => format!("{serial}{steps}"),
    }
}

/// Whether UHD can find it: it compares serial numbers as hexadecimal ones below 2^31.
pub fn is_hexadecimal(serial: &str) -> bool {
    hexadecimal(serial).is_some_and(|value| i32::try_from(value).is_ok())
}

fn hexadecimal(serial: &str) -> Option<u64> {
    let digits = serial.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(serial, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn serial_numbers_count_up() {
        let cases = [("MS0001", 0, "MS0001"), ("MS0001", 1, "MS0002"), ("A9", 3, "AC")];
        for (serial, steps, want) in cases.into_iter().chain([
            ("DEMO", 2, "DEMO2"),
            ("31a5e83", 0, "31a5e83"),
            ("00F", 1, "010"),
        ]) {
            assert_eq!(successor(serial, steps), want);
        }
    }

    #[test]
    fn what_uhd_can_look_for_is_known() {
        for (serial, can) in [("7F000002", true), ("31A5E83", true), ("MS0001", false)] {
            assert_eq!(is_hexadecimal(serial), can, "{serial}");
        }
        assert!(!is_hexadecimal("C0A80A02"), "UHD reads a signed number of 32 bits");
    }

    #[test]
    fn control_ports_count_up_as_far_as_there_are_any() {
        let nth = |port, index| {
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            nth_port(address, index).map(|address| address.port()).map_err(|e| e.to_string())
        };
        assert_eq!(nth(0, 3), Ok(0), "any free one");
        assert_eq!(nth(5555, 3), Ok(5558));
        let error = nth(65535, 1).unwrap_err();
        assert!(
            error.contains("127.0.0.1:65535: radio 1 would need a port above 65535"),
            "{error}"
        );
    }
}
