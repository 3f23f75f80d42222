//! Enums whose variants have names, in tables and on the command line.

/// Gives an enum its variants in order, `ALL`, and their names. With words for its kind, a name
/// is also read back.
macro_rules! named {
    ($type:ident, $count:literal, [$(($variant:ident, $name:literal)),+ $(,)?]) => {
        impl $type {
            /// All, in order.
            pub const ALL: [Self; $count] = [$(Self::$variant),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
    ($type:ident, $kind:literal, $count:literal, $names:tt) => {
        $crate::named::named!($type, $count, $names);

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.into_iter().find(|one| one.name() == text);
                let names = || Self::ALL.map(Self::name).join(", ");
                found.ok_or_else(|| format!("`{text}` is not {}: {}", $kind, names()))
            }
        }
    };
}

pub(crate) use named;
