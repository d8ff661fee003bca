//! Finds what the demo runs: this binary, an MPI, the workloads, a Python with h5py.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::workloads::{Workloads, works};

/// Everything the demo starts; all paths exist.
#[derive(Clone, Debug)]
pub struct Tools {
    /// This program.
    pub stripewise: PathBuf,
    /// `mpirun` of the MPI that `ior` was built with.
    pub mpirun: String,
    /// The IOR-like MPI program.
    pub ior: PathBuf,
    /// The h5py program and the interpreter for it.
    pub h5py: PathBuf,
    /// See `h5py`.
    pub python: PathBuf,
}

impl Tools {
    /// Looks for the workloads as [`Workloads::find`] does; for Python in `python` or, if not given, in `.venv` beside
    /// them, then in the `PATH`.
    ///
    /// # Errors
    /// What is missing and the command that makes it.
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
