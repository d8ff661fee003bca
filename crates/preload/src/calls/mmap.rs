//! `mmap` of a managed file: extents of its objects, mapped next to each other.

use std::ffi::{c_int, c_void};

use libc::off_t;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap as map, mmap_anonymous, mprotect, munmap};
use stripewise_datapath::{IoOptions, LogicalFile, MapExtent};
use stripewise_recorder::Op;
use stripewise_sys::{Errno, IoVec, OFlags, Result};

use crate::descriptors::{Call, Entry, Managed, Subject, record};
#[cfg(target_arch = "x86_64")]
use crate::process::patched;
use crate::process::{MmapFn, Real, borrow, serve_interruptible};

interpose!(
    mmap64 = |&real,
              address: *mut c_void,
              len: usize,
              protection: c_int,
              flags: c_int,
              fd: c_int,
              offset: off_t|
     -> *mut c_void {
        unsafe { map_any(real, Request { address, len, protection, flags, fd, offset }) }
    },
    // Restores the entry when the library that has patched it makes its page executable again.
    mprotect = |real, address: *mut c_void, len: usize, protection: c_int| -> c_int {
        let result = real();
        #[cfg(target_arch = "x86_64")]
        if protection & libc::PROT_WRITE == 0 && patched::is_entry_in(address, len) {
            patched::keep_entry();
        }
        result
    },
);

/// The function that the name `mmap` resolves to; on x86-64 through the entry below.
#[cfg_attr(not(target_arch = "x86_64"), unsafe(export_name = "mmap"))]
unsafe extern "C" fn jumped_to(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the type is that of the function.
    static REAL: Real<MmapFn> = unsafe { Real::new(c"mmap") };
    // SAFETY: as the caller promises.
    unsafe { map_any(REAL.get(), Request { address, len, protection, flags, fd, offset }) }
}

/// Consists of a jump, which other libraries overwrite: [`patched`]. Arguments and result are those
/// of the function that it leads to.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn mmap() {
    std::arch::naked_asm!(
        ".globl stripewise_mmap_entry",
        ".hidden stripewise_mmap_entry",
        "stripewise_mmap_entry:",
        "2:",
        // A near jump, in an encoding that is known byte for byte.
        ".byte 0xe9",
        ".long {target} - . - 4",
        // Padding: patches of the entry are up to 13 bytes long.
        ".fill 27, 1, 0xcc",
        ".globl stripewise_mmap_copy",
        ".hidden stripewise_mmap_copy",
        "stripewise_mmap_copy:",
        ".byte 0xe9",
        ".long {target} - 2b - 5",
        ".fill 3, 1, 0xcc",
        // The function is the first in its section, so this alignment of the section also aligns
        // the function.
        ".p2align 4",
        target = sym jumped_to,
    )
}

/// The arguments of a call.
#[derive(Clone, Copy)]
struct Request {
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
}

/// Maps managed files. Other mappings go to `real`, or to the function of another library that has
/// patched the entry.
unsafe fn map_any(real: MmapFn, request: Request) -> *mut c_void {
    let Request { address, len, protection, flags, fd, offset } = request;
    let by = |real: MmapFn| unsafe { real(address, len, protection, flags, fd, offset) };
    #[cfg(target_arch = "x86_64")]
    let call = || patched::forward(real, by);
    #[cfg(not(target_arch = "x86_64"))]
    let call = || by(real);
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
        return call();
    }
    let place = Call { size: len as u64, ..Call::on_range(Op::Map, offset, 0) };
    match Subject::of(fd) {
        Subject::Plain => call(),
        Subject::Recorded(entry) => timed(&entry, place, call),
        Subject::Managed(managed) => {
            timed(managed.entry(), place, || serve_interruptible(|| unsafe { request.run(&managed) }))
        }
    }
}

fn timed(entry: &Entry, place: Call, run: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let mut result = libc::MAP_FAILED;
    record::timed(entry, place, || {
        result = run();
        if result == libc::MAP_FAILED { -1 } else { 0 }
    });
    result
}

impl Request {
    unsafe fn run(&self, managed: &Managed) -> Result<*mut c_void> {
        let page = rustix::param::page_size();
        self.check(managed, page)?;
        let len = self.len.checked_next_multiple_of(page).ok_or(Errno::NOMEM)?;
        match managed.file()?.map_extents(self.offset as u64, len as u64, page as u64) {
            Ok(extents) => {
                let base = self.reserve(len, MapFlags::NORESERVE)?;
                let mapped = extents.iter().try_for_each(|extent| {
                    // SAFETY: within the range that was just reserved.
                    unsafe { self.map_extent(base, extent) }
                });
                finish(base, len, mapped)
            }
            // A private mapping is a copy anyway, so the bytes can be read into memory at once.
            Err(Errno::NODEV | Errno::OVERFLOW) if self.is_private() => {
                let base = self.reserve(len, MapFlags::empty())?;
                finish(base, len, unsafe { self.fill(managed.file()?, base) })
            }
            Err(Errno::OVERFLOW) => Err(Errno::NOMEM),
            Err(error) => Err(error),
        }
    }

    fn is_private(&self) -> bool {
        self.flags & libc::MAP_TYPE == libc::MAP_PRIVATE
    }

    fn check(&self, managed: &Managed, page: usize) -> Result<()> {
        if self.len == 0 || self.offset < 0 || !(self.offset as usize).is_multiple_of(page) {
            return Err(Errno::INVAL);
        }
        if self.flags & libc::MAP_TYPE == libc::MAP_SHARED_VALIDATE && self.flags & libc::MAP_SYNC != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let access = managed.flags()? & OFlags::RWMODE;
        let stores = self.protection & libc::PROT_WRITE != 0 && !self.is_private();
        if access == OFlags::WRONLY || (stores && access != OFlags::RDWR) { Err(Errno::ACCESS) } else { Ok(()) }
    }

    /// Reserves inaccessible address space at the place that the application asks for.
    fn reserve(&self, len: usize, how: MapFlags) -> Result<*mut c_void> {
        let place = MapFlags::FIXED | MapFlags::FIXED_NOREPLACE;
        let flags = MapFlags::PRIVATE | how | (self.map_flags() & place);
        // SAFETY: with MAP_FIXED the application gives up the previous mapping.
        unsafe { mmap_anonymous(self.address, len, ProtFlags::empty(), flags) }
    }

    unsafe fn map_extent(&self, base: *mut c_void, extent: &MapExtent) -> Result<()> {
        let at = base.wrapping_byte_add((extent.file_offset - self.offset as u64) as usize);
        let flags = self.map_flags().difference(MapFlags::FIXED_NOREPLACE) | MapFlags::FIXED;
        let protection = ProtFlags::from_bits_retain(self.protection.cast_unsigned());
        // SAFETY: the caller has reserved the range; the file keeps the descriptor open.
        unsafe { map(at, extent.len as usize, protection, flags, borrow(extent.fd), extent.object_offset) }
            .map(drop)
    }

    fn map_flags(&self) -> MapFlags {
        MapFlags::from_bits_retain(self.flags.cast_unsigned())
    }

    unsafe fn fill(&self, file: &LogicalFile, base: *mut c_void) -> Result<()> {
        let below_end = file.size()?.saturating_sub(self.offset as u64).min(self.len as u64) as usize;
        let mut done = 0;
        // SAFETY: only this function uses the memory until it is returned.
        unsafe {
            mprotect(base, self.len, MprotectFlags::READ | MprotectFlags::WRITE)?;
            while done < below_end {
                let rest = IoVec { base: base.cast::<u8>().add(done), len: below_end - done };
                match file.read_at(&[rest], self.offset as u64 + done as u64, IoOptions::default())? {
                    0 => break,
                    more => done += more,
                }
            }
            let protection = MprotectFlags::from_bits_retain(self.protection.cast_unsigned());
            mprotect(base, self.len, protection)
        }
    }
}

/// The mapping at `base`; it is removed if it could not be made as a whole.
fn finish(base: *mut c_void, len: usize, made: Result<()>) -> Result<*mut c_void> {
    made.map(|()| base).inspect_err(|_| {
        // SAFETY: reserved by this call.
        let _ = unsafe { munmap(base, len) };
    })
}
