//! The generations of UHD as data: what the software and the image of a radio speak, by the version
//! of UHD that they belong to.

use millstream_mpm::RpcKind;
use millstream_wire::ctrl::Protocol;
use millstream_wire::regs::radio::RadioMap;

/// The version of UHD that a radio belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UhdGeneration {
    /// That of each caller, told apart by gRPC (UHD 4.11) or the order of its calls: UHD 4.0 to 4.3
    /// and 4.5 to 4.9.
    /// UHD 4.4 asks the same questions as 4.5, and 4.10 the same as 4.9: they need their own.
    #[default]
    Auto,
    /// UHD 4.0.
    V4_0,
    /// UHD 4.1.
    V4_1,
    /// UHD 4.2 and 4.3.
    V4_3,
    /// UHD 4.4.
    V4_4,
    /// UHD 4.5 to 4.9.
    V4_9,
    /// UHD 4.10.
    V4_10,
    /// UHD 4.11.
    V4_11,
}

impl UhdGeneration {
    /// The names of all, as [`UhdGeneration::named`] takes them; further versions have that of the
    /// next one here.
    pub const NAMES: &str = "auto, 4.0, 4.1, 4.3, 4.4, 4.9, 4.10, 4.11";

    /// Returns the generation of a version of UHD, such as 4.8, or of `auto`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "auto" {
            return Some(Self::Auto);
        }
        let minor: u8 = name.strip_prefix("4.")?.parse().ok()?;
        ALL.iter().find(|row| (row.minors.0..=row.minors.1).contains(&minor)).map(|row| row.uhd)
    }

    /// Returns how the calls of all its callers travel; `None` for both kinds.
    pub(crate) fn rpc(self) -> Option<RpcKind> {
        (self != Self::Auto).then(|| self.row().rpc)
    }

    /// Returns further fields of the answer to a search. `Auto` announces gRPC: hosts that do not
    /// know it use MessagePack all the same, except those of UHD 4.10, which then refuse the radio.
    pub(crate) fn discovery(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Auto => Self::V4_11.row().discovery,
            one => one.row().discovery,
        }
    }

    /// Returns the row of the table; `Auto` has that of a caller that has not asked anything.
    pub(crate) fn row(self) -> &'static Generation {
        ALL.iter().find(|row| row.uhd == self).unwrap_or(&V4_9)
    }
}

/// What a caller has asked in its session before it asks for the version of MPM, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum AskedBefore {
    #[default]
    Nothing,
    Timekeepers,
    Features,
    GpioPower,
}

/// A generation: one row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    uhd: UhdGeneration,
    /// The first and the last minor version of UHD 4.
    minors: (u8, u8),
    /// What tells its callers apart; `None` for those that ask as another generation does.
    asked_before: Option<AskedBefore>,
    /// The version of the MPM interface that UHD requires.
    pub mpm_compat: [u32; 2],
    /// Further fields of the answer to a search.
    pub discovery: &'static [(&'static str, &'static str)],
    pub protocol: Protocol,
    /// How its calls travel.
    pub rpc: RpcKind,
    pub radio_map: RadioMap,
    /// Compatibility numbers of blocks: major in the upper half, minor in the lower.
    pub radio_compat: u32,
    pub replay_compat: u32,
    /// Version of an X4xx's FPGA; those of other devices did not change.
    pub x4xx_fpga: &'static str,
    /// Images whose radios process several samples in a cycle have DDC and DUC.
    pub has_wide_dsp: bool,
}

const fn compat(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The generation of a caller that has asked nothing, too.
const V4_9: Generation = Generation {
    uhd: UhdGeneration::V4_9,
    minors: (5, 9),
    asked_before: Some(AskedBefore::Nothing),
    mpm_compat: [5, 3],
    replay_compat: compat(1, 2),
    radio_map: RadioMap::V0,
    radio_compat: compat(0, 1),
    x4xx_fpga: "10.0",
    discovery: &[],
    protocol: Protocol::V1,
    rpc: RpcKind::Msgpack,
    has_wide_dsp: false,
};

const V4_0: Generation = Generation {
    uhd: UhdGeneration::V4_0,
    minors: (0, 0),
    asked_before: Some(AskedBefore::Timekeepers),
    mpm_compat: [3, 0],
    discovery: &[],
    protocol: Protocol::V1,
    rpc: RpcKind::Msgpack,
    radio_map: RadioMap::V0,
    radio_compat: compat(0, 0),
    replay_compat: compat(1, 0),
    x4xx_fpga: "7.9",
    has_wide_dsp: false,
};

/// In the order of their versions.
static ALL: [Generation; 7] = [
    V4_0,
    Generation {
        uhd: UhdGeneration::V4_1,
        minors: (1, 1),
        asked_before: Some(AskedBefore::Features),
        mpm_compat: [4, 0],
        ..V4_0
    },
    Generation {
        uhd: UhdGeneration::V4_3,
        minors: (2, 3),
        asked_before: Some(AskedBefore::GpioPower),
        mpm_compat: [4, 2],
        radio_compat: compat(0, 1),
        replay_compat: compat(1, 1),
        ..V4_0
    },
    Generation {
        uhd: UhdGeneration::V4_4,
        minors: (4, 4),
        asked_before: None,
        mpm_compat: [4, 4],
        radio_compat: compat(0, 1),
        replay_compat: compat(1, 1),
        ..V4_0
    },
    V4_9,
    Generation {
        uhd: UhdGeneration::V4_10,
        minors: (10, 10),
        asked_before: None,
        mpm_compat: [6, 1],
        discovery: &[("rpc_version", "1")],
        radio_map: RadioMap::V1,
        radio_compat: compat(1, 0),
        replay_compat: compat(1, 3),
        x4xx_fpga: "11.0",
        ..V4_9
    },
    Generation {
        uhd: UhdGeneration::V4_11,
        minors: (11, 11),
        asked_before: None,
        mpm_compat: [7, 0],
        discovery: &[("customizable_fpga", "True"), ("rpc_version", "2")],
        protocol: Protocol::V2,
        rpc: RpcKind::Grpc,
        radio_map: RadioMap::V1,
        radio_compat: compat(1, 0),
        replay_compat: compat(1, 3),
        x4xx_fpga: "11.0",
        has_wide_dsp: true,
    },
];

impl Generation {
    /// Returns the generation of a host by what it asked before it asked for the version of MPM:
    /// UHD changed these first questions with some versions.
    pub(crate) fn by_first_questions(asked: AskedBefore) -> &'static Generation {
        let is_it = |row: &&Generation| row.asked_before == Some(asked);
        ALL.iter().find(is_it).unwrap_or(&V4_9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_uhd_4_belongs_to_one_generation() {
        for minor in 0..=11 {
            let of_it = ALL.iter().filter(|row| (row.minors.0..=row.minors.1).contains(&minor));
            assert_eq!(of_it.count(), 1, "4.{minor}");
            let named = UhdGeneration::named(&format!("4.{minor}"));
            assert_eq!(named.map(|uhd| uhd.row().uhd), named, "4.{minor}");
        }
        for name in UhdGeneration::NAMES.split(", ") {
            assert!(UhdGeneration::named(name).is_some(), "{name}");
        }
        for name in ["", "4", "4.", "4.12", "3.15", "5.0", "4.256", "automatic"] {
            assert_eq!(UhdGeneration::named(name), None, "{name}");
        }
    }

    #[test]
    fn no_two_generations_have_the_same_mark() {
        let marks: Vec<_> = ALL.iter().filter_map(|row| row.asked_before).collect();
        for (index, mark) in marks.iter().enumerate() {
            assert!(!marks[..index].contains(mark), "{mark:?}");
            assert_eq!(Generation::by_first_questions(*mark).asked_before, Some(*mark));
        }
        assert_eq!(UhdGeneration::Auto.row(), Generation::by_first_questions(AskedBefore::Nothing));
    }
}
