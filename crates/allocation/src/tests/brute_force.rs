//! Random programs against all their plans.

use stripewise_random::Random;

use crate::{AllocationError, Choice, Column, Program, Region, Row, solve};

/// Number of programs of each kind.
const PROGRAMS: u64 = 1000;

/// A plan is at most this much worse than the best one.
const WORSE: f64 = 0.02;

/// A program of few regions, whose numbers differ by orders of magnitude.
fn random_program(seed: u64) -> Program {
    let mut random = Random(seed);
    let mut up_to = move |most: u64| random.below(most + 1);
    let phases = up_to(2);
    let mut rows = Vec::new();
    for phase in 0..phases {
        (0..1 + up_to(2)).for_each(|_| rows.push(Row::Time { phase: phase as u32 }));
    }
    let spaces = up_to(2);
    (0..spaces).for_each(|_| rows.push(Row::Space { bytes: (up_to(40) * 1_000_000) as f64 }));
    let regions = 1 + up_to(5);
    let columns = if regions <= 4 { 5 } else { 3 };
    let mut column = |is_first: bool| {
        let seconds = 1e-3 * up_to(1000) as f64;
        let mut uses = Vec::new();
        for (row, kind) in (0..).zip(&rows) {
            match kind {
                Row::Time { .. } if up_to(3) > 0 => uses.push((row, 1e-3 * (1 + up_to(5000)) as f64)),
                // The first column is where there is always space.
                Row::Space { .. } if !is_first && up_to(3) > 0 => {
                    uses.push((row, 1e6 * (1 + up_to(30)) as f64))
                }
                _ => {}
            }
        }
        Column { seconds, uses }
    };
    let mut region =
        || Region { columns: (0..columns).map(|index| column(index == 0)).collect(), divisible: false };
    let regions = (0..regions).map(|_| region()).collect();
    Program { weights: (0..phases).map(|phase| 1.0 + phase as f64).collect(), rows, regions }
}

/// The value of a plan of whole regions, seconds; `None` if the space does not suffice. Written
/// independently of the solver's.
fn value(program: &Program, choices: &[u32]) -> Option<f64> {
    let columns =
        || program.regions.iter().zip(choices).map(|(region, &choice)| &region.columns[choice as usize]);
    let used = |row: usize| -> f64 {
        columns()
            .flat_map(|column| &column.uses)
            .filter(|(of, _)| *of as usize == row)
            .map(|(_, used)| used)
            .sum()
    };
    let mut times = vec![0.0f64; program.weights.len()];
    for (index, row) in program.rows.iter().enumerate() {
        match *row {
            Row::Time { phase } => times[phase as usize] = times[phase as usize].max(used(index)),
            Row::Space { bytes } if used(index) > bytes => return None,
            Row::Space { .. } => {}
        }
    }
    let of_phases: f64 = times.iter().zip(&program.weights).map(|(time, weight)| time * weight).sum();
    Some(of_phases + columns().map(|column| column.seconds).sum::<f64>())
}

/// The least value of all plans of whole regions.
fn least(program: &Program) -> Option<f64> {
    let mut choices = vec![0u32; program.regions.len()];
    let mut least: Option<f64> = None;
    loop {
        if let Some(value) = value(program, &choices) {
            least = Some(least.map_or(value, |least| least.min(value)));
        }
        let next = (0..choices.len()).find(|&region| {
            choices[region] += 1;
            let is_next = (choices[region] as usize) < program.regions[region].columns.len();
            if !is_next {
                choices[region] = 0;
            }
            is_next
        });
        if next.is_none() {
            return least;
        }
    }
}

#[test]
fn plans_are_as_good_as_the_best_one() {
    let mut exact = 0;
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        let least = least(&program).expect("the first columns fit");
        let solution = solve(&program).unwrap();
        let choices: Vec<u32> = solution.choices.iter().map(|choice| choice.column).collect();
        assert!(solution.choices.iter().all(|choice| choice.other.is_none()));
        let seconds = value(&program, &choices).expect("the space suffices");
        assert!((seconds - solution.seconds).abs() <= 1e-9 * seconds, "seed {seed}");
        assert!(seconds >= least * (1.0 - 1e-9), "seed {seed}: {seconds} below the least, {least}");
        assert!(seconds <= least * (1.0 + WORSE), "seed {seed}: {seconds}, and the least is {least}");
        assert!(
            solution.bound_s <= least * (1.0 + 1e-9),
            "seed {seed}: bound {} above {least}",
            solution.bound_s
        );
        exact += u64::from(seconds <= least * (1.0 + 1e-9));
    }
    assert!(exact >= PROGRAMS * 99 / 100, "{exact} of {PROGRAMS} are the best");
}

/// The bounds are those of HiGHS, which solves the whole linear program at once.
#[test]
fn bounds_are_the_values_of_the_linear_program() {
    for (seed, least) in (0..).zip(include_str!("highs.txt").lines()) {
        let (least, bound_s) = (least.parse::<f64>().unwrap(), solve(&random_program(seed)).unwrap().bound_s);
        assert!((bound_s - least).abs() <= 1e-6 * least, "seed {seed}: {bound_s} instead of {least}");
    }
}

/// Regions that can be cut, against the same regions in 60 equal pieces of which none can be cut.
#[test]
fn cuts_are_as_good_as_many_small_regions() {
    const PIECES: f64 = 60.0;
    for seed in 0..PROGRAMS / 20 {
        let mut program = random_program(seed);
        program.regions.truncate(3);
        let mut pieces = program.clone();
        let piece = |column: &Column| Column {
            seconds: column.seconds / PIECES,
            uses: column.uses.iter().map(|&(row, used)| (row, used / PIECES)).collect(),
        };
        pieces.regions = (program.regions.iter())
            .map(|region| Region { columns: region.columns.iter().map(piece).collect(), divisible: false })
            .flat_map(|region| std::iter::repeat_n(region, PIECES as usize))
            .collect();
        program.regions.iter_mut().for_each(|region| region.divisible = true);
        let (cut, pieces) = (solve(&program).unwrap(), solve(&pieces).unwrap());
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-5 * other.abs() + 1e-9;
        assert!(close(cut.bound_s, pieces.bound_s), "seed {seed}: {} and {}", cut.bound_s, pieces.bound_s);
        assert!(cut.seconds >= cut.bound_s);
        // Each row may be off by about one piece.
        let most = pieces.bound_s * (1.0 + 3.0 / PIECES) + 1e-9;
        assert!(pieces.seconds <= most, "seed {seed}: {} above {}", pieces.seconds, pieces.bound_s);
    }
}

/// The first plan that is found may overuse the space.
#[test]
fn what_hardly_fits_is_found() {
    let mut found = 0;
    for seed in 0..PROGRAMS / 10 {
        let mut program = random_program(seed);
        // Space is needed everywhere, and there is just enough for one plan.
        let mut random = Random(seed);
        program.rows = vec![Row::Space { bytes: 0.0 }; 2];
        program.weights.clear();
        let mut sums = [0.0; 2];
        for region in &mut program.regions {
            for column in &mut region.columns {
                column.uses = (0..2).map(|row| (row, (1 + random.below(30)) as f64)).collect();
            }
            let planned = random.below(region.columns.len() as u64) as usize;
            region.columns[planned].uses.iter().for_each(|&(row, used)| sums[row as usize] += used);
        }
        program.rows = sums.map(|bytes| Row::Space { bytes }).to_vec();
        match solve(&program) {
            Ok(solution) => {
                let choices: Vec<u32> = solution.choices.iter().map(|choice: &Choice| choice.column).collect();
                let least = least(&program).unwrap();
                assert!(value(&program, &choices).unwrap() <= least * (1.0 + WORSE), "seed {seed}");
                found += 1;
            }
            Err(AllocationError::Full { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(found == PROGRAMS / 10, "{found} of {}", PROGRAMS / 10);
}
