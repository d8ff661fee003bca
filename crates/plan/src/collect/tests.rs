//! Traces with many phases, many sets, or names of all kinds.

use stripewise_model::{Access, Op};
use stripewise_trace::summary::MAX_GROUPS;
use stripewise_trace::{Flags, Op as Called};

use super::*;
use crate::Options;
use crate::collected::NEAREST_MAX;
use crate::limits::Limits;

/// The limits for few sets.
fn limits() -> Limits {
    Limits::of(1)
}

/// Processes of one node.
fn processes(count: u32) -> Vec<ProcessInfo> {
    let process = |pid| ProcessInfo { node: "n".into(), pid, rank: -1, program: "p".into() };
    (0..count).map(process).collect()
}

/// Letters, different for every number.
fn letters(number: u32) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn names(count: u32, name: impl Fn(String) -> String) -> Vec<Arc<str>> {
    (0..count).map(|number| name(letters(number)).into()).collect()
}

/// A call of process 0 that starts at `time`, nanoseconds.
fn call(op: Called, file: u32, offset: u64, time: u64) -> Call {
    Call {
        process: 0,
        tid: 1,
        file,
        op,
        flags: Flags::NONE,
        offset,
        size: 64,
        result: 64,
        start_ns: time,
        end_ns: time + 1,
    }
}

/// Adds `bursts` bursts of `each` requests on every file: the first burst of all files reads, the
/// next writes, and so on. Offsets are the requests' numbers, from `first` on. Returns the number
/// of requests.
fn add_bursts(collector: &mut Collector, files: u32, bursts: u64, each: u64, first: u64) -> u64 {
    let mut number = first;
    for burst in 0..bursts {
        let op = if burst % 2 == 0 { Called::Read } else { Called::Write };
        for file in 0..files {
            for _ in 0..each {
                collector.add(&call(op, file, number, number));
                number += 1;
            }
        }
        assert!(collector.sampled() <= limits().samples);
        assert!(collector.open.groups <= limits().open_groups + files as usize);
    }
    number - first
}

#[test]
fn samples_of_many_long_bursts_cover_the_whole_run() {
    let (processes, files) = (processes(1), names(3, |name| format!("/d/{name}")));
    let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
    let total = add_bursts(&mut collector, 3, 1024, 700, 0);
    let workload = collector.finish();
    assert_eq!(workload.file_sets.len(), 3);
    for set in &workload.file_sets {
        let kinds: Vec<(Op, u32, u64)> = set.groups.iter().map(|g| (g.op, g.procs, g.count)).collect();
        assert_eq!(kinds, [(Op::Read, 1, 512 * 700), (Op::Write, 1, 512 * 700)]);
        for group in &set.groups {
            assert!(group.sample.len() >= 8192, "{}", group.sample.len());
            let last = group.sample.last().unwrap().offset;
            assert!(last >= total / 10 * 9, "{last} of {total}");
        }
    }
}

/// If every call had to look at all samples, this would take hours.
#[test]
fn many_short_bursts_of_many_sets_take_bounded_memory_and_time() {
    let (processes, files) = (processes(1), names(130, |name| format!("/d/{name}")));
    let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
    let total = add_bursts(&mut collector, 130, 1024, 16, 0);
    add_bursts(&mut collector, 130, 300, 16, total);
    let workload = collector.finish();
    assert_eq!(workload.file_sets.len(), 130);
    for group in workload.file_sets.iter().flat_map(|set| &set.groups) {
        assert_eq!((group.procs, group.count), (1, 662 * 16));
        assert!(group.sample.len() >= 1024, "{}", group.sample.len());
        assert!(group.sample.last().unwrap().offset >= total, "the later half has samples");
    }
}

#[test]
fn a_process_that_lags_behind_closed_phases_is_counted_in_later_ones() {
    let (processes, files) = (processes(2), names(130, |name| format!("/d/{name}")));
    let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
    let total = add_bursts(&mut collector, 130, 300, 1, 0);
    assert!(collector.closed.groups > 0, "some phases are closed");
    for number in total..2 * total {
        let file = (number % 130) as u32;
        let op = if number / 130 % 2 == 0 { Called::Read } else { Called::Write };
        collector.add(&Call { process: 1, ..call(op, file, number, number) });
    }
    for set in collector.finish().file_sets {
        let count = |procs| set.groups.iter().filter(|g| g.procs == procs).map(|g| g.count).sum::<u64>();
        assert_eq!(count(1) + count(2), 600);
        assert!(count(2) >= 200, "{}", count(2));
    }
}

/// Phases are closed only where there are several, so a long phase stays one.
#[test]
fn long_phases_of_many_sets_keep_a_sample_each() {
    let (processes, files) = (processes(2), names(300, |name| format!("/d/{name}")));
    let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
    for number in 0..300 * 9000u64 {
        let (file, process) = ((number % 300) as u32, (number / 300 % 2) as u32);
        collector.add(&Call { process, ..call(Called::Write, file, number, number) });
        assert!(collector.sampled() <= limits().samples);
    }
    for set in collector.finish().file_sets {
        let [group] = &set.groups[..] else { panic!("one group") };
        assert_eq!((group.procs, group.count), (2, 9000));
        assert!(group.sample.len() >= 2048, "{}", group.sample.len());
    }
}

/// The bound in the description of [`Collector`]. Vectors grow by doubling.
#[test]
fn samples_and_groups_take_at_most_the_memory_that_is_stated() {
    let samples = 2 * limits().samples * size_of::<Request>();
    let open = (limits().open_groups + MAX_GROUPS) * 640;
    let closed = (limits().groups + MAX_GROUPS) * 384;
    let nearest = MAX_GROUPS * NEAREST_MAX * 80;
    let pages = super::pages::NOTED_MAX * 250;
    let all = samples + open + closed + nearest + pages;
    assert!(all <= 320_000_000, "{samples} + {open} + {closed} + {nearest} + {pages}");
}

#[test]
fn files_that_are_not_wanted_do_not_widen_the_pattern_of_wanted_ones() {
    let (processes, files) = (processes(1), names(2000, |name| format!("/d/{name}")));
    let patterns = |collector: Result<Collector, std::convert::Infallible>| {
        let Ok(mut collector) = collector;
        (0..2000).for_each(|file| collector.add(&call(Called::Write, file, 0, file.into())));
        let sets = collector.finish().file_sets;
        sets.into_iter().map(|set| (set.pattern.clone(), set.files.len(), set.bytes())).collect::<Vec<_>>()
    };
    let all = patterns(Collector::new(&processes, &files, MAX_GROUPS));
    assert_eq!(all, [("/d/*".to_owned(), 2000, 2000 * 64)]);
    let wanted = format!("/d/{}", letters(7));
    assert_eq!(
        patterns(Collector::only(&processes, &files, |name| name == wanted, MAX_GROUPS)),
        [(wanted, 1, 64)]
    );
    assert_eq!(patterns(Collector::only(&processes, &files, |_| false, MAX_GROUPS)), []);
}

#[test]
fn logs_and_the_output_of_programs_are_left_out() {
    let files: Vec<String> = ["/d/x.dat", "/d/x.log", "/d/out"].map(str::to_owned).into();
    let Ok(mut collector) = Collector::of_data(&processes(1), &files, MAX_GROUPS);
    for file in 0..3 {
        let time = 100 * u64::from(file);
        collector.add(&call(Called::Write, file, 0, time));
        let output = call(Called::Write, file, 0, time + 1);
        collector.add(&Call {
            flags: output.flags.with(Flags::OUTPUT),
            end_ns: output.start_ns + 30,
            ..output
        });
    }
    let ns = |flags: bool| if flags { 30 } else { call(Called::Write, 0, 0, 0).end_ns };
    let LeftOut { files, ns: left_ns, all_ns } = collector.left_out();
    assert_eq!((files, left_ns, all_ns), (3, 3 * ns(true) + ns(false), 3 * ns(true) + 3 * ns(false)));
    assert_eq!(collector.busiest(), Busiest { ns: all_ns, planned_ns: all_ns - left_ns });
    // A sync counts, and with it what another thread does meanwhile.
    collector.add(&Call { end_ns: 450, ..call(Called::Sync, 0, 0, 400) });
    collector.add(&Call { end_ns: 460, ..call(Called::Write, 0, 64, 420) });
    assert_eq!(collector.busiest(), Busiest { ns: all_ns + 60, planned_ns: all_ns - left_ns + 60 });
    let sets = collector.finish().file_sets;
    let requests = |set: &FileSet| set.groups.iter().map(|group| group.count).sum::<u64>();
    let planned: Vec<_> = sets.iter().map(|set| (&*set.pattern, requests(set))).collect();
    assert_eq!(planned, [("/d/x.dat", 2), ("/d/out", 1)]);
}

#[test]
fn a_broad_rule_heeds_mapped_files_that_have_no_rule() {
    let mut files = names(600, |name| format!("/d/{name}/f"));
    files.push("/d/map".into());
    files.push("/e/map".into());
    let processes = processes(1);
    for (mapped, expected) in [(None, false), (Some(600), true), (Some(601), false)] {
        let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
        (0..600).for_each(|file| collector.add(&call(Called::Write, file, 0, file.into())));
        mapped.into_iter().for_each(|file| collector.add(&call(Called::Map, file, 0, 1000)));
        let [set] = &collector.finish().file_sets[..] else { panic!("one set") };
        assert_eq!((set.pattern.as_str(), set.mapped), ("/d/**", expected), "{mapped:?}");
    }
}

#[test]
fn broad_patterns_of_relative_names_keep_their_directory() {
    let processes = processes(1);
    for (files, expected) in [
        (names(513, |name| format!("top/{name}/f")), "**/top/**"),
        (names(513, |name| format!("/top/{name}/f")), "/top/**"),
        (names(513, |name| format!("top/{name}")), "**/top/*"),
        (names(513, |name| format!("{name}/f")), "**"),
    ] {
        let Ok(mut collector) = Collector::new(&processes, &files, MAX_GROUPS);
        (0..513).for_each(|file| collector.add(&call(Called::Write, file, 0, file.into())));
        let sets = collector.finish().file_sets;
        let patterns: Vec<&str> = sets.iter().map(|set| set.pattern.as_str()).collect();
        assert_eq!(patterns, [expected]);
        let name = &sets[0].files[500].name;
        assert!(match_path(expected.as_bytes(), name.as_bytes(), None).is_some());
    }
}

/// Files that are written one after the other. The samples have all requests of some files and none
/// of others.
#[test]
fn the_use_of_every_file_is_counted_whatever_is_sampled() {
    let (processes, each) = (processes(1), 1000);
    let files: Vec<Arc<str>> = (0..300).map(|number| format!("/d/f{number}").into()).collect();
    let collected = |hot: u32| {
        let (Ok(mut collector), mut number) = (Collector::new(&processes, &files, MAX_GROUPS), 0);
        for file in 0..300 {
            for request in 0..if file == hot { 100 * each } else { each } {
                collector.add(&call(Called::Write, file, request % each * 128, number));
                number += 1;
            }
        }
        collector.finish()
    };
    let even = collected(u32::MAX);
    let [set] = &even.file_sets[..] else { panic!("one set") };
    let sampled = |file: u32| set.groups[0].sample.iter().filter(|request| request.file == file).count();
    assert!((0..300).any(|file| sampled(file) == 0) && (0..300).any(|file| sampled(file) > 500));
    assert!(set.uses.iter().all(|used| used.kinds().eq([(Op::Write, Access::Random, each, each * 64)])));
    let cluster = crate::tests::cluster((4, 5e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", "1M"), (0.0, 0.0));
    let divided = |workload: Workload| workload.divided(&cluster, &Options::default()).unwrap().file_sets;
    assert_eq!(divided(even).len(), 1);
    let parts: Vec<_> =
        divided(collected(7)).iter().map(|part| (part.pattern.clone(), part.files.len())).collect();
    assert_eq!(parts, [("/d/f<n>".to_owned(), 299), ("/d/f7".to_owned(), 1)]);
}

/// Of sets that are alike the first ones keep all of their requests; of others too, at least one.
#[test]
fn alike_sets_forget_their_samples_and_keep_their_totals() {
    let in_directory = |name: String| format!("/d/{}/{name}", &name[name.len() - 1..]);
    let (processes, files) = (processes(2), names(3000, in_directory));
    let Ok(mut collector) = Collector::new(&processes, &files, 1 << 17);
    let size_of = |file: u32| if file == 2999 { 4096 } else { 64 };
    for number in 0..3000 * 1000u64 {
        let file = (number / 1000) as u32;
        let call = call(Called::Write, file, number % 1000 * 64, number);
        let (process, size) = ((number % 2) as u32, size_of(file));
        collector.add(&Call { process, size, result: size as i64, ..call });
        assert!(collector.sampled() <= collector.limits.samples);
    }
    let sets = collector.finish().file_sets;
    assert_eq!(sets.len(), 3000);
    let mut whole = 0;
    for set in &sets {
        let [group] = &set.groups[..] else { panic!("one group") };
        assert_eq!((group.procs, group.count), (2, 1000));
        assert!([0, 1000].contains(&group.sample.len()), "{}", group.sample.len());
        whole += group.sample.len() / 1000;
        assert!(group.bytes < 1_000_000 || !group.sample.is_empty(), "there is one of its kind");
    }
    assert!(whole >= 500, "{whole}");
}

/// The more sets, the more is kept of all, and the least of each always fits.
#[test]
fn the_limits_of_many_sets_can_be_kept() {
    for sets in [1, 512, 513, 20_000, 1 << 17] {
        let Limits { samples, open_groups, open_sample, groups } = Limits::of(sets);
        assert!((open_groups + sets) * open_sample <= samples / 2, "{sets}");
        assert!(groups + sets <= samples / 2, "{sets}");
        assert!(samples * size_of::<Request>() <= 180_000_000, "{sets}");
    }
}

/// Of as many files as can be listed, and of one more.
#[test]
fn of_too_many_files_some_stand_for_the_others() {
    let count = 100_000u32;
    let (processes, names) = (processes(1), (0..count).map(|number| format!("/d/f{number}")));
    let names: Vec<String> = names.collect();
    let collected = |listed_max| {
        let Ok(mut collector) = Collector::listing(&processes, &names, MAX_GROUPS, listed_max);
        for file in 0..count {
            collector.add(&call(Called::Write, file, u64::from(file % 7) << 20, file.into()));
        }
        collector.finish().file_sets.remove(0)
    };
    let (all, some) = (collected(count as usize), collected(count as usize - 1));
    assert_eq!((all.files.len(), all.uses.len()), (count as usize, count as usize));
    assert_eq!((some.files.len(), some.uses.len()), (1 << 16, 0));
    assert_eq!((some.count(), &some.pattern, some.private), (all.count(), &all.pattern, true));
    assert!((all.total_size()..=all.total_size() + all.count()).contains(&some.total_size()));
    let first = &some.files[3];
    assert_eq!((&*first.name, first.others), ("/d/f3", 1));
    assert_eq!(first.size, (all.files[3].size + all.files[3 + (1 << 16)].size).div_ceil(2));
    let (of_all, of_some) = (&all.groups[0], &some.groups[0]);
    assert_eq!((of_all.count, of_all.bytes), (of_some.count, of_some.bytes));
    let stands_for = |(one, other): (&Request, &Request)| one.file % (1 << 16) == other.file;
    assert!(of_all.sample.iter().zip(&of_some.sample).all(stands_for));
}

#[test]
fn each_of_many_sets_lists_some_files() {
    let processes = processes(2);
    let names: Vec<String> = (0..2000).map(|number| format!("/{}/{number}", letters(number % 1000))).collect();
    let Ok(mut collector) = Collector::listing(&processes, &names, 1 << 17, 1999);
    for file in 0..2000 {
        let shared = file == 5;
        (0..=u32::from(shared)).for_each(|process| {
            collector.add(&Call { process, ..call(Called::Write, file, 0, file.into()) });
        });
    }
    let sets = collector.finish().file_sets;
    assert!(sets.iter().all(|set| set.count() == 2 && set.files.len() == 2 && set.uses.is_empty()));
    assert_eq!((sets.len(), sets.iter().filter(|set| !set.private).count()), (1000, 1));
}

#[test]
fn calls_that_move_no_data_are_counted() {
    let (processes, files) = (processes(2), names(4, |name| format!("/d/{name}")));
    let Ok(mut collector) = Collector::new(&processes, &files, 1);
    let of = |op, file, size, result| Call { size, result, ..call(op, file, 0, 0) };
    for file in 0..2 {
        collector.add(&of(Called::Open, file, 0, 0));
        collector.add(&of(Called::Write, file, 64, 64));
        collector.add(&of(Called::Close, file, 0, 0));
        // The file is there now, whatever size is known of it.
        collector.add(&of(Called::Open, file, 64 * u64::from(file), 0));
        collector.add(&of(Called::Stat, file, 0, 0));
    }
    // A file that has data was not created; what failed is not counted.
    collector.add(&of(Called::Open, 2, 4096, 0));
    collector.add(&of(Called::Stat, 2, 0, -2));
    collector.add(&of(Called::Open, 3, 0, -2));
    collector.add(&of(Called::Unlink, 3, 0, -2));
    // A file that was removed is created again.
    for file in [0, 2] {
        collector.add(&of(Called::Unlink, file, 0, 0));
        collector.add(&of(Called::Open, file, 0, 0));
        collector.add(&of(Called::Open, file, 0, 0));
    }
    let set = collector.finish().file_sets.remove(0);
    let counted = Calls { opens: 5, creates: 4, closes: 2, stats: 2, unlinks: 2, ..Calls::default() };
    let expected = Calls { times: 1, procs: 1, unflushed_bytes: 128, flush_ns: 2, ..counted };
    assert_eq!(set.calls, [expected]);
}
