//! The job of this process, from the MPI library or the launcher's environment variables.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stripewise_recorder::variable;

/// A process's place in an MPI job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of processes of the job.
    pub ranks: u32,
    /// The rank of this process.
    pub rank: u32,
    /// Number of the job's processes on this node; 0 if not known.
    pub ranks_on_node: u32,
    /// The index of this node in the job, if known.
    pub node: Option<u32>,
}

/// The job that the MPI library has reported last; null until then. Never freed.
static NOTED: AtomicPtr<Job> = AtomicPtr::new(std::ptr::null_mut());

impl Job {
    /// Notes the job that the MPI library reports.
    pub fn note(self) {
        NOTED.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }
}

/// The job that the MPI library has reported, if it has.
pub fn noted() -> Option<Job> {
    // SAFETY: null, or never freed.
    unsafe { NOTED.load(Ordering::Acquire).as_ref().copied() }
}

/// Number of processes that use the files at the same time, and of those on this node: from MPI, or
/// else from the launcher.
pub fn processes() -> Option<(u32, u32)> {
    let launched = read(&|name| number(variable(name)?));
    let Some(Job { ranks, ranks_on_node, .. }) = noted() else { return launched };
    let on_node = || launched.map_or(ranks, |(_, on_node)| on_node.min(ranks));
    Some((ranks, if ranks_on_node == 0 { on_node() } else { ranks_on_node }))
}

/// Variables with the number of processes, and with those per node or the number of nodes. The
/// first pair whose number of processes is set counts. Slurm's comes last: under `mpirun` inside a
/// Slurm job it is that of the daemons. The variables of the whole Slurm job are not used, since
/// its script is one process.
const SIZES: [(&CStr, &CStr); 4] = [
    (c"PMI_SIZE", c"MPI_LOCALNRANKS"),
    (c"OMPI_COMM_WORLD_SIZE", c"OMPI_COMM_WORLD_LOCAL_SIZE"),
    (c"MV2_COMM_WORLD_SIZE", c"MV2_COMM_WORLD_LOCAL_SIZE"),
    (c"SLURM_STEP_NUM_TASKS", NODES),
];
/// The one that is the number of nodes.
const NODES: &CStr = c"SLURM_STEP_NUM_NODES";

/// Number of processes of the job, and of those on this node (all of them if that is not set),
/// according to the launcher's variables.
fn read(number: &dyn Fn(&CStr) -> Option<u32>) -> Option<(u32, u32)> {
    let (procs, per_node) = SIZES.iter().find_map(|(name, per_node)| Some((number(name)?, per_node)))?;
    let second = number(per_node);
    let on_node = if *per_node == NODES { second.map(|nodes| procs.div_ceil(nodes)) } else { second };
    Some((procs, on_node.map_or(procs, |on_node| on_node.min(procs))))
}

/// Parses a decimal number above 0.
fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_say_how_many_there_are() {
        let processes = |variables: &[(&CStr, &CStr)]| {
            read(&|name| number(variables.iter().find(|(known, _)| *known == name)?.1.to_bytes()))
        };
        assert_eq!(processes(&[]), None);
        assert_eq!(processes(&[(c"SLURM_NTASKS", c"64")]), None);
        assert_eq!(processes(&[(c"PMI_SIZE", c"8")]), Some((8, 8)));
        assert_eq!(processes(&[(c"PMI_SIZE", c"8"), (c"MPI_LOCALNRANKS", c"2")]), Some((8, 2)));
        assert_eq!(processes(&[(c"PMI_SIZE", c"2"), (c"MPI_LOCALNRANKS", c"8")]), Some((2, 2)));
        let slurm = [(c"SLURM_STEP_NUM_TASKS", c"10"), (c"SLURM_STEP_NUM_NODES", c"4")];
        assert_eq!(processes(&slurm), Some((10, 3)));
        let both =
            [slurm[0], slurm[1], (c"OMPI_COMM_WORLD_SIZE", c"16"), (c"OMPI_COMM_WORLD_LOCAL_SIZE", c"4")];
        assert_eq!(processes(&both), Some((16, 4)));
        for nonsense in [c"", c"0", c"-1", c"many", c"99999999999"] {
            assert_eq!(processes(&[(c"PMI_SIZE", nonsense), slurm[0], slurm[1]]), Some((10, 3)));
        }
    }
}
