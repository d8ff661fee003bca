//! Finds the preload library and the PMPI libraries (`mpi/`) that a command loads.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// File name of the preload library.
const LIBRARY: &str = "libstripewise_posix.so";
/// File name of a PMPI library. Each MPI has a directory with one.
const MPI_LIBRARY: &str = "libstripewise_mpi.so";

/// Selects the libraries.
#[derive(clap::Args)]
pub struct Flags {
    /// The preload library [default: libstripewise_posix.so next to this executable]
    #[arg(long, value_name = "FILE", env = "STRIPEWISE_LIB")]
    lib: Option<PathBuf>,
    /// For MPI programs: load the library for this MPI (mpich, openmpi), for every MPI it was built
    /// for (auto), or for none (off)
    ///
    /// The library reports ranks and nodes to stripewise and marks collective calls in the trace. A
    /// library that does not match the program's MPI does nothing. Either all ranks of a job load
    /// it, or none.
    #[arg(long, value_name = "MPI", env = "STRIPEWISE_MPI", default_value = "auto")]
    mpi: String,
    /// Directory of the library: DIR/mpich/libstripewise_mpi.so, ... [default: next to the preload
    /// library, or build/ of the checkout]
    #[arg(long, value_name = "DIR", env = "STRIPEWISE_MPI_LIB")]
    mpi_lib: Option<PathBuf>,
}

impl Flags {
    /// Returns the libraries that a command loads, the preload library first.
    pub fn libraries(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut libraries = vec![preload_library(self.lib.as_deref())?];
        libraries.extend(self.mpi_libraries(&libraries[0])?);
        Ok(libraries)
    }

    fn mpi_libraries(&self, preload: &Path) -> anyhow::Result<Vec<PathBuf>> {
        if self.mpi == "off" {
            return Ok(Vec::new());
        }
        let places = match &self.mpi_lib {
            None => places(preload),
            Some(dir) => {
                vec![dir.canonicalize().with_context(|| format!("MPI libraries in {}", dir.display()))?]
            }
        };
        if self.mpi == "auto" {
            let found = places.iter().map(|place| all_in(place)).find(|all| !all.is_empty());
            return Ok(found.unwrap_or_default());
        }
        let name = &self.mpi;
        let mut libraries = places.iter().map(|place| place.join(name).join(MPI_LIBRARY));
        let library = libraries.find(|path| path.is_file()).with_context(|| {
            format!(
                "--mpi {name}: there is no {name}/{MPI_LIBRARY} in {}: build it (make workloads), say where with --mpi-lib, or \
                 leave it out with --mpi off",
                places.first().map_or(Path::new("."), PathBuf::as_path).display()
            )
        })?;
        Ok(vec![library])
    }
}

/// Directories to search: that of the preload library, and `build` in it and in the three
/// directories above it.
fn places(preload: &Path) -> Vec<PathBuf> {
    let above = preload.ancestors().skip(1).take(4);
    above.clone().take(1).map(Path::to_path_buf).chain(above.map(|dir| dir.join("build"))).collect()
}

/// Returns all libraries below the directory, ordered by the name of their MPI.
fn all_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut all: Vec<_> =
        entries.map(|entry| entry.path().join(MPI_LIBRARY)).filter(|path| path.is_file()).collect();
    all.sort();
    all
}

/// Returns the preload library that commands load by default.
pub fn library() -> anyhow::Result<PathBuf> {
    preload_library(std::env::var_os("STRIPEWISE_LIB").as_deref().map(Path::new))
}

/// Returns the preload library: the one that the user names, else the one next to the executable,
/// else the one in `../lib` relative to the executable's directory.
fn preload_library(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| format!("preload library {}", path.display()));
    }
    let executable = std::env::current_exe().context("the path of this executable is not known")?;
    let dir = executable.parent().unwrap_or(Path::new("/"));
    let mut places = ["", "../lib", "../lib/stripewise"].into_iter().map(|place| dir.join(place).join(LIBRARY));
    let found = places.find(|place| place.is_file()).with_context(|| {
        format!("{LIBRARY} is not beside {}: name it with --lib or STRIPEWISE_LIB", executable.display())
    })?;
    Ok(found.canonicalize()?)
}

/// Returns the value of LD_PRELOAD with `libraries` in front of the current entries. Libraries that
/// are listed already (this process may run under them) keep their position.
pub fn ld_preload(libraries: &[PathBuf]) -> OsString {
    let present = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let is_present = |library: &&PathBuf| {
        let mut entries = present.as_encoded_bytes().split(|&byte| byte == b':' || byte == b' ');
        entries.any(|entry| entry == library.as_os_str().as_encoded_bytes())
    };
    let new = libraries.iter().filter(|library| !is_present(library)).map(|library| library.as_os_str());
    let parts: Vec<_> = new.chain((!present.is_empty()).then_some(present.as_os_str())).collect();
    parts.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(mpi: &str, mpi_lib: Option<&Path>) -> Flags {
        Flags { lib: None, mpi: mpi.to_owned(), mpi_lib: mpi_lib.map(Path::to_path_buf) }
    }

    #[test]
    fn what_is_there_is_loaded_and_what_is_named_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let preload = root.join("target/release/libstripewise_posix.so");
        let library = |dir: &str| {
            let path = root.join(dir).join(MPI_LIBRARY);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        assert!(flags("auto", None).mpi_libraries(&preload).unwrap().is_empty());
        let (openmpi, mpich) = (library("build/openmpi"), library("build/mpich"));
        assert_eq!(flags("auto", None).mpi_libraries(&preload).unwrap(), [mpich.clone(), openmpi.clone()]);
        assert_eq!(flags("openmpi", None).mpi_libraries(&preload).unwrap(), [openmpi]);
        assert!(flags("off", None).mpi_libraries(&preload).unwrap().is_empty());
        let error = flags("cray", None).mpi_libraries(&preload).unwrap_err().to_string();
        assert!(error.contains("cray/libstripewise_mpi.so"), "{error}");
        // Libraries next to the preload library come first, and a directory named by the user comes
        // before those.
        let beside = library("target/release/mpich");
        assert_eq!(flags("auto", None).mpi_libraries(&preload).unwrap(), [beside]);
        assert_eq!(flags("mpich", Some(&root.join("build"))).mpi_libraries(&preload).unwrap(), [mpich]);
        assert!(flags("auto", Some(Path::new("/none"))).mpi_libraries(&preload).is_err());
        assert!(flags("off", Some(Path::new("/none"))).mpi_libraries(&preload).is_ok());
    }
}
