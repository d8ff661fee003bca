//! `stripewise cat` writes the bytes of files to stdout.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stripewise_cluster::size;
use stripewise_datapath::migrate::Contents;

use crate::managed;

/// Bytes per read: enough to keep all servers busy.
const TRANSFER_BYTES: usize = 4 << 20;

/// Writes the bytes of managed or plain files to stdout
#[derive(clap::Args)]
#[command(after_help = "Examples:
  stripewise cat out.dat | sha256sum
  stripewise cat --offset 1G --length 4K out.dat | od -c")]
pub struct Args {
    /// The files to write, in this order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Offset of the first byte to write, in each file
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0")]
    offset: u64,
    /// Maximum number of bytes to write of each file [default: all]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    length: Option<u64>,
}

/// The bytes before a failure have been written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = managed::runtime(None);
    let files: Vec<_> = args.files.iter().map(|path| managed::existing_file(path)).collect::<Result<_, _>>()?;
    managed::act_for_owner(&runtime, &files)?;
    for file in &files {
        let contents = Contents::open(&runtime, file)?;
        if !copy(&contents, file, args)? {
            break;
        }
    }
    Ok(())
}

/// Writes one file. Returns false if the reader of stdout has closed the pipe.
fn copy(contents: &Contents, path: &Path, args: &Args) -> anyhow::Result<bool> {
    let mut buffer = vec![0; TRANSFER_BYTES];
    let mut out = std::io::stdout().lock();
    let (mut at, mut left) = (args.offset, args.length.unwrap_or(u64::MAX));
    while left > 0 {
        let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = contents.read(&mut buffer[..want], at);
        let got = read.with_context(|| format!("{} cannot be read at byte {at}", path.display()))?;
        if got == 0 {
            break;
        }
        match out.write_all(&buffer[..got]) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(false),
            written => written.context("cannot write to stdout")?,
        }
        (at, left) = (at + got as u64, left - got as u64);
    }
    Ok(true)
}
