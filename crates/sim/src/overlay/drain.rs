//! Bringing files to rest between runs, as `stripewise drain` and `stripewise warm` do.

use stripewise_cluster::MAX_COPIES;

use crate::{Outcome, Simulator};

impl Simulator {
    /// Completes all originals and, of files with replicas, all copies, one file after the other.
    pub fn drain(&mut self) -> Outcome {
        self.at_rest(false)
    }

    /// Fetches the prefetch queue into the caches, as far as there is space.
    pub fn warm(&mut self) -> Outcome {
        self.at_rest(true)
    }

    fn at_rest(&mut self, wanted: bool) -> Outcome {
        let began_ns = self.now_ns;
        self.begin_counting();
        for file in 0..self.files.files.len() as u32 {
            if self.files.files[file as usize].overlay.is_some() {
                let mut at = [0; MAX_COPIES];
                while self.work_now(file, wanted.then_some(&mut at)) {}
            }
        }
        self.end(began_ns)
    }
}
