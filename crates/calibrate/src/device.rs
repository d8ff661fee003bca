//! Measurement of one server.

use std::path::Path;
use std::sync::Arc;
use stripewise_random::Random;

use stripewise_model::{Access, ClassParams, Op};
use stripewise_sys::{Result as SysResult, SysRef};
use stripewise_target::emulate::pace::{paced, settle};
use stripewise_target::{Emulation, Server, Target};

use crate::error::CalibrateError;
use crate::random::scattered;
use crate::report::{IoMode, KindReport, ServerReport};
use crate::stats::{summarize, summarize_constant};
use crate::testfile::{Buffer, TestFile};

/// The thoroughness of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Request sizes, bytes, multiples of 4096.
    pub sizes: Vec<u64>,
    /// Maximum number of requests per size and kind, as time permits.
    pub repeats: u64,
    /// Time per size and kind, seconds. Each round measures at least two samples, regardless of
    /// their duration.
    pub seconds_per_point: f64,
    /// Size of the test file, bytes.
    pub file_size: u64,
    /// Number of rounds. Each round visits every size, in a random order, so that changes over time
    /// are not mistaken for effects of size.
    pub rounds: u32,
}

impl Options {
    /// 4 KiB to 4 MiB in powers of two.
    pub fn default_sizes() -> Vec<u64> {
        (12..=22).map(|shift| 1 << shift).collect()
    }

    /// Thousands of repeats; about two minutes per server.
    pub fn thorough() -> Self {
        let (repeats, seconds_per_point, file_size, rounds) = (4000, 3.0, 256 << 20, 4);
        Self { sizes: Self::default_sizes(), repeats, seconds_per_point, file_size, rounds }
    }

    /// About ten seconds per server.
    pub fn quick() -> Self {
        let (repeats, seconds_per_point, file_size, rounds) = (1000, 0.2, 64 << 20, 2);
        Self { sizes: Self::default_sizes(), repeats, seconds_per_point, file_size, rounds }
    }

    /// # Errors
    /// Values with which no measurement is possible, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        let text = stripewise_cluster::size::format;
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        if let Some(&size) = self.sizes.iter().find(|&&size| size == 0 || size % 4096 != 0) {
            return Err(format!("size {} is not a multiple of 4K, as direct I/O needs it", text(size)));
        }
        if self.sizes.len() < 3 {
            return Err("at least 3 sizes are needed to fit a line and see whether it fits".to_owned());
        }
        if self.file_size < largest * SLOTS_MIN || self.file_size > 1 << 50 {
            let least = text(largest * SLOTS_MIN);
            return Err(format!(
                "file size {} must be at least {least}, and at most 1024T",
                text(self.file_size)
            ));
        }
        if self.repeats < 2 || self.rounds == 0 {
            return Err("at least 2 repeats and 1 round are needed".to_owned());
        }
        if !(self.seconds_per_point > 0.0 && self.seconds_per_point < 1e6) {
            return Err(format!("{} seconds per point must be more than 0", self.seconds_per_point));
        }
        Ok(())
    }
}

/// Minimum number of requests of the largest size that fit into the test file: random offsets need
/// a choice.
const SLOTS_MIN: u64 = 16;
/// Minimum duration of a series on an emulated server, ns: single requests there are not exact.
const BATCH_NS: u64 = 20_000_000;

/// Minimum number of samples of a point in one round.
const SAMPLES_MIN: usize = 2;

/// The server to measure.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// `tier/index`.
    pub target: &'a str,
    /// The server's class.
    pub class: &'a str,
    /// The server's directory.
    pub path: &'a Path,
    /// The parameters that pace it, if it is emulated.
    pub emulation: Option<&'a ClassParams>,
}

/// Directions and kinds of access, in the order of reports.
const KINDS: [(Op, Access); 4] = [
    (Op::Read, Access::Random),
    (Op::Read, Access::Sequential),
    (Op::Write, Access::Random),
    (Op::Write, Access::Sequential),
];

/// Measures a server. Calls `progress` often, with the fraction that is done (0 to 1) and the
/// current point.
///
/// The test file has no name, so nothing is left in the directory, even when the process is killed.
///
/// # Errors
/// Impossible options; a directory that is missing, full, or fails.
pub fn measure(
    sys: &SysRef,
    subject: Subject<'_>,
    options: &Options,
    progress: &mut dyn FnMut(f64, &str),
) -> Result<ServerReport, CalibrateError> {
    options.check().map_err(|problem| CalibrateError::new("calibrate", problem))?;
    let began_ns = sys.now_ns();
    progress(0.0, "writing the test file");
    let file = TestFile::create(sys, subject.path, options.file_size, subject.emulation.is_some())?;
    let server = emulated_server(sys, subject)?;
    let largest = options.sizes.iter().copied().max().unwrap_or(0) as usize;
    let mut bench = Bench {
        sys,
        file: &file,
        server,
        buffer: Buffer::new(largest),
        random: Random(0xca11_b0a7),
        samples: vec![Vec::new(); KINDS.len() * options.sizes.len()],
        requests: vec![0; KINDS.len() * options.sizes.len()],
    };
    bench.run(options, progress).map_err(|errno| {
        CalibrateError::new(subject.path.display(), format!("a request to the test file failed: {errno}"))
    })?;
    let kinds = bench.report(options);
    Ok(ServerReport {
        target: subject.target.to_owned(),
        class: subject.class.to_owned(),
        mode: file.mode,
        kinds,
        elapsed_s: (sys.now_ns() - began_ns) as f64 / 1e9,
    })
}

fn emulated_server(sys: &SysRef, subject: Subject<'_>) -> Result<Option<Server>, CalibrateError> {
    let Some(params) = subject.emulation else { return Ok(None) };
    let fail = |errno| {
        let problem = format!("cannot use the state of emulated servers in /dev/shm: {errno}");
        CalibrateError::new(subject.path.display(), problem)
    };
    // A directory that is not a target yet is identified by its path.
    let id = match Target::open(sys, subject.path, None) {
        Ok(target) => target.id().to_owned(),
        Err(_) => subject.path.to_string_lossy().into_owned(),
    };
    let emulation: Arc<Emulation> = Emulation::attach(sys, None).map_err(fail)?;
    emulation.server(&id, params).map(Some).map_err(fail)
}

struct Bench<'a> {
    sys: &'a SysRef,
    file: &'a TestFile,
    server: Option<Server>,
    buffer: Buffer,
    random: Random,
    /// Seconds per request, by kind, then size.
    samples: Vec<Vec<f64>>,
    /// Number of measured requests, in the same order.
    requests: Vec<u64>,
}

impl Bench<'_> {
    fn run(&mut self, options: &Options, progress: &mut dyn FnMut(f64, &str)) -> SysResult<()> {
        let points = self.samples.len();
        let total = (points * options.rounds as usize) as f64;
        for round in 0..options.rounds {
            let mut order: Vec<usize> = (0..points).collect();
            self.random.shuffle(&mut order);
            for (index, point) in order.into_iter().enumerate() {
                let (op, access) = KINDS[point / options.sizes.len()];
                let size = options.sizes[point % options.sizes.len()];
                progress((round as usize * points + index) as f64 / total, &name(op, access, size));
                self.measure_point(point, (op, access), size, options)?;
            }
        }
        progress(1.0, "done");
        Ok(())
    }

    /// Measures one round at one point: its share of the requests, or of the time.
    fn measure_point(
        &mut self,
        point: usize,
        kind: (Op, Access),
        size: u64,
        options: &Options,
    ) -> SysResult<()> {
        let rounds = u64::from(options.rounds);
        let budget_ns = (options.seconds_per_point * 1e9 / rounds as f64) as u64;
        let mut series = Series {
            point,
            op: kind.0,
            size,
            requests_left: options.repeats.div_ceil(rounds).max(2),
            until_ns: self.sys.now_ns() + budget_ns,
            offsets: Offsets::new(kind.1, self.file.size / size, &mut self.random),
        };
        let before = self.samples[point].len();
        let enough = |bench: &Self| bench.samples[point].len() - before >= SAMPLES_MIN;
        while series.requests_left > 0 && (!enough(self) || self.sys.now_ns() < series.until_ns) {
            // A series does not begin where the last one ended. The first request absorbs the cost
            // of getting there and is not measured.
            let warm_up = series.offsets.restart();
            if self.file.mode == IoMode::Buffered {
                self.sys.drop_cached(self.file.fd())?;
            }
            if let Some(slot) = warm_up {
                self.request(kind.0, slot * size, size)?;
            }
            if self.server.is_some() { self.batch(&mut series)? } else { self.singly(&mut series)? }
        }
        Ok(())
    }

    /// Sends single requests, each a sample, until the offsets, the requests or the time are used
    /// up.
    fn singly(&mut self, series: &mut Series) -> SysResult<()> {
        while let Some(offset) = series.next() {
            let began_ns = self.sys.now_ns();
            self.request(series.op, offset, series.size)?;
            let ended_ns = self.sys.now_ns();
            self.samples[series.point].push((ended_ns - began_ns) as f64 / 1e9);
            self.requests[series.point] += 1;
            if ended_ns >= series.until_ns {
                break;
            }
        }
        Ok(())
    }

    /// Sends requests in a row and takes their average as one sample, so that only the last one's
    /// late wake-up counts.
    fn batch(&mut self, series: &mut Series) -> SysResult<()> {
        settle(self.sys.as_ref());
        let began_ns = self.sys.now_ns();
        let (mut done, mut ended_ns) = (0u32, began_ns);
        while (done < 2 || ended_ns - began_ns < BATCH_NS)
            && let Some(offset) = series.next()
        {
            self.request(series.op, offset, series.size)?;
            ended_ns = self.sys.now_ns();
            done += 1;
        }
        if done > 0 {
            self.samples[series.point].push((ended_ns - began_ns) as f64 / 1e9 / f64::from(done));
            self.requests[series.point] += u64::from(done);
        }
        Ok(())
    }

    fn request(&mut self, op: Op, offset: u64, size: u64) -> SysResult<()> {
        let (sys, fd) = (self.sys, self.file.fd());
        let bytes = self.buffer.bytes(size as usize);
        let mut io = || match op {
            Op::Read => sys.read_at(fd, bytes, offset).map(|_| ()),
            Op::Write => sys.write_all_at(fd, bytes, offset),
        };
        match &self.server {
            Some(server) => paced(sys.as_ref(), server, op == Op::Write, offset, size, io),
            None => io(),
        }
    }

    fn report(&mut self, options: &Options) -> Vec<KindReport> {
        let samples = std::mem::take(&mut self.samples).into_iter();
        let sum_up = if self.server.is_some() { summarize_constant } else { summarize };
        let summaries: Vec<_> = options
            .sizes
            .iter()
            .cycle()
            .zip(&self.requests)
            .zip(samples)
            .map(|((&size, &requests), samples)| (size, requests, sum_up(samples)))
            .collect();
        let kinds = KINDS.iter().zip(summaries.chunks(options.sizes.len()));
        kinds.map(|(&(op, access), points)| KindReport::new(op, access, self.file.mode, points)).collect()
    }
}

/// A label for people: `random read 64K`.
fn name(op: Op, access: Access, size: u64) -> String {
    let access = match access {
        Access::Random => "random",
        Access::Sequential => "sequential",
    };
    let op = match op {
        Op::Read => "read",
        Op::Write => "write",
    };
    format!("{access} {op} {}", stripewise_cluster::size::format(size))
}

/// The requests of one point in one round.
struct Series {
    /// Index into the samples.
    point: usize,
    op: Op,
    size: u64,
    requests_left: u64,
    /// Time limit of the round, CLOCK_MONOTONIC, ns.
    until_ns: u64,
    offsets: Offsets,
}

impl Series {
    /// Offset of the next request, bytes; `None` when the requests or the offsets are used up.
    fn next(&mut self) -> Option<u64> {
        let slot = if self.requests_left > 0 { self.offsets.next()? } else { return None };
        self.requests_left -= 1;
        Some(slot * self.size)
    }
}

/// The offsets of a point's requests, as slot numbers.
struct Offsets {
    order: Vec<usize>,
    next: usize,
}

impl Offsets {
    fn new(access: Access, slots: u64, random: &mut Random) -> Self {
        let slots = slots as usize;
        let order = match access {
            Access::Random => scattered(slots, random),
            Access::Sequential => (0..slots).collect(),
        };
        // Used up at first, so that a series begins with a warm-up.
        Self { order, next: slots }
    }

    /// Continues, or starts over when fewer than two slots are left. After a restart, returns the
    /// first slot, for a warm-up.
    fn restart(&mut self) -> Option<u64> {
        if self.order.len() - self.next < 2 {
            self.next = 0;
            return self.next();
        }
        None
    }

    fn next(&mut self) -> Option<u64> {
        let slot = *self.order.get(self.next)?;
        self.next += 1;
        Some(slot as u64)
    }
}
