//! Processes that close a file with replicas wait until these are in sync. Between runs, files are
//! brought to rest, as `stripewise drain` and `stripewise warm` do.

use stripewise_cluster::MAX_COPIES;
use stripewise_policy::background::{PIECES_MAX, Pace};

use crate::file::File;
use crate::queue::Event;
use crate::{Outcome, Simulator};

impl Simulator {
    /// Closes a file. Returns whether the process waits until the replicas have what they lack now.
    pub(crate) fn close(&mut self, process: u32, file: u32) -> bool {
        let File::Copies(overlay) = &mut self.files.files[file as usize] else { return false };
        let missing = overlay.map.all_missing();
        if overlay.capacity.is_some() || overlay.lazy_close || missing == 0 {
            return false;
        }
        overlay.closing.push((process, missing));
        if overlay.copying.is_none() {
            self.go_on_closing(file);
        }
        true
    }

    /// Continues copying for processes that close the file, and continues the processes whose bytes
    /// have been copied.
    pub(super) fn go_on_closing(&mut self, file: u32) {
        let overlay = self.files.overlay(file);
        let all = overlay.map.all_missing() == 0;
        overlay.closing.retain(|&(process, left)| {
            let done = all || left == 0;
            if done {
                self.queue.push(self.now_ns, Event::Closed(process));
            }
            !done
        });
        if overlay.closing.is_empty() {
            self.look_soon(file);
        } else {
            self.complete_some(file);
        }
    }

    /// Begins to copy to the first copy that should have everything and does not.
    fn complete_some(&mut self, file: u32) -> bool {
        let mut whole = self.files.overlay(file).whole();
        whole.any(|copy| self.copy_to(file, copy, PIECES_MAX, Pace::UNLIMITED))
    }

    /// Stops background copying, because the processes that performed it have ended.
    pub(crate) fn stop_copying(&mut self) {
        for file in &mut self.files.files {
            let File::Copies(overlay) = file else { continue };
            if let Some(copying) = overlay.copying.take() {
                self.spaces.give_back(&overlay.by, &copying);
            }
            (overlay.look_ns, overlay.handle) = (None, None);
            overlay.closing.clear();
            overlay.under_way = 0;
        }
    }

    /// Completes all originals and, of files with replicas, all copies, one file after the other.
    pub fn drain(&mut self) -> Outcome {
        self.at_rest(|simulator, file, _| simulator.complete_some(file))
    }

    /// Fetches the prefetch queue into the caches, as far as there is space.
    pub fn warm(&mut self) -> Outcome {
        self.at_rest(Self::fetch_next)
    }

    /// Performs all copy operations that `begin` begins on a file, one after the other and
    /// regardless of the servers' use; then those on the next file. `begin` gets its own progress
    /// on the file, and returns whether it found something to do.
    fn at_rest(&mut self, begin: impl Fn(&mut Self, u32, &mut [u64; MAX_COPIES]) -> bool) -> Outcome {
        let began_ns = self.now_ns;
        self.begin_counting();
        for file in 0..self.files.files.len() as u32 {
            let mut at = [0; MAX_COPIES];
            if let File::Copies(_) = self.files.files[file as usize] {
                while begin(self, file, &mut at) {
                    self.finish(file);
                }
            }
        }
        self.end(began_ns)
    }

    /// Performs the copy operation of a file to its end.
    fn finish(&mut self, file: u32) {
        while self.files.overlay(file).copying.is_some() {
            let Some((now_ns, event)) = self.queue.pop() else { break };
            self.now_ns = now_ns;
            if let Event::Copied(file) = event {
                let overlay = self.files.overlay(file);
                overlay.look_ns = Some(u64::MAX); // No other check happens.
                match &overlay.copying {
                    Some(copying) if copying.is_read => self.finish_copying(file),
                    _ => self.copied(file),
                }
            }
        }
    }
}
