//! Copies bytes from one file to another and computes their checksum; copies a whole file to
//! another path.

use std::path::Path;

use stripewise_sys::{FileType, Mode};
use stripewise_target::FileId;

use super::contents::Contents;
use super::error::MigrateError;
use super::job::{Phase, Progress};
use super::place::Place;
use crate::error::{Errno, FileError, Result};
use crate::runtime::{Missing, Runtime, Shape, temporary_name};

/// Bytes of one read or write: large enough to keep all servers busy at once.
const TRANSFER_BYTES: usize = 8 << 20;
/// Aligned blocks of zeros of this size are not written: they become holes in the copy.
const HOLE_BYTES: usize = 64 << 10;

/// Copies bytes `from..to` and returns their CRC-32. Holes and blocks of zeros become holes.
pub(super) fn copy_range(
    source: &Contents,
    destination: &Contents,
    (from, to): (u64, u64),
    mut tell: impl FnMut(u64),
) -> Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    each_transfer(source, (from, to), &mut sum, |bytes, offset| {
        for (at, part) in parts(bytes, offset) {
            if part.iter().any(|&byte| byte != 0) {
                destination.write(part, at)?;
            }
        }
        tell(offset + bytes.len() as u64);
        Ok(())
    })?;
    Ok(sum.finalize())
}

pub(super) fn checksum(file: &Contents, range: (u64, u64), mut tell: impl FnMut(u64)) -> Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    each_transfer(file, range, &mut sum, |bytes, offset| {
        tell(offset + bytes.len() as u64);
        Ok(())
    })?;
    Ok(sum.finalize())
}

/// Calls `each` with the data in `from..to` outside holes, and adds all bytes, including holes, to
/// `sum`.
fn each_transfer(
    file: &Contents,
    (mut from, to): (u64, u64),
    sum: &mut crc32fast::Hasher,
    mut each: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; TRANSFER_BYTES.min((to - from) as usize)];
    while from < to {
        // For a short remainder, reading is as fast as looking for a hole.
        let data = match to - from {
            rest if rest <= HOLE_BYTES as u64 => from,
            _ => file.next_data(from)?.map_or(to, |data| data.min(to)),
        };
        add_zeros(sum, data - from);
        from = data;
        let len = buffer.len().min((to - from) as usize);
        let done = file.read(&mut buffer[..len], from)?;
        if done < len {
            // The file has become shorter. The rest counts as zeros; the check of the source will
            // find the change.
            buffer[done..len].fill(0);
        }
        if len > 0 {
            sum.update(&buffer[..len]);
            each(&buffer[..len], from)?;
        }
        from += len as u64;
    }
    Ok(())
}

fn add_zeros(sum: &mut crc32fast::Hasher, mut len: u64) {
    static ZEROS: [u8; HOLE_BYTES] = [0; HOLE_BYTES];
    while len > 0 {
        let part = len.min(HOLE_BYTES as u64) as usize;
        sum.update(&ZEROS[..part]);
        len -= part as u64;
    }
}

/// Splits a transfer where aligned blocks of zeros begin and end.
fn parts(bytes: &[u8], offset: u64) -> Vec<(u64, &[u8])> {
    let first = (offset.next_multiple_of(HOLE_BYTES as u64) - offset) as usize;
    let (head, blocks) = bytes.split_at(first.min(bytes.len()));
    let mut runs: Vec<(usize, usize, bool)> = vec![(0, head.len(), false)];
    for (index, block) in blocks.chunks(HOLE_BYTES).enumerate() {
        let start = head.len() + index * HOLE_BYTES;
        let zeros = block.iter().all(|&byte| byte == 0);
        match runs.last_mut() {
            Some((_, end, before)) if *before == zeros => *end = start + block.len(),
            _ => runs.push((start, start + block.len(), zeros)),
        }
    }
    runs.into_iter().map(|(start, end, _)| (offset + start as u64, &bytes[start..end])).collect()
}

/// Copies the file at `from` to `to`, atomically: `to` always shows its old state or the complete
/// copy. The copy gets `shape`; without one, the layout of the managed file at `to`; without that,
/// it is a plain file. Its mode is that of the source, and its times are the current time. Returns
/// the bytes of the file.
///
/// # Errors
/// `to` is unchanged after any error.
pub fn copy_file(
    runtime: &Runtime,
    from: &Path,
    to: &Path,
    shape: Option<Shape<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, MigrateError> {
    let source = Contents::open(runtime, from)?;
    let version = source.version().map_err(FileError::io(from, "stat"))?;
    let mode = source.stat().map_err(FileError::io(from, "stat"))?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(MigrateError::NotRegular(from.into()));
    }
    let place = place_for(runtime, to, shape)?;
    let id = FileId::random(&**runtime.sys()).map_err(FileError::io(to, "create"))?;
    let temporary = to.with_file_name(temporary_name(id));
    let destination = place.make(runtime, to, id, Mode::from_raw_mode(mode & 0o777), "create")?;
    let copied = copy_checked(&source, &destination, from, to, version.size, progress).and_then(|()| {
        if source.version().map_err(FileError::io(from, "stat"))? != version {
            return Err(MigrateError::Changed(from.into()));
        }
        Ok(runtime.rename(None, &temporary, None, to, 0).map_err(FileError::io(to, "create"))?)
    });
    if copied.is_err() {
        let _ = runtime.unlink(None, &temporary);
    }
    copied.map(|()| version.size)
}

fn place_for<'a>(runtime: &Runtime, to: &Path, shape: Option<Shape<'_>>) -> Result<Place<'a>, MigrateError> {
    let io = |what| FileError::io(to, what);
    let there = runtime.sys().stat_at(None, to, true);
    if there.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
        return Err(io("create")(Errno::ISDIR).into());
    }
    let blueprint = match shape {
        Some(shape) => runtime.resolve(shape, Missing::LeaveOut),
        None => match runtime.manifest_at(None, to, true).map_err(io("open"))? {
            Some(like) => runtime.blueprint_of(&like),
            None => return Ok(Place::Plain),
        },
    };
    Ok(Place::Managed(blueprint.map_err(FileError::from)?))
}

fn copy_checked(
    source: &Contents,
    destination: &Contents,
    from: &Path,
    to: &Path,
    total: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), MigrateError> {
    let mut tell = |phase, done| progress(Progress { phase, done, total });
    let all = (0, total);
    let sum = copy_range(source, destination, all, |done| tell(Phase::Copy, done))
        .map_err(FileError::io(from, "copy"))?;
    let finish = || {
        destination.set_size(total)?;
        destination.settle()?;
        destination.sync()
    };
    finish().map_err(FileError::io(to, "write"))?;
    let arrived =
        checksum(destination, all, |done| tell(Phase::Verify, done)).map_err(FileError::io(to, "read back"))?;
    if arrived == sum { Ok(()) } else { Err(MigrateError::Damaged(to.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_of_zeros_are_parts_of_their_own() {
        let block = HOLE_BYTES;
        let mut bytes = vec![1; 5 * block];
        bytes[block..3 * block].fill(0);
        bytes[4 * block + 7..].fill(0);
        let lens =
            |offset| parts(&bytes, offset).iter().map(|(at, part)| (*at, part.len())).collect::<Vec<_>>();
        let b = block as u64;
        assert_eq!(lens(0), [(0, block), (b, 2 * block), (3 * b, 2 * block)][..].to_vec());
        let shifted = lens(10);
        assert_eq!(shifted.iter().map(|(_, len)| len).sum::<usize>(), bytes.len());
        assert!(shifted.iter().any(|&(at, len)| len == block && at % b == 0), "{shifted:?}");
    }
}
