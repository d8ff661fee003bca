//! Encodes the indices of a data page: runs of equal ones, and packed ones, as the Parquet library
//! divides them (`RleEncoder`).

/// Indices are packed, and equal ones counted, from eight on.
const GROUP: usize = 8;

/// Maximum number of groups of a packed run, whose header is one byte.
const GROUPS_MAX: u8 = 63;

/// The width of the indices, and all of them in that many bits each.
pub(super) fn encode(indices: &[u32], width: u8) -> Vec<u8> {
    let mut out = vec![width];
    // The place of the header of the packed run that has not ended, and its groups.
    let mut packed: Option<(usize, u8)> = None;
    let mut rest = indices;
    while let Some(&first) = rest.first() {
        let group = &rest[..rest.len().min(GROUP)];
        let is_equal = group.iter().fold(true, |equal, &index| equal & (index == first));
        if is_equal && (group.len() == GROUP || packed.is_none()) {
            end(packed.take(), &mut out);
            let count = rest.iter().position(|&index| index != first).unwrap_or(rest.len());
            varint((count as u64) << 1, &mut out);
            out.extend(&first.to_le_bytes()[..usize::from(width).div_ceil(8)]);
            rest = &rest[count..];
        } else {
            let (header, groups) = packed.unwrap_or_else(|| {
                out.push(0);
                (out.len() - 1, 0)
            });
            pack(group, width, &mut out);
            packed = Some((header, groups + 1));
            if groups + 1 == GROUPS_MAX {
                end(packed.take(), &mut out);
            }
            rest = &rest[group.len()..];
        }
    }
    end(packed, &mut out);
    out
}

/// Writes the header of a packed run.
fn end(packed: Option<(usize, u8)>, out: &mut [u8]) {
    if let Some((header, groups)) = packed {
        out[header] = groups << 1 | 1;
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Packs up to eight indices, from the lowest bit on; zeros follow fewer.
fn pack(group: &[u32], width: u8, out: &mut Vec<u8>) {
    let end = out.len() + usize::from(width);
    let (mut bits, mut filled) = (0u128, 0);
    for &index in group {
        bits |= u128::from(index) << filled;
        filled += u32::from(width);
        if filled >= u64::BITS {
            out.extend((bits as u64).to_le_bytes());
            bits >>= u64::BITS;
            filled -= u64::BITS;
        }
    }
    out.extend(bits.to_le_bytes());
    out.resize(end, 0);
}
