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

/// Creates a spinner for work of unknown size; its position is what is done.
pub fn counting(what: &str, quiet: bool) -> ProgressBar {
    bar(None, &format!("{{spinner}} {{human_pos}} {what} ({{elapsed}})"), quiet)
}

/// Number of bar steps for a fraction of 1.
const WHOLE: u64 = 1000;

/// Creates a bar for work whose completed fraction is known; its message is the step that runs.
pub fn sharing(what: &str, quiet: bool) -> ProgressBar {
    let template = format!("{what} {{bar:40}} {{percent:>3}} % ({{eta}} left)  {{msg}}");
    bar(Some(WHOLE), &template, quiet)
}

/// Shows the completed fraction, 0 to 1, on a bar of [`sharing`].
pub fn share(bar: &ProgressBar, fraction: f64) {
    bar.set_position((fraction * WHOLE as f64) as u64);
}
