//! The programs of the demo: names, sizes and command lines.

use std::ffi::OsString;

use stripewise_cluster::size;

use super::servers;
use super::workspace::Workspace;
use crate::shell::arguments;

const MIB: u64 = 1 << 20;
/// The directions of every program. Each is planned and reported separately.
pub const OPS: [&str; 2] = ["read", "write"];

/// A program and its parameters.
pub struct Experiment {
    program: Program,
    /// Bytes per request.
    transfer: u64,
    pub file_bytes: u64,
    /// Fraction of the file that all SSD servers together can hold, in quarters. Where SSD space is
    /// scarce, schemes that spend it differently get different times.
    ssd_quarters: u64,
    /// Number of runs of a layout whose time is close to the best.
    pub repeats: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Program {
    /// IOR: 16 ranks with random access to one shared file.
    Ior,
    /// h5py: one process reads and writes an HDF5 dataset from start to end.
    H5py,
}

const IOR_RANKS: u64 = 16;

impl Experiment {
    /// Returns all experiments of the demo. With `quick`, there is one small experiment per
    /// program.
    pub fn all(quick: bool) -> Vec<Self> {
        let of = |program, transfer, mib: u64, ssd_quarters| Self {
            program,
            transfer,
            file_bytes: mib * MIB,
            ssd_quarters,
            repeats: if quick { 1 } else { 2 },
        };
        if quick {
            return vec![of(Program::Ior, 512 << 10, 96, 2), of(Program::H5py, MIB, 32, 3)];
        }
        vec![
            of(Program::Ior, 64 << 10, 96, 1),
            of(Program::Ior, 512 << 10, 256, 2),
            of(Program::Ior, 4 * MIB, 384, 3),
            of(Program::H5py, MIB, 96, 3),
        ]
    }

    /// Returns the display name, such as `ior 64K`.
    pub fn name(&self) -> String {
        format!("{} {}", self.program_name(), size::format(self.transfer))
    }

    fn program_name(&self) -> &'static str {
        match self.program {
            Program::Ior => "ior",
            Program::H5py => "h5py",
        }
    }

    /// Returns the name for use in file names, such as `ior-64K`.
    pub fn slug(&self) -> String {
        self.name().replace(' ', "-")
    }

    /// Returns the path of the program's data file, relative to the demo's directory.
    pub fn file(&self) -> String {
        format!("data/{}.{}", self.slug(), if self.program == Program::H5py { "h5" } else { "dat" })
    }

    pub fn processes(&self) -> u32 {
        if self.program == Program::Ior { IOR_RANKS as u32 } else { 1 }
    }

    /// Returns the space on each SSD server in bytes.
    pub fn ssd_bytes(&self) -> u64 {
        self.file_bytes * self.ssd_quarters / 4 / u64::from(servers::SERVERS)
    }

    /// Returns the program's command line; `op` is read, write or both. The program does not verify
    /// its data: in a traced run, the reads of the verification would count as the application's.
    pub fn command(&self, work: &Workspace, op: &str) -> anyhow::Result<Vec<OsString>> {
        let transfer = size::format(self.transfer);
        let (program, sizes) = match self.program {
            Program::Ior => {
                let ior = work.workloads.program("ior")?;
                let block = size::format(self.file_bytes / IOR_RANKS);
                (
                    arguments![&work.workloads.mpirun, "-n", IOR_RANKS.to_string(), ior],
                    arguments!["--transfer", transfer, "--block", block, "--access", "random"],
                )
            }
            Program::H5py => {
                let total = size::format(self.file_bytes);
                (
                    arguments![&work.python, work.workloads.build.join("h5.py")],
                    arguments!["--total", total, "--block", transfer],
                )
            }
        };
        let file = arguments!["--file", work.path(self.file())];
        Ok([program, file, sizes, arguments!["--op", op, "--json"]].concat())
    }

    /// Describes one direction in words.
    pub fn description(&self, op: &str) -> String {
        let (transfer, total) = (size::format(self.transfer), size::format(self.file_bytes));
        let ssd = size::format(self.ssd_bytes() * u64::from(servers::SERVERS));
        let does = match self.program {
            Program::Ior => format!("{IOR_RANKS} MPI ranks {op} a shared file of {total} in random order"),
            Program::H5py => format!("one h5py process {op}s a dataset of {total} front to back"),
        };
        format!("{does}, {transfer} at a time; the SSDs have space for {ssd}")
    }

    /// Returns the name of a result row, such as `ior read 64K`.
    pub fn row(&self, op: &str) -> String {
        format!("{} {op} {}", self.program_name(), size::format(self.transfer))
    }

    /// Returns the row name for use in file names, such as `ior-read-64K`.
    pub fn row_slug(&self, op: &str) -> String {
        self.row(op).replace(' ', "-")
    }
}
