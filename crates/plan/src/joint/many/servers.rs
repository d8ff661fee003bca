//! What many file sets need on each server.

use std::collections::BTreeMap;

use stripewise_layout::Layout;

use super::columns::{KindPlan, layouts_now};
use super::division::{Filled, turned};
use super::field::{Field, Place};
use crate::layouts::Layouts;
use crate::present::Present;
use crate::spread::{layout_of, spread_for};

/// Number of servers of a tier at which the files of a set may begin, evenly spaced. Sets of a kind
/// take turns, so that the beginnings of their files are not all on the same servers. There are
/// few, because each is a layout of its own for the programs that use the plan.
const TURNS: u32 = 32;

/// The turn of a set, of [`TURNS`]. Where a file system stripes, it chooses the servers itself.
fn turn_of(field: &Field<'_>, place: &Place) -> u32 {
    if place.column == 0 || field.cluster.has_pools() { 0 } else { place.member % TURNS }
}

/// The layouts of a set that has this turn.
fn in_turn(layouts: &[Layout], tier_of: &[u32], turn: u32) -> Vec<Layout> {
    let turn = (turn as usize, TURNS as usize);
    layouts.iter().map(|layout| turned(layout, tier_of, turn).unwrap_or_else(|| layout.clone())).collect()
}

/// The bytes of all sets on each server.
pub fn bytes_by_server(field: &Field<'_>, kinds: &[KindPlan], places: &[Place]) -> Vec<u64> {
    // Sets whose layouts are the same are added up before servers are looked at.
    let mut alike: BTreeMap<(u32, u8, u32), Vec<u32>> = BTreeMap::new();
    let mut bytes = vec![0; field.servers.count()];
    for (index, (set, place)) in (0..).zip(field.sets.iter().zip(places)) {
        if place.column == 0 && matches!(set.present, Present::Known { .. }) {
            let (layouts, layout_of) = layouts_now(set, &kinds[place.kind as usize].columns[0]);
            add(field, &layouts, std::iter::once((index, layout_of)), &mut bytes);
            continue;
        }
        alike.entry((place.kind, place.column, turn_of(field, place))).or_default().push(index);
    }
    for ((kind, column, turn), sets) in alike {
        let candidate = &kinds[kind as usize].columns[column as usize].judged.candidate;
        let built = in_turn(&candidate.layouts.build(), &field.tier_of, turn);
        let of_set = |index: u32| {
            let set = &field.sets[index as usize];
            (index, layout_of(set, &spread_for(&candidate.spread, set), built.len()))
        };
        add(field, &built, sets.into_iter().map(of_set), &mut bytes);
    }
    bytes
}

/// Adds the bytes of sets, by index, each with the indices of its files' layouts.
fn add(field: &Field<'_>, layouts: &[Layout], sets: impl Iterator<Item = (u32, Vec<u32>)>, bytes: &mut [u64]) {
    let mut filled: Vec<Filled<'_>> = layouts.iter().map(Filled::new).collect();
    for (index, layout_of) in sets {
        for (file, layout) in field.sets[index as usize].files.iter().zip(layout_of) {
            filled[layout as usize].add(file);
        }
    }
    filled.iter().for_each(|filled| filled.add_to(bytes));
}

/// The layouts of a candidate as a set in this place gets them.
pub fn layouts_for(field: &Field<'_>, layouts: &Layouts, place: Place) -> Layouts {
    match turn_of(field, &place) {
        0 => layouts.clone(),
        turn => Layouts::from(in_turn(&layouts.build(), &field.tier_of, turn)),
    }
}
