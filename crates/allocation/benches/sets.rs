//! Time of a joint plan over the number of file sets: `cargo bench -p stripewise-allocation --bench
//! sets`.
//!
//! Prints one line per number of sets: the seconds, how far the plan is above the bound, and the
//! peak memory of the process so far. The sets have 40 columns each on three tiers: from all bytes
//! on the slowest one to all on the fastest, of which there is space for a quarter and a twentieth.
//! `SETS_MAX` changes the largest number.

use std::time::Instant;

use stripewise_allocation::{Column, Program, Region, Row, solve};
use stripewise_random::Random;

const COLUMNS: usize = 40;

fn main() {
    let most: usize = std::env::var("SETS_MAX").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    println!("sets      seconds  above the bound  peak MiB");
    let mut sets = 100;
    while sets <= most {
        let program = program(sets);
        let start = Instant::now();
        let solution = solve(&program).expect("all of it fits on the slowest tier");
        let above = solution.seconds / solution.bound_s - 1.0;
        println!("{sets:7} {:9.2} {:14.4} %  {:8}", start.elapsed().as_secs_f64(), 100.0 * above, peak_mib());
        sets *= 10;
    }
}

fn program(sets: usize) -> Program {
    let mut random = Random(sets as u64);
    let regions: Vec<Region> = (0..sets).map(|_| region(&mut random)).collect();
    let bytes: f64 = regions.iter().map(|region| region.columns[0].uses[0].1).sum();
    let rows = [2.0, 0.25, 0.05].map(|share| Row::Space { bytes: share * bytes }).to_vec();
    Program { weights: Vec::new(), rows, regions }
}

/// A set of 1 MiB to 1 TiB whose time on the slowest tier per byte varies by 1000, too.
fn region(random: &mut Random) -> Region {
    let mut up_to_2_to = |most: f64| (random.below(1 << 20) as f64 / f64::from(1 << 20) * most).exp2();
    let (bytes, slow_s) = (up_to_2_to(20.0) * f64::from(1 << 20), up_to_2_to(10.0) * 1e-9);
    let (faster, fastest) = (0.1 + 0.1 * up_to_2_to(2.0), 0.01 * up_to_2_to(3.0));
    let column = |index: usize| {
        // First all bytes of the slowest tier go to the next one, then to the fastest.
        let position = 2.0 * index as f64 / (COLUMNS - 1) as f64;
        let shares = [(1.0 - position).max(0.0), 1.0 - (1.0 - position).abs(), (position - 1.0).max(0.0)];
        let seconds = bytes * slow_s * (shares[0] + faster * shares[1] + fastest * shares[2]);
        let uses = (0..).zip(shares).filter(|(_, share)| *share > 0.0);
        Column { seconds, uses: uses.map(|(row, share)| (row, share * bytes)).collect() }
    };
    Region { columns: (0..COLUMNS).map(column).collect(), divisible: false }
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) >> 10
}
