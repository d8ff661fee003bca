//! Programs whose solution is known.

use crate::{AllocationError, Choice, Column, Program, Region, Row, bound, solve};

fn column(seconds: f64, uses: &[(u32, f64)]) -> Column {
    Column { seconds, uses: uses.to_vec() }
}

fn region(columns: &[Column], divisible: bool) -> Region {
    Region { columns: columns.to_vec(), divisible }
}

fn space(bytes: f64) -> Row {
    Row::Space { bytes }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1e-9)
}

#[test]
fn space_goes_where_it_saves_most() {
    let random = region(&[column(9.0, &[]), column(0.5, &[(0, 16.0)])], false);
    let in_order = region(&[column(0.6, &[]), column(0.2, &[(0, 240.0)])], false);
    let program = Program { weights: vec![], rows: vec![space(24.0)], regions: vec![in_order, random] };
    let solution = solve(&program).unwrap();
    assert_eq!(solution.choices, [Choice::whole(0), Choice::whole(1)]);
    assert!(near(solution.seconds, 1.1));
    // 8 of the 24 bytes are left, and could hold a 30th of the second region.
    assert!(near(solution.bound_s, 1.1 - 0.4 * 8.0 / 240.0), "{}", solution.bound_s);
    assert!(near(solution.prices.0[0], 0.4 / 240.0), "what another byte saves");
}

#[test]
fn a_region_is_cut_where_the_space_ends() {
    let one = region(&[column(8.0, &[]), column(1.0, &[(0, 100.0)])], true);
    let program = Program { weights: vec![], rows: vec![space(25.0)], regions: vec![one] };
    let solution = solve(&program).unwrap();
    assert!(near(solution.seconds, 8.0 - 7.0 / 4.0) && near(solution.bound_s, solution.seconds));
    let slow: f64 = solution.choices[0].parts().filter(|(column, _)| *column == 0).map(|(_, part)| part).sum();
    assert!(near(slow, 0.75), "{:?}", solution.choices);
}

#[test]
fn two_servers_share_the_work_of_a_phase() {
    // Each of 5 regions takes 1 second on one of two servers, and the phase runs twice.
    let one = region(&[column(0.0, &[(0, 1.0)]), column(0.0, &[(1, 1.0)])], false);
    let rows = vec![Row::Time { phase: 0 }; 2];
    let program = Program { weights: vec![2.0], rows, regions: vec![one.clone(); 5] };
    let solution = solve(&program).unwrap();
    assert!(near(solution.seconds, 6.0) && near(solution.bound_s, 5.0), "{solution:?}");
    let divisible = Region { divisible: true, ..one };
    let program = Program { regions: vec![divisible; 5], ..program };
    let solution = solve(&program).unwrap();
    assert!(near(solution.seconds, 5.0) && near(solution.bound_s, 5.0), "{solution:?}");
    assert_eq!(solution.choices.iter().filter(|choice| choice.other.is_some()).count(), 1);
}

#[test]
fn of_equal_columns_the_first_is_taken() {
    let uses = [(0, 1.0), (1, 2.0)];
    let equal = region(&[column(1.0, &uses), column(1.0, &uses), column(1.0, &uses)], true);
    let rows = vec![Row::Time { phase: 0 }, space(100.0)];
    let program = Program { weights: vec![1.0], rows, regions: vec![equal; 40] };
    assert_eq!(solve(&program).unwrap().choices, [Choice::whole(0); 40]);
}

#[test]
fn what_does_not_fit_is_named() {
    let large = |bytes| region(&[column(1.0, &[(1, bytes)])], true);
    let rows = vec![space(1.0), space(50.0)];
    let program = Program { weights: vec![], rows, regions: vec![large(40.0), large(30.0)] };
    let Err(AllocationError::Full { row, bytes }) = solve(&program) else { panic!("it does not fit") };
    assert!(row == 1 && (bytes - 20.0).abs() < 0.01, "{row} {bytes}");
    // Together they would fit if they could be cut.
    let two = region(&[column(1.0, &[(0, 30.0)]), column(1.0, &[(1, 30.0)])], false);
    let program = Program { weights: vec![], rows: vec![space(45.0); 2], regions: vec![two; 3] };
    assert!(matches!(solve(&program), Err(AllocationError::Full { .. })));
}

#[test]
fn a_tier_of_size_0_gets_nothing() {
    let one = region(&[column(8.0, &[]), column(1.0, &[(0, 1e12)])], true);
    let program = Program { weights: vec![], rows: vec![space(0.0)], regions: vec![one] };
    assert_eq!(solve(&program).unwrap().choices, [Choice::whole(0)]);
}

#[test]
fn nothing_to_do_takes_no_time() {
    let solution = solve(&Program::default()).unwrap();
    assert_eq!((solution.seconds, solution.bound_s, solution.choices.len()), (0.0, 0.0, 0));
    let still = region(&[column(0.0, &[])], true);
    let program = Program { weights: vec![3.0], rows: vec![Row::Time { phase: 0 }], regions: vec![still; 3] };
    assert_eq!(solve(&program).unwrap().seconds, 0.0);
}

#[test]
fn invalid_programs_are_refused() {
    let valid = || Program {
        weights: vec![1.0],
        rows: vec![Row::Time { phase: 0 }, space(1.0)],
        regions: vec![region(&[column(1.0, &[(0, 1.0), (1, 1.0)])], false)],
    };
    assert!(solve(&valid()).is_ok());
    let changes: [fn(&mut Program); 8] = [
        |program| program.weights[0] = f64::NAN,
        |program| program.weights[0] = -1.0,
        |program| program.rows[0] = Row::Time { phase: 1 },
        |program| program.rows[1] = space(f64::INFINITY),
        |program| program.regions[0].columns[0].seconds = -1.0,
        |program| program.regions[0].columns[0].uses[0].0 = 2,
        |program| program.regions[0].columns[0].uses[1].1 = f64::NAN,
        |program| program.regions[0].columns.clear(),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut program = valid();
        change(&mut program);
        assert!(matches!(solve(&program), Err(AllocationError::Invalid(_))), "change {index}");
    }
}

#[test]
fn every_price_proves_a_bound() {
    let one = region(&[column(0.0, &[(0, 3.0)]), column(0.0, &[(1, 1.0), (2, 10.0)])], false);
    let rows = vec![Row::Time { phase: 0 }, Row::Time { phase: 0 }, space(25.0)];
    let program = Program { weights: vec![1.0], rows, regions: vec![one; 6] };
    let best = solve(&program).unwrap();
    for of_time in [0.0, 0.2, 0.5, 1.0] {
        for of_space in [0.0, 0.01, 0.1, 1.0] {
            let prices = crate::Prices(vec![of_time, 1.0 - of_time, of_space]);
            assert!(bound(&program, &prices).0 <= best.bound_s * (1.0 + 1e-6));
        }
    }
}
