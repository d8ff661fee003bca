//! Servers that all requests of a sample use alike.
//!
//! Requests over thousands of servers put the same bytes on most of them, so that a replay finds
//! the same times there again and again. It follows some of these servers only, the
//! *representatives*: `docs/decisions/0002-costs-and-elapsed.md`, "Large clusters".

use std::collections::HashMap;
use std::hash::Hasher;

use stripewise_model::Access;
use stripewise_policy::Mixer;

use crate::servers::Servers;

/// Requests that touch at most this many servers, on average, are replayed on all of them.
const WIDE: usize = 64;
/// About the number of servers that a request touches when wider ones are replayed on
/// representatives.
const REPRESENTATIVES: usize = 32;

/// The bytes of one shape on one target.
pub struct Use {
    /// Number of the shape.
    pub shape: u64,
    pub target: u32,
    pub bytes: u64,
    pub access: Access,
}

/// Per target: the number of servers that it stands for in a replay, itself included; 0 if another
/// one stands for it. `None` if every server is to be replayed. `width` is the mean number of
/// servers that a request touches; `uses` are in the order of their shapes.
pub fn representatives(width: usize, uses: impl Iterator<Item = Use>, servers: &Servers) -> Option<Vec<f64>> {
    if width <= WIDE {
        return None;
    }
    let mut stands_for = vec![0.0; servers.count()];
    for alike in alike(uses, servers).values() {
        let kept = (alike.len() * REPRESENTATIVES).div_ceil(width).min(alike.len());
        for index in 0..kept {
            stands_for[alike[index * alike.len() / kept] as usize] = alike.len() as f64 / kept as f64;
        }
    }
    Some(stands_for)
}

/// The targets that have equal parameters and equal uses, ascending.
fn alike(uses: impl Iterator<Item = Use>, servers: &Servers) -> HashMap<(u32, u64), Vec<u32>> {
    let mut uses_of = vec![Mixer::default(); servers.count()];
    for Use { shape, target, bytes, access } in uses {
        uses_of[target as usize].write_u64(shape << 1 | access as u64);
        uses_of[target as usize].write_u64(bytes);
    }
    let unused = Mixer::default().finish();
    let mut alike = HashMap::<(u32, u64), Vec<u32>>::new();
    for (target, uses) in (0..).zip(uses_of).filter(|(_, uses)| uses.finish() != unused) {
        alike.entry((servers.kinds[target as usize], uses.finish())).or_default().push(target);
    }
    alike
}
