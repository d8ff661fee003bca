//! Prints everything that the reader finds in a Darshan log, one JSON value per line: what
//! `tests/test_darshan.py` compares with PyDarshan. Floating-point numbers are their bits.
//!
//!     cargo run -p stripewise-darshan --example dump -- job.darshan

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};

use serde_json::{Value, json};
use stripewise_darshan::{Counters, Layer, Log, Segment};

type Nothing = Result<(), Box<dyn Error>>;

/// Prints a part of a log.
type Part = fn(&mut Log<BufReader<File>>, &mut dyn Write) -> Nothing;

fn main() -> Nothing {
    let path = std::env::args_os().nth(1).ok_or("usage: dump LOG")?;
    let mut log = Log::open(BufReader::new(File::open(path)?))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let parts: [Part; 6] = [modules, job, names, records, lustre, dxt];
    for part in parts {
        // The parts behind a damaged one may be whole.
        if let Err(error) = part(&mut log, &mut out) {
            print(&mut out, json!({ "error": error.to_string() }))?;
        }
    }
    Ok(out.flush()?)
}

fn print(out: &mut dyn Write, value: Value) -> Nothing {
    Ok(writeln!(out, "{value}")?)
}

fn modules<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    for info in &log.header().modules {
        let (name, version, partial) = (info.name(), info.version, info.is_partial);
        print(out, json!({ "module": name, "version": version, "partial": partial }))?;
    }
    Ok(())
}

fn job<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    let job = log.job()?;
    let numbers = [job.uid, job.start.0, job.start.1, job.end.0, job.end.1, job.processes, job.job_id];
    let (metadata, command, mounts) = (&job.metadata, &job.command, &job.mounts);
    print(out, json!({ "job": numbers, "metadata": metadata, "command": command, "mounts": mounts }))
}

fn names<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    let mut names = log.names()?;
    while let Some((id, name)) = names.next_name()? {
        print(out, json!({ "name": id, "is": String::from_utf8_lossy(name) }))?;
    }
    Ok(())
}

fn records<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    for of in Counters::ALL {
        let mut records = log.records(of)?;
        while let Some(record) = records.next_record()? {
            let times: Vec<u64> = record.times.iter().map(|time| time.to_bits()).collect();
            let ids = (record.id, record.rank, record.file_id);
            print(out, json!({ "of": of.module().name(), "ids": ids, "n": record.counters, "f": times }))?;
        }
    }
    Ok(())
}

fn lustre<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    let mut records = log.lustre()?;
    while let Some(record) = records.next_record()? {
        let components = record.components.iter().map(|c| {
            json!([[c.stripe_bytes, c.stripes, c.pattern, c.flags, c.start, c.end, c.mirror], c.pool])
        });
        let components: Vec<Value> = components.collect();
        print(
            out,
            json!({ "lustre": (record.id, record.rank), "components": components, "osts": record.osts }),
        )?;
    }
    Ok(())
}

fn dxt<R: Read + Seek>(log: &mut Log<R>, out: &mut dyn Write) -> Nothing {
    for layer in [Layer::Posix, Layer::MpiIo] {
        let mut records = log.dxt(layer)?;
        while let Some(record) = records.next_record()? {
            let ids = (record.id, record.rank, record.shared, record.writes, record.reads);
            let mut head = json!({ "dxt": layer.module().name(), "ids": ids, "host": record.host });
            let mut all = Vec::new();
            while let Some((_, segments)) = records.next_segments()? {
                all.extend(segments.iter().map(|Segment { offset, len, start_s, end_s, thread }| {
                    json!([offset, len, start_s.to_bits(), end_s.to_bits(), thread])
                }));
            }
            head["segments"] = all.into();
            print(out, head)?;
        }
    }
    Ok(())
}
