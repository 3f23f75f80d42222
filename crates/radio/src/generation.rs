//! The versions of the parts of a radio that this host works with, each asked for itself: a radio
//! may have the file system of one UHD and the image of another.

use millstream_wire::ctrl::Protocol;

use crate::RadioError;

/// A range of MPM versions with one major number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpmGeneration {
    /// The major number.
    pub major: u64,
    /// The UHD releases whose file systems have it.
    pub uhd: &'static str,
}

/// The generations of MPM, the oldest first.
pub const MPM_GENERATIONS: [MpmGeneration; 5] = [
    MpmGeneration { major: 3, uhd: "4.0" },
    MpmGeneration { major: 4, uhd: "4.1 to 4.4" },
    MpmGeneration { major: 5, uhd: "4.5 to 4.9" },
    MpmGeneration { major: 6, uhd: "4.10" },
    MpmGeneration { major: 7, uhd: "4.11" },
];

impl MpmGeneration {
    /// Returns the generation of an MPM version. Any minor number will do: it adds calls.
    ///
    /// # Errors
    /// [`RadioError::Compat`] for an unknown major number.
    pub fn of(version: (u64, u64)) -> Result<Self, RadioError> {
        let known = MPM_GENERATIONS.into_iter().find(|one| one.major == version.0);
        known.ok_or_else(|| RadioError::Compat {
            what: "the MPM version",
            found: format!("{}.{}", version.0, version.1),
            supported: "3.x to 7.x (UHD 4.0 to 4.11)",
            hint: if version.0 < MPM_GENERATIONS[0].major {
                "install the file system of a UHD from 4.0 to 4.11 on the device"
            } else {
                "update this program, or install the file system of a UHD from 4.0 to 4.11 on the \
                 device"
            },
        })
    }
}

/// The first MPM whose images speak protocol 2.0; that of images of earlier UHDs, with the next one
/// behind it, is refused by UHD, too.
const MPM_OF_PROTOCOL_2: u64 = 7;

/// Returns the protocol of a version that a device with this version of MPM reports.
///
/// # Errors
/// [`RadioError::Compat`] for an unknown major number, and for one that does not belong to the MPM:
/// the simulator of UHD 4.11 reports 1.0 and speaks 2.0.
pub(crate) fn protocol_of(version: u16, mpm: (u64, u64)) -> Result<Protocol, RadioError> {
    let [major, minor] = version.to_be_bytes();
    // UHD's simulator reports 0.0 and implements 1.0.
    let known = if version == 0 { Some(Protocol::V1) } else { Protocol::from_version(version) };
    match known {
        Some(Protocol::V1) if mpm.0 >= MPM_OF_PROTOCOL_2 => Err(RadioError::Compat {
            what: "the RFNoC protocol",
            found: format!("{major}.{minor} behind MPM {}.{}", mpm.0, mpm.1),
            supported: "2.x behind MPM 7.x",
            hint: "load the image that belongs to its file system into the device \
                   (uhd_image_loader); for the simulator of UHD 4.11, which speaks another \
                   protocol than it says, use that of UHD 4.8",
        }),
        Some(protocol) => Ok(protocol),
        None => Err(image_error("the RFNoC protocol", (major.into(), minor.into()), "1.x and 2.x")),
    }
}

/// Returns the error for a part of the device's image with another major version.
fn image_error(
    what: &'static str,
    (major, minor): (u32, u32),
    supported: &'static str,
) -> RadioError {
    RadioError::Compat {
        what,
        found: format!("{major}.{minor}"),
        supported,
        hint: "update this program, or load an image of a UHD from 4.0 to 4.11 into the device \
               (uhd_image_loader)",
    }
}

/// The same for a register with the major version in its upper half.
pub(crate) fn register_error(
    what: &'static str,
    compat: u32,
    supported: &'static str,
) -> RadioError {
    image_error(what, (compat >> 16, compat & 0xFFFF), supported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_of_each_image_is_known_and_a_third_one_is_named() {
        for (version, protocol) in [
            (0, Protocol::V1),
            (0x0100, Protocol::V1),
            (0x0107, Protocol::V1),
            (0x0200, Protocol::V2),
            (0x0201, Protocol::V2),
        ] {
            assert_eq!(protocol_of(version, (6, 1)).unwrap(), protocol);
        }
        assert_eq!(protocol_of(0x0200, (7, 0)).unwrap(), Protocol::V2);
        for version in [0, 0x0100] {
            let text = protocol_of(version, (7, 0)).unwrap_err().to_string();
            let part =
                "supports 2.x behind MPM 7.x: load the image that belongs to its file system";
            assert!(text.contains("0 behind MPM 7.0") && text.contains(part), "{text}");
        }
        let text = protocol_of(0x0300, (7, 0)).unwrap_err().to_string();
        assert_eq!(
            text,
            "the RFNoC protocol of the device is 3.0, but this program supports 1.x and 2.x: \
             update this program, or load an image of a UHD from 4.0 to 4.11 into the device \
             (uhd_image_loader)"
        );
    }

    #[test]
    fn every_mpm_of_uhd_4_is_known_and_others_are_named_with_the_next_step() {
        let versions = [(3, 0), (4, 0), (4, 2), (4, 4), (5, 3), (6, 1), (7, 0), (7, 99)];
        assert!(versions.iter().all(|version| MpmGeneration::of(*version).is_ok()));
        assert_eq!(
            MpmGeneration::of((8, 1)).unwrap_err().to_string(),
            "the MPM version of the device is 8.1, but this program supports 3.x to 7.x (UHD 4.0 \
             to 4.11): update this program, or install the file system of a UHD from 4.0 to 4.11 \
             on the device"
        );
        let old = MpmGeneration::of((2, 0)).unwrap_err().to_string();
        assert!(old.contains("is 2.0") && old.contains(": install the file system"), "{old}");
    }
}
