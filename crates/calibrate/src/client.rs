//! What calls on files cost the client itself: the trials, and the fit of `a + b * n`.
//!
//! A trial is a process that makes the calls of an application, once on plain files and once on
//! managed ones, through the preload library. It writes one line per round and number of objects;
//! the lines of all rounds together are fitted.

use std::convert::Infallible;
use std::fs::OpenOptions;
use std::io::{Error, Result, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stripewise_cluster::{CallFit, MeasuredClient};
use stripewise_model::{ByCall, Call, CallCost};
use stripewise_random::Random;
use stripewise_sys::{Real, Sys};

use crate::fit::fit_line;
use crate::stats::summarize;

/// Numbers of objects of the files that are measured. The line predicts the time of larger numbers.
pub const OBJECTS: [u64; 5] = [1, 2, 4, 8, 16];
/// Bytes of a stripe, and of a request for each object that it touches. So few are copied in no
/// time.
pub const STRIPE: u64 = 512;

/// Minimum and maximum number of rounds. Each round visits every number of objects, in a random
/// order, so that changes over time are not mistaken for effects of the number of objects.
const ROUNDS_MIN: u32 = 5;
const ROUNDS_MAX: u32 = 400;
/// Number of files of each kind in a round.
const FILES: usize = 4;
/// Number of requests that are timed together: a clock takes as long as a request.
const REQUESTS: u32 = 8;

/// The time of each call on files with as many objects in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number of objects of the file; 0 for a plain file.
    pub objects: u64,
    /// Seconds per call.
    pub seconds: ByCall<f64>,
}

/// What the paths of files with this number of objects begin with in the directory of a trial; a
/// number follows.
pub fn trial_prefix(directory: &Path, objects: u64) -> PathBuf {
    directory.join(format!("objects-{objects}-"))
}

fn trial_path(directory: &Path, objects: u64, number: usize) -> PathBuf {
    let mut path = trial_prefix(directory, objects).into_os_string();
    path.push(number.to_string());
    path.into()
}

/// Runs the trials in a process whose calls are those of an application, for about so many seconds.
/// Writes a line of JSON per round and number of objects. `managed`: the preload library is loaded,
/// and the plan has a rule for the files of each prefix ([`trial_prefix`]).
///
/// # Errors A call fails; a file is not managed although it should be.
pub fn run_trials(directory: &Path, managed: bool, seconds: f64, out: &mut dyn Write) -> Result<()> {
    let mut all = if managed { OBJECTS.to_vec() } else { vec![0] };
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut random = Random(0xc11e);
    for round in 0..=ROUNDS_MAX {
        if round > ROUNDS_MIN && Instant::now() >= until {
            break;
        }
        random.shuffle(&mut all);
        for &objects in &all {
            let trial = one_round(directory, objects)?;
            // The first round opens targets, and loads code.
            if round > 0 {
                serde_json::to_writer(&mut *out, &trial)?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

/// Makes a few files, and then uses one after the other: a program does not open the same file
/// again and again.
fn one_round(directory: &Path, objects: u64) -> Result<Trial> {
    let path = |number| trial_path(directory, objects, number);
    let mut samples = ByCall::<Vec<f64>>::default();
    for number in 0..FILES {
        create_and_write(&path(number), objects, &mut samples)?;
    }
    for number in 0..FILES {
        open_and_read(&path(number), objects, &mut samples)?;
    }
    for number in 0..FILES {
        let (seconds, removed) = timed(|| std::fs::remove_file(path(number)));
        removed?;
        samples.unlink.push(seconds);
    }
    let median = |call| Ok::<_, Infallible>(summarize(samples.of_call(call).clone(), false).p50_s);
    let Ok(seconds) = ByCall::try_of(median);
    Ok(Trial { objects, seconds })
}

/// What the first request takes longer than the following ones is a part of the creation.
fn create_and_write(path: &Path, objects: u64, samples: &mut ByCall<Vec<f64>>) -> Result<()> {
    let create = || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    let (create_s, file) = timed(create);
    let file = file?;
    if objects > 0 {
        ensure_managed(path)?;
    }
    let bytes = vec![0x5a; bytes_of(objects)];
    let (first_s, written) = timed(|| file.write_all_at(&bytes, 0));
    written?;
    let write_s = timed_requests(|| file.write_all_at(&bytes, 0))?;
    samples.write.push(write_s);
    samples.create.push(create_s + (first_s - write_s).max(0.0));
    samples.close.push(timed(|| drop(file)).0);
    Ok(())
}

/// What the first request takes longer than the following ones is a part of the open.
fn open_and_read(path: &Path, objects: u64, samples: &mut ByCall<Vec<f64>>) -> Result<()> {
    let mut bytes = vec![0; bytes_of(objects)];
    let (stat_s, stat) = timed(|| std::fs::metadata(path));
    if stat?.len() != bytes.len() as u64 {
        return Err(Error::other(format!("{}: the size is wrong", path.display())));
    }
    let (open_s, file) = timed(|| OpenOptions::new().read(true).write(true).open(path));
    let file = file?;
    let (first_s, read) = timed(|| file.read_exact_at(&mut bytes, 0));
    read?;
    let read_s = timed_requests(|| file.read_exact_at(&mut bytes, 0))?;
    samples.stat.push(stat_s);
    samples.read.push(read_s);
    samples.open.push(open_s + (first_s - read_s).max(0.0));
    samples.close.push(timed(|| drop(file)).0);
    Ok(())
}

/// Bytes of a file, and of each request on it, which touches all objects.
fn bytes_of(objects: u64) -> usize {
    (objects.max(1) * STRIPE) as usize
}

/// Fails if the library is not loaded, so that plain files are never measured as managed ones. The
/// kernel's own answer shows the anchor, to which no user may write.
fn ensure_managed(path: &Path) -> Result<()> {
    let stat = Real.stat_at(None, path, false)?;
    if stat.st_mode & 0o222 == 0 {
        return Ok(());
    }
    Err(Error::other(format!(
        "{}: the file is not managed; the preload library is not at work",
        path.display()
    )))
}

fn timed<T>(call: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let result = call();
    (began.elapsed().as_secs_f64(), result)
}

/// Seconds of each of several requests.
fn timed_requests(mut request: impl FnMut() -> Result<()>) -> Result<f64> {
    let (seconds, result) = timed(|| (0..REQUESTS).try_for_each(|_| request()));
    result.map(|()| seconds / f64::from(REQUESTS))
}

/// What calls cost on the files of one tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientReport {
    /// The tier.
    pub tier: String,
    /// One report per kind of call.
    pub calls: Vec<CallReport>,
}

/// What one kind of call costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReport {
    /// The call.
    pub call: Call,
    /// a, b, and the time on a plain file.
    #[serde(flatten)]
    pub cost: CallCost,
    /// Standard error of a, seconds.
    pub base_spread_s: f64,
    /// Standard error of b, seconds.
    pub per_object_spread_s: f64,
    /// Root mean square of (measured median - fit) / fit over the numbers of objects.
    pub residual_relative: f64,
    /// Number of measurements on managed files.
    pub samples: u64,
    /// The median time by number of objects, seconds.
    pub medians: Vec<(u64, f64)>,
}

impl ClientReport {
    /// The fit of the trials of a tier; `None` if a number of objects, or the plain file, was not
    /// measured.
    pub fn of(tier: &str, trials: &[Trial]) -> Option<Self> {
        let calls = Call::ALL.map(|call| CallReport::of(call, trials));
        Some(Self { tier: tier.to_owned(), calls: calls.into_iter().collect::<Option<_>>()? })
    }

    /// The part of the report that a profile keeps.
    pub fn measured(&self) -> MeasuredClient {
        let fit = |call: Call| {
            let CallReport { cost, base_spread_s, per_object_spread_s, residual_relative, samples, .. } =
                self.calls[call as usize];
            Ok::<_, Infallible>(CallFit {
                cost,
                base_spread_s,
                per_object_spread_s,
                residual_relative,
                samples,
            })
        };
        let Ok(fits) = ByCall::try_of(fit);
        MeasuredClient { objects: OBJECTS[OBJECTS.len() - 1], fits }
    }
}

impl CallReport {
    /// Medians are fitted: one call in a hundred takes ten times as long.
    fn of(call: Call, trials: &[Trial]) -> Option<Self> {
        let median_of = |objects: u64| {
            let of_files = trials.iter().filter(|trial| trial.objects == objects);
            let samples_s: Vec<f64> = of_files.map(|trial| *trial.seconds.of_call(call)).collect();
            (!samples_s.is_empty()).then(|| summarize(samples_s, false).p50_s)
        };
        let plain_s = median_of(0)?;
        let medians: Option<Vec<(u64, f64)>> =
            OBJECTS.iter().map(|&objects| Some((objects, median_of(objects)?))).collect();
        let medians = medians?;
        let line = fit_line(&medians);
        Some(Self {
            call,
            cost: CallCost { base_s: line.startup_s, per_object_s: line.per_byte_s, plain_s },
            base_spread_s: line.startup_error_s,
            per_object_spread_s: line.per_byte_error_s,
            residual_relative: line.residual_relative,
            samples: trials.iter().filter(|trial| trial.objects > 0).count() as u64,
            medians,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of calls that take `a + b * n`, of which one in ten is delayed.
    fn trials(base_s: f64, per_object_s: f64, rounds: u32) -> Vec<Trial> {
        let trial = |(objects, round): (u64, u32)| {
            let delayed = if round % 10 == 7 { 30.0 } else { 1.0 };
            let seconds_s = if objects == 0 { 1e-6 } else { base_s + objects as f64 * per_object_s };
            let Ok(seconds) = ByCall::try_of(|_| Ok::<_, Infallible>(delayed * seconds_s));
            Trial { objects, seconds }
        };
        let all = [0].into_iter().chain(OBJECTS);
        all.flat_map(|objects| (0..rounds).map(move |round| trial((objects, round)))).collect()
    }

    #[test]
    fn a_line_is_found_in_spite_of_delays() {
        let report = ClientReport::of("hdd", &trials(2e-5, 7e-6, 20)).unwrap();
        for call in &report.calls {
            assert!((call.cost.base_s / 2e-5 - 1.0).abs() < 1e-9, "{call:?}");
            assert!((call.cost.per_object_s / 7e-6 - 1.0).abs() < 1e-9, "{call:?}");
            assert_eq!((call.cost.plain_s, call.samples), (1e-6, 100));
        }
        let measured = report.measured();
        assert_eq!((measured.objects, measured.costs().stat), (16, report.calls[3].cost));
    }

    #[test]
    fn without_a_measurement_there_is_no_figure() {
        let all = trials(2e-5, 7e-6, 3);
        let without =
            |objects| all.iter().filter(|trial| trial.objects != objects).copied().collect::<Vec<_>>();
        assert_eq!(ClientReport::of("hdd", &without(0)), None);
        assert_eq!(ClientReport::of("hdd", &without(8)), None);
        assert_eq!(ClientReport::of("hdd", &[]), None);
    }

    #[test]
    fn plain_files_are_tried_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        run_trials(directory.path(), false, 0.0, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let trials: Vec<Trial> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(trials.len(), ROUNDS_MIN as usize);
        assert!(trials.iter().all(|trial| trial.objects == 0 && *trial.seconds.of_call(Call::Open) > 0.0));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn plain_files_are_not_taken_for_managed_ones() {
        let directory = tempfile::tempdir().unwrap();
        let error = run_trials(directory.path(), true, 0.0, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("not managed"), "{error}");
    }
}
