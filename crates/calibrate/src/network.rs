//! Measures e and t between a pair of hosts: one serves, one measures.
//!
//! Protocol, over TCP, all numbers 64-bit little-endian: the client sends the magic, the direction
//! (0: the client sends the bytes, 1: the server does) and the number of bytes. After the bytes,
//! their receiver sends one byte back. A connection carries any number of such exchanges.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::device::Options;
use crate::fit::fit_line;
use crate::report::CalibrateError;
use crate::stats::{Summary, summarize};

const MAGIC: u64 = u64::from_le_bytes(*b"swnet001");
/// Maximum number of bytes that a server sends or receives in one exchange.
const BYTES_MAX: u64 = 64 << 20;
/// After this long without data, the other side is considered gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of clients served at once.
const CLIENTS_MAX: usize = 64;

/// The measurements between two hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkReport {
    /// The server's address.
    pub server: String,
    /// `e`: the time to establish one connection.
    pub establish: Summary,
    /// `t`: seconds per byte, the average of both directions.
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

/// Serves clients forever. `ready` gets the address (with the chosen port, when 0 was requested).
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(address: &str, ready: impl FnOnce(SocketAddr)) -> Result<(), CalibrateError> {
    let fail = |error: std::io::Error| CalibrateError::new(address, format!("cannot listen there: {error}"));
    let listener = TcpListener::bind(address).map_err(fail)?;
    ready(listener.local_addr().map_err(fail)?);
    // Further clients wait in the kernel until a thread is done with its client.
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS_MAX {
            scope.spawn(|| {
                loop {
                    // A client that fails is not served; the others continue.
                    let _ = listener.accept().and_then(|(stream, _)| serve_client(stream));
                }
            });
        }
    });
    Ok(())
}

fn serve_client(mut stream: TcpStream) -> std::io::Result<()> {
    prepare(&stream)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut words = [[0; 8]; 3];
        stream.read_exact(words.as_flattened_mut())?;
        let [magic, direction, bytes] = words.map(u64::from_le_bytes);
        if magic != MAGIC || direction > 1 || bytes > BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        if direction == 0 {
            receive(&mut stream, &mut buffer, bytes)?
        } else {
            send(&mut stream, &buffer, bytes)?
        }
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Returns the lengths in which `bytes` pass through a buffer.
fn pieces(bytes: u64, buffer: usize) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(buffer).map(move |at| (bytes - at).min(buffer as u64) as usize)
}

/// Receives the bytes and acknowledges them.
fn receive(stream: &mut TcpStream, buffer: &mut [u8], bytes: u64) -> std::io::Result<()> {
    for len in pieces(bytes, buffer.len()) {
        stream.read_exact(&mut buffer[..len])?;
    }
    stream.write_all(&[1])
}

/// Sends the bytes and waits until they are acknowledged.
fn send(stream: &mut TcpStream, buffer: &[u8], bytes: u64) -> std::io::Result<()> {
    for len in pieces(bytes, buffer.len()) {
        stream.write_all(&buffer[..len])?;
    }
    stream.read_exact(&mut [0])
}

/// Measures against a server: `establish` from connections made one after the other, `t` as the
/// slope of an exchange's time over its bytes. Calls `progress` with the fraction that is done (0
/// to 1) and the current step.
///
/// # Errors
/// A host that cannot be reached, or that does not run the server.
pub fn measure(
    server: &str,
    options: &Options,
    progress: &mut dyn FnMut(f64, &str),
) -> Result<NetworkReport, CalibrateError> {
    let fail = |error: std::io::Error| {
        let problem = match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "does not speak this protocol".to_owned(),
            _ => error.to_string(),
        };
        CalibrateError::new(server, format!("{problem}; start `stripewise calibrate --serve PORT` there"))
    };
    let address = server.to_socket_addrs().map_err(fail)?.next();
    let address = address.ok_or_else(|| CalibrateError::new(server, "has no address"))?;
    run(server, address, options, progress).map_err(fail)
}

fn run(
    server: &str,
    address: SocketAddr,
    options: &Options,
    progress: &mut dyn FnMut(f64, &str),
) -> std::io::Result<NetworkReport> {
    progress(0.0, "connections");
    let establish = timed(options, || TcpStream::connect_timeout(&address, PATIENCE))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    prepare(&stream)?;
    let sent = exchanges(&mut stream, 0, options, &mut |part| progress(0.05 + part * 0.45, "sending"))?;
    let received = exchanges(&mut stream, 1, options, &mut |part| progress(0.5 + part / 2.0, "receiving"))?;
    let means = |points: &[(u64, Summary)]| -> Vec<(u64, f64)> {
        points.iter().map(|&(bytes, summary)| (bytes, summary.mean_s)).collect()
    };
    let lines = [fit_line(&means(&sent)), fit_line(&means(&received))];
    Ok(NetworkReport {
        server: server.to_owned(),
        establish,
        per_byte_s: (lines[0].per_byte_s + lines[1].per_byte_s) / 2.0,
        per_byte_error_s: lines[0].per_byte_error_s.hypot(lines[1].per_byte_error_s) / 2.0,
        sent,
        received,
    })
}

/// Repeats what `act` does as often and as long as the options say, at least twice, and summarizes
/// the times.
fn timed<T>(options: &Options, mut act: impl FnMut() -> std::io::Result<T>) -> std::io::Result<Summary> {
    let mut times_s = Vec::new();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds_per_point);
    while (times_s.len() as u64) < options.repeats && (times_s.len() < 2 || Instant::now() < until) {
        let began = Instant::now();
        let done = act()?;
        times_s.push(began.elapsed().as_secs_f64());
        drop(done);
    }
    Ok(summarize(times_s, false))
}

fn exchanges(
    stream: &mut TcpStream,
    direction: u64,
    options: &Options,
    progress: &mut dyn FnMut(f64),
) -> std::io::Result<Vec<(u64, Summary)>> {
    let mut buffer = vec![0; 1 << 16];
    let mut points = Vec::new();
    for &bytes in &options.sizes {
        let head = [MAGIC, direction, bytes].map(u64::to_le_bytes).concat();
        let summary = timed(options, || {
            stream.write_all(&head)?;
            if direction == 0 { send(stream, &buffer, bytes) } else { receive(stream, &mut buffer, bytes) }
        })?;
        points.push((bytes, summary));
        progress(points.len() as f64 / options.sizes.len() as f64);
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_beyond_the_limit_wait_until_others_end() {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || serve("127.0.0.1:0", |address| tell.send(address).unwrap()));
        let address = told.recv().unwrap();
        let exchange = |stream: &mut TcpStream| {
            stream.write_all(&[MAGIC, 0, 1].map(u64::to_le_bytes).concat())?;
            send(stream, &[7], 1)
        };
        let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        clients.iter_mut().for_each(|client| exchange(client).unwrap());
        let further: Vec<_> = (0..CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        drop(clients);
        further.into_iter().for_each(|mut client| exchange(&mut client).unwrap());
    }
}
