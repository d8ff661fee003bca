//! Locates the programs of the demo: `stripewise`, an MPI, the workloads, a Python with h5py.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::workloads::{Workloads, works};

/// The programs that the demo starts. All paths exist.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The `stripewise` program in the directory of this one.
    pub stripewise: PathBuf,
    /// `mpirun` of the MPI with which `ior` was built.
    pub mpirun: String,
    /// The IOR-like MPI program.
    pub ior: PathBuf,
    /// The h5py program.
    pub h5py: PathBuf,
    /// The interpreter for `h5py`.
    pub python: PathBuf,
}

impl Tools {
    /// Searches for the workloads as [`Workloads::find`] does. Python is `python` if given, else
    /// the one in `.venv` next to the workloads, else the one in the `PATH`.
    ///
    /// # Errors
    /// The error names what is missing and the command that builds it.
    pub fn find(workloads: Option<&Path>, python: Option<&Path>) -> anyhow::Result<Self> {
        let found = Workloads::find(workloads)?;
        let python = find_python(python, &found.build)?;
        let (ior, h5py) = (found.program("ior")?, found.build.join("h5.py"));
        Ok(Self { stripewise: found.stripewise, mpirun: found.mpirun, ior, h5py, python })
    }
}

fn find_python(given: Option<&Path>, build: &Path) -> anyhow::Result<PathBuf> {
    let venv = build.parent().map(|root| root.join(".venv/bin/python"));
    let candidates = match given {
        Some(given) => vec![given.to_path_buf()],
        None => venv.into_iter().chain([PathBuf::from("python3")]).collect(),
    };
    let has_h5py = |python: &PathBuf| works(Command::new(python).args(["-c", "import h5py, numpy"]));
    let tried = candidates.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    candidates.into_iter().find(has_h5py).with_context(|| {
        format!(
            "no Python with h5py and NumPy (tried {tried}); remedy: `make setup`, or say which with --python"
        )
    })
}
