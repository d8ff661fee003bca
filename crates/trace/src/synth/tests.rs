use self::c_library::CRandom;
use super::*;
use crate::{Meta, Summary, Trace};

/// All calls of the first round, in order.
fn calls(benchmark: &dyn Benchmark) -> Vec<Call> {
    let (_, steps) = benchmark.rounds().remove(0);
    steps.flat_map(|step| step.calls).collect()
}

/// (offset, size) of the calls of a rank.
fn of_rank(benchmark: &dyn Benchmark, rank: u32) -> Vec<(u64, u64)> {
    let own = calls(benchmark).into_iter().filter(|call| call.rank == rank);
    own.map(|call| (call.offset, call.size)).collect()
}

/// Checks that the calls cover every byte of each of `files` files exactly once. Returns the size
/// of one file, bytes.
fn covered(benchmark: &dyn Benchmark, files: u32) -> u64 {
    let mut size = None;
    for file in 0..files {
        let mut own: Vec<_> = calls(benchmark).into_iter().filter(|call| call.file == file).collect();
        own.sort_by_key(|call| call.offset);
        let mut end = 0;
        for call in own {
            assert_eq!(call.offset, end, "file {file}");
            end += call.size;
        }
        assert_eq!(*size.get_or_insert(end), end);
    }
    size.unwrap()
}

fn ior() -> Ior {
    Ior {
        processes: 4,
        per_node: 2,
        transfer: 10,
        block: 30,
        segments: 2,
        access: Access::Sequential,
        random_within: RandomWithin::File,
        direction: Direction::Write,
        shared: true,
        seed: 7,
        file: "/d/ior".into(),
    }
}

#[test]
fn ior_shared_file_is_segments_of_blocks_of_transfers() {
    let ior = ior();
    assert_eq!(of_rank(&ior, 1), [(30, 10), (40, 10), (50, 10), (150, 10), (160, 10), (170, 10)]);
    assert_eq!(covered(&ior, 1), 240);
    assert_eq!(ior.job().files, ["/d/ior"]);
}

#[test]
fn ior_strided_is_a_block_of_one_transfer() {
    let ior = Ior { block: 10, segments: 3, ..ior() };
    assert_eq!(of_rank(&ior, 2), [(20, 10), (60, 10), (100, 10)]);
    assert_eq!(covered(&ior, 1), 120);
}

#[test]
fn ior_file_per_process_has_the_segments_of_one_process() {
    let ior = Ior { shared: false, ..ior() };
    assert_eq!(of_rank(&ior, 3), [(0, 10), (10, 10), (20, 10), (30, 10), (40, 10), (50, 10)]);
    assert_eq!(covered(&ior, 4), 60);
    assert_eq!(ior.job().files[3], "/d/ior.00000003");
}

/// The offsets that IOR's `GetOffsetArrayRandom` computes for a rank, with the C library's own
/// generator.
fn ior_reference(ior: &Ior, rank: u64) -> Vec<u64> {
    let per_segment = if ior.shared { ior.block * u64::from(ior.processes) } else { ior.block };
    let all = (0..per_segment).step_by(ior.transfer as usize);
    let mut c = CRandom::new(if ior.shared { ior.seed } else { ior.seed + rank as u32 });
    let mut own: Vec<u64> = match ior.shared {
        true => all.filter(|_| c.next() % u64::from(ior.processes) == rank).collect(),
        false => all.collect(),
    };
    for i in 0..own.len() {
        let value = c.next() as usize % own.len();
        own.swap(value, i);
    }
    (0..ior.segments).flat_map(|segment| own.iter().map(move |offset| segment * per_segment + offset)).collect()
}

#[test]
fn ior_random_order_is_that_of_ior() {
    for shared in [true, false] {
        let ior = Ior { access: Access::Random, block: 600, shared, ..ior() };
        for rank in 0..4 {
            let ours: Vec<u64> = of_rank(&ior, rank).iter().map(|(offset, _)| *offset).collect();
            assert_eq!(ours, ior_reference(&ior, rank.into()));
        }
        covered(&ior, if shared { 1 } else { 4 });
    }
}

#[test]
fn ior_random_within_the_own_block_stays_there() {
    let ior = Ior { access: Access::Random, random_within: RandomWithin::OwnBlock, segments: 1, ..ior() };
    assert_eq!(covered(&ior, 1), 120);
    for rank in 0..4 {
        let range = u64::from(rank) * 30..u64::from(rank + 1) * 30;
        assert!(of_rank(&ior, rank).iter().all(|(offset, _)| range.contains(offset)));
    }
}

fn hpio() -> Hpio {
    Hpio {
        processes: 3,
        per_node: 1,
        regions: 2,
        region_size: 100,
        spacing: 0,
        interleaved: false,
        direction: Direction::Write,
        collective: None,
        file: "/d/hpio".into(),
    }
}

#[test]
fn hpio_regions_lie_spacing_apart() {
    assert_eq!(of_rank(&hpio(), 1), [(200, 100), (300, 100)]);
    assert_eq!(covered(&hpio(), 1), 600);
    let spaced = Hpio { spacing: 28, ..hpio() };
    assert_eq!(of_rank(&spaced, 1), [(256, 100), (384, 100)]);
    let interleaved = Hpio { spacing: 28, interleaved: true, ..hpio() };
    assert_eq!(of_rank(&interleaved, 1), [(128, 100), (512, 100)]);
    assert_eq!(covered(&Hpio { interleaved: true, ..hpio() }, 1), 600);
}

#[test]
fn two_phase_covers_the_range_in_domains_and_buffers() {
    let two_phase = TwoPhase { aggregators: 2, buffer: 150 };
    let collective = Hpio { collective: Some(two_phase), processes: 4, ..hpio() };
    // 800 bytes, two domains of 400 bytes, buffers of 150.
    assert_eq!(of_rank(&collective, 0), [(0, 150), (150, 150), (300, 100)]);
    assert_eq!(of_rank(&collective, 2), [(400, 150), (550, 150), (700, 100)]);
    assert_eq!(covered(&collective, 1), 800);
    // With holes, every buffer is read before it is written.
    let spaced = Hpio { spacing: 1, ..collective.clone() };
    let (_, steps) = spaced.rounds().remove(0);
    let ops: Vec<Op> = steps.map(|step| step.op).collect();
    assert_eq!(ops, [Op::Read, Op::Write, Op::Read, Op::Write, Op::Read, Op::Write]);
    // More aggregators than bytes, or than processes.
    for (aggregators, buffer) in [(100, 3), (3, 1000), (1, 1)] {
        let odd = Hpio { collective: Some(TwoPhase { aggregators, buffer }), ..hpio() };
        assert_eq!(covered(&odd, 1), 600);
    }
}

#[test]
fn file_domains_start_and_end_with_data() {
    // 10 regions of 1000 bytes, 1100 apart: 10900 bytes in two domains of 5450. The domain border
    // lies in the hole 5400..5500.
    let two_phase = Some(TwoPhase { aggregators: 2, buffer: 4096 });
    let sizes = Hpio { region_size: 1000, spacing: 100, regions: 5, processes: 2, interleaved: true, ..hpio() };
    let collective = Hpio { collective: two_phase, direction: Direction::Read, ..sizes.clone() };
    assert_eq!(of_rank(&collective, 0), [(0, 4096), (4096, 1304)]);
    assert_eq!(of_rank(&collective, 1), [(5500, 4096), (9596, 1304)]);
    // A write does not read a buffer first if all of its bytes are requested: here the last 8 bytes
    // of the first domain of 8200.
    let written = Hpio { direction: Direction::Write, processes: 3, ..collective };
    assert_eq!(of_rank(&written, 0), [(0, 4096), (0, 4096), (4096, 4096), (4096, 4096), (8192, 8)]);
    // Against brute force: from a domain's first requested byte to its last, if there is one.
    for (region_size, spacing, regions) in [(3, 5, 7), (1, 9, 5), (4, 1, 3), (2, 30, 2), (1, 99, 1)] {
        let collective = Some(TwoPhase { aggregators: 2, buffer: 1 << 20 });
        let odd = Hpio { region_size, spacing, regions, collective, ..sizes.clone() };
        let end = 2 * regions * (region_size + spacing) - spacing;
        let domain = end.div_ceil(2);
        for rank in 0..2 {
            let all = u64::from(rank) * domain..(u64::from(rank + 1) * domain).min(end);
            let bytes: Vec<u64> = all.filter(|byte| byte % (region_size + spacing) < region_size).collect();
            let expected = bytes.first().map(|first| (*first, bytes[bytes.len() - 1] + 1 - first));
            let reads = Hpio { direction: Direction::Read, ..odd.clone() };
            assert_eq!(of_rank(&reads, rank), expected.into_iter().collect::<Vec<_>>());
        }
    }
}

fn tile() -> Tile {
    Tile {
        tiles_x: 3,
        tiles_y: 2,
        per_node: 2,
        elements_x: 4,
        elements_y: 5,
        element_size: 8,
        overlap_x: 0,
        overlap_y: 0,
        header: 0,
        direction: Direction::Write,
        collective: None,
        file: "/d/tile".into(),
    }
}

#[test]
fn tiles_are_rows_of_a_two_dimensional_array() {
    // 12 x 10 elements of 8 bytes; rank 4 has the tile at x = 1, y = 1: elements 4..8 of rows
    // 5..10.
    let expected: Vec<(u64, u64)> = (5..10).map(|row| ((row * 12 + 4) * 8, 32)).collect();
    assert_eq!(of_rank(&tile(), 4), expected);
    assert_eq!(covered(&tile(), 1), 12 * 10 * 8);
    let collective = Tile { collective: Some(TwoPhase { aggregators: 3, buffer: 100 }), ..tile() };
    assert_eq!(covered(&collective, 1), 12 * 10 * 8);
}

#[test]
fn overlapping_tiles_share_elements() {
    // 3 * 4 - 2 * 1 = 10 elements in x; rank 1 starts at element 3; tiles in y start 3 rows apart.
    let overlapping = Tile { overlap_x: 1, overlap_y: 2, ..tile() };
    assert_eq!(of_rank(&overlapping, 1)[..2], [(24, 32), (24 + 80, 32)]);
    assert_eq!(of_rank(&overlapping, 4)[0], ((3 * 10 + 3) * 8, 32));
}

#[test]
fn a_tile_as_wide_as_the_array_is_one_request_and_a_header_comes_first() {
    let column = Tile { tiles_x: 1, header: 77, ..tile() };
    assert_eq!(of_rank(&column, 1), [(77 + 160, 160)]);
    let collective = Tile { collective: Some(TwoPhase { aggregators: 1, buffer: 1000 }), ..column };
    assert_eq!(of_rank(&collective, 0), [(77, 320)]);
}

fn btio(class: BtioClass, processes: u32) -> Btio {
    Btio { class, processes, per_node: 4, full: None, direction: Direction::Both, file: "/d/btio".into() }
}

#[test]
fn btio_rows_of_cells_cover_the_file() {
    for processes in [1, 4, 9, 16, 25] {
        // (The class does not allow 25 processes in BT-IO, but they make cells of different sizes.)
        assert_eq!(covered(&btio(BtioClass::S, processes), 1), 12 * 12 * 12 * 40 * 12);
    }
    let full = Btio { full: Some(TwoPhase { aggregators: 3, buffer: 10_000 }), ..btio(BtioClass::S, 4) };
    assert_eq!(covered(&full, 1), 12 * 12 * 12 * 40 * 12);
    // 6.80e9 bytes: what the papers call 6.64 GB (of 1024 * 1000 * 1000 bytes).
    assert_eq!(BtioClass::C.file_bytes(), 6_802_444_800);
}

#[test]
fn btio_rows_are_written_cell_by_cell() {
    // Elements x 6..8 of y 3, z 0; then of y 4 (see the cells' own test).
    let rows = of_rank(&btio(BtioClass::S, 25), 7);
    assert_eq!(rows[..2], [((3 * 12 + 6) * 40, 80), ((4 * 12 + 6) * 40, 80)]);
}

#[test]
fn impossible_parameters_are_refused() {
    assert!(ior().check().is_ok() && hpio().check().is_ok() && tile().check().is_ok());
    assert!(Ior { block: 35, ..ior() }.check().unwrap_err().0.contains("no multiple"));
    assert!(Ior { segments: u64::MAX, ..ior() }.check().is_err());
    assert!(Ior { processes: 0, ..ior() }.check().is_err());
    assert!(Hpio { regions: 1 << 62, ..hpio() }.check().is_err());
    assert!(Hpio { region_size: 0, ..hpio() }.check().is_err());
    assert!(Tile { overlap_x: 4, ..tile() }.check().is_err());
    assert!(Tile { header: u64::MAX, ..tile() }.check().is_err());
    assert!(Tile { elements_x: u64::MAX, elements_y: u64::MAX, ..tile() }.check().is_err());
    assert!(Tile { tiles_x: u32::MAX, tiles_y: u32::MAX, ..tile() }.check().is_err());
    assert!(btio(BtioClass::S, 16).check().is_ok());
    assert!(btio(BtioClass::S, 8).check().unwrap_err().0.contains("square"));
    assert!(btio(BtioClass::S, 25).check().unwrap_err().0.contains("too many"));
}

#[test]
fn phases_and_concurrency_come_out_as_they_went_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    let benchmark = Ior { direction: Direction::Both, block: 300, access: Access::Random, ..ior() };
    write(&benchmark, &mut writer, &mut |_| {}).unwrap();
    writer.finish(&Meta::default()).unwrap();
    let summary = Summary::of(&Trace::open(&path).unwrap()).unwrap();
    let group = &summary.groups[0];
    let phases: Vec<_> = group.phases.first.iter().map(|p| (p.op, p.processes, p.per_node, p.bytes)).collect();
    assert_eq!(phases, [(Op::Write, 4, 2, 2400), (Op::Read, 4, 2, 2400)]);
    assert_eq!((group.other.open, group.other.close), (8, 8));
    assert_eq!(group.write.sizes.by_count(), [(10, 240)]);
}

/// The C library's own generator, as a reference for tests.
pub(super) mod c_library {
    use std::ffi::{c_long, c_uint};
    use std::sync::{Mutex, MutexGuard};

    unsafe extern "C" {
        fn srandom(seed: c_uint);
        fn random() -> c_long;
    }

    /// The process has only one generator.
    static ONLY: Mutex<()> = Mutex::new(());

    pub struct CRandom(#[allow(dead_code)] MutexGuard<'static, ()>);

    impl CRandom {
        pub fn new(seed: u32) -> CRandom {
            let guard = ONLY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            // SAFETY: the tests use the generator only under this lock.
            unsafe { srandom(seed) };
            CRandom(guard)
        }

        pub fn next(&mut self) -> u64 {
            // SAFETY: as above.
            unsafe { random() as u64 }
        }
    }
}
