//! Invalid layouts, and their error messages.

use crate::constructors::{striped, two_d, until_full, varied};
use crate::{Layout, MAX_OFFSET, MAX_TARGETS, Region, Stripe};

fn region(start: u64, end: Option<u64>, cycle: &[(u32, u64)]) -> Region {
    Region { start, end, cycle: cycle.iter().map(|&(target, width)| Stripe { target, width }).collect() }
}

fn refused(regions: &[Region]) -> String {
    Layout::new(regions.to_vec()).expect_err("not a layout").to_string()
}

#[test]
fn every_error_says_where_and_what() {
    let one = &[(0, 1)];
    assert_eq!(refused(&[]), "a layout needs at least one region");
    assert_eq!(refused(&[region(5, None, one)]), "region 0 starts at byte 5, but byte 0 comes next");
    let gap = [region(0, Some(8), one), region(9, None, one)];
    assert_eq!(refused(&gap), "region 1 starts at byte 9, but byte 8 comes next");
    let overlap = [region(0, Some(8), one), region(7, None, one)];
    assert_eq!(refused(&overlap), "region 1 starts at byte 7, but byte 8 comes next");
    let empty = [region(0, Some(0), one), region(0, None, one)];
    assert_eq!(refused(&empty), "region 0 ends at byte 0, which must lie between its start and 2^63");
    let far = [region(0, Some(MAX_OFFSET + 1), one), region(MAX_OFFSET + 1, None, one)];
    assert!(refused(&far).starts_with("region 0 ends at byte 9223372036854775808"));
    let open = "every region but the last has an end, and the last has none";
    assert_eq!(refused(&[region(0, Some(8), one)]), format!("region 0: {open}"));
    assert_eq!(refused(&[region(0, None, one), region(0, None, one)]), format!("region 0: {open}"));
    assert!(refused(&[region(0, None, &[])]).starts_with("region 0 has no stripes"));
    assert!(refused(&[region(0, None, &[(0, 4), (7, 0)])]).contains("the stripe on target 7 is 0 bytes wide"));
    let long = [region(0, None, &[(0, MAX_OFFSET), (1, 1)])];
    assert_eq!(refused(&long), "region 0: the stripes of one cycle add up to more than 2^63 bytes");
    assert!(refused(&[region(0, None, &[(0, u64::MAX), (1, u64::MAX)])]).contains("more than 2^63"));
}

#[test]
fn a_damaged_target_number_cannot_eat_the_memory() {
    let message = refused(&[region(0, None, &[(u32::MAX, 1)])]);
    assert_eq!(message, "region 0: target 4294967295; the largest target number is 65535");
    let largest = Layout::new(vec![region(0, None, &[(MAX_TARGETS - 1, 1)])]).unwrap();
    assert_eq!(largest.locate(9), (MAX_TARGETS - 1, 9));
}

#[test]
fn constructors_refuse_what_has_no_stripes() {
    let no_stripes = |region| format!("region {region} has no stripes; it needs at least one (target, width)");
    assert_eq!(striped(&[], 64).unwrap_err().to_string(), no_stripes(0));
    assert!(striped(&[4, 5], 0).unwrap_err().to_string().contains("the stripe on target 4 is 0 bytes wide"));
    assert_eq!(varied(&[(0, 0), (1, 0)]).unwrap_err().to_string(), no_stripes(0));
    let groups = |targets: &[u32], groups| two_d(targets, groups, 64, 1).unwrap_err().to_string();
    assert_eq!(groups(&[0, 1], 3), "3 groups of 2 targets; 2-D needs 1 to 2 groups");
    assert_eq!(groups(&[0, 1], 0), "0 groups of 2 targets; 2-D needs 1 to 2 groups");
    assert_eq!(groups(&[], 0), "0 groups of 0 targets; 2-D needs 1 to 0 groups");
    assert_eq!(two_d(&[0, 1], 1, 0, 1).unwrap_err().to_string(), no_stripes(0));
    let no_rest = until_full(&[(0, 8), (1, 8)], &[(1, 100)], &[]).unwrap_err();
    assert_eq!(no_rest.to_string(), no_stripes(1));
}
