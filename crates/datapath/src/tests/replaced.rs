//! A file that another process replaces while it is being opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stripewise_sys::{Mode, OFlags, Result, Sys};

use super::support::*;

/// A system interface that replaces a file by another one before a given call of open(2).
struct Replacing {
    calls_left: AtomicU32,
    from: PathBuf,
    to: PathBuf,
}

impl Replacing {
    fn before(&self, call: &str) -> Result<()> {
        if call == "open" && self.calls_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::fs::rename(&self.from, &self.to).unwrap();
        }
        Ok(())
    }
}

impl Sys for Replacing {
    stripewise_faulty::delegate!(before);
}

/// Every open gets one file or the other, whenever the replacement comes.
#[test]
fn a_file_that_is_replaced_while_it_is_opened_is_opened() {
    for flags in [OFlags::RDONLY, OFlags::RDWR, OFlags::WRONLY | OFlags::TRUNC, CREATE] {
        let mut was_replaced = true;
        for call in 1.. {
            let stage = Stage::new(small());
            let (from, to) = (stage.root.path().join("plain"), stage.path("f"));
            std::fs::write(&from, b"plain").unwrap();
            drop(open(&stage.real_runtime(), &to, CREATE).unwrap());
            let calls_left = AtomicU32::new(call);
            let sys = Arc::new(Replacing { calls_left, from: from.clone(), to });
            let runtime = stage.runtime_on(sys);
            let opened = runtime.open(None, &stage.path("f"), flags, Mode::RUSR | Mode::WUSR);
            assert!(opened.is_ok(), "{flags:?}, replaced before open {call}: {:?}", opened.err());
            if from.exists() {
                was_replaced = call > 1;
                break;
            }
        }
        assert!(was_replaced, "{flags:?}: nothing was ever replaced");
    }
}
