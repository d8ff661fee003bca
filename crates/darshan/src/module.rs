//! The modules of Darshan, in the order of their numbers. Source: Darshan 3.5
//! `include/darshan-log-format.h`, `DARSHAN_MODULE_IDS`.

/// A module: an I/O layer or a system that Darshan observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Module {
    Null,
    Posix,
    MpiIo,
    H5f,
    H5d,
    PnetcdfFile,
    PnetcdfVar,
    BgQ,
    Lustre,
    Stdio,
    DxtPosix,
    DxtMpiIo,
    Mdhim,
    Apxc,
    Apmpi,
    Heatmap,
    Dfs,
    Daos,
}

impl Module {
    /// All modules, by number.
    pub const ALL: [Module; 18] = {
        use Module::*;
        [
            Null,
            Posix,
            MpiIo,
            H5f,
            H5d,
            PnetcdfFile,
            PnetcdfVar,
            BgQ,
            Lustre,
            Stdio,
            DxtPosix,
            DxtMpiIo,
            Mdhim,
            Apxc,
            Apmpi,
            Heatmap,
            Dfs,
            Daos,
        ]
    };

    /// The name that Darshan's tools print.
    pub fn name(self) -> &'static str {
        self.region().strip_prefix("module ").expect("all begin so")
    }

    /// The name of its region in messages.
    pub(crate) fn region(self) -> &'static str {
        match self {
            Module::Null => "module NULL",
            Module::Posix => "module POSIX",
            Module::MpiIo => "module MPI-IO",
            Module::H5f => "module H5F",
            Module::H5d => "module H5D",
            Module::PnetcdfFile => "module PNETCDF_FILE",
            Module::PnetcdfVar => "module PNETCDF_VAR",
            Module::BgQ => "module BG/Q",
            Module::Lustre => "module LUSTRE",
            Module::Stdio => "module STDIO",
            Module::DxtPosix => "module DXT_POSIX",
            Module::DxtMpiIo => "module DXT_MPIIO",
            Module::Mdhim => "module MDHIM",
            Module::Apxc => "module APXC",
            Module::Apmpi => "module APMPI",
            Module::Heatmap => "module HEATMAP",
            Module::Dfs => "module DFS",
            Module::Daos => "module DAOS",
        }
    }

    /// Whether this crate reads its records.
    pub fn is_read(self) -> bool {
        use Module::*;
        matches!(self, Posix | MpiIo | H5f | H5d | Lustre | Stdio | DxtPosix | DxtMpiIo)
    }
}
