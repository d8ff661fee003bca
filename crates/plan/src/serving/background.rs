//! The background copying between the copies of files.

use stripewise_cluster::OverlayKind;
use stripewise_model::{Access, Op};

use super::assign::Serving;
use crate::candidate::{Background, Placement, bytes_by_target};

/// Bytes copied from one copy to another.
struct Transfer {
    from: usize,
    to: usize,
    bytes: f64,
}

impl Serving<'_> {
    /// The background copying of a candidate. Replicas: bytes written to one copy are copied to all
    /// others. Every byte of the files is copied at most once, because the synchronization is lazy.
    /// Cache copies: bytes written to them are written back, bytes read from them were fetched;
    /// both at most once.
    pub fn background(&self) -> Background {
        if self.copies.len() == 1 {
            return Background::default();
        }
        let copies = self.copies.len();
        let mut bytes = [vec![0.0; copies], vec![0.0; copies]];
        for group in &self.problem.set.groups {
            let sample = self.sample(group);
            let served = self.serve(group, &sample);
            let weight = group.weight(sample.len());
            for (request, &copy) in sample.iter().zip(&served.copy_of) {
                bytes[usize::from(group.op == Op::Write)][usize::from(copy)] += weight * request.size as f64;
            }
        }
        let [read, written] = bytes.map(|bytes| at_most(bytes, self.problem.set.total_size() as f64));
        let transfers: Vec<Transfer> = match &self.admission {
            None => (0..copies * copies)
                .map(|pair| Transfer { from: pair / copies, to: pair % copies, bytes: written[pair / copies] })
                .filter(|transfer| transfer.from != transfer.to)
                .collect(),
            Some(_) => (1..copies)
                .flat_map(|copy| {
                    let fetched = Transfer { from: 0, to: copy, bytes: read[copy] };
                    [Transfer { from: copy, to: 0, bytes: written[copy] }, fetched]
                })
                .collect(),
        };
        let total = transfers.iter().map(|transfer| transfer.bytes).sum::<f64>();
        let limit = self.candidate.overlay.as_ref().and_then(|overlay| overlay.background);
        let at_limit_s = limit.map_or(0.0, |limit| total / limit as f64);
        Background { bytes: total.round() as u64, seconds: busiest_s(self, &transfers).max(at_limit_s) }
    }

    /// Seconds that the last close waits for the replicas to be in sync, if it does. It includes
    /// all of the copying, because the servers have no time for it while they serve requests.
    pub fn wait_at_close_s(&self) -> f64 {
        match &self.candidate.overlay {
            Some(overlay) if overlay.kind == OverlayKind::Replicas && !overlay.lazy_close => {
                self.background().seconds
            }
            _ => 0.0,
        }
    }
}

/// Scales `amounts` down so that their sum is at most `most`.
fn at_most(mut amounts: Vec<f64>, most: f64) -> Vec<f64> {
    let sum: f64 = amounts.iter().sum();
    if sum > most {
        amounts.iter_mut().for_each(|amount| *amount *= most / sum);
    }
    amounts
}

/// Busy seconds of the busiest server when everything is copied sequentially in large pieces: only
/// β, or the link's t if that is larger, counts.
fn busiest_s(serving: &Serving<'_>, transfers: &[Transfer]) -> f64 {
    let servers = serving.problem.servers;
    let shares: Vec<Vec<f64>> = serving.copies.iter().map(|copy| shares(serving, copy)).collect();
    let busy_s = |target: usize| -> f64 {
        let per_byte_s = |op| {
            let service = servers.service(target as u32, op, Access::Sequential);
            service.per_byte_s.max(servers.network.per_byte_s)
        };
        let (read_s, write_s) = (per_byte_s(Op::Read), per_byte_s(Op::Write));
        let of_transfer = |transfer: &Transfer| {
            transfer.bytes * (shares[transfer.from][target] * read_s + shares[transfer.to][target] * write_s)
        };
        transfers.iter().map(of_transfer).sum()
    };
    (0..servers.count()).map(busy_s).fold(0.0, f64::max)
}

/// The fraction of the files' bytes that a copy has on each target.
fn shares(serving: &Serving<'_>, copy: &Placement<'_>) -> Vec<f64> {
    let (files, servers) = (&serving.problem.set.files, serving.problem.servers.count());
    let bytes = bytes_by_target(files, (&copy.layouts, &copy.layout_of), servers);
    let bytes: Vec<f64> = bytes.into_iter().map(|bytes| bytes as f64).collect();
    let total: f64 = bytes.iter().sum::<f64>().max(1.0);
    bytes.iter().map(|bytes| bytes / total).collect()
}
