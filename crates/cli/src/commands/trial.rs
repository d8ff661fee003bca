//! `stripewise try` measures a plan on the real command: before, after, and back if it is no
//! faster.
//!
//! It only drives other commands ([`steps`]): `trace`, `plan`, `place`, `run`, `export`. The
//! directory of a try has all that is needed to continue it or to undo it ([`state`]).

mod args;
mod compare;
mod measure;
mod page;
mod state;
mod steps;
mod undo;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, anyhow, ensure};
use stripewise_cluster::{KEEP, Plan};
use stripewise_console::interrupt;
use stripewise_report::Predictions;

pub use args::Args;
use compare::{Compared, is_clear, is_precise};
use measure::Run;
use page::Outcome;
use state::{Phase, Side, Trial};
use steps::{Step, Stop, drop_caches};

use crate::{files, output};

/// Returns the exit code of the command if that failed.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::ask_and_pass_on();
    if args.undo {
        return undo_all(args);
    }
    ensure!(
        args.at_most >= args.runs,
        "--at-most {} is less than --runs {}; raise it, or lower --runs",
        args.at_most,
        args.runs
    );
    let mut trial = Trial::begin(args)?;
    match proceed(&mut trial, args) {
        Ok(outcome) => {
            match args.json {
                true => output::json(&page::json(&outcome, &trial))?,
                false => print!("{}", page::text(&outcome, &trial)),
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(stop) => stopped(&mut trial, stop, args),
    }
}

/// All steps that are left.
fn proceed(trial: &mut Trial, args: &Args) -> Result<Outcome, Stop> {
    let mut plan = None;
    if trial.state.phase == Phase::Before {
        let enough = |runs: &[Run]| is_precise(runs);
        runs(trial, Side::Before, args, None, &enough)?;
        let made = planned(trial, args)?;
        if made.rules.iter().all(|rule| rule.scheme == KEEP) {
            trial.reach(Phase::Unchanged)?;
            return Ok(Outcome::Unchanged(predictions(trial)?));
        }
        if !trial.state.native {
            trial.state.former = undo::record(trial, &made)?;
        }
        note(
            args,
            &format!("placing the files; at any time from now on, `{}` undoes it", trial.undo_command()),
        );
        trial.reach(Phase::Changed)?;
        plan = Some(made);
    }
    let plan = plan.map_or_else(|| files::plan(&trial.plan()), Ok)?;
    // Also if an earlier try did it: files that are in place are left alone.
    place(trial, args)?;
    let before = kept_runs(trial, Side::Before, args.at_most.max(args.runs), Some(&plan))?;
    let enough = |after: &[Run]| is_clear(&before, after);
    let after = runs(trial, Side::After, args, Some(&plan), &enough)?;
    let compared = Compared::of(&before, &after);
    if compared.is_faster() {
        trial.reach(Phase::Kept)?;
        return Ok(Outcome::Kept(compared, predictions(trial)?));
    }
    note(args, "giving the files their layouts back");
    undo::undo(trial, args.quiet)?;
    trial.reach(Phase::Undone)?;
    Ok(Outcome::Undone(compared, predictions(trial)?))
}

/// Runs the command until there are enough runs, those of an interrupted try included.
fn runs(
    trial: &Trial,
    side: Side,
    args: &Args,
    plan: Option<&Plan>,
    enough: &dyn Fn(&[Run]) -> bool,
) -> Result<Vec<Run>, Stop> {
    let mut runs = kept_runs(trial, side, args.at_most, plan)?;
    while runs.len() < args.at_most as usize && (runs.len() < args.runs as usize || !enough(&runs)) {
        let number = runs.len() as u32 + 1;
        note(args, &format!("run {number} {} the change", side.name()));
        let run = traced_run(trial, (side, number), args, plan)?;
        note(args, &format!("  {:.3} s, of which {:.3} s of I/O", run.wall_s, run.io_s));
        runs.push(run);
    }
    Ok(runs)
}

/// The runs whose traces are there already.
fn kept_runs(trial: &Trial, side: Side, at_most: u32, plan: Option<&Plan>) -> anyhow::Result<Vec<Run>> {
    let traces = (1..=at_most).map(|number| trial.trace(side, number));
    traces.take_while(|trace| trace.exists()).map(|trace| measure::run(&trace, plan)).collect()
}

/// Runs the command once. Only a run that succeeds leaves a trace.
fn traced_run(
    trial: &Trial,
    (side, number): (Side, u32),
    args: &Args,
    plan: Option<&Plan>,
) -> Result<Run, Stop> {
    let trace = trial.trace(side, number);
    let unfinished = trace.with_extension("trace.unfinished");
    let spool = trace.with_extension("trace.spool");
    for path in [&unfinished, &spool] {
        // An interrupted run may have left them.
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_dir_all(path);
    }
    if args.cold {
        cool(args);
    }
    let over = match side {
        Side::Before => trial.state.over.then(|| trial.over()),
        Side::After => (!trial.state.native).then(|| trial.plan()),
    };
    let mut words: Vec<OsString> = ["trace", "--quiet", "--output"].map(OsString::from).into();
    words.extend([unfinished.clone().into(), "--spool".into(), spool.into(), "--".into()]);
    if let Some(plan) = over {
        let program = std::env::current_exe().context("the path of this executable is not known")?;
        words.extend([program.into(), "run".into(), "--plan".into(), plan.into(), "--".into()]);
    }
    words.extend(args.command.iter().cloned());
    let status = Step::new(words).on_stderr(args.json).run()?;
    if !status.success() {
        return Err(Stop::Command(output::exit_code(status)));
    }
    let run = measure::run(&unfinished, plan)?;
    std::fs::rename(&unfinished, &trace)
        .with_context(|| format!("{} cannot be renamed", unfinished.display()))?;
    Ok(run)
}

/// Empties the page cache, or says why not.
fn cool(args: &Args) {
    if let Err(error) = drop_caches() {
        note(
            args,
            &format!(
                "--cold: the page cache stays as it is ({error}), so it may serve the reads; only root may empty it"
            ),
        );
    }
}

/// Makes the plan, unless the user gave one.
fn planned(trial: &Trial, args: &Args) -> Result<Plan, Stop> {
    if args.plan.is_none() {
        note(args, "planning");
        let mut words: Vec<OsString> = vec!["plan".into(), trial.trace(Side::Before, 1).into()];
        words.extend(["--json".into(), "--output".into(), trial.plan().into()]);
        words.extend(["--cluster".into(), args.cluster.path.clone().into()]);
        words.extend(args.cluster.profile.iter().flat_map(|path| ["--profile".into(), path.clone().into()]));
        words.extend(args.scheme.iter().flat_map(|scheme| ["--scheme".into(), scheme.into()]));
        words.extend(args.min_gain.iter().flat_map(|gain| ["--min-gain".into(), gain.into()]));
        words.extend(args.only.iter().flat_map(|only| ["--only".into(), only.into()]));
        words.extend(args.native.then(|| "--native".into()));
        words.extend(args.quiet.then(|| "--quiet".into()));
        Step::new(words).into_file(&trial.predictions())?.succeed()?;
    }
    Ok(files::plan(&trial.plan())?)
}

fn place(trial: &Trial, args: &Args) -> Result<(), Stop> {
    let words = [Some("place"), trial.state.native.then_some("--native"), args.yes.then_some("--yes")];
    let quiet = args.quiet.then_some("--quiet");
    Step::new(words.into_iter().flatten()).with(quiet).with([trial.plan()]).silently().succeed()
}

/// What was predicted, if the plan was made here.
fn predictions(trial: &Trial) -> anyhow::Result<Option<Predictions>> {
    let path = trial.predictions();
    path.exists().then(|| files::parsed(&path, Predictions::parse)).transpose()
}

/// Says in which state everything is, after the files were given back their layouts if the command
/// or a step failed.
fn stopped(trial: &mut Trial, stop: Stop, args: &Args) -> anyhow::Result<ExitCode> {
    let is_changed = trial.state.phase == Phase::Changed;
    match stop {
        Stop::Interrupted => {
            eprintln!("stripewise: {}", page::interrupted(trial));
            interrupt::end()
        }
        Stop::Command(code) if !is_changed => {
            eprintln!("stripewise: the command failed (exit code {code}), so nothing was changed");
            Ok(code.into())
        }
        Stop::Command(code) => {
            eprintln!("stripewise: the command failed over the new layouts (exit code {code})");
            back(trial, args)?;
            Ok(code.into())
        }
        Stop::Failed(error) if !is_changed => Err(error.context("nothing was changed")),
        Stop::Failed(error) => {
            eprintln!("stripewise: {error:#}");
            back(trial, args)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Gives the files their layouts back after a failure.
fn back(trial: &mut Trial, args: &Args) -> anyhow::Result<()> {
    match undo::undo(trial, args.quiet) {
        Ok(()) => {
            trial.reach(Phase::Undone)?;
            eprintln!("stripewise: the files have the layouts back that they had before");
            Ok(())
        }
        Err(Stop::Interrupted) => {
            eprintln!("stripewise: {}", page::interrupted(trial));
            interrupt::end()
        }
        Err(Stop::Command(code)) => Err(anyhow!("a step ended with exit code {code}")),
        Err(Stop::Failed(error)) => {
            let remedy = format!("not all files have their layouts back; `{}` continues", trial.undo_command());
            Err(error.context(remedy))
        }
    }
}

/// `try --undo`.
fn undo_all(args: &Args) -> anyhow::Result<ExitCode> {
    let mut trial = Trial::open(&args.dir)?;
    if matches!(trial.state.phase, Phase::Changed | Phase::Kept) {
        // A second undo continues even after one that was interrupted.
        trial.reach(Phase::Changed)?;
        back(&mut trial, args)?;
    } else {
        eprintln!("stripewise: the try in {} has changed nothing, or was undone", trial.dir.display());
    }
    if args.json {
        output::json(&page::state_json(&trial))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is done.
fn note(args: &Args, line: &str) {
    if !args.quiet {
        eprintln!("stripewise: {line}");
    }
}
