//! BeeGFS: `beegfs entry set`: chunks of one size over a number of targets of a storage pool.

use stripewise_cluster::size;

use super::{Native, Subject, even};

const SYSTEM: &str = "BeeGFS";
/// Smallest chunk.
const CHUNK_MIN: u64 = 64 << 10;

pub fn native(subject: &Subject<'_>) -> Native {
    let mut shapes: Vec<Option<(usize, u64, Option<String>)>> = Vec::new();
    for regions in &subject.layouts {
        let [region] = &regions[..] else {
            return Native::impossible(SYSTEM, "a file has one pattern from its first to its last byte");
        };
        shapes.push(even(region).map(|even| {
            let tier = subject.tier_of(&even.targets).map(|tier| subject.cluster.tiers[tier].name.clone());
            (even.targets.len(), even.width, tier)
        }));
    }
    let mut tiers: Vec<_> = shapes.iter().flatten().map(|shape| shape.2.clone()).collect();
    tiers.dedup();
    let pool = match &tiers[..] {
        [Some(tier)] => format!("--pool=POOL({tier}) "),
        _ => String::new(),
    };
    shapes.iter_mut().flatten().for_each(|shape| shape.2 = None);
    shapes.dedup();
    let [Some((count, width, _))] = &shapes[..] else {
        return Native::impossible(SYSTEM, "all chunks of the files of a directory are equally long");
    };
    // With one target any chunk will do.
    let chunk = if *count == 1 { 1 << 20 } else { *width };
    if !chunk.is_power_of_two() || chunk < CHUNK_MIN {
        return Native::impossible(SYSTEM, "a chunk is a power of two of at least 64K");
    }
    let directory = super::shell(&subject.directory);
    let command = format!(
        "beegfs entry set --num-targets={count} --chunk-size={} {pool}{directory}",
        size::format(chunk)
    );
    Native::commands(
        SYSTEM,
        vec![command],
        Some("for files created in the directory from then on; BeeGFS picks the targets"),
    )
}
