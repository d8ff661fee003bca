//! All values that no model can be evaluated with, and their error messages.

use super::{DISK, ETHERNET, FLASH};
use crate::Striping::{OneDh, TwoD};
use crate::cil::Cil;
use crate::psa::Psa;
use crate::sla::Sla;
use crate::{ModelError, Network, Server, Service};

fn message<T: std::fmt::Debug>(result: Result<T, ModelError>) -> String {
    result.expect_err("must be refused").to_string()
}

#[test]
fn times() {
    for bad in [-1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let must = format!("is {bad}; it must be a finite number of seconds, 0 or more");
        let network = Network { establish_s: bad, ..ETHERNET };
        let expected = format!("establishing a connection (e) {must}");
        assert_eq!(message(Cil::new(network, DISK, 1, 1, 1)), expected);
        let network = Network { per_byte_s: bad, ..ETHERNET };
        let expected = format!("the network time per byte (t) {must}");
        assert_eq!(message(Psa::new(network, (1, DISK), (1, FLASH), 1, 1)), expected);
        let service = Service { startup_s: bad, ..DISK };
        let expected = format!("the startup time (alpha) {must}");
        assert_eq!(message(Cil::new(ETHERNET, service, 1, 1, 1)), expected);
        assert_eq!(message(Psa::new(ETHERNET, (1, service), (1, FLASH), 1, 1)), expected);
        assert_eq!(message(Psa::new(ETHERNET, (1, DISK), (1, service), 1, 1)), expected);
        assert_eq!(message(Sla::new(service, 1, 1, 1)), expected);
        let service = Service { per_byte_s: bad, ..DISK };
        let expected = format!("the I/O time per byte (beta) {must}");
        assert_eq!(message(Server::new(service, 1)), expected);
    }
}

#[test]
fn counts() {
    let zero = |what| format!("{what} is 0; it must be at least 1");
    assert_eq!(message(Cil::new(ETHERNET, DISK, 0, 1, 1)), zero("the number of servers"));
    assert_eq!(message(Cil::new(ETHERNET, DISK, 1, 0, 1)), zero("the number of processes"));
    assert_eq!(message(Cil::new(ETHERNET, DISK, 1, 1, 0)), zero("the number of processes per node"));
    let more_per_node = "3 processes per node, but only 2 processes; give at most as many per node";
    assert_eq!(message(Cil::new(ETHERNET, DISK, 1, 2, 3)), more_per_node);
    assert_eq!(message(Psa::new(ETHERNET, (0, DISK), (0, FLASH), 1, 1)), zero("the number of servers"));
    assert_eq!(message(Psa::new(ETHERNET, (1, DISK), (0, FLASH), 2, 3)), more_per_node);
    assert_eq!(message(Sla::new(DISK, 0, 1, 1)), zero("the number of servers"));
    assert_eq!(message(Sla::new(DISK, 1, 0, 1)), zero("the number of processes"));
    assert_eq!(message(Sla::new(DISK, 1, 1, 0)), zero("the stripe"));
    let no_hservers = Psa::new(ETHERNET, (0, DISK), (1, FLASH), 1, 1).unwrap();
    assert_eq!(message(no_hservers.homogeneous(1.0)), zero("the number of HServers"));
}

#[test]
fn groups() {
    let cil = Cil::new(ETHERNET, DISK, 4, 1, 1).unwrap();
    let must = "groups of 4 servers; 2-D needs 1 to 4 groups";
    assert_eq!(message(cil.cost(TwoD { groups: 0 }, 1.0)), format!("0 {must}"));
    assert_eq!(message(cil.view(TwoD { groups: 5 })), format!("5 {must}"));
    let sla = Sla::new(DISK, 4, 1, 1).unwrap();
    assert_eq!(message(sla.cost(TwoD { groups: 5 }, 0, 1)), format!("5 {must}"));
}

#[test]
fn sizes() {
    let cil = Cil::new(ETHERNET, DISK, 4, 1, 1).unwrap();
    let psa = Psa::new(ETHERNET, (1, DISK), (1, FLASH), 1, 1).unwrap();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("the request size is {bad} bytes; it must be a finite number above 0");
        assert_eq!(message(cil.cost(OneDh, bad)), expected);
        assert_eq!(message(psa.homogeneous(bad)), expected);
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let must = format!("is {bad} bytes; it must be a finite number of 0 or more");
        assert_eq!(message(psa.heterogeneous(bad, 1.0)), format!("the stripe on HServers {must}"));
        assert_eq!(message(psa.heterogeneous(1.0, bad)), format!("the stripe on SServers {must}"));
    }
    assert!(message(psa.heterogeneous(0.0, 0.0)).starts_with("the request size is 0 bytes"));
    let sla = Sla::new(DISK, 4, 1, 1).unwrap();
    assert!(message(sla.cost(OneDh, 0, 0)).starts_with("the request size is 0 bytes"));
    for (offset, size) in [(u64::MAX, 1), (1, i64::MAX as u64)] {
        let expected = format!("a request of {size} bytes at offset {offset} ends past 2^63");
        assert_eq!(message(sla.cost(OneDh, offset, size)), expected);
    }
}
