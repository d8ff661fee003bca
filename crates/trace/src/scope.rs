//! Which files hold a program's data, by their names alone: the others are software, sources, logs
//! and settings, in which no layout is worth having.

/// Directories of the system and its libraries, which contain no data.
const SYSTEM_DIRS: [&[u8]; 13] = [
    b"/proc/", b"/sys/", b"/dev/", b"/etc/", b"/run/", b"/usr/", b"/lib/", b"/lib32/", b"/lib64/", b"/bin/",
    b"/sbin/", b"/boot/", b"/snap/",
];

/// Substrings of the paths of installed software.
const SOFTWARE_PARTS: [&[u8]; 4] = [b"/__pycache__/", b"/site-packages/", b"/dist-packages/", b"/lib/python"];

/// Suffixes of the paths of installed software.
const SOFTWARE_ENDS: [&[u8]; 3] = [b".so", b".pyc", b".pyo"];

/// Names of directories that hold software, or what tools keep for themselves.
const TOOL_DIRS: [&[u8]; 24] = [
    b".cache",
    b".cargo",
    b".conda",
    b".config",
    b".git",
    b".hg",
    b".ipython",
    b".jupyter",
    b".julia",
    b".local",
    b".npm",
    b".nvm",
    b".pyenv",
    b".rbenv",
    b".rustup",
    b".spack",
    b".ssh",
    b".svn",
    b".venv",
    b"anaconda3",
    b"miniconda3",
    b"miniforge3",
    b"node_modules",
    b"venv",
];

/// What follows the last dot in the name of a program, a source, a script, settings or a log.
const OTHER_ENDS: [&[u8]; 60] = [
    b"a", b"o", b"la", b"mod", b"dylib", b"dll", b"exe", b"jar", b"whl", b"class", b"py", b"pyx", b"ipynb",
    b"sh", b"bash", b"csh", b"tcsh", b"zsh", b"pl", b"pm", b"rb", b"lua", b"tcl", b"R", b"jl", b"java", b"js",
    b"ts", b"go", b"rs", b"c", b"h", b"cc", b"cpp", b"cxx", b"hh", b"hpp", b"cu", b"f", b"F", b"f77", b"f90",
    b"F90", b"f95", b"f03", b"f08", b"cmake", b"md", b"toml", b"yaml", b"yml", b"ini", b"cfg", b"conf", b"nml",
    b"sbatch", b"log", b"err", b"pid", b"lock",
];

/// Whether the file belongs to the system or to installed software. Such files are not even
/// recorded, unless they are asked for.
pub fn is_software(path: &[u8]) -> bool {
    SYSTEM_DIRS.iter().any(|dir| path.starts_with(dir))
        || SOFTWARE_PARTS.iter().any(|part| contains(path, part))
        || SOFTWARE_ENDS.iter().any(|end| path.ends_with(end))
        || contains(path, b".so.")
}

/// Whether the file may hold data: it is no software, no source or script, no settings and no log.
pub fn is_data(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    !is_software(path) && !is_other(name) && !parts.any(|directory| TOOL_DIRS.contains(&directory))
}

fn is_other(name: &[u8]) -> bool {
    let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else { return name == b"Makefile" };
    let (stem, end) = (&name[..dot], &name[dot + 1..]);
    // `slurm-123.out` of Slurm; `NAME.o123` and `NAME.e123` of PBS and Grid Engine.
    let of_slurm = stem.starts_with(b"slurm-") && end == b"out";
    let of_pbs =
        matches!(end, [b'o' | b'e', digits @ ..] if digits.len() > 2 && digits.iter().all(u8::is_ascii_digit));
    OTHER_ENDS.contains(&end) || of_slurm || of_pbs || name == b"CMakeLists.txt"
}

fn contains(path: &[u8], part: &[u8]) -> bool {
    path.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_told_from_other_files_by_name() {
        for path in [
            "/scratch/u/run7/out.dat",
            "/scratch/u/field.h5",
            "/scratch/u/checkpoint",
            "/scratch/u/a.out.nc",
            "/scratch/u/x.json",
            "/scratch/u/stdout/part.o1",
            "/scratch/u/logs/values.bin",
            "/scratch/.u/x",
            "relative",
            "/data/venv",
        ] {
            assert!(is_data(path.as_bytes()), "{path}");
        }
        for path in [
            "/usr/share/x.dat",
            "/home/u/.pyenv/libexec/pyenv",
            "/home/u/.cache/x.bin",
            "/home/u/venv/bin/activate",
            "/home/u/miniconda3/envs/a/share/x.dat",
            "/home/u/src/solver.f90",
            "/home/u/src/Makefile",
            "/home/u/src/CMakeLists.txt",
            "/home/u/job.sh",
            "/home/u/libx.a",
            "/scratch/u/run.log",
            "/scratch/u/slurm-4711.out",
            "/scratch/u/job.o4711",
            "/scratch/u/job.e4711",
        ] {
            assert!(!is_data(path.as_bytes()), "{path}");
        }
    }
}
