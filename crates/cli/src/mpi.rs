//! Locates the PMPI libraries (`mpi/`) and selects those that a command loads.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// File name of the library. Each MPI has a directory with one.
const LIBRARY: &str = "libstripewise_mpi.so";

/// Selects which PMPI libraries are loaded.
#[derive(clap::Args)]
pub struct Flags {
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
    /// Returns the libraries to load after the preload library.
    ///
    /// # Errors
    /// The library that the user names does not exist.
    pub fn libraries(&self, preload: &Path) -> anyhow::Result<Vec<PathBuf>> {
        if self.mpi == "off" {
            return Ok(Vec::new());
        }
        let places = match &self.mpi_lib {
            Some(dir) => {
                vec![dir.canonicalize().with_context(|| format!("MPI libraries in {}", dir.display()))?]
            }
            None => places(preload),
        };
        match self.mpi.as_str() {
            "auto" => {
                Ok(places.iter().map(|place| all_in(place)).find(|all| !all.is_empty()).unwrap_or_default())
            }
            name => match places.iter().map(|place| place.join(name).join(LIBRARY)).find(|path| path.is_file())
            {
                Some(path) => Ok(vec![path]),
                None => bail!(
                    "--mpi {name}: there is no {name}/{LIBRARY} in {}: build it (make workloads), say where with --mpi-lib, or \
                     leave it out with --mpi off",
                    places.first().map_or(Path::new("."), PathBuf::as_path).display()
                ),
            },
        }
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
        entries.map(|entry| entry.path().join(LIBRARY)).filter(|path| path.is_file()).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(mpi: &str, mpi_lib: Option<&Path>) -> Flags {
        Flags { mpi: mpi.to_owned(), mpi_lib: mpi_lib.map(Path::to_path_buf) }
    }

    #[test]
    fn what_is_there_is_loaded_and_what_is_named_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let preload = root.join("target/release/libstripewise_posix.so");
        let library = |dir: &str| {
            let path = root.join(dir).join(LIBRARY);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        assert!(flags("auto", None).libraries(&preload).unwrap().is_empty());
        let (openmpi, mpich) = (library("build/openmpi"), library("build/mpich"));
        assert_eq!(flags("auto", None).libraries(&preload).unwrap(), [mpich.clone(), openmpi.clone()]);
        assert_eq!(flags("openmpi", None).libraries(&preload).unwrap(), [openmpi]);
        assert!(flags("off", None).libraries(&preload).unwrap().is_empty());
        let error = flags("cray", None).libraries(&preload).unwrap_err().to_string();
        assert!(error.contains("cray/libstripewise_mpi.so"), "{error}");
        // Libraries next to the preload library come first, and a directory named by the user comes
        // before those.
        let beside = library("target/release/mpich");
        assert_eq!(flags("auto", None).libraries(&preload).unwrap(), [beside]);
        assert_eq!(flags("mpich", Some(&root.join("build"))).libraries(&preload).unwrap(), [mpich]);
        assert!(flags("auto", Some(Path::new("/none"))).libraries(&preload).is_err());
        assert!(flags("off", Some(Path::new("/none"))).libraries(&preload).is_ok());
    }
}
