use super::*;
use crate::{Flags, Op, ProcessInfo, Request};

fn process(pid: u32) -> ProcessInfo {
    ProcessInfo { node: "n0".into(), pid, rank: pid as i32 - 1, program: "app".into() }
}

fn request(i: u64) -> Request {
    Request {
        process: (i % 3) as u32,
        tid: 7,
        file: (i % 2) as u32,
        op: Op::ALL[(i % 10) as usize],
        flags: Flags((i % 64) as u8),
        offset: i << 40,
        size: i * 3,
        result: if i.is_multiple_of(5) { -28 } else { i as i64 },
        start_ns: i * 10,
        end_ns: i * 10 + 4,
    }
}

fn meta() -> Meta {
    Meta {
        origin: "recorded".into(),
        command: vec!["app".into(), "--x \"y\"".into()],
        wall_s: Some(1.5),
        exit_code: Some(255),
        start_unix_ns: 1 << 60,
        incomplete: vec!["limit reached".into()],
        notes: vec!["guessed".into()],
    }
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    for pid in 1..=3 {
        assert_eq!(writer.process_id(&process(pid)), pid - 1);
    }
    assert_eq!((writer.file_id("/a"), writer.file_id("/b"), writer.file_id("/a")), (0, 1, 0));
    let n = schema::ROW_GROUP_ROWS as u64 + 40_000;
    for i in 0..n {
        writer.push(&request(i)).unwrap();
    }
    assert!(!path.exists());
    writer.finish(&meta()).unwrap();

    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.meta(), &meta());
    assert_eq!(trace.incomplete().as_deref(), Some("limit reached"));
    assert_eq!(trace.processes(), [process(1), process(2), process(3)]);
    assert_eq!(trace.len(), n);
    let mut requests = trace.requests().unwrap();
    let mut seen = 0;
    while let Some(batch) = requests.next_batch().unwrap() {
        for got in batch {
            assert_eq!(*got, request(seen));
            seen += 1;
        }
    }
    assert_eq!(seen, n);
    assert_eq!(trace.file_names().unwrap(), ["/a", "/b"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn how_a_program_failed_is_said() {
    let failure = |exit_code| Meta { exit_code, ..meta() }.failure();
    assert_eq!((failure(None), failure(Some(0))), (None, None));
    assert_eq!(failure(Some(255)).as_deref(), Some("exit code 255"));
    assert_eq!(failure(Some(137)).as_deref(), Some("exit code 137, as of signal 9"));
}

#[test]
fn an_empty_trace_is_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    TraceWriter::create(&path).unwrap().finish(&Meta::default()).unwrap();
    let trace = Trace::open(&path).unwrap();
    assert!(trace.is_empty() && trace.incomplete().is_none());
    assert!(trace.requests().unwrap().next_batch().unwrap().is_none());
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(TraceWriter::create(&dir.path().join("t")).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn rows_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(&dir.path().join("t")).unwrap();
    writer.process_id(&process(1));
    writer.file_id("/a");
    let row = Request { process: 0, file: 0, ..request(5) };
    writer.push(&row).unwrap();
    assert!(writer.push(&Request { start_ns: row.start_ns - 1, ..row }).is_err());
    assert!(writer.push(&Request { file: 9, ..row }).is_err());
}

#[test]
fn other_files_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    assert!(Trace::open(&path).err().unwrap().to_string().contains("No such file"));
    for bytes in [&b""[..], b"PAR1", b"hello, this is no parquet at all PAR1"] {
        std::fs::write(&path, bytes).unwrap();
        let message = Trace::open(&path).err().unwrap().to_string();
        assert!(message.contains("is not a trace") && !message.contains('\n'), "{message}");
    }
}

/// A small trace as bytes.
fn small() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    for pid in 1..=3 {
        writer.process_id(&process(pid));
    }
    writer.file_id("/a");
    writer.file_id("/b");
    for i in 0..200 {
        writer.push(&request(i)).unwrap();
    }
    writer.finish(&meta()).unwrap();
    std::fs::read(&path).unwrap()
}

/// Reads all of a file with these bytes. The result does not matter, as long as the call returns.
fn read_all(bytes: &[u8]) -> Result<u64, crate::TraceError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let trace = Trace::open(file.path())?;
    let mut rows = 0;
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        rows += batch.len() as u64;
    }
    crate::Summary::of(&trace)?;
    Ok(rows)
}

#[test]
fn truncated_traces_are_refused() {
    let bytes = small();
    assert_eq!(read_all(&bytes).unwrap(), 200);
    for len in 0..bytes.len() {
        assert!(read_all(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
}

#[test]
fn a_changed_bit_is_noticed() {
    let mut bytes = small();
    // One bit of every fourth byte, because testing all of them takes a while.
    let step = if std::env::var_os("STRIPEWISE_LONG").is_some() { 1 } else { 33 };
    for bit in (0..bytes.len() * 8).step_by(step) {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let message = read_all(&bytes).unwrap_err().to_string();
        assert!(message.contains("is not a trace") || message.contains("checksum"), "bit {bit}: {message}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// The entries that `Meta` writes, to be changed by the test.
fn entries() -> Vec<parquet::file::metadata::KeyValue> {
    meta().to_key_values(&indexmap::IndexSet::from([process(1)]))
}

#[test]
fn other_versions_and_missing_entries_are_refused() {
    let read = |entries: &[_]| Meta::from_key_values(std::path::Path::new("t"), entries);
    assert!(read(&entries()).is_ok());
    for i in 0..entries().len() {
        let mut fewer = entries();
        let gone = fewer.remove(i);
        let optional = ["stripewise.wall_s", "stripewise.exit_code", "stripewise.notes"];
        let is_optional = optional.contains(&gone.key.as_str());
        assert_eq!(read(&fewer).is_ok(), is_optional, "{}", gone.key);
    }
    let mut other = entries();
    other[0].value = Some("2".into());
    assert!(read(&other).unwrap_err().to_string().contains("trace format 2 is not known"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
        if std::env::var_os("STRIPEWISE_LONG").is_some() { 50_000 } else { 300 }
    ))]

    #[test]
    fn changed_bytes_are_an_error(
        changes in proptest::collection::vec(
            (proptest::prelude::any::<proptest::sample::Index>(), 1u8..), 1..6),
    ) {
        static SMALL: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(small);
        let mut bytes = SMALL.clone();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] ^= value;
        }
        proptest::prop_assert!(bytes == *SMALL || read_all(&bytes).is_err());
    }

    #[test]
    fn changed_metadata_never_panics(which in 0usize..9, value in ".*") {
        let mut changed = entries();
        changed[which].value = Some(value);
        let _ = Meta::from_key_values(std::path::Path::new("t"), &changed);
    }
}

/// Rows on many files, of which a second row group has some again.
fn named_rows() -> (Vec<String>, Vec<Request>) {
    let n = schema::ROW_GROUP_ROWS as u64 + 3000;
    let files = |i: u64| i * 7919 % 1500 + i / 400_000 * 700;
    let rows: Vec<Request> =
        (0..n).map(|i| Request { process: 0, file: files(i) as u32, op: Op::Read, ..request(i) }).collect();
    let names = (0..2200).map(|file| format!("/data/{}/file{file}", file % 7)).collect();
    (names, rows)
}

/// The bytes of a trace with these rows.
fn written(names: &[String], rows: &[Request]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.process_id(&process(1));
    names.iter().zip(0..).for_each(|(name, number)| assert_eq!(writer.file_id(name), number));
    rows.iter().for_each(|row| writer.push(row).unwrap());
    writer.finish(&meta()).unwrap();
    std::fs::read(&path).unwrap()
}

/// A trace with other bytes in place of these, correctly sealed.
fn resealed(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> tempfile::NamedTempFile {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).rposition(|window| window == from).expect("the trace has these bytes");
    bytes[at..at + from.len()].copy_from_slice(to);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    seal::fill(file.as_file()).unwrap();
    file
}

/// The names of the files of all rows.
fn names_of_rows(path: &std::path::Path) -> Result<Vec<String>, crate::TraceError> {
    let trace = Trace::open(path)?;
    let names = trace.file_names()?;
    let mut of_rows = Vec::new();
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        of_rows.extend(batch.iter().map(|request| names[request.file as usize].clone()));
    }
    Ok(of_rows)
}

#[test]
fn every_row_has_its_name_in_traces_of_this_and_earlier_versions() {
    let (names, rows) = named_rows();
    let expected: Vec<&String> = rows.iter().map(|row| &names[row.file as usize]).collect();
    let bytes = written(&names, &rows);
    let this = resealed(bytes.clone(), b"app", b"app");
    // A reader that does not know the entry's key sees a trace without file numbers.
    let earlier = resealed(bytes, b"stripewise.file_numbers", b"stripewise.file_numberz");
    for file in [this, earlier] {
        assert!(names_of_rows(file.path()).unwrap().iter().eq(expected.iter().copied()));
        let trace = Trace::open(file.path()).unwrap();
        let used: std::collections::HashSet<u32> = rows.iter().map(|row| row.file).collect();
        assert_eq!(crate::FileNames::count(&trace), used.len(), "each file with rows counts once");
    }
}

#[test]
fn damaged_file_numbers_are_refused() {
    let names = ["/a", "/b", "/c"].map(String::from);
    let rows: Vec<Request> =
        (0..30).map(|i| Request { process: 0, file: (i % 3) as u32, ..request(i) }).collect();
    let bytes = written(&names, &rows);
    let refused = |from: &[u8], to: &[u8]| {
        let file = resealed(bytes.clone(), from, to);
        let message = names_of_rows(file.path()).unwrap_err().to_string();
        let is_good = message.contains("wrong file numbers") && message.contains("record it again");
        assert!(is_good && !message.contains('\n'), "{message}");
    };
    // The numbers lie just before the seal.
    let numbers = |of: [u8; 3]| [&of[..], b"stripewise\n"].concat();
    for wrong in [[0, 1, 0], [1, 0, 0], [0, 4, 0], [0x80, 0, 0], [0, 0, 0x80]] {
        refused(&numbers([0, 0, 0]), &numbers(wrong));
    }
    for wrong in
        [br#""bytes":2,"new":3"#, br#""bytes":3,"new":2"#, br#""bytes":9,"new":3"#, br#""bytes":3,"nex":3"#]
    {
        refused(br#""bytes":3,"new":3"#, wrong);
    }
}

#[test]
fn rows_with_too_long_names_for_a_dictionary_are_divided() {
    let names: Vec<String> = (0..500).map(|file| format!("/{file}{}", "x".repeat(190_000))).collect();
    let rows: Vec<Request> =
        (0..1000).map(|i| Request { process: 0, file: (i * 7 % 500) as u32, ..request(i) }).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), written(&names, &rows)).unwrap();
    let expected = rows.iter().map(|row| &names[row.file as usize]);
    assert!(names_of_rows(file.path()).unwrap().iter().eq(expected));
}
