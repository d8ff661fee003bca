use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_layout::{Layout, Region, Stripe, constructors};

use super::*;

fn two_targets(layout: Layout) -> Manifest {
    let target = |n: usize| TargetRef {
        name: format!("hdd/{n}"),
        path: format!("/disks/h{n}").into(),
        id: format!("{n:016x}"),
    };
    Manifest {
        id: FileId::from_hex("0123456789abcdef0123456789abcdef").unwrap(),
        pending_truncate: None,
        path: "/data/run 1/out.h5".into(),
        created: "2026-11-21T01:00:00Z".into(),
        targets: (0..layout.target_count()).map(target).collect(),
        layout,
    }
}

fn sample() -> Manifest {
    two_targets(constructors::two_part(&[(0, 65536), (1, 4096)], 1 << 30, &[(1, 65536)]).unwrap())
}

/// Any valid manifest of a few targets and regions, with strings that need escapes.
fn manifests() -> impl Strategy<Value = Manifest> {
    let widths = vec(vec((0..5u32, 1..1u64 << 40), 1..6), 1..5);
    (widths, vec(1..1u64 << 50, 4), any::<String>(), any::<[u8; 16]>(), proptest::option::of(0..=1u64 << 62))
        .prop_map(|(mut cycles, lengths, text, id, pending_truncate)| {
            // Renumber, so that every target is used.
            let mut seen: Vec<u32> = cycles.iter().flatten().map(|(target, _)| *target).collect();
            seen.sort_unstable();
            seen.dedup();
            let renumber = |target: u32| seen.iter().position(|&t| t == target).unwrap() as u32;
            cycles.iter_mut().flatten().for_each(|(target, _)| *target = renumber(*target));
            let last = cycles.len() - 1;
            let mut start = 0;
            let mut regions = Vec::new();
            for (index, cycle) in cycles.into_iter().enumerate() {
                let end = (index != last).then(|| start + lengths[index]);
                let cycle = cycle.into_iter().map(|(target, width)| Stripe { target, width }).collect();
                regions.push(Region { start, end, cycle });
                start = end.unwrap_or(0);
            }
            let manifest = two_targets(Layout::new(regions).unwrap());
            Manifest { id: FileId(id), path: text, pending_truncate, ..manifest }
        })
}

#[test]
fn the_text_is_what_the_format_page_says() {
    let text = sample().format().unwrap();
    let checksum = &text[text.find("crc32:").unwrap() + 6..][..8];
    let expected = format!(
        "stripewise file, format 1
# This file's bytes are stored in pieces on several targets; this text only says where.
# Read it with `stripewise cat FILE`, run programs over it with `stripewise run -- CMD`,
# or turn it back into a plain file with `stripewise export FILE`.
length = 717    \nchecksum = \"crc32:{checksum}\"
id = \"0123456789abcdef0123456789abcdef\"
pending_truncate = \"                    \"
path = \"/data/run 1/out.h5\"
created = \"2026-11-21T01:00:00Z\"
[[target]]
name = \"hdd/0\"
path = \"/disks/h0\"
id = \"0000000000000000\"
[[target]]
name = \"hdd/1\"
path = \"/disks/h1\"
id = \"0000000000000001\"
[[region]]
start = 0
end = 1073741824
cycle = [[0, 65536], [1, 4096]]
[[region]]
start = 1073741824
cycle = [[1, 65536]]
"
    );
    assert_eq!(text, expected);
}

#[test]
fn the_pending_value_is_patched_in_place() {
    let mut text = sample().format().unwrap().into_bytes();
    let at = Manifest::pending_offset(&text).unwrap();
    text[at..at + PENDING_BYTES].copy_from_slice(format::pending_text(Some(12345)).as_bytes());
    let parsed = Manifest::parse(&text, "f").unwrap();
    assert_eq!(parsed, Manifest { pending_truncate: Some(12345), ..sample() });
    // Within one sector, whatever follows: a power cut leaves it whole or as it was.
    assert!(at + PENDING_BYTES <= 512, "{at}");
}

#[test]
fn a_part_of_a_pending_value_is_none() {
    let (blank, value) = (format::pending_text(None), format::pending_text(Some(u64::from(u32::MAX))));
    for written in 0..PENDING_BYTES {
        for (new, old) in [(&value, &blank), (&blank, &value)] {
            let left = format!("{}{}", &new[..written], &old[written..]);
            let whole = written == 0 && old == &value;
            assert_eq!(parse_pending(&left), Ok(whole.then_some(u64::from(u32::MAX))), "{left:?}");
        }
    }
    assert!(parse_pending("18446744073709551615").is_err());
    assert!(parse_pending("").is_err());
}

#[track_caller]
fn refused(edit: impl Fn(&str) -> String, expected: &str) {
    let text = edit(&sample().format().unwrap());
    // The checksum would hide what is behind it.
    let sum = format!("{:08x}", format::checksum(text.as_bytes()));
    let at = text.find("crc32:").map(|at| at + 6);
    let text = at.map_or(text.clone(), |at| format!("{}{sum}{}", &text[..at], &text[at + 8..]));
    let error = Manifest::parse(text.as_bytes(), "/data/f").unwrap_err().to_string();
    assert!(error.starts_with("/data/f: ") && error.contains(expected), "{error}");
    assert!(!error.contains('\n') && error.contains("; "), "{error}");
}

#[test]
fn refusals_name_file_key_and_remedy() {
    refused(|text| text.replace("format 1", "format 2"), "format \"2\"");
    refused(|text| text.replace("length = 717 ", "length = 716 "), "checksum");
    refused(|text| text.replace("length = 717", "length = 999"), "`length`");
    refused(|text| text.replace("id = \"0123", "id = \"z123"), "`id`");
    refused(|text| text.replace("[[0, 65536]", "[[9, 65536]"), "target 9");
    refused(|text| text.replace("[[0, 65536]", "[[1, 65536]"), "no region uses target 0");
    refused(|text| text.replace("[0, 65536]", "[0,     0]"), "0 bytes wide");
    refused(|text| text.replace("start = 1073741824", "start = 1073741825"), "1073741825");
    refused(|text| text.replace("path = \"/disks/h0\"", "path = \"disks/h00\""), "target.path");
    refused(|text| text.replace("created", "creatod"), "creatod");
    refused(|text| text.replace("\"                    \"", "\"12x                 \""), "pending_truncate");
}

#[test]
fn a_plain_file_is_not_a_manifest() {
    let error = Manifest::parse(b"hello", "f").unwrap_err().to_string();
    assert!(error.contains("not a managed file"), "{error}");
}

#[test]
fn a_thousand_targets_fit() {
    let targets: Vec<u32> = (0..1000).collect();
    let manifest = two_targets(constructors::striped(&targets, 1 << 20).unwrap());
    let text = manifest.format().unwrap();
    assert_eq!(Manifest::parse(text.as_bytes(), "f").unwrap(), manifest);
}

#[test]
fn oversize_is_refused_when_writing() {
    let targets: Vec<u32> = (0..30_000).collect();
    let error = two_targets(constructors::striped(&targets, 1 << 20).unwrap()).format().unwrap_err();
    assert!(error.to_string().contains("fewer"), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read(manifest in manifests(), hole in 0..5000usize) {
        let mut bytes = manifest.format().unwrap().into_bytes();
        prop_assert_eq!(Manifest::text_length(&bytes, "f").unwrap(), bytes.len());
        bytes.resize(bytes.len() + hole, 0);
        prop_assert_eq!(Manifest::parse(&bytes, "f").unwrap(), manifest);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..2000), magic in any::<bool>()) {
        let mut text = if magic { MAGIC_LINE.as_bytes().to_vec() } else { Vec::new() };
        text.extend(bytes);
        prop_assert!(Manifest::parse(&text, "f").is_err());
    }

    /// CRC-32 finds every error of up to three bytes; only the pending value may change.
    #[test]
    fn a_changed_byte_is_noticed(manifest in manifests(), at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let mut text = manifest.format().unwrap().into_bytes();
        let pending = Manifest::pending_offset(&text).unwrap();
        let at = at.index(text.len());
        text[at] ^= flip;
        let parsed = Manifest::parse(&text, "f");
        if (pending..pending + PENDING_BYTES).contains(&at) {
            prop_assert!(parsed.is_err() || parsed.is_ok_and(|p| p.id == manifest.id));
        } else {
            prop_assert!(parsed.is_err(), "{:?}", String::from_utf8_lossy(&text));
        }
    }

    /// Edits with a right checksum reach the checks behind it: they never panic, and what they accept is valid.
    #[test]
    fn mutated_texts_never_panic(
        manifest in manifests(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..8),
    ) {
        let mut text = manifest.format().unwrap().into_bytes();
        for (at, byte, kind) in edits {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.remove(at)),
            }
        }
        let sum = format!("{:08x}", format::checksum(&text));
        let at = format::value_offset(&text, format::CHECKSUM_KEY);
        if let Some(digits) = at.and_then(|at| text.get_mut(at..at + 8)) {
            digits.copy_from_slice(sum.as_bytes());
        }
        match Manifest::parse(&text, "/some/file") {
            Ok(parsed) => prop_assert_eq!(parsed.layout.target_count(), parsed.targets.len()),
            Err(error) => prop_assert!(error.to_string().starts_with("/some/file: ")),
        }
    }
}
