//! The first page of `plan`'s output: what changes, what that gains, and what it does not concern,
//! in one table of at most 80 columns for the whole workload.

use std::fmt::Write;

use comfy_table::Table;
use stripewise_plan::{
    ApplicationTimes, Decision, FromMemory, Joint, LeftOut, MoveLimit, Objective, SpaceCurve, SpacePoint,
    StageTimes,
};
use stripewise_report::predictions::Moves;
use stripewise_trace::Meta;
use stripewise_trace::summary::{LISTED_FILES_MAX, MAX_GROUPS};

use super::args::Args;
use super::planned::{Application, Planned, times};
use super::table::{NEGLIGIBLE, about, capitalised, percent};
use crate::commands::place::find;
use crate::output;

/// Maximum number of rows.
const ROWS_MAX: usize = 8;
/// Maximum number of remarks on the chosen layouts.
const REMARKS_MAX: usize = 2;
/// Maximum number of ties that are told below the table.
const TIES_MAX: usize = 3;
/// Maximum number of warnings about executable files.
const WARNINGS_MAX: usize = 2;
/// Maximum widths of a pattern and of the name of a layout, characters.
const PATTERN_WIDTH: usize = 28;
const LAYOUT_WIDTH: usize = 20;
/// Maximum length of the lists of patterns that are used at the same time, characters.
const STAGE_WIDTH: usize = 120;

/// The whole page.
pub fn page(planned: &Planned, moves: Option<Moves>, args: &Args) -> String {
    let mut page = String::new();
    write_page(&mut page, planned, moves, args).expect("a string takes any text");
    page
}

fn write_page(out: &mut String, planned: &Planned, moves: Option<Moves>, args: &Args) -> std::fmt::Result {
    for Application { path, trace, .. } in &planned.applications {
        if let Some(reason) = trace.incomplete() {
            writeln!(out, "{}\n", output::wrapped(&format!("{path}: the trace is incomplete: {reason}")))?;
        }
        if let Some(failure) = trace.meta().failure() {
            writeln!(out, "{}\n", output::wrapped(&format!("{path}: the traced program failed: {failure}")))?;
        }
        for note in &trace.meta().notes {
            writeln!(out, "{}\n", output::wrapped(&format!("{path}: {note}")))?;
        }
    }
    if let Some(refusal) = planned.promise.and_then(|promise| promise.refusal()) {
        writeln!(out, "{}", output::wrapped(&refusal))?;
    }
    writeln!(out, "{}", output::wrapped(&total(planned)))?;
    traced(out, planned)?;
    changes(out, planned)?;
    worth(out, planned)?;
    concerning(out, planned, moves, args)
}

/// The time of all files now and planned, and the least that other choices could take.
fn total(planned: &Planned) -> String {
    let objective = planned.options.objective;
    let what = match objective {
        Objective::Elapsed => "elapsed",
        Objective::Cost => "overall cost",
    };
    let (now_s, planned_s) = times(&planned.decisions, planned.joint.as_ref(), objective);
    let share = 1.0 - planned_s / now_s.max(f64::MIN_POSITIVE);
    let change = match is_promised(planned) {
        true if share < 0.0 => format!("({} more)", percent(-share)),
        true => format!("({} less)", percent(share)),
        false => "by the model".to_owned(),
    };
    let mut text = format!("All files together: {now_s:.3} s {what} now, {planned_s:.3} s planned {change}.");
    if let Some(Joint { bound_s, .. }) = &planned.joint {
        let gap = percent(1.0 - bound_s / planned_s.max(f64::MIN_POSITIVE));
        text += &format!(" No choice of changes worth making takes less than {bound_s:.3} s ({gap} less).");
    }
    text
}

/// How much of the traced runs the plan concerns.
fn traced(out: &mut String, planned: &Planned) -> std::fmt::Result {
    for Application { path, trace, busiest, .. } in &planned.applications {
        let Meta { wall_s, .. } = trace.meta();
        let (io_s, wall_s) = (busiest.ns as f64 / 1e9, wall_s.unwrap_or_default());
        if 0.0 < io_s && io_s < wall_s {
            let of = if planned.applications.len() > 1 { format!("{path}: the") } else { "The".to_owned() };
            let text = format!(
                "{of} busiest process reads, writes and syncs for {io_s:.3} s of a run of {wall_s:.3} s, so no layout makes the \
                 run more than {:.2} times as fast.",
                wall_s / (wall_s - io_s)
            );
            writeln!(out, "{}", output::wrapped(&text))?;
        }
    }
    let mut memory = FromMemory::default();
    planned.workload.file_sets.iter().for_each(|set| memory.add(&set.memory));
    if memory.requests > 0 {
        let all = memory.requests + planned.decisions.iter().map(|decision| decision.requests).sum::<u64>();
        let text = format!(
            "Memory served {} of {all} requests, as their durations show. They do not reach the servers in any layout.",
            memory.requests
        );
        writeln!(out, "{}", output::wrapped(&text))?;
    }
    Ok(())
}

/// Why the pattern that gains most does, a row for each that gets another layout, those that save
/// the most first, and the others in one line.
fn changes(out: &mut String, planned: &Planned) -> std::fmt::Result {
    let objective = planned.options.objective;
    let row = |decision| Row {
        decision,
        now_s: objective.of(&decision.present),
        then_s: objective.of(decision.chosen()),
    };
    let (kept, mut changed): (Vec<Row<'_>>, Vec<Row<'_>>) =
        planned.decisions.iter().map(row).partition(|row| row.decision.keep);
    changed.sort_by(|one, other| other.saved_s().total_cmp(&one.saved_s()));
    let is_one_of_several = planned.decisions.len() > 1;
    if let Some(Row { decision, .. }) = changed.first().or(kept.first()) {
        let of = if is_one_of_several { format!("{}: ", decision.pattern) } else { String::new() };
        writeln!(out, "{}", output::wrapped(&capitalised(&format!("{of}{}.", decision.reason))))?;
    }
    if !changed.is_empty() {
        writeln!(out, "\n{}", output::without_blanks(&table(&changed, is_promised(planned))))?;
    }
    let more = changed.get(ROWS_MAX..).unwrap_or_default();
    if !more.is_empty() {
        let (count, saved_s) = (more.len(), more.iter().map(Row::saved_s).sum::<f64>());
        let which = if is_promised(planned) { format!(", which save {saved_s:.3} s") } else { String::new() };
        writeln!(out, "... and {count} more patterns of files{which} (--candidates, --json)")?;
    }
    ties(out, &changed)?;
    remarks(out, &changed)?;
    if !kept.is_empty() && is_one_of_several {
        let kept_s: f64 = kept.iter().map(|row| row.now_s).sum();
        let plural = if kept.len() == 1 { " of files keeps its" } else { "s of files keep their" };
        writeln!(out, "{} pattern{plural} layout ({kept_s:.3} s).", kept.len())?;
    }
    warnings(out, planned, &changed)?;
    writeln!(out)
}

/// A decision, and the time of its files.
struct Row<'d> {
    decision: &'d Decision,
    now_s: f64,
    then_s: f64,
}

impl Row<'_> {
    fn saved_s(&self) -> f64 {
        self.now_s - self.then_s
    }
}

/// Whether the gains are told: the model knows the present time, or nothing is known of it.
fn is_promised(planned: &Planned) -> bool {
    planned.promise.is_none_or(|promise| promise.saves.is_some())
}

fn table(changed: &[Row<'_>], is_promised: bool) -> Table {
    let mut table = output::table(["files", "planned layout", "s now", "s then", "saves"], [2, 3, 4]);
    for row in changed.iter().take(ROWS_MAX) {
        let Row { decision, now_s, then_s } = row;
        let saves = match is_promised {
            true => format!("{:.0} %", 100.0 * row.saved_s() / now_s.max(f64::MIN_POSITIVE)),
            false => "?".to_owned(),
        };
        let pattern = end_of(&decision.pattern, PATTERN_WIDTH);
        let layout = start_of(&decision.chosen().candidate.name, LAYOUT_WIDTH);
        table.add_row([pattern, layout, format!("{now_s:.3}"), format!("{then_s:.3}"), saves]);
    }
    table
}

/// The ties of the rows but the first one, whose reason has its own.
fn ties(out: &mut String, changed: &[Row<'_>]) -> std::fmt::Result {
    let told = |row: &Row<'_>| {
        let Decision { pattern, tie, .. } = row.decision;
        let told = tie.as_ref()?.told();
        Some(format!("{}: {} is chosen in {told}.", pattern, row.decision.chosen().candidate.name))
    };
    let told: Vec<String> = changed.iter().take(ROWS_MAX).skip(1).filter_map(told).collect();
    told.iter().take(TIES_MAX).try_for_each(|line| writeln!(out, "{}", output::wrapped(line)))?;
    match told.len().saturating_sub(TIES_MAX) {
        0 => Ok(()),
        more => writeln!(out, "... and {more} more ties (--candidates, --json)"),
    }
}

/// What must be known of the chosen layouts: who picks the servers, what copies cost.
fn remarks(out: &mut String, changed: &[Row<'_>]) -> std::fmt::Result {
    let all = changed.iter().take(ROWS_MAX).flat_map(|row| &row.decision.chosen().candidate.remarks);
    let mut remarks: Vec<&String> = Vec::new();
    all.for_each(|remark| {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    });
    for remark in remarks.iter().take(REMARKS_MAX) {
        writeln!(out, "{}", output::wrapped(&capitalised(&format!("{remark}."))))?;
    }
    match remarks.len().saturating_sub(REMARKS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "... and {more} more remarks (--candidates, --json)"),
    }
}

/// Warnings about executable files that would be managed.
fn warnings(out: &mut String, planned: &Planned, changed: &[Row<'_>]) -> std::fmt::Result {
    let mut warnings = changed.iter().filter_map(|row| planned.executables.get(&row.decision.pattern));
    for warning in warnings.by_ref().take(WARNINGS_MAX) {
        writeln!(out, "{}", output::wrapped(&format!("WARNING: {warning}.")))?;
    }
    match warnings.count() {
        0 => Ok(()),
        more => writeln!(out, "... and {more} more such warnings (--candidates, --json)"),
    }
}

/// What waits, and what other sizes of the tiers and other limits would gain.
fn worth(out: &mut String, planned: &Planned) -> std::fmt::Result {
    if planned.workload.has_too_many_files() {
        let text = format!(
            "Sets of files are not divided by their use, because there are more than {LISTED_FILES_MAX} files; some of a \
             set's files stand for the others."
        );
        writeln!(out, "{}", output::wrapped(&text))?;
    }
    let Some(Joint { planned_s, space, waits, stages, moving, curves, .. }) = &planned.joint else {
        return Ok(());
    };
    if planned.decisions.len() > MAX_GROUPS {
        let text = "So many sets of files are planned by what those that are used alike have in common, and as if used one \
                    after another.";
        writeln!(out, "{}", output::wrapped(text))?;
    }
    for (cause, seconds) in waits.notable(*planned_s) {
        writeln!(out, "{cause}: {seconds:.3} s of the planned time.")?;
    }
    for StageTimes { patterns, now_s, planned_s } in stages {
        let patterns = start_of(&patterns.join(", "), STAGE_WIDTH);
        let text = format!(
            "Used at the same time by different processes: {patterns}: {now_s:.3} s now, {planned_s:.3} s planned."
        );
        writeln!(out, "{}", output::wrapped(&text))?;
    }
    for value in space {
        let (unit, saves_s) = value.worth();
        if saves_s > NEGLIGIBLE * planned_s {
            writeln!(
                out,
                "Another {} on {} would save at most about {saves_s:.3} s.",
                about(unit),
                value.tier
            )?;
        }
    }
    for line in curves.iter().filter_map(sizes).chain(moving.as_ref().and_then(|limit| held(limit, *planned_s)))
    {
        writeln!(out, "{}", output::wrapped(&line))?;
    }
    Ok(())
}

/// Describes the sizes of a tier that change the time of all files.
fn sizes(curve: &SpaceCurve) -> Option<String> {
    let enough = curve.enough().map(|point| point.bytes).filter(|enough| *enough > curve.bytes);
    let other = |SpacePoint { bytes, planned_s, .. }: SpacePoint| {
        let more = if Some(bytes) == enough { " (more saves less than 1 %)" } else { "" };
        format!("with {} {planned_s:.3} s{more}", about(bytes))
    };
    let others: Vec<String> = curve.telling().into_iter().map(other).collect();
    let now = about(curve.bytes);
    (!others.is_empty())
        .then(|| format!("Space on {} (now {now}): {}, at most.", curve.tier, others.join(", ")))
}

/// Describes a limit on moving that keeps files where they are, and what more moving is worth.
fn held(limit: &MoveLimit, planned_s: f64) -> Option<String> {
    if limit.unlimited_bytes <= limit.bytes {
        return None;
    }
    let (unit, saves_s) = limit.worth();
    let worth = match saves_s > NEGLIGIBLE * planned_s {
        true => format!("; moving another {} would save at most about {saves_s:.3} s", about(unit)),
        false => String::new(),
    };
    let (bytes, unlimited) = (about(limit.bytes), about(limit.unlimited_bytes));
    Some(format!("Moving is limited to {bytes}, and without a limit {unlimited} would be moved{worth}."))
}

/// What each application gains, what is moved, and where all this comes from.
fn concerning(out: &mut String, planned: &Planned, moves: Option<Moves>, args: &Args) -> std::fmt::Result {
    for Application { path, times, seconds, .. } in &planned.applications {
        if let Some(ApplicationTimes { now_s, planned_s }) = seconds {
            let runs = if *times == 1 { String::new() } else { format!(", {times} runs") };
            writeln!(out, "{path}{runs}: {now_s:.3} s now, {planned_s:.3} s planned")?;
        }
    }
    if args.only.is_empty() && planned.left_out.files > 0 {
        writeln!(out, "{}", output::wrapped(&others(planned.left_out)))?;
    }
    if let Some(moves) = moves {
        writeln!(out, "`place` moves {}.", find::format(moves))?;
    }
    let emulated = planned.cluster.tiers.iter().filter(|tier| tier.emulate);
    let emulated: Vec<&str> = emulated.map(|tier| tier.name.as_str()).collect();
    if !emulated.is_empty() {
        writeln!(out, "Emulated servers: {}.", emulated.join(", "))?;
    }
    match &planned.profile {
        Some(path) => writeln!(out, "Server parameters as measured: {}", path.display())?,
        None => writeln!(out, "Server parameters as written in {}", args.cluster.path.display())?,
    }
    if !args.candidates {
        writeln!(out, "--candidates shows the requests on each pattern of files, and all candidates.")?;
    }
    writeln!(out, "Plan written to {}", args.output.display())
}

/// Describes what the plan does not concern.
fn others(left_out: LeftOut) -> String {
    let LeftOut { files, .. } = left_out;
    let plural = if files == 1 { " stays as it is" } else { "s stay as they are" };
    format!(
        "{files} other file{plural}, {} of the I/O time: logs, programs, sources, settings, redirected output. --only \
         plans them.",
        percent(left_out.share())
    )
}

/// The last `width` characters of a text, with dots if it has more.
fn end_of(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    format!("...{}", text.chars().skip(length + 3 - width).collect::<String>())
}

/// The first `width` characters of a text, with dots if it has more.
fn start_of(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    format!("{}...", text.chars().take(width.saturating_sub(3)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_less_telling_end() {
        assert_eq!(end_of("/scratch/u/run<n>/out", 12), "...n<n>/out".replace("...n", "...un"));
        assert_eq!((end_of("/a/ü", 4), end_of("/a/üb", 4)), ("/a/ü".into(), "...b".into()));
        assert_eq!((start_of("1-DH", 4), start_of("1-DH on ssd", 7)), ("1-DH".into(), "1-DH...".into()));
    }
}
