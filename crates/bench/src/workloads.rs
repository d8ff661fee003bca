//! Locates `stripewise`, the built workloads, and an MPI that can run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The workload programs and their launcher. All paths exist.
pub struct Workloads {
    /// The `stripewise` program in the directory of this one.
    pub stripewise: PathBuf,
    /// `mpirun` of the MPI with which the programs were built.
    pub mpirun: String,
    /// Directory with everything built, for all MPIs.
    pub build: PathBuf,
    mpi: &'static str,
}

/// Supported MPIs in order of preference. With more ranks than cores, Open MPI's waiting ranks
/// yield, while MPICH's spin and take time from the ranks that work (16 ranks on 2 cores open a
/// file in 0.9 s with MPICH and in 0.1 s with Open MPI).
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// Variables that let Open MPI start 16 ranks as root on few cores, also in a container. MPICH
/// needs none.
pub const MPI_ENVIRONMENT: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

impl Workloads {
    /// Searches for the workloads in `given`, or by default in `build/` next to the executable, in
    /// the directories above it, and in the current directory. The error
    /// names what is missing and the command that builds it.
    pub fn find(given: Option<&Path>) -> anyhow::Result<Self> {
        let executable = std::env::current_exe().context("cannot find the path of this program")?;
        let stripewise = executable.with_file_name("stripewise");
        ensure!(stripewise.exists(), "'{}' is not there; remedy: `make build`", stripewise.display());
        let build = find_build(given, &executable)?;
        let mpi = MPIS.into_iter().find(|mpi| build.join(mpi).join("ior").exists() && starts(&mpirun_of(mpi)));
        let mpi = mpi.with_context(|| {
            format!(
                "no MPI to run the workloads of '{}' with (mpirun.mpich or mpirun.openmpi); remedy: `make setup`",
                build.display()
            )
        })?;
        Ok(Self { stripewise, mpirun: mpirun_of(mpi), build, mpi })
    }

    /// Returns the path of an MPI program such as `ior`.
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.build.join(self.mpi).join(name);
        ensure!(path.exists(), "'{}' is not there; remedy: `make build`", path.display());
        Ok(path)
    }
}

fn mpirun_of(mpi: &str) -> String {
    format!("mpirun.{mpi}")
}

fn find_build(given: Option<&Path>, executable: &Path) -> anyhow::Result<PathBuf> {
    let is_build =
        |dir: &PathBuf| dir.join("h5.py").exists() && MPIS.iter().any(|mpi| dir.join(mpi).join("ior").exists());
    if let Some(given) = given {
        let (found, shown) = (std::path::absolute(given)?, given.display());
        ensure!(is_build(&found), "--workloads '{shown}' has no built workloads; remedy: `make build`");
        return Ok(found);
    }
    // In a checkout the executable is in `target/release` and the workloads are in `build`.
    let beside = executable.ancestors().skip(1).take(4).map(Path::to_path_buf);
    let here = std::env::current_dir().ok();
    beside
        .chain(here)
        .map(|dir| dir.join("build"))
        .find(is_build)
        .context("the workloads are not built; remedy: `make build`, or say where with --workloads")
}

/// Returns a Python with h5py and NumPy: the given one, else that in `.venv` next to the workloads,
/// else the one in the `PATH`.
pub fn find_python(given: Option<&Path>, build: &Path) -> anyhow::Result<PathBuf> {
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

/// Returns whether the command can be started and succeeds. Its output is discarded.
fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
