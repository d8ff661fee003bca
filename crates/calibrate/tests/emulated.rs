//! Calibration of emulated servers finds all emulated parameters within 5 %.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_calibrate::{IoMode, Options, ServerReport, Subject, combine, measure};
use stripewise_model::{ByAccess, ClassParams, Service};
use stripewise_sys::{Real, Sys, SysRef};

/// Delay of a sleeping thread's wake-up, ns; typical of an otherwise idle machine.
const LATE_NS: u64 = 60_000;

/// The kernel with a separate clock, which advances only while a thread sleeps, so that other load
/// on the machine does not affect the measurement.
struct Asleep {
    now_ns: AtomicU64,
}

impl Asleep {
    fn made() -> SysRef {
        Arc::new(Self { now_ns: AtomicU64::new(Real.now_ns()) })
    }
}

impl Sys for Asleep {
    stripewise_faulty::without_features!();

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn sleep_until_ns(&self, until_ns: u64) {
        if until_ns > self.now_ns() {
            self.now_ns.store(until_ns + LATE_NS, Ordering::Relaxed);
        }
    }
}

fn service(startup_s: f64, per_byte_s: f64) -> Service {
    Service { startup_s, per_byte_s }
}

fn hdd() -> ClassParams {
    ClassParams {
        read: ByAccess { random: service(3e-4, 7.95e-9), sequential: service(1e-4, 7.95e-9) },
        write: ByAccess { random: service(4e-4, 9e-9), sequential: service(1.5e-4, 8.5e-9) },
    }
}

fn ssd() -> ClassParams {
    ClassParams {
        read: ByAccess { random: service(5e-5, 2.38e-9), sequential: service(3e-5, 2e-9) },
        write: ByAccess { random: service(7e-5, 3e-9), sequential: service(4e-5, 2.5e-9) },
    }
}

fn options() -> Options {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    if long { Options::quick() } else { Options { seconds_per_point: 0.03, ..Options::quick() } }
}

fn calibrated(class: &str, params: &ClassParams) -> ServerReport {
    let (sys, dir) = (Asleep::made(), tempfile::tempdir().unwrap());
    let target = format!("{class}/0");
    let subject = Subject { target: &target, class, path: dir.path(), emulation: Some(params) };
    let mut last = 0.0;
    let mut progress = |part: f64, _: &str| {
        assert!((last..=1.0).contains(&part));
        last = part;
    };
    let report = measure(&sys, subject, &options(), &mut progress).unwrap();
    assert_eq!(last, 1.0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    report
}

/// Relative errors of all parameters: (name, error).
fn errors(report: &ServerReport, params: &ClassParams) -> Vec<(String, f64)> {
    let error = |kind: &stripewise_calibrate::KindReport| {
        let expected = params.service(kind.op, kind.access);
        let name = |parameter| format!("{:?} {:?} {parameter}", kind.op, kind.access);
        [
            (name("alpha"), kind.line.startup_s / expected.startup_s - 1.0),
            (name("beta"), kind.line.per_byte_s / expected.per_byte_s - 1.0),
        ]
    };
    report.kinds.iter().flat_map(error).collect()
}

fn finds(class: &str, params: &ClassParams) {
    let report = calibrated(class, params);
    assert_eq!((report.mode, report.kinds.len()), (IoMode::Emulated, 4));
    let errors = errors(&report, params);
    assert!(errors.iter().all(|(_, error)| error.abs() < 0.05), "{errors:?}");
    let profile = combine(&[report]);
    let measured = profile[class].params();
    let alpha = measured.write.sequential.startup_s / params.write.sequential.startup_s;
    assert!((alpha - 1.0).abs() < 0.05, "the profile has them in the right places: {alpha}");
    assert!(!profile[class].direct_io);
}

#[test]
fn of_a_hard_disk() {
    finds("hdd", &hdd());
}

#[test]
fn of_a_solid_state_disk() {
    finds("ssd", &ssd());
}
