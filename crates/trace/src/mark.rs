//! The collective calls of MPI-IO that a trace marks ([`Op::Mark`](crate::Op::Mark)).

/// A collective call of MPI-IO. The numbers are those of `docs/formats/trace.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "files", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[allow(missing_docs, reason = "the names are those of the MPI standard, without MPI_File_")]
#[repr(u8)]
pub enum MpiCall {
    Open = 1,
    Close,
    SetView,
    Sync,
    SetSize,
    Preallocate,
    ReadAll,
    WriteAll,
    ReadAtAll,
    WriteAtAll,
    ReadOrdered,
    WriteOrdered,
    ReadAllBegin,
    WriteAllBegin,
    ReadAtAllBegin,
    WriteAtAllBegin,
    ReadOrderedBegin,
    WriteOrderedBegin,
    ReadAllEnd,
    WriteAllEnd,
    ReadAtAllEnd,
    WriteAtAllEnd,
    ReadOrderedEnd,
    WriteOrderedEnd,
    IreadAll,
    IwriteAll,
    IreadAtAll,
    IwriteAtAll,
}

impl MpiCall {
    /// Every call with its name, in the order of the numbers. The C function is `MPI_File_`
    /// followed by the name.
    pub const ALL: [(MpiCall, &'static str); 28] = {
        use MpiCall::*;
        [
            (Open, "open"),
            (Close, "close"),
            (SetView, "set_view"),
            (Sync, "sync"),
            (SetSize, "set_size"),
            (Preallocate, "preallocate"),
            (ReadAll, "read_all"),
            (WriteAll, "write_all"),
            (ReadAtAll, "read_at_all"),
            (WriteAtAll, "write_at_all"),
            (ReadOrdered, "read_ordered"),
            (WriteOrdered, "write_ordered"),
            (ReadAllBegin, "read_all_begin"),
            (WriteAllBegin, "write_all_begin"),
            (ReadAtAllBegin, "read_at_all_begin"),
            (WriteAtAllBegin, "write_at_all_begin"),
            (ReadOrderedBegin, "read_ordered_begin"),
            (WriteOrderedBegin, "write_ordered_begin"),
            (ReadAllEnd, "read_all_end"),
            (WriteAllEnd, "write_all_end"),
            (ReadAtAllEnd, "read_at_all_end"),
            (WriteAtAllEnd, "write_at_all_end"),
            (ReadOrderedEnd, "read_ordered_end"),
            (WriteOrderedEnd, "write_ordered_end"),
            (IreadAll, "iread_all"),
            (IwriteAll, "iwrite_all"),
            (IreadAtAll, "iread_at_all"),
            (IwriteAtAll, "iwrite_at_all"),
        ]
    };

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
        for (code, (call, name)) in (1..).zip(MpiCall::ALL) {
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
