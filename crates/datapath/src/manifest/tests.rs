use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_cluster::{CacheAdmission, CacheMode, Durability, OverlayKind};
use stripewise_layout::{Layout, Region, Stripe, constructors};

use stripewise_target::{FileId, TargetRef};

use super::parse::parse_pending;
use super::*;

fn targets(layout: &Layout) -> Vec<TargetRef> {
    let target = |n: usize| TargetRef {
        name: format!("hdd/{n}"),
        path: format!("/disks/h{n}").into(),
        id: format!("{n:016x}"),
    };
    (0..layout.target_count()).map(target).collect()
}

fn two_targets(layout: Layout) -> Manifest {
    Manifest {
        id: FileId::from_hex("0123456789abcdef0123456789abcdef").unwrap(),
        pending_truncate: None,
        path: "/data/run 1/out.h5".into(),
        created: "2026-11-21T01:00:00Z".into(),
        anchor: Default::default(),
        targets: targets(&layout),
        layout,
        copies: None,
    }
}

fn sample() -> Manifest {
    two_targets(constructors::two_part(&[(0, 65536), (1, 4096)], 1 << 30, &[(1, 65536)]).unwrap())
}

/// The sample with two cache copies.
fn cached() -> Manifest {
    let copy = |number, name: &str, groups, layout: Layout| ExtraCopy {
        name: name.into(),
        id: copy_id(sample().id, number),
        groups,
        servers: 4,
        pool_servers: Vec::new(),
        targets: targets(&layout),
        layout,
    };
    let list = vec![
        copy(1, "1-DH", 1, constructors::striped(&[0, 1], 65536).unwrap()),
        copy(2, "1-DV", 1, constructors::on_one(0).unwrap()),
    ];
    let copies = Copies {
        kind: OverlayKind::Cache {
            mode: CacheMode::Sla,
            admission: CacheAdmission::AsPrinted,
            capacity_per_server: 1 << 30,
        },
        lazy_close: false,
        durability: Durability::Sync,
        background: Some(50 << 20),
        procs: 16,
        procs_per_node: 4,
        servers: 8,
        list,
    };
    Manifest { copies: Some(Box::new(copies)), ..sample() }
}

/// Generates layouts with a few targets and regions.
fn layouts() -> impl Strategy<Value = Layout> {
    let widths = vec(vec((0..5u32, 1..1u64 << 40), 1..6), 1..5);
    (widths, vec(1..1u64 << 50, 4)).prop_map(|(mut cycles, lengths)| {
        // Renumber the targets so that every one is used.
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
        Layout::new(regions).unwrap()
    })
}

fn copies() -> impl Strategy<Value = Copies> {
    let kind = proptest::option::of((0..4usize, 1..1u64 << 62)).prop_map(|cache| match cache {
        Some((mode, capacity_per_server)) => {
            let admission = CacheAdmission::ALL[mode % 2];
            OverlayKind::Cache { mode: CacheMode::ALL[mode], admission, capacity_per_server }
        }
        None => OverlayKind::Replicas,
    });
    let list = vec((layouts(), any::<String>(), 0..3u32, any::<u32>()), 1..8);
    let numbers = (proptest::option::of(1..1u64 << 62), 1..100u32, 1..100u32, any::<u32>());
    (kind, list, any::<bool>(), any::<bool>(), numbers).prop_map(|(kind, list, lazy_close, each, numbers)| {
        let (background, procs, procs_per_node, servers) = numbers;
        let list = (1..).zip(list).map(|(number, (layout, name, groups, servers))| ExtraCopy {
            name: format!("{number}{name}"),
            id: FileId([0; 16]),
            groups: if kind == OverlayKind::Replicas {
                1
            } else {
                groups.clamp(1, layout.target_count() as u32)
            },
            servers: servers.max(layout.target_count() as u32),
            pool_servers: if each { vec![servers; layout.target_count()] } else { Vec::new() },
            targets: targets(&layout),
            layout,
        });
        Copies {
            kind,
            lazy_close,
            durability: Durability::ALL[usize::from(each)],
            background,
            procs: procs + procs_per_node,
            procs_per_node,
            servers: servers.max(5),
            list: list.collect(),
        }
    })
}

/// Generates valid manifests with a few targets and regions, and with strings that need escapes.
fn manifests() -> impl Strategy<Value = Manifest> {
    let rest = (any::<String>(), any::<[u8; 16]>(), proptest::option::of(0..=1u64 << 62));
    (layouts(), rest, proptest::option::of(copies())).prop_map(
        |(layout, (path, id, pending_truncate), mut copies)| {
            let id = FileId(id);
            let list = copies.iter_mut().flat_map(|copies| &mut copies.list);
            (1..).zip(list).for_each(|(number, copy)| copy.id = copy_id(id, number));
            let anchor = "inode=12 born=1700000000.000000005 handle=1:0c00 fs=ff".parse().unwrap();
            Manifest { id, path, pending_truncate, anchor, copies: copies.map(Box::new), ..two_targets(layout) }
        },
    )
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
fn a_file_with_copies_is_of_format_2() {
    let text = cached().format().unwrap();
    let plain = sample().format().unwrap();
    let (head, tail) = text.split_once("[overlay]\n").unwrap();
    let rest = |text: &str| text.split_once("\nid =").unwrap().1.to_owned();
    assert_eq!(rest(head), rest(&plain), "but for format, length and checksum all is as in format 1");
    assert!(head.starts_with("stripewise file, format 2\n# This file's"), "{head}");
    let expected = "mode = \"sla\"
admission = \"as-printed\"
capacity_per_server = 1073741824
lazy_close = false
durability = \"sync\"
background = 52428800
procs = 16
procs_per_node = 4
servers = 8
[[copy]]
kind = \"cache\"
name = \"1-DH\"
id = \"0123456789abcdef0123456789abcdee\"
groups = 1
servers = 4
[[copy.target]]
name = \"hdd/0\"
path = \"/disks/h0\"
id = \"0000000000000000\"
[[copy.target]]
name = \"hdd/1\"
path = \"/disks/h1\"
id = \"0000000000000001\"
[[copy.region]]
start = 0
cycle = [[0, 65536], [1, 65536]]
[[copy]]
kind = \"cache\"
name = \"1-DV\"
id = \"0123456789abcdef0123456789abcded\"
groups = 1
servers = 4
[[copy.target]]
name = \"hdd/0\"
path = \"/disks/h0\"
id = \"0000000000000000\"
[[copy.region]]
start = 0
cycle = [[0, 1073741824]]
";
    assert_eq!(tail, expected);
    assert_eq!(Manifest::parse(text.as_bytes(), "f").unwrap(), cached());
    let at = Manifest::pending_offset(text.as_bytes()).unwrap();
    assert!(at + PENDING_BYTES <= 512, "{at}");
}

#[test]
fn the_pending_value_is_patched_in_place() {
    let mut text = sample().format().unwrap().into_bytes();
    let at = Manifest::pending_offset(&text).unwrap();
    text[at..at + PENDING_BYTES].copy_from_slice(format::pending_text(Some(12345)).as_bytes());
    let parsed = Manifest::parse(&text, "f").unwrap();
    assert_eq!(parsed, Manifest { pending_truncate: Some(12345), ..sample() });
    // Within one sector, so that a power cut leaves the old or the new value.
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
    refused_of(&sample(), edit, expected);
}

#[track_caller]
fn refused_of(manifest: &Manifest, edit: impl Fn(&str) -> String, expected: &str) {
    let before = manifest.format().unwrap();
    let text = edit(&before);
    assert_ne!(text, before);
    // A wrong checksum would hide the errors behind it.
    let sum = format!("{:08x}", format::checksum(text.as_bytes()));
    let at = text.find("crc32:").map(|at| at + 6);
    let text = at.map_or(text.clone(), |at| format!("{}{sum}{}", &text[..at], &text[at + 8..]));
    let error = Manifest::parse(text.as_bytes(), "/data/f").unwrap_err().to_string();
    assert!(error.starts_with("/data/f: ") && error.contains(expected), "{error}");
    assert!(!error.contains('\n') && error.contains("; "), "{error}");
}

#[test]
fn refusals_name_file_key_and_remedy() {
    refused(|text| text.replace("format 1", "format 3"), "format \"3\"");
    refused(|text| text.replace("format 1", "format 2"), "`overlay` and `copy`");
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
fn a_target_of_a_pool_is_several_servers() {
    let mut manifest = cached();
    let copy = &mut manifest.copies.as_mut().unwrap().list[0];
    copy.targets[0].name = "ssd/64Kx4".into();
    let parsed = |manifest: &Manifest| Manifest::parse(manifest.format().unwrap().as_bytes(), "f");
    let set = |manifest: &mut Manifest, groups, pool_servers: &[u32]| {
        let copy = &mut manifest.copies.as_mut().unwrap().list[0];
        (copy.groups, copy.pool_servers) = (groups, pool_servers.to_vec());
    };
    // First as older versions wrote it, then as it is written now: a pool of 8 servers and a single
    // server.
    for (groups, pool_servers) in [(1, &[][..]), (5, &[8, 0])] {
        set(&mut manifest, groups, pool_servers);
        assert_eq!(parsed(&manifest).as_ref(), Ok(&manifest));
        assert_eq!(manifest.format().unwrap().contains("pool_servers"), !pool_servers.is_empty());
    }
    set(&mut manifest, 6, &[8, 0]);
    assert!(parsed(&manifest).unwrap_err().to_string().contains("`copy.groups` and `copy.servers`"));
    set(&mut manifest, 5, &[8]);
    assert!(parsed(&manifest).unwrap_err().to_string().contains("`copy.pool_servers`"));
}

#[test]
fn refusals_of_copies_name_the_key_too() {
    let same_length = |old: &'static str, new: &'static str| {
        assert_eq!(old.len(), new.len());
        move |text: &str| text.replacen(old, new, 1)
    };
    for (old, new, expected) in [
        ("format 2", "format 1", "`overlay` and `copy`"),
        ("mode = \"sla\"", "mode = \"xla\"", "`overlay.mode`"),
        ("mode = \"sla\"", "#ode = \"sla\"", "`overlay.mode`"),
        ("\"as-printed\"", "\"as-painted\"", "`overlay.admission`"),
        ("admission", "#dmission", "`overlay.admission`"),
        (
            "capacity_per_server = 1073741824",
            "capacity_per_server = 0         ",
            "`overlay.capacity_per_server`",
        ),
        ("lazy_close = false", "lazy_closd = false", "lazy_closd"),
        ("durability = \"sync\"", "durability = \"sink\"", "`overlay.durability`"),
        ("background = 52428800", "background = 0       ", "`overlay.background`"),
        ("procs = 16", "procs = 03", "line"),
        ("procs = 16", "procs = 3 ", "`overlay.procs`"),
        ("servers = 8", "servers = 1", "`overlay.servers`"),
        ("servers = 4", "servers = 1", "`copy.groups` and `copy.servers`"),
        ("groups = 1", "groups = 3", "`copy.groups` and `copy.servers`"),
        ("groups = 1", "groups = 0", "`copy.groups` and `copy.servers`"),
        ("kind = \"cache\"", "kind = \"carhe\"", "`overlay.mode`"),
        ("abcdee\"", "abcdeE\"", "`copy.id`"),
        ("abcdee\"", "abcded\"", "`copy.id`"),
        ("abcdee\"", "abcdef\"", "`copy.id`"),
        ("name = \"1-DV\"", "name = \"1-DH\"", "`copy.name`"),
        ("cycle = [[0, 65536], [1, 65536]]", "cycle = [[0, 65536], [9, 65536]]", "`copy.region.cycle`"),
        ("cycle = [[0, 65536], [1, 65536]]", "cycle = [[0, 65536], [0, 65536]]", "`copy.target`"),
    ] {
        refused_of(&cached(), same_length(old, new), expected);
    }
    refused_of(
        &cached(),
        |text| text.replace("kind = \"cache\"\nname = \"1-DV", "kind = \"rache\"\nname = \"1-DV"),
        "`copy.kind`",
    );
}

#[test]
fn ids_of_copies_differ_and_lead_back() {
    let id = FileId([0xab; 16]);
    let ids: Vec<FileId> = (0..8).map(|number| copy_id(id, number)).collect();
    assert!((1..8).all(|number| !ids[..number].contains(&ids[number])));
    assert!(ids.iter().all(|&other| family(other) == family(id)));
    assert_ne!(family(id), family(FileId([0xac; 16])));
    assert_eq!(ids[0], id);
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
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..2000), magic in 0..3usize) {
        let mut text = MAGIC_LINES.get(magic).map_or(Vec::new(), |line| line.as_bytes().to_vec());
        text.extend(bytes);
        prop_assert!(Manifest::parse(&text, "f").is_err());
    }

    /// CRC-32 detects every error of up to three bytes. Only the pending value may change.
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

    /// Edits with a corrected checksum reach the checks behind it. Parsing never panics, and
    /// accepts only valid manifests.
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
            Ok(parsed) => {
                for copy in parsed.all_copies() {
                    prop_assert_eq!(copy.layout.target_count(), copy.targets.len());
                }
                prop_assert_eq!(Manifest::parse(parsed.format().unwrap().as_bytes(), "f"), Ok(parsed));
            }
            Err(error) => prop_assert!(error.to_string().starts_with("/some/file: ")),
        }
    }
}
