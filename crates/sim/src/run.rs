//! One run: the events in order of time.

use std::ops::Range;

use stripewise_model::Op;

use crate::ends::Order;
use crate::file::File;
use crate::network::{Moving, Place, after_connecting};
use crate::process::{Handle, Process, Sender};
use crate::queue::Event;
use crate::{Outcome, Simulator, Step, Streams};

impl Simulator {
    /// Runs an application. All processes run concurrently, and each performs its steps in order.
    /// Returns when the last one has ended.
    ///
    /// # Panics
    /// A request on a file that was not opened, or that ends past 2^63.
    pub fn run(&mut self, streams: &mut dyn Streams) -> Outcome {
        let began_ns = self.now_ns;
        self.begin(streams);
        while self.alive > 0 {
            let Some((now_ns, event)) = self.queue.pop() else { break };
            self.now_ns = now_ns;
            match event {
                Event::Ready(process) => self.step(process, streams),
                Event::Closed(process) => self.closed(process),
                Event::Copied(file) => self.copied(file),
                Event::Look(file) => self.look(file),
                Event::Moves(number) => self.moves(number),
            }
        }
        let ends_s = self.processes.iter().map(|process| seconds(process.ended_ns - began_ns)).collect();
        Outcome { ends_s, ..self.end(began_ns) }
    }

    /// Starts all processes.
    fn begin(&mut self, streams: &dyn Streams) {
        let count = streams.processes();
        let process = |process| Process { node: streams.node_of(process), ..Process::default() };
        self.processes = (0..count).map(process).collect();
        self.begin_counting();
        if let Some(net) = &mut self.net {
            net.begin(self.processes.iter().map(|process| process.node as usize + 1).max().unwrap_or(0));
        }
        self.alive = count;
        for process in 0..count {
            self.queue.push(self.now_ns, Event::Ready(process));
        }
    }

    /// Closes everything that processes had open, and resets the counters.
    pub(crate) fn begin_counting(&mut self) {
        self.ends.clear();
        self.servers.begin();
        self.queue.clear();
        self.waiting.clear();
        self.outcome = Outcome::default();
        self.stop_copying();
    }

    /// The results since `began_ns`.
    pub(crate) fn end(&mut self, began_ns: u64) -> Outcome {
        let outcome = std::mem::take(&mut self.outcome);
        Outcome { servers: self.servers.used(), elapsed_s: seconds(self.now_ns - began_ns), ..outcome }
    }

    /// Continues a process up to its next request.
    fn step(&mut self, process: u32, streams: &mut dyn Streams) {
        loop {
            match streams.next(process) {
                Some(Step::Request { size: 0, .. }) => {}
                Some(Step::Request { file, op, offset, size }) => {
                    self.outcome.requests += 1;
                    self.outcome.bytes += size;
                    if let Some(done_ns) = self.request(process, file, op, offset..offset + size) {
                        self.queue.push(done_ns, Event::Ready(process));
                    }
                    return;
                }
                Some(Step::Compute { seconds }) => {
                    return self
                        .queue
                        .push(self.now_ns + (seconds.max(0.0) * 1e9) as u64, Event::Ready(process));
                }
                Some(Step::Barrier) => {
                    self.waiting.push(process);
                    return self.meet();
                }
                None => return self.close_all(process),
            }
        }
    }

    /// Closes the files of a process that has no more steps. The process ends when that is done.
    fn close_all(&mut self, process: u32) {
        let of_process = &mut self.processes[process as usize];
        let others = std::mem::take(&mut of_process.others);
        let handles = of_process.last.take().into_iter().chain(others);
        let waits = handles.filter(|handle| self.close(process, handle.file)).count();
        self.processes[process as usize].waits_for = waits as u32;
        if waits == 0 {
            self.ended(process);
        }
    }

    fn closed(&mut self, process: u32) {
        let waits_for = &mut self.processes[process as usize].waits_for;
        *waits_for -= 1;
        if *waits_for == 0 {
            self.ended(process);
        }
    }

    fn ended(&mut self, process: u32) {
        let process = &mut self.processes[process as usize];
        process.ended_ns = self.now_ns;
        process.memory = None;
        self.alive -= 1;
        self.meet();
    }

    /// Continues the waiting processes if all processes wait.
    fn meet(&mut self) {
        if self.waiting.len() as u32 == self.alive {
            for process in std::mem::take(&mut self.waiting) {
                self.queue.push(self.now_ns, Event::Ready(process));
            }
        }
    }

    /// Issues a request. Returns when it is done, ns; `None` if that is not known yet.
    #[inline]
    fn request(&mut self, process: u32, file: u32, op: Op, range: Range<u64>) -> Option<u64> {
        let handle = self.handle(process, file);
        if let File::Copies(_) = self.files.files[file as usize] {
            return self.request_copies(process, handle, op, range);
        }
        self.cut(handle, 0, std::iter::once(range));
        self.send(handle, 0, op, Sender::Process(process))
    }

    /// Divides ranges of a copy into sub-requests, in `self.subs`, and tracks their order.
    #[inline]
    pub(crate) fn cut(&mut self, handle: Handle, copy: usize, ranges: impl Iterator<Item = Range<u64>>) {
        let (placed, _) = self.files.placed_of(handle.file, copy);
        self.subs.clear();
        self.scratch.begin(placed);
        for range in ranges {
            placed.cut(range.start, range.end - range.start, &mut self.scratch, &mut self.subs);
            self.ends.go_on(handle.order, copy, range);
        }
    }

    /// Sends `self.subs` to the servers of a copy. Returns when all are done, ns, if that is known:
    /// the requests of processes go through the network, if it is simulated.
    #[inline]
    pub(crate) fn send(&mut self, handle: Handle, copy: usize, op: Op, sender: Sender) -> Option<u64> {
        let (placed, base) = self.files.placed_of(handle.file, copy);
        let mut network = None;
        if let Sender::Process(process) = sender {
            self.outcome.sub_requests += self.subs.len() as u64;
            network = self.net.as_mut().map(|net| (net, process, &mut self.processes[process as usize]));
        }
        if let Some((_, _, of_process)) = &mut network {
            // In the order of the data path: the sub-request that begins first in the file is sent
            // first.
            self.subs.sort_by_cached_key(|sub| placed.layout.file_offset(sub.object, sub.offset));
            of_process.waits_for += self.subs.len() as u32;
        }
        let mut done_ns = self.now_ns;
        for sub in &self.subs {
            let sequential = self.ends.is_sequential(handle.order, copy, base, sub, &placed.layout);
            let (server, bytes) = (placed.servers[sub.object as usize], sub.bytes);
            let service_ns = self.servers.service_ns(server, sender.number(), op, sequential, bytes);
            if let Some((net, process, of_process)) = &mut network {
                let (process, node, at) = (*process, of_process.node, Place::Connects);
                let moving = Moving { process, node, server, op, bytes, service_ns, at };
                let (number, next_ns) = net.start(self.now_ns, moving);
                self.queue.push(next_ns, Event::Moves(number));
            } else {
                done_ns = done_ns.max(self.servers.serve(server, self.now_ns, service_ns, bytes));
            }
        }
        network.is_none().then_some(done_ns)
    }

    /// Performs the next step of a sub-request in the network.
    fn moves(&mut self, number: u32) {
        let (Some(net), now_ns) = (&mut self.net, self.now_ns) else { return };
        let moving = *net.moving(number);
        let is_write = moving.op == Op::Write;
        let (next_ns, next) = match moving.at {
            Place::Connects => (net.connect(moving.server, now_ns), Some(after_connecting(moving.op))),
            Place::Sends => (net.pass(&moving, is_write, now_ns), Some(Place::Arrives)),
            Place::Arrives => {
                let end_ns = net.pass(&moving, !is_write, now_ns) + net.transfer_ns(moving.bytes);
                (end_ns, is_write.then_some(Place::Serves))
            }
            Place::Serves => {
                let end_ns = self.servers.serve(moving.server, now_ns, moving.service_ns, moving.bytes);
                (end_ns, (!is_write).then_some(Place::Sends))
            }
        };
        match next {
            Some(next) => {
                net.moving(number).at = next;
                self.queue.push(next_ns, Event::Moves(number));
            }
            None => {
                net.end(number);
                self.arrived(moving.process, next_ns);
            }
        }
    }

    /// Records that a sub-request of a process will be done at `done_ns`.
    fn arrived(&mut self, process: u32, done_ns: u64) {
        let of_process = &mut self.processes[process as usize];
        of_process.done_ns = of_process.done_ns.max(done_ns);
        of_process.waits_for -= 1;
        if of_process.waits_for == 0 {
            let done_ns = of_process.done_ns;
            self.request_ended(process);
            self.queue.push(done_ns, Event::Ready(process));
        }
    }

    /// The process's handle of a file.
    #[inline]
    fn handle(&mut self, process: u32, file: u32) -> Handle {
        let of_process = &self.processes[process as usize];
        if let Some(last) = of_process.last.filter(|last| last.file == file) {
            return last;
        }
        let handle = match of_process.others.iter().position(|handle| handle.file == file) {
            Some(place) => self.processes[process as usize].others.swap_remove(place),
            None => self.new_handle(file),
        };
        let of_process = &mut self.processes[process as usize];
        of_process.others.extend(of_process.last.replace(handle));
        handle
    }

    /// A handle for a new user of a file.
    pub(crate) fn new_handle(&mut self, file: u32) -> Handle {
        let order = if self.servers.order_matters {
            let (objects, copies) = self.files.size(file);
            self.ends.add(objects, copies, self.options.order_memory)
        } else {
            Order::Ignored
        };
        Handle { file, order }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
