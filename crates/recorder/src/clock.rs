//! The clock of the records: the cheapest one that is steady.

use rustix::time::{ClockId, clock_gettime};
use stripewise_trace::spool::Instant;

/// A point in time, in the unit of the spool's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// The source of [`Ticks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, through the vDSO: ticks are nanoseconds.
    Monotonic = 0,
    /// The processor's time stamp counter, which runs at one rate on all cores.
    Tsc = 1,
}

impl Clock {
    /// The time stamp counter if the processor reports it as invariant, else the kernel's clock.
    pub fn detect() -> Clock {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::__cpuid;
            const POWER_LEAF: u32 = 0x8000_0007;
            const INVARIANT_TSC: u32 = 1 << 8;
            // SAFETY: every x86-64 processor has the instruction. (Older compilers require the
            // unsafe block.)
            #[allow(unused_unsafe)]
            let invariant = unsafe {
                __cpuid(0x8000_0000).eax >= POWER_LEAF && __cpuid(POWER_LEAF).edx & INVARIANT_TSC != 0
            };
            if invariant {
                return Clock::Tsc;
            }
        }
        Clock::Monotonic
    }

    /// The current time.
    #[inline]
    pub fn now(self) -> Ticks {
        #[cfg(target_arch = "x86_64")]
        if self == Clock::Tsc {
            // SAFETY: every x86-64 processor has the instruction.
            return Ticks(unsafe { std::arch::x86_64::_rdtsc() });
        }
        Ticks(ns(ClockId::Monotonic))
    }

    /// The current time on this clock and on `CLOCK_MONOTONIC`.
    pub fn moment(self) -> Instant {
        let before = self.now().0;
        let monotonic_ns = ns(ClockId::Monotonic);
        let ticks = match self {
            Clock::Tsc => before + (self.now().0 - before) / 2,
            Clock::Monotonic => monotonic_ns,
        };
        Instant { ticks, monotonic_ns }
    }
}

/// A kernel clock's time in nanoseconds.
pub fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
