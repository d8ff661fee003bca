//! The names of values in files and on the command line.

/// Gives an enumeration the constant `ALL` and the functions `name` and `by_name`.
macro_rules! named {
    ($type:ident: $($value:ident = $name:literal),+) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The name in files and on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }

            /// The value of this name.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}
pub(crate) use named;
