//! The event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event. Of events at the same time the least one comes first, so that the result does not
/// depend on the order of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A process continues.
    Ready(u32),
    /// A process has closed a file.
    Closed(u32),
    /// A step of a file's background copying is done.
    Copied(u32),
    /// Time to check whether a file has data to copy.
    Look(u32),
    /// A sub-request in the network reaches its next step.
    Moves(u32),
}

/// Events ordered by time.
///
/// The last event taken leaves its place open. Usually the next event of the same process takes
/// that place, which halves the work.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(u64, Event)>>,
    open: bool,
}

impl Queue {
    /// Adds an event at a time, ns.
    pub fn push(&mut self, at_ns: u64, event: Event) {
        let event = Reverse((at_ns, event));
        if !std::mem::take(&mut self.open) {
            self.heap.push(event);
        } else if let Some(mut first) = self.heap.peek_mut() {
            *first = event;
        }
    }

    pub fn pop(&mut self) -> Option<(u64, Event)> {
        if self.open {
            self.heap.pop();
        }
        self.open = !self.heap.is_empty();
        self.heap.peek().map(|first| first.0)
    }

    pub fn clear(&mut self) {
        self.heap.clear();
        self.open = false;
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
                    let event = Event::Ready(number as u32);
                    queue.push(at, event);
                    sorted.insert((at, event));
                }
            }
            while let Some(next) = sorted.pop_first() {
                prop_assert_eq!(queue.pop(), Some(next));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
