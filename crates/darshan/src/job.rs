//! The job record, the command and the mounts. Source: Darshan 3.5 `darshan_log_get_job`,
//! `darshan_log_get_exe` and `darshan_log_get_mounts` in `darshan-util/darshan-logutils.c`.

use std::io::{Read, Seek};

use crate::Error;
use crate::bytes::{ByteOrder, Fields, text};
use crate::region::Region;

/// `DARSHAN_JOB_RECORD_SIZE`: maximum length of the region.
const RECORD_BYTES: usize = 4096;

/// `DARSHAN_JOB_METADATA_LEN`
const METADATA_BYTES: usize = 1024;

/// The job that a log is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// User id.
    pub uid: i64,
    /// Start, seconds since 1970, and nanoseconds (0 before format 3.41).
    pub start: (i64, i64),
    /// End, seconds since 1970, and nanoseconds (0 before format 3.41).
    pub end: (i64, i64),
    /// Number of processes.
    pub processes: i64,
    /// The number that the scheduler gave the job.
    pub job_id: i64,
    /// `key=value` lines: the version of the library, MPI-IO hints and the like.
    pub metadata: String,
    /// The command and its arguments, as one string.
    pub command: String,
    /// Mounted file systems: type and path, in the order of the log.
    pub mounts: Vec<(String, String)>,
    has_nanoseconds: bool,
}

impl Job {
    /// How long the job ran, seconds, as Darshan's tools say: logs before format 3.41 have whole
    /// seconds, and both the first and the last count. `None` if the job ends before it starts.
    pub fn runtime_s(&self) -> Option<f64> {
        let ((start, start_ns), (end, end_ns)) = (self.start, self.end);
        let whole = end.checked_sub(start)?;
        let runtime = match self.has_nanoseconds {
            true => whole as f64 + end_ns.wrapping_sub(start_ns) as f64 / 1e9,
            false => whole as f64 + 1.0,
        };
        (whole >= 0 && runtime >= 0.0).then_some(runtime)
    }

    pub(crate) fn read<R: Read + Seek>(
        mut region: Region<R>,
        order: ByteOrder,
        format: (u32, u32),
    ) -> Result<Job, Error> {
        let has_nanoseconds = format >= (3, 41);
        let numbers = if has_nanoseconds { 7 } else { 5 };
        let fixed = 8 * numbers + METADATA_BYTES;
        region.must(fixed)?;
        // The record may be shorter than its maximum, but its streams must be whole.
        if let Err(error) = region.need(RECORD_BYTES)
            && !region.is_whole()
        {
            return Err(error);
        }
        let record = &region.bytes()[..region.bytes().len().min(RECORD_BYTES)];
        let mut fields = Fields::new(order, record);
        let mut job = Job { uid: fields.i64(), has_nanoseconds, ..Job::default() };
        let mut time = || (fields.i64(), if has_nanoseconds { fields.i64() } else { 0 });
        (job.start, job.end) = (time(), time());
        (job.processes, job.job_id) = (fields.i64(), fields.i64());
        job.metadata = text(fields.take(METADATA_BYTES));
        let rest = text(&record[fixed..]);
        let mut lines = rest.split('\n');
        job.command = lines.next().unwrap_or_default().to_owned();
        let mount = |line: &str| line.split_once('\t').map(|(kind, path)| (kind.to_owned(), path.to_owned()));
        job.mounts = lines.filter_map(mount).collect();
        Ok(job)
    }
}
