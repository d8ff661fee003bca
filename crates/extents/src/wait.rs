//! Waiting for other processes without a wakeup.

use stripewise_sys::SysRef;

use crate::hooks;

const SPINS: u32 = 64;
const YIELDS: u32 = 128;
const NAP_NS: u64 = 50_000;
const NAP_NS_MAX: u64 = 1_000_000;

/// Pauses that become longer each time.
pub(crate) struct Wait<'a> {
    sys: &'a SysRef,
    times: u32,
}

impl<'a> Wait<'a> {
    pub fn new(sys: &'a SysRef) -> Self {
        Self { sys, times: 0 }
    }

    /// Pauses. Returns whether the pause was long enough to justify checking that the other process
    /// is alive.
    pub fn pause(&mut self) -> bool {
        if hooks::blocked() {
            return true;
        }
        self.times += 1;
        match self.times {
            ..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            times => {
                let nap = (NAP_NS * u64::from(times - YIELDS + 1)).min(NAP_NS_MAX);
                self.sys.sleep_until_ns(self.sys.now_ns() + nap);
                return true;
            }
        }
        false
    }
}
