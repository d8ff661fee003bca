//! Calibration of real directories and of the loopback network: the report, and refused options.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, mpsc};

use stripewise_calibrate::{CalibrateError, IoMode, Options, ServerReport, Subject, combine, network};
use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::{Errno, Real, SysRef};

fn measure(path: &Path, options: &Options) -> Result<ServerReport, CalibrateError> {
    let sys: SysRef = Arc::new(Real);
    let subject = Subject { target: "t/0", class: "c", path, emulation: None };
    stripewise_calibrate::measure(&sys, subject, options, &mut |_, _| {})
}

fn tiny() -> Options {
    Options {
        sizes: vec![4096, 16384, 65536, 262_144],
        repeats: 200,
        seconds_per_point: 0.1,
        // The largest requests go over the file several times.
        file_size: 4 << 20,
        rounds: 2,
    }
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let report = measure(dir.path(), &tiny()).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(report.kinds.len(), 4);
    for kind in &report.kinds {
        assert_eq!(kind.points.len(), 4);
        assert!(kind.line.startup_s + kind.line.per_byte_s > 0.0, "{kind:?}");
        for point in &kind.points {
            let all = point.summary.samples + point.summary.outliers;
            assert!((2..=200).contains(&all), "{point:?}");
            assert!(point.summary.mean_s > 0.0 && point.summary.p50_s <= point.summary.p99_s);
        }
    }
    let class = &combine(&[report.clone(), report.clone()])["c"];
    assert_eq!((class.target.as_str(), class.direct_io), ("t/0, t/0", report.mode == IoMode::Direct));
    assert_eq!(class.fits.read.random.samples, 2 * report.kinds[0].samples());
    let (both, one) = (class.fits.read.random.service, report.kinds[0].line.service());
    assert!((both.startup_s - one.startup_s).abs() < 1e-9, "the average of two alike");
}

/// The mode when the first opens of a test file fail with EINVAL, as on file systems that lack
/// O_TMPFILE, then O_DIRECT.
fn mode_without(lacking: &[&str]) -> IoMode {
    let dir = tempfile::Builder::new().prefix("calibrate").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("server");
    std::fs::create_dir(&path).unwrap();
    let disk = Disk::new(&path, Journal::Posix).unwrap();
    let process = Faulty::new(&disk, 1);
    for file in lacking {
        process.fail("open", file, Errno::INVAL, 1);
    }
    let sys: SysRef = process;
    let subject = Subject { target: "t/0", class: "c", path: &path, emulation: None };
    let options = Options { repeats: 4, sizes: vec![4096, 8192, 16384], file_size: 1 << 20, ..tiny() };
    let report = stripewise_calibrate::measure(&sys, subject, &options, &mut |_, _| {}).unwrap();
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "nothing is left");
    report.mode
}

#[test]
fn file_systems_that_lack_something_are_measured_all_the_same() {
    let direct = mode_without(&[]);
    assert_eq!(mode_without(&["."]), direct, "a file whose name is removed at once");
    assert_eq!(mode_without(&[".", "stripewise-calibrate"]), IoMode::Buffered);
}

#[test]
fn memory_is_called_memory() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    assert_eq!(measure(dir.path(), &tiny()).unwrap().mode, IoMode::Memory);
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path, options: &Options| {
        let message = measure(path, options).unwrap_err().to_string();
        assert!(!message.contains('\n'));
        message
    };
    assert!(refused(&dir.path().join("absent"), &tiny()).contains("mount its disk"));
    let huge = Options { file_size: 1 << 49, ..tiny() };
    assert!(refused(dir.path(), &huge).contains("--file-size"));
    for (options, word) in [
        (Options { sizes: vec![4096, 8192, 5000], ..tiny() }, "multiple of 4K"),
        (Options { sizes: vec![4096, 8192], ..tiny() }, "3 sizes"),
        (Options { file_size: 1 << 20, ..tiny() }, "at least 4M"),
        (Options { repeats: 0, ..tiny() }, "repeats"),
        (Options { seconds_per_point: f64::NAN, ..tiny() }, "seconds"),
    ] {
        assert!(refused(dir.path(), &options).contains(word), "{word}");
    }
}

/// The address of a server in this process.
fn server() -> String {
    let (ready, address) = mpsc::channel();
    std::thread::spawn(move || network::serve("127.0.0.1:0", |address| ready.send(address).unwrap()));
    address.recv().unwrap().to_string()
}

#[test]
fn a_network_is_measured_from_a_pair() {
    let options = Options { seconds_per_point: 0.02, repeats: 50, ..Options::quick() };
    let report = network::measure(&[server()], 1, &options, &mut |_, _| {}).unwrap();
    assert!(report.establish.mean_s > 0.0 && report.establish.samples > 1);
    assert!(report.per_byte_s > 0.0 && report.per_byte_s < 1e-6, "{}", report.per_byte_s);
    assert_eq!((report.sent.len(), report.received.len()), (11, 11));
    let profile = stripewise_calibrate::network_profile(&report);
    assert_eq!(profile.samples, report.establish.samples + report.transfers());
}

#[test]
fn several_clients_measure_against_several_servers_at_once() {
    let options = Options { seconds_per_point: 0.02, ..Options::quick() };
    let servers = [server(), server()];
    let mut reports: Vec<_> = std::thread::scope(|scope| {
        let client = || network::measure(&servers, 3, &options, &mut |_, _| {}).unwrap();
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    reports.sort_by_key(|report| report.place);
    assert_eq!(reports.iter().map(|report| report.place).collect::<Vec<_>>(), [0, 1, 2]);
    for report in reports {
        assert_eq!((report.servers.as_slice(), report.clients), (servers.as_slice(), 3));
        assert_eq!((report.sent.len(), report.received.len()), (11, 11));
        assert!(report.received.iter().all(|(_, summary)| summary.samples >= 4), "two from each server");
    }
}

#[test]
fn strangers_on_the_network_do_no_harm() {
    let address = server();
    for garbage in [vec![], vec![0; 3], vec![0xff; 100], b"GET / HTTP/1.0\r\n\r\n........".to_vec()] {
        let mut stream = TcpStream::connect(&address).unwrap();
        // The server may already have closed the connection.
        let _ = stream.write_all(&garbage).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    let options = Options { seconds_per_point: 0.01, repeats: 5, ..Options::quick() };
    assert!(network::measure(&[address], 1, &options, &mut |_, _| {}).is_ok(), "still served");
}

#[test]
fn a_host_that_does_not_serve_is_named() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let message = network::measure(std::slice::from_ref(&unused), 1, &Options::quick(), &mut |_, _| {})
        .unwrap_err()
        .to_string();
    assert!(message.starts_with(&unused) && message.contains("--serve"), "{message}");
    assert!(network::measure(&["no such host:1".to_owned()], 1, &Options::quick(), &mut |_, _| {}).is_err());
}
