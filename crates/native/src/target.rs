//! The layout with which the directory of a target is prepared.

use stripewise_cluster::{Cluster, Driver, FileSystem, Members, TargetKind};

use crate::{NativeLayout, Stripe};

/// Stripe width of files on one server, bytes. It only determines where the file system cuts
/// requests, and is the same for all such files.
const WIDTH_ON_ONE: u64 = 4 << 20;

/// The layout that new files in a target's directory must inherit, and its file system. `None`: a
/// plain directory, or no directory at all (a server of a pool, which the file system chooses).
pub fn target_layout(cluster: &Cluster, target: u32) -> Option<(FileSystem, NativeLayout)> {
    let spec = cluster.targets().into_iter().nth(target as usize)?;
    let Driver::Native { system, members, .. } = &cluster.tiers[spec.tier].driver else { return None };
    let layout = match (spec.kind, members) {
        (TargetKind::Server, Members::Servers(servers)) => {
            let index = target - cluster.targets_of(spec.tier).start;
            on_one(*system, &servers[index as usize])
        }
        (TargetKind::Native(native), Members::Pool { name, .. }) => {
            // OrangeFS has no pools: all its servers form one.
            let pool = (*system != FileSystem::OrangeFs).then_some(name.as_str());
            NativeLayout::even(native.width, native.count, pool)
        }
        _ => return None,
    };
    Some((*system, layout))
}

/// The layout of files on the server that the file system calls `name`.
fn on_one(system: FileSystem, name: &str) -> NativeLayout {
    match system {
        FileSystem::CephFs | FileSystem::BeeGfs => NativeLayout::even(WIDTH_ON_ONE, 1, Some(name)),
        FileSystem::Lustre | FileSystem::OrangeFs => {
            NativeLayout::uniform(Stripe::Listed { width: WIDTH_ON_ONE, servers: vec![name.to_owned()] })
        }
    }
}

#[cfg(test)]
mod tests {
    use stripewise_cluster::{NativeTarget, Tier};

    use super::*;
    use crate::check;

    fn tier(system: FileSystem, members: Members) -> Tier {
        Tier {
            name: "t".into(),
            class: "c".into(),
            driver: Driver::Native { system, root: "/t".into(), members },
            capacity_per_server: 1 << 40,
            emulate: false,
        }
    }

    #[test]
    fn every_target_has_a_layout_that_its_file_system_has() {
        for system in FileSystem::ALL {
            let pool = Members::Pool { name: "p".into(), count: 4 };
            let names = ["0", "1"].map(str::to_owned).to_vec();
            let cluster = Cluster {
                tiers: vec![tier(system, Members::Servers(names)), tier(system, pool)],
                native_targets: vec![NativeTarget { tier: 1, width: 64 << 10, count: 3 }],
                ..Cluster::default()
            };
            let layout = |target| target_layout(&cluster, target);
            for target in [0, 1, 6] {
                let (on, layout) = layout(target).unwrap();
                assert_eq!((on, check(system, &layout)), (system, Ok(())), "{layout}");
            }
            assert_ne!(layout(0), layout(1), "another server");
            assert_eq!((layout(2), layout(5), layout(7)), (None, None, None), "servers of the pool");
            let pool = (system != FileSystem::OrangeFs).then_some("p");
            assert_eq!(layout(6).unwrap().1, NativeLayout::even(64 << 10, 3, pool));
        }
    }
}
