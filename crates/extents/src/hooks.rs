//! Points where tests control the protocol. Outside tests these functions do nothing.
//!
//! In tests a thread may have an [`Actor`] (`tests::explore`): a scheduler that runs one thread at
//! a time, selects the next thread at every point reached, and kills threads there.

#[cfg(not(test))]
mod off {
    /// Marks the begin of a step of the protocol.
    #[inline(always)]
    pub(crate) fn reach(_point: &'static str) {}

    /// Marks that this thread waits for another one. Returns whether a scheduler is in control.
    #[inline(always)]
    pub(crate) fn blocked() -> bool {
        false
    }

    /// Whether this thread is being killed, so that guards must not act on drop.
    #[inline(always)]
    pub(crate) fn dead() -> bool {
        false
    }

    /// A thread's hold on the index writer lock, as the scheduler sees it.
    #[derive(Debug)]
    pub(crate) struct Turn;

    impl Turn {
        #[inline(always)]
        pub fn wait() -> Self {
            Self
        }

        #[inline(always)]
        pub fn end(&mut self) {}
    }
}

#[cfg(not(test))]
pub(crate) use off::{Turn, blocked, dead, reach};

#[cfg(test)]
mod on {
    use std::cell::RefCell;
    use std::sync::Arc;

    /// A scheduler's control of one thread.
    pub(crate) trait Actor: Send + Sync {
        /// Marks a point of the protocol. May unwind to kill the thread.
        fn reach(&self, point: &'static str);
        /// Runs other threads until one of them has made progress.
        fn blocked(&self);
        fn is_dead(&self) -> bool;
        /// Waits for the index writer lock, as the scheduler models it.
        fn take_turn(&self);
        fn end_turn(&self);
    }

    thread_local! {
        static ACTOR: RefCell<Option<Arc<dyn Actor>>> = const { RefCell::new(None) };
    }

    /// Sets the actor of the calling thread.
    pub(crate) fn act(actor: Option<Arc<dyn Actor>>) {
        ACTOR.with_borrow_mut(|own| *own = actor);
    }

    fn actor() -> Option<Arc<dyn Actor>> {
        // The last guards of a thread may be dropped after its thread-local values.
        ACTOR.try_with(|own| own.borrow().clone()).ok().flatten()
    }

    pub(crate) fn reach(point: &'static str) {
        if let Some(actor) = actor() {
            actor.reach(point);
        }
    }

    pub(crate) fn blocked() -> bool {
        let actor = actor();
        if let Some(actor) = &actor {
            actor.blocked();
        }
        actor.is_some()
    }

    pub(crate) fn dead() -> bool {
        actor().is_some_and(|actor| actor.is_dead())
    }

    #[derive(Debug)]
    pub(crate) struct Turn(bool);

    impl Turn {
        pub fn wait() -> Self {
            let actor = actor();
            if let Some(actor) = &actor {
                actor.take_turn();
            }
            Self(actor.is_some())
        }

        pub fn end(&mut self) {
            if std::mem::take(&mut self.0)
                && let Some(actor) = actor()
            {
                actor.end_turn();
            }
        }
    }
}

#[cfg(test)]
pub(crate) use on::{Actor, Turn, act, blocked, dead, reach};
