//! The functions that this library's definitions hide.
//!
//! Each is looked up with `dlsym(RTLD_NEXT)` at its first call and kept in an atomic. So no
//! constructor has to run first, two threads that race store the same address, and nothing is ever
//! torn down. The library's own calls are system calls (`sys`, [`crate::process::kernel`]).

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::process::stack;

pub type MmapFn = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;

/// A function of the libraries behind this one; `F` is its type, `unsafe extern "C" fn(..) -> ..`.
pub struct Real<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    /// `F` must be the C type of the function called `name`, which must return an integer or a
    /// pointer.
    pub const unsafe fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()), signature: PhantomData }
    }

    /// The function. If no other library has it, a function that fails with ENOSYS.
    #[inline]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.resolve();
        }
        // SAFETY: `F` is the function pointer type of this function by the contract of `new`.
        unsafe { std::mem::transmute_copy(&address) }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self) -> *mut c_void {
        // The loader needs more stack than callers may have. Signals are not blocked: the stack has
        // enough space for a handler.
        let found = stack::on_own(|| Ok(find(self.name)));
        let address = found.unwrap_or_else(|_| find(self.name));
        let address = if address.is_null() { missing as *mut c_void } else { address };
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

fn find(name: &CStr) -> *mut c_void {
    // Symbols that glibc keeps only for old binaries have no default version, so dlsym does not
    // find them.
    const OLDEST: &CStr = if cfg!(target_arch = "aarch64") { c"GLIBC_2.17" } else { c"GLIBC_2.2.5" };
    // SAFETY: terminated strings.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if address.is_null() { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), OLDEST.as_ptr()) } else { address }
    }
}

/// Stands in for a missing function: the C calling conventions let a function ignore its arguments.
unsafe extern "C" fn missing() -> c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Defines exported functions, one per row, each under all the names given:
///
/// ```text
/// interpose!(
///     lseek | lseek64 = |real, fd: c_int, offset: off_t, whence: c_int| -> off_t {
///         ...
///     },
///     ...
/// );
/// ```
///
/// `real` is a closure that passes the call on, with the same arguments, to the function of exactly
/// that name behind this library, so that a library loaded after this one still sees the name that
/// the program used. Written `&real` it is that function itself, to be called with other arguments.
/// Bodies never panic: code that may panic runs inside [`crate::process::errno::serve`]. The only
/// unwinding is that of a cancelled thread ([`crate::process::guard`]).
macro_rules! interpose {
    () => {};
    ($($name:ident)|+ = |& $function:ident $(, $argument:ident: $type:ty)* $(,)?| -> $result:ty $body:block
     $(, $($rest:tt)*)?) => {
        const _: () = {
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            #[allow(clippy::too_many_arguments, reason = "libc's")]
            unsafe fn body($function: Function, $($argument: $type),*) -> $result $body
            interpose!(@all ($($name)+) ($($argument: $type),*) $result);
        };
        $(interpose!($($rest)*);)?
    };
    ($($name:ident)|+ = |$real:ident $(, $argument:ident: $type:ty)* $(,)?| -> $result:ty $body:block
     $(, $($rest:tt)*)?) => {
        interpose!($($name)|+ = |&function $(, $argument: $type)*| -> $result {
            // SAFETY: the arguments are the caller's, as the C function requires them.
            let $real = move || unsafe { function($($argument),*) };
            $body
        });
        $(interpose!($($rest)*);)?
    };
    (@all ($($name:ident)+) $arguments:tt $result:ty) => {
        $(interpose!(@export $name $arguments $result);)+
    };
    (@export $name:ident ($($argument:ident: $type:ty),*) $result:ty) => {
        const _: () = {
            const NAME: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                };
            // SAFETY: the type is that of the interposed function.
            static REAL: $crate::process::real::Real<Function> = unsafe { $crate::process::real::Real::new(NAME) };
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
                // SAFETY: as the C function requires of its caller.
                unsafe { body(REAL.get(), $($argument),*) }
            }
        };
    };
}
