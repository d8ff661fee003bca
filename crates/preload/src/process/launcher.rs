//! The number of processes in the job, from the launcher's environment variables.

use std::ffi::CStr;

use crate::process::state::variable;

/// Variables with the number of processes, and with those per node or the number of nodes. The
/// first pair whose number of processes is set counts. Slurm's comes last: under `mpirun` inside a
/// Slurm job it is that of the daemons. The variables of the whole Slurm job are not used, since
/// its script is one process.
const SIZES: [(&CStr, PerNode); 4] = [
    (c"PMI_SIZE", PerNode::Processes(c"MPI_LOCALNRANKS")),
    (c"OMPI_COMM_WORLD_SIZE", PerNode::Processes(c"OMPI_COMM_WORLD_LOCAL_SIZE")),
    (c"MV2_COMM_WORLD_SIZE", PerNode::Processes(c"MV2_COMM_WORLD_LOCAL_SIZE")),
    (c"SLURM_STEP_NUM_TASKS", PerNode::Nodes(c"SLURM_STEP_NUM_NODES")),
];

/// The meaning of the second variable.
enum PerNode {
    /// Number of processes on this node.
    Processes(&'static CStr),
    /// Number of nodes.
    Nodes(&'static CStr),
}

/// Number of processes of the job, and of those on this node (all of them if that is not set).
/// `None` without a launcher.
pub fn processes() -> Option<(u32, u32)> {
    read(&|name| number(variable(name)?))
}

/// How many of `procs` processes are on this node, according to the launcher.
pub fn on_node(procs: u32) -> u32 {
    processes().map_or(procs, |(_, on_node)| on_node.min(procs))
}

fn read(number: &dyn Fn(&CStr) -> Option<u32>) -> Option<(u32, u32)> {
    let (procs, per_node) = SIZES.iter().find_map(|(name, per_node)| Some((number(name)?, per_node)))?;
    let on_node = match per_node {
        PerNode::Processes(name) => number(name),
        PerNode::Nodes(name) => number(name).map(|nodes| procs.div_ceil(nodes)),
    };
    Some((procs, on_node.map_or(procs, |on_node| on_node.min(procs))))
}

/// Parses a decimal number above 0.
fn number(text: &CStr) -> Option<u32> {
    text.to_str().ok()?.parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_say_how_many_there_are() {
        let processes = |variables: &[(&CStr, &CStr)]| {
            read(&|name| number(variables.iter().find(|(known, _)| *known == name)?.1))
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
