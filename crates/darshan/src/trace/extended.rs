//! Segments of DXT as requests.

use std::io::{Read, Seek};

use stripewise_trace::{Flags, Op, Request};

use super::covered::Covered;
use super::{Making, TraceFromLogError};
use crate::{Layer, Log, Segment};

impl Making<'_> {
    /// Takes the segments of a layer, except of files whose segments a lower layer has.
    pub(super) fn take_segments<R: Read + Seek>(
        &mut self,
        log: &mut Log<R>,
        layer: Layer,
        covered: &mut Covered,
    ) -> Result<(), TraceFromLogError> {
        let mut records = log.dxt(layer)?;
        let mut odd = 0;
        while let Some(record) = records.next_record()? {
            let (id, rank) = (record.id, record.rank);
            if !covered.add(id, layer, record.writes.saturating_add(record.reads)) {
                continue;
            }
            let file = self.files.number(id, &mut self.writer);
            let process = self.processes.number(rank, Some(&record.host), &mut self.writer);
            let mut next_offset = 0;
            while let Some((is_write, segments)) = records.next_segments()? {
                for segment in segments {
                    match self.request(segment, (process, file), is_write, &mut next_offset) {
                        Some(request) => self.push(request)?,
                        None => odd += 1,
                    }
                }
            }
        }
        if odd > 0 {
            let module = layer.module().name();
            self.meta
                .incomplete
                .push(format!("{odd} segments of module {module} have a negative offset or length"));
        }
        Ok(())
    }

    /// A segment as a request; `None` if that cannot be. Segments without offsets count as in
    /// order.
    #[inline]
    fn request(
        &mut self,
        segment: &Segment,
        (process, file): (u32, u32),
        is_write: bool,
        next_offset: &mut u64,
    ) -> Option<Request> {
        let size = u64::try_from(segment.len).ok()?;
        let offset = if segment.offset == -1 { *next_offset } else { u64::try_from(segment.offset).ok()? };
        *next_offset = offset.saturating_add(size);
        let (start_ns, end_ns) = self.clock.recorded(segment.start_s, segment.end_s);
        Some(Request {
            process,
            // `pthread_self` is an address of a multiple of 64 bytes.
            tid: (segment.thread >> 6) as u32 & i32::MAX as u32,
            file,
            op: if is_write { Op::Write } else { Op::Read },
            // DXT does not say how a call was made, but always knows the offset.
            flags: Flags::POSITIONAL,
            offset,
            size,
            result: segment.len,
            start_ns,
            end_ns,
        })
    }
}
