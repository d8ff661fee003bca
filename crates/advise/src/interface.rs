//! Remedies in the terms of MPI-IO and HDF5. Sources: ROMIO's user's guide (hints), the HDF5
//! reference manual (`H5Pset_dxpl_mpio`, `H5Pset_alignment`).

use crate::commands::Command;
use crate::facts::FileFacts;
use crate::text::bytes;

/// The file of hints that the commands write.
const HINTS: &str = "romio.hints";

/// The call that all processes make together.
pub fn collective_call(file: &FileFacts, side: usize) -> String {
    match (file.is_hdf5, side) {
        (true, _) => "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) for all processes".into(),
        (false, 0) => "read with MPI_File_read_at_all: all processes together".into(),
        (false, _) => "write with MPI_File_write_at_all: all processes together".into(),
    }
}

/// Hints that make ROMIO join the requests of collective calls on some processes.
pub fn collective_hints(side: usize) -> Vec<Command> {
    let which = if side == 0 { "romio_cb_read" } else { "romio_cb_write" };
    let text = format!("printf '{which} enable\\n' >> {HINTS}; export ROMIO_HINTS=$PWD/{HINTS}");
    vec![Command::new(text, "collective buffering, for MPICH and its kin (no effect without collective calls)")]
}

/// Hints that keep ROMIO from reading what it is to write.
pub fn without_sieving() -> Vec<Command> {
    let text = format!("printf 'romio_ds_write disable\\n' >> {HINTS}; export ROMIO_HINTS=$PWD/{HINTS}");
    vec![Command::new(text, "no data sieving for writes, for MPICH and its kin")]
}

/// Hints for the stripes of files that MPI-IO creates.
pub fn stripe_hints(stripe: u64) -> Vec<Command> {
    let text = format!("printf 'striping_unit {stripe}\\n' >> {HINTS}; export ROMIO_HINTS=$PWD/{HINTS}");
    vec![Command::new(text, "new files in stripes to which ROMIO aligns collective writes")]
}

/// How a program aligns what it writes.
pub fn aligned(file: &FileFacts, stripe: u64) -> String {
    if file.is_hdf5 || file.name.ends_with(".h5") || file.name.ends_with(".hdf5") {
        return format!("H5Pset_alignment(fapl, {}, {stripe}) before H5Fcreate", stripe / 2);
    }
    format!("begin each process's data at a multiple of {}", bytes(stripe))
}
