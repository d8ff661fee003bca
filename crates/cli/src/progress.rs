//! How far long work is, shown only when somebody watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr for work of this length, or a spinner if that is not known; hidden if `quiet`, and unless stderr is a
/// terminal.
pub fn bar(length: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(ProgressStyle::with_template(template).expect("the templates are constants"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A spinner while existing files are looked at, which for many on a slow file system takes its time.
pub fn looking(quiet: bool) -> ProgressBar {
    bar(None, "{spinner} looking at the files ({elapsed})", quiet)
}

/// Work that is counted, or whose share is known.
pub struct Progress(ProgressBar);

impl Progress {
    /// Steps of a share.
    const WHOLE: u64 = 1000;

    /// For work of unknown size.
    pub fn counting(what: &str, quiet: bool) -> Progress {
        Progress(bar(None, &format!("{{spinner}} {{human_pos}} {what} ({{elapsed}})"), quiet))
    }

    /// For work whose done share is known.
    pub fn sharing(what: &str, quiet: bool) -> Progress {
        let template = format!("{what} {{bar:40}} {{percent:>3}} % ({{eta}} left)  {{msg}}");
        Progress(bar(Some(Self::WHOLE), &template, quiet))
    }

    /// So many are done.
    pub fn count(&self, done: u64) {
        self.0.set_position(done);
    }

    /// This share, 0 to 1, is done.
    pub fn share(&self, done: f64) {
        self.0.set_position((done * Self::WHOLE as f64) as u64);
    }

    /// What is being done.
    pub fn now(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
