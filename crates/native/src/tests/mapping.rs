//! Compares native layouts with small models of the file systems' own mappings.

use proptest::prelude::*;
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::{Layout, Region, Stripe as Strip};

use super::{K, M, cluster, pool, servers};
use crate::orangefs::Distribution;
use crate::{Component, NativeLayout, Stripe, express};

/// Layouts over targets 0..4 with 1 to 3 regions; widths and boundaries are multiples of `unit`.
pub fn layouts(unit: u64, regions: usize) -> impl Strategy<Value = Layout> {
    // Few different widths, so that cycles are often even.
    let stripe = (0u32..4, 1u64..4).prop_map(move |(target, units)| Strip { target, width: units * unit });
    let cycle = prop_oneof![
        prop::collection::vec(stripe, 1..6),
        (prop::sample::subsequence(vec![0u32, 1, 2, 3], 1..=4).prop_shuffle(), 1u64..4).prop_map(
            move |(targets, units)| {
                targets.into_iter().map(|target| Strip { target, width: units * unit }).collect::<Vec<_>>()
            }
        ),
    ];
    (prop::collection::vec(cycle, 1..=regions), prop::collection::vec(1u64..40, regions)).prop_map(
        move |(cycles, lengths)| {
            let (mut start, last) = (0, cycles.len() - 1);
            let regions = cycles.into_iter().enumerate().map(|(index, cycle)| {
                let end = (index < last).then_some(start + lengths[index] * unit);
                let region = Region { start, end, cycle };
                start = end.unwrap_or(start);
                region
            });
            Layout::new(regions.collect()).unwrap()
        },
    )
}

/// The target of every `step`-th byte of the first `len`, and of the byte before it.
pub fn targets(layout: &Layout, len: u64, step: u64) -> Vec<(u64, u32)> {
    let ends = |piece: stripewise_layout::Piece| {
        let last = piece.file_offset + piece.len - 1;
        let inner = (piece.file_offset..last).step_by(step as usize);
        inner.chain([last]).map(move |offset| (offset, piece.target))
    };
    layout.pieces(0, len).flat_map(ends).collect()
}

fn component(native: &NativeLayout, offset: u64) -> &Component {
    let holds = |component: &&Component| component.end.is_none_or(|end| offset < end);
    native.components.iter().find(holds).unwrap()
}

/// The result of `lov_stripe_number` (lustre/lov/lov_offset.c): the number of a byte's stripe.
fn lustre_stripe_number(width: u64, count: u64, offset: u64) -> u64 {
    let stripe_off = offset % (width * count);
    stripe_off / width
}

fn lustre() -> Cluster {
    cluster(&servers("lustre", "a", &["7", "3"]), &servers("lustre", "b", &["12", "0"]))
}

const OSTS: [&str; 4] = ["7", "3", "12", "0"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Plain files, components by extent and repeated OSTs.
    #[test]
    fn lustre_puts_every_byte_on_its_ost(layout in layouts(64 * K, 3)) {
        let len = 100 * 64 * K;
        let Ok(native) = express(FileSystem::Lustre, &layout, &lustre(), len) else {
            // Lustre lacks an equal only for a component that begins within one of its stripes.
            prop_assert!(layout.regions().len() > 1);
            return Ok(());
        };
        for (offset, target) in targets(&layout, len, 16 * K) {
            let Stripe::Listed { width, servers } = &component(&native, offset).stripe else { panic!("{native}") };
            let number = lustre_stripe_number(*width, servers.len() as u64, offset);
            prop_assert_eq!(&servers[number as usize], OSTS[target as usize], "byte {} of {}", offset, native);
        }
    }

    /// In a pool the file system chooses the OSTs: equal stripe numbers mean the same server,
    /// different ones different servers.
    #[test]
    fn a_pools_stripes_are_the_servers(layout in layouts(64 * K, 2)) {
        let len = 100 * 64 * K;
        let cluster = cluster(&pool("lustre", "p", 2), &pool("lustre", "q", 2));
        let Ok(native) = express(FileSystem::Lustre, &layout, &cluster, len) else { return Ok(()) };
        let mut seen = std::collections::BTreeMap::new();
        for (offset, target) in targets(&layout, len, 16 * K) {
            let here = component(&native, offset);
            let Stripe::Even { width, count, pool } = &here.stripe else { panic!("{native}") };
            let number = lustre_stripe_number(*width, u64::from(*count), offset);
            prop_assert_eq!(pool.as_deref(), Some(["p", "p", "q", "q"][target as usize]));
            prop_assert_eq!(*seen.entry((here.end, number)).or_insert(target), target);
        }
        let mut servers: Vec<_> = seen.iter().map(|((end, _), target)| (*end, *target)).collect();
        let all = servers.len();
        servers.dedup();
        servers.sort_unstable();
        servers.dedup();
        prop_assert_eq!(all, servers.len());
    }

    /// Ceph's file striping (`file_to_extents` in osdc/Striper.cc): the object of a set that
    /// contains a byte.
    #[test]
    fn cephfs_puts_every_byte_into_its_column(layout in layouts(64 * K, 1)) {
        let cluster = cluster(&pool("cephfs", "p", 2), &pool("cephfs", "q", 2));
        let Ok(native) = express(FileSystem::CephFs, &layout, &cluster, u64::MAX) else { return Ok(()) };
        let Some(Stripe::Even { width, count, .. }) = native.stripe() else { panic!("{native}") };
        let (su, stripe_count) = (*width, u64::from(*count));
        let object_size = crate::cephfs::object_size(su);
        let mut column_of = [None; 4];
        for (offset, target) in targets(&layout, 40 * M, 16 * K) {
            let blockno = offset / su;
            let (stripeno, stripepos) = (blockno / stripe_count, blockno % stripe_count);
            let objectsetno = stripeno / (object_size / su);
            let objectno = objectsetno * stripe_count + stripepos;
            let column = objectno % stripe_count;
            prop_assert_eq!(*column_of[target as usize].get_or_insert(column), column);
        }
        let used: Vec<u64> = column_of.into_iter().flatten().collect();
        let different: std::collections::BTreeSet<_> = used.iter().collect();
        prop_assert_eq!((used.len() as u64, different.len() as u64), (stripe_count, stripe_count));
    }

    /// `StripePattern::getStripeTargetIndex` of BeeGFS: chunks in turn over the file's targets.
    #[test]
    fn beegfs_puts_every_byte_into_its_chunk(layout in layouts(64 * K, 1)) {
        let cluster = cluster(&pool("beegfs", "p", 2), &pool("beegfs", "q", 2));
        let Ok(native) = express(FileSystem::BeeGfs, &layout, &cluster, u64::MAX) else { return Ok(()) };
        let Some(Stripe::Even { width, count, .. }) = native.stripe() else { panic!("{native}") };
        let mut index_of = [None; 4];
        for (offset, target) in targets(&layout, 10 * M, 16 * K) {
            let index = (offset % (width * u64::from(*count))) / width;
            prop_assert_eq!(*index_of[target as usize].get_or_insert(index), index);
        }
        prop_assert_eq!(index_of.iter().flatten().count(), *count as usize);
    }

    /// Compares every byte under all distributions, including its place in the datafile. Strips are
    /// a few bytes.
    #[test]
    fn orangefs_puts_every_byte_into_its_datafile(layout in layouts(3, 1)) {
        orangefs_agrees(&layout)?;
    }

    /// Cycles that are rounds over groups: `twod_stripe`.
    #[test]
    fn orangefs_groups(groups in 2u32..4, factor in 2u32..4, extra in 0u32..2, width in 1u64..6) {
        let count = (groups * 2 + extra) as usize;
        let mut cycle = Vec::new();
        for group in 0..groups {
            let end = if group + 1 == groups { count as u32 } else { (group + 1) * 2 };
            for _ in 0..factor {
                cycle.extend((group * 2..end).map(|target| Strip { target, width }));
            }
        }
        let layout = Layout::single(cycle).unwrap();
        let native = orangefs_agrees(&layout)?;
        prop_assert!(matches!(native.stripe(), Some(Stripe::Grouped { .. })), "{}", native);
    }
}

/// Compares a layout's pieces with the bytes that OrangeFS's `physical_to_logical_offset` gives for
/// every datafile.
fn orangefs_agrees(layout: &Layout) -> Result<NativeLayout, TestCaseError> {
    let names: Vec<String> = (0..8).map(|index| format!("tcp://s{index}:3334")).collect();
    let name = |range: std::ops::Range<usize>| names[range].iter().map(String::as_str).collect::<Vec<_>>();
    let cluster = cluster(&servers("orangefs", "a", &name(0..4)), &servers("orangefs", "b", &name(4..8)));
    let native = express(FileSystem::OrangeFs, layout, &cluster, u64::MAX).unwrap();
    let distribution = Distribution::of(native.stripe().unwrap()).unwrap();
    let listed = distribution.servers.clone().unwrap();
    let read = Distribution::read(distribution.name, &distribution.params, Some(listed.clone()), 0);
    prop_assert_eq!(read.as_ref(), Ok(native.stripe().unwrap()));
    let len = 400;
    for piece in layout.pieces(0, len) {
        let datafile = listed.iter().position(|server| *server == names[piece.target as usize]).unwrap() as u64;
        for byte in 0..piece.len {
            let logical = physical_to_logical(&distribution, datafile, piece.target_offset + byte);
            prop_assert_eq!(logical, piece.file_offset + byte, "{}", native);
        }
    }
    Ok(native)
}

/// src/io/description/dist-{simple-stripe,varstrip,twod-stripe}.c, from the text of the hints.
fn physical_to_logical(distribution: &Distribution, server_nr: u64, physical: u64) -> u64 {
    let server_ct = u64::from(distribution.datafiles);
    let (name, values) = distribution.params.split_once(':').unwrap();
    match distribution.name {
        "simple_stripe" => {
            assert_eq!(name, "strip_size");
            let strip: u64 = values.parse().unwrap();
            (physical / strip) * strip * server_ct + strip * server_nr + physical % strip
        }
        "varstrip_dist" => varstrip(values, server_nr, physical),
        _ => {
            let value = |key: &str| {
                let found =
                    distribution.params.split(',').find_map(|pair| pair.strip_prefix(key)?.strip_prefix(':'));
                found.unwrap().parse::<u64>().unwrap()
            };
            twod(
                value("num_groups"),
                value("strip_size"),
                value("group_strip_factor"),
                server_nr,
                server_ct,
                physical,
            )
        }
    }
}

fn varstrip(values: &str, server_nr: u64, physical: u64) -> u64 {
    let (mut strips, mut offset) = (Vec::new(), 0);
    for strip in values.split(';') {
        let (server, size) = strip.split_once(':').unwrap();
        let unit = match size.as_bytes().last().unwrap() {
            b'K' => 10,
            b'M' => 20,
            b'G' => 30,
            _ => 0,
        };
        let size = size.trim_end_matches(['K', 'M', 'G']).parse::<u64>().unwrap() << unit;
        strips.push((server.parse::<u64>().unwrap(), offset, size));
        offset += size;
    }
    let mine: u64 = strips.iter().filter(|strip| strip.0 == server_nr).map(|strip| strip.2).sum();
    let (stripe_nr, in_stripe) = (physical / mine, physical % mine);
    let mut before = 0;
    for (_, offset_in_stripe, size) in strips.iter().filter(|strip| strip.0 == server_nr) {
        if in_stripe < before + size {
            return stripe_nr * offset + offset_in_stripe + (in_stripe - before);
        }
        before += size;
    }
    unreachable!("a datafile that the strips name")
}

fn twod(groups: u64, strip: u64, factor: u64, server_nr: u64, server_ct: u64, physical: u64) -> u64 {
    let (strips, small) = (physical / strip, server_ct / groups);
    let group_nr = if server_nr >= (groups - 1) * small { groups - 1 } else { server_nr / small };
    let in_group = if group_nr == groups - 1 { server_ct - (groups - 1) * small } else { small };
    let gserver_nr = server_nr - group_nr * small;
    (strips / factor) * factor * server_ct * strip
        + group_nr * small * factor * strip
        + (strips % factor) * in_group * strip
        + gserver_nr * strip
        + physical % strip
}
