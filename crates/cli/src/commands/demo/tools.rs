//! Finds what the demo runs: this binary, an MPI, the workloads, a Python with h5py.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

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

/// In order of preference: with more ranks than cores Open MPI's waiting ranks yield, MPICH's spin and take the time of
/// those that work (16 ranks on 2 cores open a file in 0.9 s, against 0.1 s).
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// What Open MPI needs to be told to start 16 ranks as root on few cores. MPICH needs nothing.
pub const MPI_ENVIRONMENT: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

impl Tools {
    /// Looks for the workloads in `workloads` or, if not given, in `build/` beside the binary, above it, and in the
    /// current directory; for Python in `python` or, if not given, in `.venv` beside them, then in the `PATH`.
    ///
    /// # Errors
    /// What is missing and the command that makes it.
    pub fn find(workloads: Option<&Path>, python: Option<&Path>) -> anyhow::Result<Self> {
        let stripewise = std::env::current_exe().context("cannot find the path of this program")?;
        let build = find_build(workloads, &stripewise)?;
        let mpi = MPIS.into_iter().find(|mpi| build.join(mpi).join("ior").exists() && starts(&mpirun_of(mpi)));
        let Some(mpi) = mpi else {
            bail!(
                "no MPI to run the workloads of '{}' with (mpirun.mpich or mpirun.openmpi); remedy: `make setup`",
                build.display()
            );
        };
        let python = find_python(python, &build)?;
        let ior = build.join(mpi).join("ior");
        Ok(Self { stripewise, mpirun: mpirun_of(mpi), ior, h5py: build.join("h5.py"), python })
    }
}

fn mpirun_of(mpi: &str) -> String {
    format!("mpirun.{mpi}")
}

fn find_build(given: Option<&Path>, stripewise: &Path) -> anyhow::Result<PathBuf> {
    let is_build =
        |dir: &PathBuf| dir.join("h5.py").exists() && MPIS.iter().any(|mpi| dir.join(mpi).join("ior").exists());
    if let Some(given) = given {
        let found = std::path::absolute(given)?;
        return match is_build(&found) {
            true => Ok(found),
            false => bail!("--workloads '{}' has no built workloads; remedy: `make build`", given.display()),
        };
    }
    // In a checkout the binary is in target/release and the workloads in build.
    let beside = stripewise.ancestors().skip(1).take(4).map(Path::to_path_buf);
    let here = std::env::current_dir().ok();
    beside.chain(here).map(|dir| dir.join("build")).find(is_build).context(
        "the demo's MPI and h5py programs are not built; remedy: `make build`, or say where with --workloads",
    )
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

fn starts(program: &str) -> bool {
    works(Command::new(program).arg("--version").envs(MPI_ENVIRONMENT))
}

/// Whether the command can be started and succeeds; what it says is not shown.
fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
