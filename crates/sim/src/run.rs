//! One run: events in order of time.

use stripewise_model::Op;

use crate::ends::Order;
use crate::process::{Handle, Process};
use crate::{Outcome, Simulator, Step, Streams};

impl Simulator {
    /// All processes start.
    pub(crate) fn begin(&mut self, streams: &dyn Streams) {
        let count = streams.processes();
        let process = |process| Process { node: streams.node_of(process), ..Process::default() };
        self.processes = (0..count).map(process).collect();
        self.ends.clear();
        self.servers.begin();
        self.queue.clear();
        self.waiting.clear();
        self.alive = count;
        self.outcome = Outcome::default();
        for process in 0..count {
            self.queue.push(self.now_ns, u64::from(process));
        }
    }

    /// Until the last process has ended.
    pub(crate) fn go(&mut self, streams: &mut dyn Streams) {
        while self.alive > 0 {
            let Some((now_ns, event)) = self.queue.pop() else { return };
            self.now_ns = now_ns;
            self.step(event as u32, streams);
        }
    }

    pub(crate) fn end(&mut self, began_ns: u64) -> Outcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        self.servers.count(&mut outcome);
        let seconds = |at_ns: u64| (at_ns - began_ns) as f64 / 1e9;
        outcome.ends_s = self.processes.iter().map(|process| seconds(process.ended_ns)).collect();
        outcome.elapsed_s = outcome.ends_s.iter().copied().fold(0.0, f64::max);
        outcome
    }

    /// A process goes on, up to its next request.
    fn step(&mut self, process: u32, streams: &mut dyn Streams) {
        loop {
            match streams.next(process) {
                Some(Step::Request { size: 0, .. }) => {}
                Some(Step::Request { file, op, offset, size }) => {
                    self.outcome.requests += 1;
                    self.outcome.bytes += size;
                    let done_ns = self.request(process, file, op, offset, size);
                    return self.queue.push(done_ns, u64::from(process));
                }
                Some(Step::Compute { seconds }) => {
                    let until_ns = self.now_ns + (seconds.max(0.0) * 1e9) as u64;
                    return self.queue.push(until_ns, u64::from(process));
                }
                Some(Step::Barrier) => {
                    self.waiting.push(process);
                    return self.meet();
                }
                None => {
                    self.processes[process as usize].ended_ns = self.now_ns;
                    self.alive -= 1;
                    return self.meet();
                }
            }
        }
    }

    /// Those who wait go on, if everybody does.
    fn meet(&mut self) {
        if self.waiting.len() as u32 == self.alive {
            for process in self.waiting.drain(..) {
                self.queue.push(self.now_ns, u64::from(process));
            }
        }
    }

    /// A request on a file with one copy: when it is done, ns.
    fn request(&mut self, process: u32, file: u32, op: Op, offset: u64, size: u64) -> u64 {
        let order = self.handle(process, file).order;
        let placed = &self.files.placed[self.files.files[file as usize].copies[0] as usize];
        self.subs.clear();
        placed.cut(offset, size, &mut self.scratch, &mut self.subs);
        self.outcome.sub_requests += self.subs.len() as u64;
        let went_on = self.ends.go_on(order, 0, offset, offset + size);
        let mut done_ns = self.now_ns;
        for sub in &self.subs {
            let sequential = self.ends.is_sequential(order, 0, sub, &placed.layout, went_on);
            let server = placed.servers[sub.component as usize];
            let service_ns = self.servers.service_ns(server, op, sequential, sub.bytes);
            done_ns = done_ns.max(self.servers.serve(server, self.now_ns, service_ns, sub.bytes));
        }
        done_ns
    }

    /// The process's use of the file.
    #[inline]
    fn handle(&mut self, process: u32, file: u32) -> Handle {
        let handles = &mut self.processes[process as usize].handles;
        match handles.iter().position(|handle| handle.file == file) {
            Some(0) => handles[0],
            Some(place) => {
                handles.swap(0, place);
                handles[0]
            }
            None => {
                let of_file = &self.files.files[file as usize];
                let copies =
                    of_file.copies.iter().map(|&placed| self.files.placed[placed as usize].servers.len());
                let order = if self.servers.order_matters {
                    self.ends.add(copies.sum(), of_file.copies.len(), self.options.order_memory)
                } else {
                    Order::Ignored
                };
                handles.insert(0, Handle { file, order });
                handles[0]
            }
        }
    }
}
