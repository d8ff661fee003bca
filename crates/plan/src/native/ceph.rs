//! CephFS: `ceph.file.layout` and `ceph.dir.layout`: one stripe unit, one pool.

use super::{Native, Subject, even};

const SYSTEM: &str = "CephFS";
/// Stripe units are multiples of this.
const UNIT: u64 = 64 << 10;
/// The usual object size, and the limit of it, bytes.
const OBJECT: u64 = 4 << 20;
const OBJECT_MAX: u64 = 4 << 30;

pub fn native(subject: &Subject<'_>) -> Native {
    let [regions] = &subject.layouts[..] else {
        return Native::impossible(SYSTEM, "files of one directory would need different pools");
    };
    let [region] = &regions[..] else {
        return Native::impossible(SYSTEM, "a file has one layout from its first to its last byte");
    };
    let Some(even) = even(region) else {
        return Native::impossible(
            SYSTEM,
            "all stripes of a file are equally long; targets of their own pools can do it",
        );
    };
    let single = even.targets.len() == 1;
    let unit = if single { OBJECT } else { even.width };
    if unit % UNIT != 0 {
        return Native::impossible(SYSTEM, "its stripe units are multiples of 64K");
    }
    if unit >= OBJECT_MAX {
        return Native::impossible(SYSTEM, "its objects, which hold whole stripes, are smaller than 4G");
    }
    let object = if OBJECT.is_multiple_of(unit) { OBJECT } else { unit };
    let pool = match subject.whole_tier(&even.targets) {
        _ if subject.whole_cluster(&even.targets) && !single => "POOL(all)".to_owned(),
        Some(tier) => format!("POOL({tier})"),
        None => {
            let names: Vec<String> = even.targets.iter().map(|&target| subject.name_of(target)).collect();
            format!("POOL({})", names.join("+"))
        }
    };
    let kind = if subject.file.is_some() { "file" } else { "dir" };
    let command = format!(
        "setfattr -n ceph.{kind}.layout -v \"stripe_unit={unit} stripe_count={} object_size={object} pool={pool}\" {}",
        even.targets.len(),
        subject.path()
    );
    let note = "only on files that are empty and were never written; objects are placed by hash, so that stripes may share \
                an OSD";
    Native::commands(SYSTEM, vec![command], Some(note))
}
