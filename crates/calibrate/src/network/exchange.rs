//! What client and server say to each other.
//!
//! Over TCP, all numbers 64-bit little-endian: the client sends the magic, what it wants, and a
//! number. For bytes (0: the client sends them, 1: the server does) the number is how many; after
//! them, their receiver sends one byte back. For a meeting (2) the number is how many clients meet;
//! the answer is the client's place among them, from 0, or `u64::MAX` if not all came in time. A
//! connection carries any number of such exchanges.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MAGIC: u64 = u64::from_le_bytes(*b"swnet001");
/// Maximum number of bytes that a server sends or receives in one exchange.
const BYTES_MAX: u64 = 64 << 20;
/// After this long without data, the other side is considered gone.
pub const PATIENCE: Duration = Duration::from_secs(20);
const NOT_ALL_CAME: u64 = u64::MAX;

/// What a client wants.
#[derive(Clone, Copy)]
pub enum Request {
    /// The client sends so many bytes.
    Send(u64),
    /// The client receives so many bytes.
    Receive(u64),
    /// The client waits for so many clients, itself included.
    Meet(u64),
}

impl Request {
    pub fn write(self, stream: &mut TcpStream) -> std::io::Result<()> {
        let (kind, number) = match self {
            Self::Send(bytes) => (0, bytes),
            Self::Receive(bytes) => (1, bytes),
            Self::Meet(clients) => (2, clients),
        };
        stream.write_all([MAGIC, kind, number].map(u64::to_le_bytes).as_flattened())
    }

    /// Asks for bytes, and moves them.
    pub fn make(self, stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
        self.write(stream)?;
        match self {
            Self::Send(bytes) => send(stream, buffer, bytes),
            Self::Receive(bytes) => receive(stream, buffer, bytes),
            Self::Meet(_) => Ok(()),
        }
    }

    pub fn read(stream: &mut TcpStream) -> std::io::Result<Self> {
        let mut words = [[0; 8]; 3];
        stream.read_exact(words.as_flattened_mut())?;
        match words.map(u64::from_le_bytes) {
            [MAGIC, 0, bytes] if bytes <= BYTES_MAX => Ok(Self::Send(bytes)),
            [MAGIC, 1, bytes] if bytes <= BYTES_MAX => Ok(Self::Receive(bytes)),
            [MAGIC, 2, clients] => Ok(Self::Meet(clients)),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

pub fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Returns the lengths in which `bytes` pass through a buffer.
fn pieces(bytes: u64, buffer: usize) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(buffer).map(move |at| (bytes - at).min(buffer as u64) as usize)
}

/// Receives the bytes and acknowledges them.
pub fn receive(stream: &mut TcpStream, buffer: &mut [u8], bytes: u64) -> std::io::Result<()> {
    for len in pieces(bytes, buffer.len()) {
        stream.read_exact(&mut buffer[..len])?;
    }
    stream.write_all(&[1])
}

/// Sends the bytes and waits until they are acknowledged.
pub fn send(stream: &mut TcpStream, buffer: &[u8], bytes: u64) -> std::io::Result<()> {
    for len in pieces(bytes, buffer.len()) {
        stream.write_all(&buffer[..len])?;
    }
    stream.read_exact(&mut [0])
}

/// Tells a client its place in a meeting, or that not all came.
pub fn answer(stream: &mut TcpStream, place: Option<u64>) -> std::io::Result<()> {
    stream.write_all(&place.unwrap_or(NOT_ALL_CAME).to_le_bytes())
}

/// Reads what [`answer`] writes. The server's patience is longer than that for bytes.
pub fn answered(stream: &mut TcpStream, patience: Duration) -> std::io::Result<Option<u64>> {
    let mut place = [0; 8];
    stream.set_read_timeout(Some(patience))?;
    stream.read_exact(&mut place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(Some(u64::from_le_bytes(place)).filter(|&place| place != NOT_ALL_CAME))
}
