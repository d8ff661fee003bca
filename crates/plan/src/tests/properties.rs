//! Properties that hold for every workload and cluster.

use proptest::prelude::*;
use stripewise_cluster::{Cluster, Plan};
use stripewise_layout::Layout;
use stripewise_model::{Access, Op, Server, Share, Startup, general, sharing};

use crate::candidate::Placement;
use crate::mapping::Mapped;
use crate::workload::{File, FileSet, Group, Request, Workload};
use crate::{Options, Scheme, Servers, loads_of, plan, to_plan};

fn clusters() -> impl Strategy<Value = Cluster> {
    let tier = (1usize..5, 0.0..1e-2f64, 0.0..1e-7f64, 64u64..1 << 24, any::<bool>());
    (prop::collection::vec(tier, 1..4), any::<bool>()).prop_map(|(tiers, network)| {
        let mut text = String::new();
        if network {
            text += "[network]\nestablish_s = 1e-4\nper_byte_s = 1e-9\n";
        }
        for (index, (servers, alpha, beta, kib, own_class)) in tiers.into_iter().enumerate() {
            let service = format!("{{ startup_s = {alpha:?}, per_byte_s = {beta:?} }}");
            let by_access = format!("{{ random = {service}, sequential = {service} }}");
            let class = if own_class || index == 0 { index } else { 0 };
            if class == index {
                text += &format!("[class.c{index}]\nread = {by_access}\nwrite = {by_access}\n");
            }
            let paths: Vec<String> = (0..servers).map(|s| format!("\"/t{index}/{s}\"")).collect();
            text += &format!(
                "[[tier]]\nname = \"t{index}\"\nclass = \"c{class}\"\ndriver = \"dirs\"\nservers = [{}]\n\
                 capacity_per_server = \"{kib}K\"\n",
                paths.join(", ")
            );
        }
        Cluster::parse(&text, "test").unwrap()
    })
}

fn groups(files: u32) -> impl Strategy<Value = Group> {
    let request =
        (0..files, 0u32..9, 0u64..1 << 28, 1u64..1 << 22).prop_map(|(file, process, offset, size)| Request {
            process,
            file,
            offset,
            size,
            ..Request::default()
        });
    let sample = prop::collection::vec(request, 1..60);
    (sample, any::<bool>(), any::<bool>(), 1u32..20, 1u64..1000).prop_map(
        |(sample, write, random, procs, more)| {
            let op = if write { Op::Write } else { Op::Read };
            let access = if random { Access::Random } else { Access::Sequential };
            let once = Group::of_all(op, access, sample);
            let (count, bytes, procs_per_node) = (more * once.count, more * once.bytes, procs.div_ceil(2));
            Group { procs, procs_per_node, count, bytes, ..once }
        },
    )
}

fn file_sets() -> impl Strategy<Value = FileSet> {
    (1u32..6).prop_flat_map(|files| {
        (prop::collection::vec(groups(files), 1..4), any::<bool>(), any::<bool>(), 0u32..1000).prop_map(
            move |(groups, private, mapped, first)| {
                let size = |file| {
                    let requests = groups.iter().flat_map(|group: &Group| &group.sample);
                    requests.filter(|r| r.file == file).map(|r| r.offset + r.size).max().unwrap_or(0)
                };
                let file = |n: u32| File::new(format!("/d/f{}", first + n * 3), size(n));
                let files: Vec<File> = (0..files).map(file).collect();
                let private = private && files.len() > 1;
                FileSet { pattern: "/d/f<n>".into(), files, groups, private, mapped, ..FileSet::default() }
            },
        )
    })
}

fn schemes() -> impl Strategy<Value = Scheme> {
    prop_oneof![
        Just(Scheme::Auto),
        prop::sample::select(vec!["overall", "psa", "pa", "def", "regions", "none"])
            .prop_map(|s| Scheme::Planner(s.into())),
        Just(Scheme::Named("1-DH".into())),
    ]
}

/// Whether a file with this layout can be mapped from its objects.
fn is_whole_pages(layout: &Layout) -> bool {
    layout.pieces(0, 1 << 24).all(|piece| {
        let ends = piece.file_offset + piece.len == 1 << 24 || piece.len.is_multiple_of(4096);
        ends && (piece.file_offset | piece.target_offset).is_multiple_of(4096)
    })
}

/// Bytes of all files on every target.
fn filled(set: &FileSet, layouts: &[Layout], layout_of: &[u32], targets: usize) -> Vec<u64> {
    let mut bytes = vec![0; targets];
    for (file, &layout) in set.files.iter().zip(layout_of) {
        for (target, bytes) in bytes.iter_mut().enumerate() {
            *bytes += layouts[layout as usize].object_size(target as u32, file.size);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("STRIPEWISE_LONG").is_some() { 3000 } else { 60 }))]

    #[test]
    fn plans_are_sound(set in file_sets(), cluster in clusters(), scheme in schemes(), step in 1u64..100_000) {
        let options = Options { scheme, step, stripes: vec![4096, 65536, 1 << 20], ..Options::default() };
        let workload = Workload { file_sets: vec![set] };
        let Ok(planned) = plan(&workload, &cluster, &options) else { return Ok(()) };
        let decisions = planned.decisions;
        let set = &workload.file_sets[0];
        let decision = &decisions[0];
        let targets = cluster.targets();
        for judged in &decision.candidates {
            let layouts = &judged.candidate.layouts.build();
            prop_assert!(!set.mapped || layouts.iter().all(is_whole_pages), "{}", judged.candidate.name);
            let filled = filled(set, layouts, &judged.candidate.layout_of(set), targets.len());
            for (target, bytes) in filled.iter().enumerate() {
                prop_assert!(*bytes <= targets[target].capacity, "{} overfills {target}", judged.candidate.name);
            }
            prop_assert!(judged.elapsed_s.is_finite() && judged.elapsed_s >= 0.0);
            prop_assert!(judged.predicted_s().is_finite() && judged.predicted_s() >= 0.0);
        }
        let chosen = decision.chosen();
        if !decision.keep && options.scheme == Scheme::Auto {
            prop_assert!(decision.gain >= options.min_gain);
            let overall = decision.candidates.iter().filter(|judged| judged.candidate.scheme == "overall");
            for other in overall {
                prop_assert!(chosen.elapsed_s <= other.elapsed_s * 1.006, "{} beats the choice", other.candidate.name);
            }
        }
        let file = to_plan(&decisions, &cluster, &options);
        prop_assert_eq!(Plan::parse(&file.to_toml(), "plan"), Ok(file));
    }

    /// Compares the loads of servers with the sums over single requests.
    #[test]
    fn loads_are_the_sums_over_all_requests(set in file_sets(), cluster in clusters(), scheme in schemes()) {
        let options = Options { scheme, stripes: vec![65536, 1 << 20], ..Options::default() };
        let workload = Workload { file_sets: vec![set] };
        let Ok(planned) = plan(&workload, &cluster, &options) else { return Ok(()) };
        let loads = loads_of(&workload, &planned.decisions, &cluster, &options).unwrap();
        let (set, decision, servers) = (&workload.file_sets[0], &planned.decisions[0], Servers::of(&cluster).unwrap());
        prop_assert_eq!(loads.len(), servers.count());
        for (target, load) in (0u32..).zip(&loads) {
            for (demand, judged) in [(load.now, &decision.present), (load.planned, decision.chosen())] {
                let placements = judged.candidate.placements(set);
                let (mut bytes, mut busy_s) = (0.0, 0.0);
                for group in &set.groups {
                    let times = group.count as f64 / group.sample.len() as f64;
                    for request in &group.sample {
                        let layout = placements[0].layout(request.file as usize);
                        let share = layout.bytes_on(target, request.offset, request.size);
                        if share > 0 {
                            bytes += times * share as f64;
                            // Both accesses take equally long in these clusters.
                            busy_s += times * servers.busy_s(target, group.op, Access::Random, share);
                        }
                    }
                }
                let is_near = |is: f64, wanted: f64| (is - wanted).abs() <= 1e-9 * wanted;
                prop_assert!(is_near(demand.bytes, bytes), "{}: {demand:?} for {bytes} bytes", load.server);
                prop_assert!(is_near(demand.busy_s, busy_s), "{}: {demand:?} for {busy_s} s", load.server);
            }
        }
    }

    /// Compares the cost by groups with the sum of the formula over single requests.
    #[test]
    fn the_cost_is_the_sum_over_all_requests(set in file_sets(), cluster in clusters(), cut in 1u64..1 << 27, x in 1u64..1 << 20) {
        let servers = Servers::of(&cluster).unwrap();
        let n = servers.count() as u32;
        let wide: Vec<(u32, u64)> = (0..n).map(|target| (target, x + u64::from(target))).collect();
        let layout = stripewise_layout::constructors::two_part(&wide, cut, &[(n - 1, 4096)]).unwrap();
        for group in &set.groups {
            let copy = Placement { layouts: std::slice::from_ref(&layout).into(), layout_of: vec![0; set.files.len()] };
            let cost = Mapped::new(&group.sample, &copy).cost(group, &servers);
            let region = |request: &Request| usize::from(request.offset >= cut);
            let mut sum = 0.0;
            for request in &group.sample {
                let alike: Vec<&Request> = group.sample.iter().filter(|r| region(r) == region(request)).collect();
                let share = |target: u32| {
                    let touching = alike.iter().filter(|r| layout.bytes_on(target, r.offset, r.size) > 0).count();
                    let q = sharing(group.procs, touching as u64, alike.len() as u64);
                    Share {
                        server: Server::new(servers.service(target, group.op, Access::Random), q).unwrap(),
                        bytes: layout.bytes_on(target, request.offset, request.size) as f64,
                        count: 1,
                    }
                };
                let shares: Vec<Share> = (0..n).map(share).collect();
                let (network, c, size) = (&servers.network, group.procs_per_node, request.size as f64);
                sum += general::cost(Startup::EverySharer, network, c, size, shares.into_iter()).total_s();
            }
            let expected = sum * group.count as f64 / group.sample.len() as f64;
            prop_assert!((cost.total_s() - expected).abs() <= 1e-9 * expected, "{} against {expected}", cost.total_s());
        }
    }
}
