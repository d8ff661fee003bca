//! The path of sub-requests through the network.
//!
//! For a request over k servers, each of which q processes share, c of them on one node, the
//! paper's model has `T_e = max(c·k, q)·e` and `T_x = max(c·S, q·b)·t`. The simulator models these
//! terms as follows:
//!
//! - A connection is established for every sub-request. It keeps the client's node busy for e, and
//!   the server for e, both FIFO. The server's part begins with the node's at the earliest, so a
//!   connection that nothing delays takes e.
//! - The bytes then keep the NIC of the node and that of the server busy for t per byte, FIFO and
//!   *cut-through*: the receiver begins with the sender at the earliest, so a transfer of b bytes
//!   that nothing delays takes b·t. The sender's NIC is free again after b·t, whether or not the
//!   receiver has begun (its queue holds what was sent).
//! - A write is sent, then served; a read is served, then sent. Requests themselves and replies
//!   without data take no time.
//!
//! All sub-requests of one request start at once, so their connections, transfers and service
//! overlap. A request over several servers takes at most the time of the model, one over a single
//! server exactly that. Background copying does not use the network.

use std::collections::VecDeque;

use stripewise_model::{Network, Op};

/// A sub-request in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub process: u32,
    pub node: u32,
    pub server: u32,
    pub op: Op,
    pub bytes: u64,
    pub service_ns: u64,
    pub at: Place,
}

/// The next step of a sub-request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The server accepts the connection.
    Connects,
    /// The sender's NIC transfers the bytes: the node's for writes, the server's for reads.
    Sends,
    /// The receiver's NIC takes the bytes.
    Arrives,
    /// The server works on the sub-request.
    Serves,
}

/// The network end of a node or server.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// Times until which the end establishes connections and transfers bytes, ns.
    connects_until_ns: u64,
    transfers_until_ns: u64,
}

/// The network of all nodes and servers.
#[derive(Debug, Default)]
pub(crate) struct Net {
    establish_ns: u64,
    per_byte_ns: f64,
    nodes: Vec<End>,
    servers: Vec<End>,
    /// The sub-requests by number, from the oldest one in the network on. Numbers are in the order
    /// of their starts, which decides which of two comes first that arrive together.
    moving: VecDeque<Option<Moving>>,
    /// The number of `moving[0]`; numbers wrap around.
    first: u32,
}

impl Net {
    pub fn new(network: &Network, servers: usize) -> Self {
        Self {
            establish_ns: (network.establish_s * 1e9).round() as u64,
            per_byte_ns: network.per_byte_s * 1e9,
            servers: vec![End::default(); servers],
            ..Self::default()
        }
    }

    /// Begins a run with nodes 0 to `nodes` - 1.
    pub fn begin(&mut self, nodes: usize) {
        self.nodes.clear();
        self.nodes.resize(nodes, End::default());
        self.moving.clear();
    }

    /// Begins a sub-request, which connects first. Returns its number, and the time of its next
    /// step, ns.
    pub fn start(&mut self, now_ns: u64, mut moving: Moving) -> (u32, u64) {
        let mut next_ns = now_ns;
        if self.establish_ns > 0 {
            let node = &mut self.nodes[moving.node as usize];
            next_ns = reserve(&mut node.connects_until_ns, now_ns, self.establish_ns);
        } else {
            moving.at = after_connecting(moving.op);
        }
        self.moving.push_back(Some(moving));
        (self.first.wrapping_add(self.moving.len() as u32 - 1), next_ns)
    }

    /// A sub-request in the network, by its number.
    pub fn moving(&mut self, number: u32) -> &mut Moving {
        let place = &mut self.moving[number.wrapping_sub(self.first) as usize];
        place.as_mut().expect("it is in the network until its end")
    }

    /// The sub-request has left the network.
    pub fn end(&mut self, number: u32) {
        self.moving[number.wrapping_sub(self.first) as usize] = None;
        while let Some(None) = self.moving.front() {
            self.moving.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// The server accepts a connection. Returns when the connection is established, ns.
    pub fn connect(&mut self, server: u32, now_ns: u64) -> u64 {
        reserve(&mut self.servers[server as usize].connects_until_ns, now_ns, self.establish_ns)
            + self.establish_ns
    }

    /// Moves the bytes through the NIC at one end. Returns when the transfer begins, ns.
    pub fn pass(&mut self, moving: &Moving, at_node: bool, now_ns: u64) -> u64 {
        let took_ns = self.transfer_ns(moving.bytes);
        let end = match at_node {
            true => &mut self.nodes[moving.node as usize],
            false => &mut self.servers[moving.server as usize],
        };
        reserve(&mut end.transfers_until_ns, now_ns, took_ns)
    }

    /// The time that bytes take to pass a NIC, ns.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.per_byte_ns + 0.5) as u64
    }
}

/// The step after the connection is established.
pub(crate) fn after_connecting(op: Op) -> Place {
    match op {
        Op::Write => Place::Sends,
        Op::Read => Place::Serves,
    }
}

/// Reserves a FIFO resource for `took_ns`. Returns when the reservation begins, ns.
fn reserve(until_ns: &mut u64, now_ns: u64, took_ns: u64) -> u64 {
    let begin_ns = now_ns.max(*until_ns);
    *until_ns = begin_ns + took_ns;
    begin_ns
}
