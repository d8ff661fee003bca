//! Writes small logs of every format, byte order, compression and version of records into a
//! directory: `tests/test_darshan.py` reads them with PyDarshan.
//!
//!     cargo run -p stripewise-darshan --example samples -- DIR

use std::fs::File;
use std::path::PathBuf;

use common::Shape;
use stripewise_darshan::{ByteOrder, Compression};

#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: samples DIR")?);
    for format in [(3, 0), (3, 10), (3, 20), (3, 21), (3, 41)] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for compression in [Compression::Zlib, Compression::Bzip2, Compression::None] {
                for age in 0..4 {
                    let (major, minor) = format;
                    let name =
                        format!("{major}.{minor:02}-{order:?}-{compression:?}-{age}.darshan").to_lowercase();
                    common::sample(File::create(dir.join(name))?, Shape { format, order, compression }, age);
                }
            }
        }
    }
    Ok(())
}
