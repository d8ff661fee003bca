//! Processes that close a file with replicas wait until these are in sync. Between runs, files are
//! brought to rest, as `stripewise drain` and `stripewise warm` do.

use stripewise_cluster::MAX_COPIES;
use stripewise_policy::background::{PIECES_MAX, Pace};

use crate::queue::Event;
use crate::{Outcome, Simulator};

impl Simulator {
    /// Closes a file. Returns whether the process waits until the replicas have what they lack now.
    pub(crate) fn close(&mut self, process: u32, file: u32) -> bool {
        let Some(overlay) = &mut self.files.files[file as usize].overlay else { return false };
        let missing = overlay.map.all_missing();
        if overlay.capacity.is_some() || overlay.lazy_close || missing == 0 {
            return false;
        }
        overlay.closing.push((process, missing));
        if overlay.job.is_none() {
            self.go_on_closing(file);
        }
        true
    }

    /// Continues copying for processes that close the file, and continues the processes whose bytes
    /// have been copied.
    pub(super) fn go_on_closing(&mut self, file: u32) {
        let overlay = self.overlay(file);
        let all = overlay.map.all_missing() == 0;
        let closing = std::mem::take(&mut overlay.closing);
        let (done, rest): (Vec<_>, Vec<_>) = closing.into_iter().partition(|&(_, left)| all || left == 0);
        overlay.closing = rest;
        for (process, _) in done {
            self.push(self.now_ns, Event::Closed(process));
        }
        if !self.overlay(file).closing.is_empty() {
            let whole = self.overlay(file).whole();
            whole.into_iter().any(|copy| self.copy_to(file, copy, PIECES_MAX, Pace::UNLIMITED));
        } else {
            self.look_soon(file);
        }
    }

    /// Stops background copying, because the processes that performed it have ended.
    pub(crate) fn stop_copying(&mut self) {
        for of_file in &mut self.files.files {
            let Some(overlay) = &mut of_file.overlay else { continue };
            if let Some(job) = overlay.job.take().filter(|job| job.fetches) {
                let placed = &self.files.placed[of_file.copies[job.to] as usize];
                job.spans.iter().for_each(|span| self.spaces.give(placed, &(span.start..span.end)));
            }
            (overlay.look_ns, overlay.handle) = (None, None);
            overlay.closing.clear();
            overlay.under_way = 0;
        }
    }

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

    /// Performs one copy operation to its end, regardless of the servers' use; false if there is
    /// none. Used when files are brought to rest. `wanted` is the progress of fetching into the
    /// caches, if that is to be done.
    pub(super) fn work_now(&mut self, file: u32, wanted: Option<&mut [u64; MAX_COPIES]>) -> bool {
        let whole = self.overlay(file).whole();
        let begun = match wanted {
            Some(at) => self.fetch_next(file, at),
            None => whole.into_iter().any(|copy| self.copy_to(file, copy, PIECES_MAX, Pace::UNLIMITED)),
        };
        while self.overlay(file).job.is_some() {
            let Some((now_ns, event)) = self.queue.pop() else { break };
            self.now_ns = now_ns;
            if let Event::Copied(file) = event {
                self.overlay(file).look_ns = Some(u64::MAX); // No other check happens.
                match &mut self.overlay(file).job {
                    Some(job) if job.is_read => self.finish_job(file),
                    _ => self.copied(file),
                }
            }
        }
        begun
    }
}
