//! Finds the built workloads, and an MPI that runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// Programs to run, and what runs them; all paths exist.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// This program.
    pub stripewise: PathBuf,
    /// `mpirun` of the MPI that the programs were built with.
    pub mpirun: String,
    /// Where everything is that was built for all MPIs.
    pub build: PathBuf,
    mpi: &'static str,
}

/// In order of preference: with more ranks than cores Open MPI's waiting ranks yield, MPICH's spin and take the time of
/// those that work (16 ranks on 2 cores open a file in 0.9 s, against 0.1 s).
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// What Open MPI needs to be told to start 16 ranks as root on few cores, in a container, too. MPICH needs nothing.
pub const MPI_ENVIRONMENT: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

impl Workloads {
    /// Looks for the workloads in `given` or, if not given, in `build/` beside the binary, above it, and in the current
    /// directory.
    ///
    /// # Errors
    /// What is missing and the command that makes it.
    pub fn find(given: Option<&Path>) -> anyhow::Result<Self> {
        let stripewise = std::env::current_exe().context("cannot find the path of this program")?;
        let build = find_build(given, &stripewise)?;
        let mpi = MPIS.into_iter().find(|mpi| build.join(mpi).join("ior").exists() && starts(&mpirun_of(mpi)));
        let Some(mpi) = mpi else {
            bail!(
                "no MPI to run the workloads of '{}' with (mpirun.mpich or mpirun.openmpi); remedy: `make setup`",
                build.display()
            );
        };
        Ok(Self { stripewise, mpirun: mpirun_of(mpi), build, mpi })
    }

    /// An MPI program, `ior` say.
    ///
    /// # Errors
    /// It was not built.
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.build.join(self.mpi).join(name);
        ensure!(path.exists(), "'{}' is not there; remedy: `make build`", path.display());
        Ok(path)
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
    beside
        .chain(here)
        .map(|dir| dir.join("build"))
        .find(is_build)
        .context("the workloads are not built; remedy: `make build`, or say where with --workloads")
}

fn starts(program: &str) -> bool {
    works(Command::new(program).arg("--version").envs(MPI_ENVIRONMENT))
}

/// Whether the command can be started and succeeds; what it says is not shown.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
