//! Progress of work on traces, shown only when somebody watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar or a count on stderr; nothing unless that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// For work of unknown size.
    pub fn counting(what: &str) -> Progress {
        Progress::new(ProgressBar::new_spinner(), &format!("{{spinner}} {{human_pos}} {what} ({{elapsed}})"))
    }

    /// For work whose done share is known.
    pub fn sharing(what: &str) -> Progress {
        Progress::new(ProgressBar::new(1000), &format!("{what} {{bar:40}} {{percent}} % ({{eta}} left)"))
    }

    fn new(bar: ProgressBar, template: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        bar.set_style(ProgressStyle::with_template(template).expect("the templates are constants"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// So many are done.
    pub fn count(&self, done: u64) {
        self.0.set_position(done);
    }

    /// This share, 0 to 1, is done.
    pub fn share(&self, done: f64) {
        self.0.set_position((done * 1000.0) as u64);
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
