//! The side that is measured against.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::exchange::{self, Request};
use crate::report::CalibrateError;

/// Maximum number of clients served at once.
pub const CLIENTS_MAX: usize = 64;
/// The first client of a meeting waits this long for the last one.
pub const MEETING_PATIENCE: Duration = Duration::from_secs(60);

/// Serves clients forever. `ready` gets the address (with the chosen port, when 0 was requested).
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(address: &str, ready: impl FnOnce(SocketAddr)) -> Result<(), CalibrateError> {
    let fail = |error: std::io::Error| CalibrateError::new(address, format!("cannot listen there: {error}"));
    let listener = TcpListener::bind(address).map_err(fail)?;
    ready(listener.local_addr().map_err(fail)?);
    let meeting = Meeting::new(MEETING_PATIENCE);
    // Further clients wait in the kernel until a thread is done with its client.
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS_MAX {
            scope.spawn(|| {
                loop {
                    // A client that fails is not served; the others continue.
                    let _ = listener.accept().and_then(|(stream, _)| serve_client(stream, &meeting));
                }
            });
        }
    });
    Ok(())
}

fn serve_client(mut stream: TcpStream, meeting: &Meeting) -> std::io::Result<()> {
    exchange::prepare(&stream)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match Request::read(&mut stream)? {
            Request::Send(bytes) => exchange::receive(&mut stream, &mut buffer, bytes)?,
            Request::Receive(bytes) => exchange::send(&mut stream, &buffer, bytes)?,
            Request::Meet(clients) => exchange::answer(&mut stream, meeting.join(clients))?,
        }
    }
}

/// Where clients wait for each other, again and again.
struct Meeting {
    patience: Duration,
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    /// The number that the first client of this meeting named.
    wanted: u64,
    came: u64,
    /// Number of meetings that are over.
    over: u64,
    /// The last meeting that not all came to, counted like `over`.
    failed: Option<u64>,
}

impl Meeting {
    fn new(patience: Duration) -> Self {
        Self { patience, state: Mutex::default(), over: Condvar::new() }
    }

    /// Waits until as many clients have come as all of them name, and returns this one's place
    /// among them. `None` if they name different numbers, or not all of them come in time.
    fn join(&self, clients: u64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.came == 0 {
            state.wanted = clients;
        } else if state.wanted != clients {
            return None;
        }
        let (place, own) = (state.came, state.over);
        state.came += 1;
        if state.came == clients {
            self.end(&mut state);
            return Some(place);
        }
        let waited = self.over.wait_timeout_while(state, self.patience, |state| state.over == own);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.over == own {
            state.failed = Some(own);
            self.end(&mut state);
        }
        (state.failed != Some(own)).then_some(place)
    }

    fn end(&self, state: &mut State) {
        (state.came, state.over) = (0, state.over + 1);
        self.over.notify_all();
    }
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
            Request::Send(1).write(stream)?;
            exchange::send(stream, &[7], 1)
        };
        let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        clients.iter_mut().for_each(|client| exchange(client).unwrap());
        let further: Vec<_> = (0..CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        drop(clients);
        further.into_iter().for_each(|mut client| exchange(&mut client).unwrap());
    }

    #[test]
    fn all_who_come_to_a_meeting_get_a_place_again_and_again() {
        let meeting = Meeting::new(MEETING_PATIENCE);
        for _ in 0..100 {
            let mut places: Vec<_> = std::thread::scope(|scope| {
                let waiting: Vec<_> = (0..5).map(|_| scope.spawn(|| meeting.join(5))).collect();
                waiting.into_iter().map(|client| client.join().unwrap()).collect()
            });
            places.sort_unstable();
            assert_eq!(places, (0..5).map(Some).collect::<Vec<_>>());
        }
        assert_eq!(meeting.join(1), Some(0), "one meets itself");
    }

    #[test]
    fn a_meeting_that_not_all_come_to_is_over_for_all() {
        let meeting = Meeting::new(Duration::from_millis(50));
        let places: Vec<_> = std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| meeting.join(4))).collect();
            waiting.into_iter().map(|client| client.join().unwrap()).collect()
        });
        assert_eq!(places, [None; 3]);
        assert_eq!(meeting.join(1), Some(0), "the next meeting is a new one");
    }

    #[test]
    fn a_client_that_expects_another_number_is_refused() {
        let meeting = Meeting::new(MEETING_PATIENCE);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| meeting.join(2));
            while meeting.state.lock().unwrap().came == 0 {
                std::thread::yield_now();
            }
            assert_eq!(meeting.join(3), None);
            assert_eq!(meeting.join(2), Some(1));
            assert_eq!(first.join().unwrap(), Some(0));
        });
    }
}
