//! Where tests take hold of the protocol. Outside tests everything here is nothing.
//!
//! In tests a thread may have an [`Actor`] (`tests::explore`): a scheduler that lets one thread go on at a time, chooses which
//! at every point that is reached, and kills threads there.

#[cfg(not(test))]
mod off {
    /// A step of the protocol begins.
    #[inline(always)]
    pub(crate) fn reach(_point: &'static str) {}

    /// This thread waits for something that another one does.
    #[inline(always)]
    pub(crate) fn blocked() -> bool {
        false
    }

    /// Whether this thread is being killed, so that what a guard does on drop must not happen.
    #[inline(always)]
    pub(crate) fn dead() -> bool {
        false
    }

    /// The writer's lock of the index.
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

    /// A scheduler's hold on one thread.
    pub(crate) trait Actor: Send + Sync {
        /// May unwind: the thread is killed.
        fn reach(&self, point: &'static str);
        /// Lets others go on until something has happened.
        fn blocked(&self);
        fn is_dead(&self) -> bool;
        /// Waits for the writer's lock of the index, as the scheduler knows it.
        fn take_turn(&self);
        fn end_turn(&self);
    }

    thread_local! {
        static ACTOR: RefCell<Option<Arc<dyn Actor>>> = const { RefCell::new(None) };
    }

    /// This thread's actor from now on.
    pub(crate) fn act(actor: Option<Arc<dyn Actor>>) {
        ACTOR.with_borrow_mut(|own| *own = actor);
    }

    fn actor() -> Option<Arc<dyn Actor>> {
        // A thread's last guards may be dropped when its locals are gone.
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
