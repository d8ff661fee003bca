//! The text of an advice: the verdict, the job, the findings with their commands, the notes.

use std::fmt::Write;

use stripewise_advise::text::{at_most, bytes, count, number, seconds};
use stripewise_advise::{Advice, Command, Finding, Origin, Severity};

use crate::output::wrapped;

/// Maximum number of findings that are printed.
const FINDINGS_MAX: usize = 12;
/// Maximum number of layouts that stay and are printed.
const KEPT_MAX: usize = 3;

/// The whole page.
pub fn page(advice: &Advice) -> String {
    let mut out = String::new();
    write_page(&mut out, advice).expect("a string takes any text");
    out
}

fn write_page(out: &mut String, advice: &Advice) -> std::fmt::Result {
    for line in &advice.lines {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{}", wrapped(&job(advice)))?;
    writeln!(out, "{}", wrapped(&storage(advice)))?;
    if advice.job.left_out.files > 0 {
        let left_out = advice.job.left_out;
        let text = format!(
            "Left out: {} of software, logs, settings or standard streams ({}, {} in all processes).",
            count(left_out.files, "file"),
            bytes(left_out.bytes),
            seconds(left_out.time_s)
        );
        writeln!(out, "{}", wrapped(&text))?;
    }
    for (index, finding) in advice.findings.iter().take(FINDINGS_MAX).enumerate() {
        writeln!(out)?;
        write_finding(out, index + 1, finding)?;
    }
    if advice.findings.len() > FINDINGS_MAX {
        writeln!(out, "\n{} more findings are in the output of --json.", advice.findings.len() - FINDINGS_MAX)?;
    }
    write_kept(out, advice)?;
    for note in &advice.notes {
        writeln!(out, "\n{}", wrapped(&format!("Note: {note}.")))?;
    }
    Ok(())
}

fn job(advice: &Advice) -> String {
    let job = &advice.job;
    let run = job
        .runtime_s
        .map_or("run time not known".to_owned(), |runtime_s| format!("{} run", seconds(runtime_s)));
    format!(
        "Job: {}, {run}; {} read, {} written, {}.",
        if job.processes == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", number(job.processes))
        },
        bytes(job.bytes_read),
        bytes(job.bytes_written),
        count(job.files, "data file")
    )
}

fn storage(advice: &Advice) -> String {
    let storage = &advice.storage;
    let mut text = format!("File system: {}", storage.system);
    if let Some(mount) = &storage.mount {
        let _ = write!(text, " at {mount}");
    }
    match &storage.origin {
        Origin::Given(spec) => {
            let _ = write!(text, " (--fs {spec})");
        }
        Origin::Cluster(name) => {
            let _ = write!(text, " ({name})");
        }
        Origin::Deduced => text += ", deduced from the log",
        Origin::Unknown => return format!("{text}: the log has no mount table; name it with --fs."),
    }
    if storage.servers > 0 {
        let assumed = if storage.servers_are_assumed { " (assumed: the log does not tell)" } else { "" };
        let _ = write!(text, "; {} servers{assumed}; {}", storage.servers, storage.speed);
    }
    text + "."
}

fn write_finding(out: &mut String, number: usize, finding: &Finding) -> std::fmt::Result {
    let severity = match finding.severity {
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Note => "note",
    };
    let concerned = match finding.at_most_share {
        Some(share) => format!("{} of the run", at_most(share)),
        None if finding.at_most_s > 0.0 => format!("at most {}", seconds(finding.at_most_s)),
        None => "share not known".to_owned(),
    };
    let what = format!("{number}. [{severity}, {concerned}] {}", finding.what);
    writeln!(out, "{}", wrapped(&what))?;
    writeln!(out, "{}", indented(&format!("why: {}", finding.why)))?;
    if let Some(speedup) = finding.speedup {
        writeln!(out, "{}", indented(&format!("model: {speedup:.1} times as fast")))?;
    }
    writeln!(out, "{}", indented(&format!("do:  {}", finding.remedy)))?;
    finding.commands.iter().try_for_each(|command| write_command(out, command))
}

/// A command is not wrapped, so that it can be pasted.
fn write_command(out: &mut String, command: &Command) -> std::fmt::Result {
    writeln!(out, "     # {}\n     {}", command.what, command.text)
}

fn indented(text: &str) -> String {
    wrapped(&format!("   {text}")).replace("\n  ", "\n     ")
}

fn write_kept(out: &mut String, advice: &Advice) -> std::fmt::Result {
    let kept: Vec<_> = advice.layouts.iter().filter(|layout| layout.proposed.is_none()).collect();
    for layout in kept.iter().take(KEPT_MAX) {
        let how = if layout.is_present_known { "" } else { ", by default" };
        let text = format!("Layout kept: {} ({}{how}): {}.", layout.pattern, layout.present, layout.reason);
        writeln!(out, "\n{}", wrapped(&text))?;
    }
    if kept.len() > KEPT_MAX {
        writeln!(out, "\n{} more patterns of files keep their layouts.", kept.len() - KEPT_MAX)?;
    }
    Ok(())
}
