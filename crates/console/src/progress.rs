//! Progress display for long operations, shown only on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Creates a bar on stderr for work of `length`, or a spinner if the length is unknown. It is
/// hidden if `quiet` or if stderr is not a terminal.
pub fn bar(length: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(ProgressStyle::with_template(template).expect("the templates are constants"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Creates a spinner for the scan of existing files, which can take long on a slow file system.
pub fn looking(quiet: bool) -> ProgressBar {
    bar(None, "{spinner} looking at the files ({elapsed})", quiet)
}

/// Progress of work that is counted, or whose completed fraction is known.
pub struct Progress(ProgressBar);

impl Progress {
    /// Number of bar steps for a fraction of 1.
    const WHOLE: u64 = 1000;

    /// For work of unknown size.
    pub fn counting(what: &str, quiet: bool) -> Progress {
        Progress(bar(None, &format!("{{spinner}} {{human_pos}} {what} ({{elapsed}})"), quiet))
    }

    /// For work whose completed fraction is known.
    pub fn sharing(what: &str, quiet: bool) -> Progress {
        let template = format!("{what} {{bar:40}} {{percent:>3}} % ({{eta}} left)  {{msg}}");
        Progress(bar(Some(Self::WHOLE), &template, quiet))
    }

    /// Reports `done` items as completed.
    pub fn count(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Reports the completed fraction, 0 to 1.
    pub fn share(&self, done: f64) {
        self.0.set_position((done * Self::WHOLE as f64) as u64);
    }

    /// Shows which step is running.
    pub fn now(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
