//! Measurement of one server.

use std::path::Path;
use std::sync::Arc;

use stripewise_model::{Access, ClassParams, Op};
use stripewise_random::Random;
use stripewise_sys::{Result as SysResult, SysRef};
use stripewise_target::emulate::pace::{paced, settle};
use stripewise_target::{Emulation, Server, Target};

use crate::report::{CalibrateError, IoMode, KindReport, PointReport, ServerReport};
use crate::stats::summarize;
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
    /// Requests of 4 KiB to 4 MiB, thousands of repeats; about two minutes per server.
    pub fn thorough() -> Self {
        let sizes = (12..=22).map(|shift| 1 << shift).collect();
        Self { sizes, repeats: 4000, seconds_per_point: 3.0, file_size: 256 << 20, rounds: 4 }
    }

    /// About ten seconds per server.
    pub fn quick() -> Self {
        let thorough = Self::thorough();
        Self { repeats: 1000, seconds_per_point: 0.2, file_size: 64 << 20, rounds: 2, ..thorough }
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
        points: vec![Point::default(); KINDS.len() * options.sizes.len()],
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
    /// By kind, then size.
    points: Vec<Point>,
}

/// What was measured with one kind of access and one size.
#[derive(Clone, Default)]
struct Point {
    /// Seconds per request.
    samples_s: Vec<f64>,
    /// Number of measured requests.
    requests: u64,
}

impl Bench<'_> {
    fn run(&mut self, options: &Options, progress: &mut dyn FnMut(f64, &str)) -> SysResult<()> {
        let points = self.points.len();
        let total = (points * options.rounds as usize) as f64;
        for round in 0..options.rounds as usize {
            let mut order: Vec<usize> = (0..points).collect();
            self.random.shuffle(&mut order);
            for (index, point) in order.into_iter().enumerate() {
                let (op, access) = KINDS[point / options.sizes.len()];
                let size = options.sizes[point % options.sizes.len()];
                let kind = format!("{access:?} {op:?}").to_lowercase();
                let shown = format!("{kind} {}", stripewise_cluster::size::format(size));
                progress((round * points + index) as f64 / total, &shown);
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
        (op, access): (Op, Access),
        size: u64,
        options: &Options,
    ) -> SysResult<()> {
        let rounds = u64::from(options.rounds);
        let until_ns = self.sys.now_ns() + (options.seconds_per_point * 1e9 / rounds as f64) as u64;
        let mut requests_left = options.repeats.div_ceil(rounds).max(2) as usize;
        let slots = (self.file.size / size) as usize;
        let order = match access {
            Access::Random => scattered(slots, &mut self.random),
            Access::Sequential => (0..slots).collect(),
        };
        // Empty at first, so that a series begins with a warm-up.
        let mut slots_left: &[usize] = &[];
        let enough = self.points[point].samples_s.len() + SAMPLES_MIN;
        while requests_left > 0 && (self.points[point].samples_s.len() < enough || self.sys.now_ns() < until_ns)
        {
            if self.file.mode == IoMode::Buffered {
                self.sys.drop_cached(self.file.fd())?;
            }
            if slots_left.len() < 2 {
                // A series does not begin where the last one ended. The first request absorbs the
                // cost of getting there and is not measured.
                self.request(op, order[0], size)?;
                slots_left = &order[1..];
            }
            let slots = &slots_left[..requests_left.min(slots_left.len())];
            let sent = self.series(point, op, size, slots, until_ns)?;
            slots_left = &slots_left[sent..];
            requests_left -= sent;
        }
        Ok(())
    }

    /// Takes samples until the slots or the time are used up; one sample on an emulated server.
    /// Returns the number of requests.
    fn series(&mut self, point: usize, op: Op, size: u64, slots: &[usize], until_ns: u64) -> SysResult<usize> {
        let mut sent = 0;
        while sent < slots.len() {
            let (requests, ended_ns) = self.sample(point, op, size, &slots[sent..])?;
            sent += requests;
            if self.server.is_some() || ended_ns >= until_ns {
                break;
            }
        }
        Ok(sent)
    }

    /// Sends a request as one sample. On an emulated server, sends requests in a row and takes
    /// their average, so that only the last one's late wake-up counts. Returns the number of
    /// requests and the time of their end, CLOCK_MONOTONIC, ns.
    fn sample(&mut self, point: usize, op: Op, size: u64, slots: &[usize]) -> SysResult<(usize, u64)> {
        let (requests_min, batch_ns) = if self.server.is_some() { (2, BATCH_NS) } else { (1, 0) };
        if self.server.is_some() {
            settle(self.sys.as_ref());
        }
        let began_ns = self.sys.now_ns();
        let (mut sent, mut ended_ns) = (0, began_ns);
        while sent < slots.len() && (sent < requests_min || ended_ns - began_ns < batch_ns) {
            self.request(op, slots[sent], size)?;
            ended_ns = self.sys.now_ns();
            sent += 1;
        }
        let point = &mut self.points[point];
        point.samples_s.push((ended_ns - began_ns) as f64 / 1e9 / sent as f64);
        point.requests += sent as u64;
        Ok((sent, ended_ns))
    }

    fn request(&mut self, op: Op, slot: usize, size: u64) -> SysResult<()> {
        let (sys, fd, offset) = (self.sys, self.file.fd(), slot as u64 * size);
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

    fn report(self, options: &Options) -> Vec<KindReport> {
        let emulated = self.server.is_some();
        let report = |(&bytes, point): (&u64, Point)| {
            let summary = summarize(point.samples_s, emulated);
            PointReport { bytes, requests: point.requests, summary, residual: 0.0 }
        };
        let points: Vec<_> = options.sizes.iter().cycle().zip(self.points).map(report).collect();
        let kinds = KINDS.iter().zip(points.chunks(options.sizes.len()));
        kinds
            .map(|(&(op, access), points)| KindReport::new(op, access, self.file.mode, points.to_vec()))
            .collect()
    }
}

/// The numbers below `count` (at least 4) in a random order in which no number follows its
/// predecessor, so that no request is sequential by accident.
fn scattered(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let follows = |order: &[usize], index: usize| index > 0 && order[index] == order[index - 1] + 1;
    while let Some(index) = (1..count).find(|&index| follows(&order, index)) {
        order.swap(index, random.index(count));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scattered_order_has_every_number_once_and_no_successors() {
        for seed in 0..200 {
            let count = 4 + seed as usize % 40;
            let order = scattered(count, &mut Random(seed));
            assert!(order.windows(2).all(|pair| pair[1] != pair[0] + 1), "{order:?}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count));
        }
    }
}
