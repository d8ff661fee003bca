//! The collective calls of MPI-IO that a trace marks ([`Op::Mark`](crate::Op::Mark)).

/// Defines [`MpiCall`] from rows of a call's number, the call, and its name.
macro_rules! mpi_calls {
    ($($number:literal $call:ident $name:literal,)*) => {
        /// A collective call of MPI-IO. The numbers are those of `docs/formats/trace.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "files", derive(serde::Serialize))]
        #[allow(missing_docs, reason = "the names are those of the MPI standard, without MPI_File_")]
        #[repr(u8)]
        pub enum MpiCall {
            $(#[cfg_attr(feature = "files", serde(rename = $name))] $call = $number,)*
        }

        impl MpiCall {
            /// Every call with its name, in the order of the numbers. The C function is `MPI_File_`
            /// followed by the name.
            pub const ALL: &[(MpiCall, &'static str)] = &[$((MpiCall::$call, $name),)*];
        }
    };
}

mpi_calls! {
    1 Open "open",
    2 Close "close",
    3 SetView "set_view",
    4 Sync "sync",
    5 SetSize "set_size",
    6 Preallocate "preallocate",
    7 ReadAll "read_all",
    8 WriteAll "write_all",
    9 ReadAtAll "read_at_all",
    10 WriteAtAll "write_at_all",
    11 ReadOrdered "read_ordered",
    12 WriteOrdered "write_ordered",
    13 ReadAllBegin "read_all_begin",
    14 WriteAllBegin "write_all_begin",
    15 ReadAtAllBegin "read_at_all_begin",
    16 WriteAtAllBegin "write_at_all_begin",
    17 ReadOrderedBegin "read_ordered_begin",
    18 WriteOrderedBegin "write_ordered_begin",
    19 ReadAllEnd "read_all_end",
    20 WriteAllEnd "write_all_end",
    21 ReadAtAllEnd "read_at_all_end",
    22 WriteAtAllEnd "write_at_all_end",
    23 ReadOrderedEnd "read_ordered_end",
    24 WriteOrderedEnd "write_ordered_end",
    25 IreadAll "iread_all",
    26 IwriteAll "iwrite_all",
    27 IreadAtAll "iread_at_all",
    28 IwriteAtAll "iwrite_at_all",
}

impl MpiCall {
    /// The call with this number.
    pub fn from_code(code: u64) -> Option<MpiCall> {
        let index = usize::try_from(code).ok()?.checked_sub(1)?;
        Some(MpiCall::ALL.get(index)?.0)
    }

    /// The call with this name.
    pub fn from_name(name: &[u8]) -> Option<MpiCall> {
        Some(MpiCall::ALL.iter().find(|(_, known)| known.as_bytes() == name)?.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        MpiCall::ALL[self as usize - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_calls_belong_together() {
        for (code, &(call, name)) in (1..).zip(MpiCall::ALL) {
            assert_eq!(call as u64, code);
            assert_eq!(
                (MpiCall::from_code(code), MpiCall::from_name(name.as_bytes())),
                (Some(call), Some(call))
            );
            assert_eq!(call.name(), name);
        }
        for none in [0, 29, u64::MAX] {
            assert_eq!(MpiCall::from_code(none), None);
        }
        assert_eq!(MpiCall::from_name(b"read"), None);
    }
}
