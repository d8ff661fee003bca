//! What many file sets need on each server.

use std::collections::BTreeMap;

use stripewise_layout::Layout;

use super::columns::{Planned, layouts_now};
use super::division::{Filled, turned};
use super::{Field, Place};
use crate::layouts::Layouts;
use crate::present::Present;
use crate::spread::layout_of;

/// Number of servers of a tier at which the files of a set may begin, evenly spaced. Sets of a kind
/// take turns, so that the beginnings of their files are not all on the same servers. There are few,
/// because each is a layout of its own for the programs that use the plan.
pub const TURNS: usize = 32;

/// The layouts of a set that takes a turn.
pub fn layouts_in_turn(layouts: &[Layout], tier_of: &[u32], member: u32) -> Vec<Layout> {
    let turn = (member as usize % TURNS, TURNS);
    layouts.iter().map(|layout| turned(layout, tier_of, turn).unwrap_or_else(|| layout.clone())).collect()
}

/// The bytes of all sets on each server.
pub fn bytes_by_server(field: &Field<'_>, kinds: &[Planned], places: &[Place]) -> Vec<u64> {
    // Sets whose layouts are the same are added up before servers are looked at.
    let mut alike: BTreeMap<(u32, u8, u32), Vec<u32>> = BTreeMap::new();
    let mut bytes = vec![0; field.servers.count()];
    for (index, (set, place)) in (0..).zip(field.sets.iter().zip(places)) {
        if place.column == 0 && matches!(set.present, Present::Known { .. }) {
            let (layouts, layout_of) = layouts_now(set, &kinds[place.kind as usize].columns[0]);
            add(field, &layouts, std::iter::once((index, layout_of)), &mut bytes);
            continue;
        }
        let turn = if place.column == 0 { 0 } else { place.member % TURNS as u32 };
        alike.entry((place.kind, place.column, turn)).or_default().push(index);
    }
    for ((kind, column, turn), sets) in alike {
        let candidate = &kinds[kind as usize].columns[column as usize].judged.candidate;
        let built = candidate.layouts.build();
        let built = if column == 0 { built } else { layouts_in_turn(&built, &field.tier_of, turn) };
        let of_set = |index: u32| {
            let set = &field.sets[index as usize];
            (index, layout_of(set, &candidate.spread, built.len()))
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
            filled[layout as usize].add(file.size);
        }
    }
    filled.iter().for_each(|filled| filled.add_to(bytes));
}

/// The layouts of a candidate as a set gets them that takes a turn.
pub fn turned_layouts(layouts: &Layouts, tier_of: &[u32], member: u32) -> Layouts {
    Layouts::from(layouts_in_turn(&layouts.build(), tier_of, member))
}
