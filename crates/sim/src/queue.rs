//! The event queue, a heap.

/// Events ordered by time. Of events at the same time the one with the lowest number comes first,
/// so that the result does not depend on the order of calls.
///
/// The last event taken leaves its place open. Usually the next event of the same process takes
/// that place, which halves the work.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: Vec<(u64, u64)>,
    open: bool,
}

/// Children per node. This gives fewer levels than a binary heap, with siblings adjacent in memory.
const WIDE: usize = 4;

impl Queue {
    /// Adds an event at a time, ns.
    pub fn push(&mut self, at_ns: u64, event: u64) {
        if self.open {
            self.open = false;
            self.sink((at_ns, event));
            return;
        }
        let mut place = self.heap.len();
        self.heap.push((at_ns, event));
        while place > 0 {
            let parent = (place - 1) / WIDE;
            if self.heap[parent] <= (at_ns, event) {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = (at_ns, event);
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        if self.open {
            self.open = false;
            let last = self.heap.pop()?;
            if !self.heap.is_empty() {
                self.sink(last);
            }
        }
        let first = self.heap.first().copied();
        self.open = first.is_some();
        first
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.open = false;
    }

    /// Puts an event in the first place and sinks it to its position.
    fn sink(&mut self, event: (u64, u64)) {
        let heap = &mut self.heap[..];
        let mut place = 0;
        loop {
            let first = WIDE * place + 1;
            if first >= heap.len() {
                break;
            }
            let children = &heap[first..heap.len().min(first + WIDE)];
            let mut least = 0;
            for child in 1..children.len() {
                if children[child] < children[least] {
                    least = child;
                }
            }
            if event <= children[least] {
                break;
            }
            heap[place] = children[least];
            place = first + least;
        }
        heap[place] = event;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_order(steps in proptest::collection::vec((any::<bool>(), 0..50u64), 0..200)) {
            let (mut queue, mut sorted) = (Queue::default(), BTreeSet::new());
            for (number, (take, at)) in steps.into_iter().enumerate() {
                if take {
                    prop_assert_eq!(queue.pop(), sorted.pop_first());
                } else {
                    queue.push(at, number as u64);
                    sorted.insert((at, number as u64));
                }
            }
            while let Some(next) = sorted.pop_first() {
                prop_assert_eq!(queue.pop(), Some(next));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
