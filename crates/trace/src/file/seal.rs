//! The seal: a checksum of the whole file, between the last row group and the footer, where Parquet
//! readers do not look.
//!
//! Parquet's own structures have no checksum, and the library does not handle damaged ones well. So
//! the seal detects damage before the library reads the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A seal without its checksum: the magic and four bytes for a CRC-32, little-endian.
pub(super) const BLANK: [u8; SEAL_BYTES] = *b"stripewise\n\0\0\0\0\0";

/// Size of the seal, bytes.
const SEAL_BYTES: usize = 16;

/// Size of the magic at the start of the seal, bytes.
const MAGIC_BYTES: usize = 12;

/// Size of the end of a Parquet file, bytes: length of the footer, `PAR1`.
const TAIL_BYTES: u64 = 8;

/// The state of a file's seal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// The file is as it was written.
    Whole,
    /// The checksum does not match the file.
    Broken,
    /// There is no seal in front of the footer.
    None,
}

/// Computes the checksum and writes it into the blank seal.
pub(super) fn fill(file: &File) -> io::Result<()> {
    let at = position(file)?.ok_or_else(|| io::Error::other("the seal is not where it was written"))?;
    let checksum_at = at + MAGIC_BYTES as u64;
    file.write_all_at(&checksum(file, checksum_at)?.to_le_bytes(), checksum_at)
}

/// Compares the checksum with the file's content, all of which it reads.
pub(super) fn check(file: &File) -> io::Result<Seal> {
    let Some(at) = position(file)? else { return Ok(Seal::None) };
    let checksum_at = at + MAGIC_BYTES as u64;
    let mut stored = [0; 4];
    file.read_exact_at(&mut stored, checksum_at)?;
    let same = u32::from_le_bytes(stored) == checksum(file, checksum_at)?;
    Ok(if same { Seal::Whole } else { Seal::Broken })
}

/// The offset of the seal: just before the footer, whose length is in the last bytes of the file.
fn position(file: &File) -> io::Result<Option<u64>> {
    let len = file.metadata()?.len();
    let mut tail = [0; TAIL_BYTES as usize];
    let Some(tail_at) = len.checked_sub(TAIL_BYTES) else { return Ok(None) };
    file.read_exact_at(&mut tail, tail_at)?;
    let footer = u32::from_le_bytes(tail[..4].try_into().expect("4 bytes"));
    let Some(at) = tail_at.checked_sub(u64::from(footer) + SEAL_BYTES as u64) else { return Ok(None) };
    let mut magic = [0; MAGIC_BYTES];
    file.read_exact_at(&mut magic, at)?;
    Ok((magic == BLANK[..MAGIC_BYTES]).then_some(at))
}

/// The checksum of everything except its own four bytes.
fn checksum(file: &File, checksum_at: u64) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    for (start, end) in [(0, checksum_at), (checksum_at + 4, file.metadata()?.len())] {
        let mut position = start;
        while position < end {
            let part = &mut buffer[..((end - position).min(1 << 20)) as usize];
            file.read_exact_at(part, position)?;
            hasher.update(part);
            position += part.len() as u64;
        }
    }
    Ok(hasher.finalize())
}
