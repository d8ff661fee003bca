//! Measures e and t of the network: hosts serve, and one or several measure against all of them at
//! once.

mod exchange;
mod serve;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use exchange::{PATIENCE, Request};
use serde::Serialize;
pub use serve::{CLIENTS_MAX, serve};

use crate::device::Options;
use crate::fit::fit_line;
use crate::report::CalibrateError;
use crate::stats::{Summary, summarize};

/// The measurements between hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkReport {
    /// The servers' addresses.
    pub servers: Vec<String>,
    /// Number of clients that measured at once.
    pub clients: u64,
    /// This client's place among them, from 0.
    pub place: u64,
    /// `e`: the time to establish one connection.
    pub establish: Summary,
    /// `t`: seconds per byte of the busiest link, the average of both directions. Each client
    /// exchanges the same bytes with each server, so with s servers and n clients a client's link
    /// carries s times as many bytes as a connection, and a server's n times as many.
    pub per_byte_s: f64,
    /// Standard error of `t`.
    pub per_byte_error_s: f64,
    /// Time of one exchange from the client, by number of bytes.
    pub sent: Vec<(u64, Summary)>,
    /// Time of one exchange to the client, by number of bytes.
    pub received: Vec<(u64, Summary)>,
}

impl NetworkReport {
    /// Number of transfers used.
    pub fn transfers(&self) -> u64 {
        self.sent.iter().chain(&self.received).map(|(_, summary)| summary.samples).sum()
    }
}

/// Measures against servers: `establish` from connections made one after the other, `t` as the
/// slope of an exchange's time over the bytes of the busiest link. With `clients` above 1, that
/// many hosts call this with the same servers and options; they begin each step together. Calls
/// `progress` with the fraction that is done (0 to 1) and the current step.
///
/// # Errors
/// A host that cannot be reached, or that does not run the server; fewer clients than named.
pub fn measure(
    servers: &[String],
    clients: u64,
    options: &Options,
    progress: &mut dyn FnMut(f64, &str),
) -> Result<NetworkReport, CalibrateError> {
    let peers: Vec<Peer<'_>> = servers.iter().map(|server| Peer::new(server)).collect::<Result<_, _>>()?;
    progress(0.0, "connections");
    let establish = establish(&peers, options)?;
    let mut links = Links::open(&peers, clients)?;
    progress(0.0, "waiting for the other clients");
    let place = links.meet()?;
    let sent = links.exchanges(Request::Send, options, &mut |part| progress(0.05 + part * 0.45, "sending"))?;
    let received =
        links.exchanges(Request::Receive, options, &mut |part| progress(0.5 + part / 2.0, "receiving"))?;
    let (per_byte_s, per_byte_error_s) = per_byte(clients.max(servers.len() as u64), &sent, &received);
    Ok(NetworkReport {
        servers: servers.to_vec(),
        clients,
        place,
        establish,
        per_byte_s,
        per_byte_error_s,
        sent,
        received,
    })
}

/// `t` and its standard error, of links that carry `connections` connections each.
fn per_byte(connections: u64, sent: &[(u64, Summary)], received: &[(u64, Summary)]) -> (f64, f64) {
    let [sent, received] = [sent, received].map(|points| {
        let of_link = points.iter().map(|&(bytes, summary)| (bytes * connections, summary.mean_s));
        fit_line(&of_link.collect::<Vec<_>>())
    });
    let error_s = sent.per_byte_error_s.hypot(received.per_byte_error_s) / 2.0;
    ((sent.per_byte_s + received.per_byte_s) / 2.0, error_s)
}

/// A server to measure against.
struct Peer<'a> {
    name: &'a str,
    address: SocketAddr,
}

impl<'a> Peer<'a> {
    fn new(name: &'a str) -> Result<Self, CalibrateError> {
        let address = name.to_socket_addrs().map_err(failed(name))?.next();
        let address = address.ok_or_else(|| CalibrateError::new(name, "has no address"))?;
        Ok(Self { name, address })
    }

    fn connect(&self) -> Result<TcpStream, CalibrateError> {
        TcpStream::connect_timeout(&self.address, PATIENCE).map_err(failed(self.name))
    }
}

fn failed(server: &str) -> impl Fn(std::io::Error) -> CalibrateError {
    move |error| {
        let problem = match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "does not speak this protocol".to_owned(),
            _ => error.to_string(),
        };
        CalibrateError::new(server, format!("{problem}; start `stripewise calibrate --serve PORT` there"))
    }
}

fn establish(peers: &[Peer<'_>], options: &Options) -> Result<Summary, CalibrateError> {
    let mut turn = peers.iter().cycle();
    let times_s = timed(options.repeats, options, || turn.next().map(Peer::connect).transpose())?;
    Ok(summarize(times_s, false))
}

/// Repeats what `act` does as often and as long as said, at least twice, and returns the seconds
/// that each took.
fn timed<T, E>(repeats: u64, options: &Options, mut act: impl FnMut() -> Result<T, E>) -> Result<Vec<f64>, E> {
    let mut times_s = Vec::new();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds_per_point);
    while (times_s.len() as u64) < repeats && (times_s.len() < 2 || Instant::now() < until) {
        let began = Instant::now();
        let done = act()?;
        times_s.push(began.elapsed().as_secs_f64());
        drop(done);
    }
    Ok(times_s)
}

/// A connection to each server.
struct Links<'a> {
    streams: Vec<(&'a str, TcpStream)>,
    clients: u64,
}

impl<'a> Links<'a> {
    fn open(peers: &[Peer<'a>], clients: u64) -> Result<Self, CalibrateError> {
        let connected = |peer: &Peer<'a>| {
            let stream = peer.connect()?;
            exchange::prepare(&stream).map_err(failed(peer.name))?;
            Ok((peer.name, stream))
        };
        Ok(Self { streams: peers.iter().map(connected).collect::<Result<_, _>>()?, clients })
    }

    /// Waits for the other clients, and returns this one's place among them.
    fn meet(&mut self) -> Result<u64, CalibrateError> {
        let Some((server, stream)) = self.streams.first_mut().filter(|_| self.clients > 1) else {
            return Ok(0);
        };
        let place = Request::Meet(self.clients)
            .write(stream)
            .and_then(|()| exchange::answered(stream, serve::MEETING_PATIENCE + PATIENCE));
        place.map_err(failed(server))?.ok_or_else(|| {
            let clients = self.clients;
            CalibrateError::new(*server, format!("not all of {clients} clients have come within a minute; start them together, with the same --clients"))
        })
    }

    /// Exchanges requests of every size with all servers at once.
    fn exchanges(
        &mut self,
        request: fn(u64) -> Request,
        options: &Options,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Vec<(u64, Summary)>, CalibrateError> {
        // With several connections the time alone ends a step, so that all of them stay busy.
        let is_pair = self.clients == 1 && self.streams.len() == 1;
        let repeats = if is_pair { options.repeats } else { u64::MAX };
        let mut points = Vec::new();
        for &bytes in &options.sizes {
            self.meet()?;
            let times_s = self.at_once(request(bytes), repeats, options)?;
            points.push((bytes, summarize(times_s, false)));
            progress(points.len() as f64 / options.sizes.len() as f64);
        }
        Ok(points)
    }

    fn at_once(
        &mut self,
        request: Request,
        repeats: u64,
        options: &Options,
    ) -> Result<Vec<f64>, CalibrateError> {
        let on = |server: &str, stream: &mut TcpStream| {
            let mut buffer = vec![0; 1 << 16];
            timed(repeats, options, || request.make(stream, &mut buffer)).map_err(failed(server))
        };
        let times_s: Result<Vec<Vec<f64>>, CalibrateError> = std::thread::scope(|scope| {
            let streams = self.streams.iter_mut();
            let running: Vec<_> = streams.map(|(server, stream)| scope.spawn(|| on(server, stream))).collect();
            let gone = |_| Err(CalibrateError::new("this host", "a measuring thread has ended"));
            running.into_iter().map(|thread| thread.join().unwrap_or_else(gone)).collect()
        });
        Ok(times_s?.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_the_bytes_of_its_connections() {
        let points = |startup_s: f64, per_byte_s: f64| {
            let mean_s = |bytes: u64| startup_s + 3.0 * bytes as f64 * per_byte_s;
            (12..=22)
                .map(|shift| (1 << shift, Summary { mean_s: mean_s(1 << shift), ..Summary::default() }))
                .collect::<Vec<_>>()
        };
        let (per_byte_s, error_s) = per_byte(3, &points(1e-4, 1e-9), &points(2e-4, 3e-9));
        assert!((per_byte_s - 2e-9).abs() < 1e-15 && error_s < 1e-12, "{per_byte_s} {error_s}");
    }
}
