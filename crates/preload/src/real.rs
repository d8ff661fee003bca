//! The functions that ours stand in front of.
//!
//! Each is looked up with `dlsym(RTLD_NEXT)` at its first call and kept in an atomic: no constructor has to have run, two
//! threads that race store the same address, and nothing is ever torn down. Calls of our own go to the kernel
//! directly (`sys`), never through here.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{errno, stack};

/// One function of the libraries behind us; `F` is its type, `unsafe extern "C" fn(..) -> ..`.
pub struct Real<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    /// `F` must be the C type of the function called `name`, which must return an integer or a pointer.
    pub const unsafe fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()), signature: PhantomData }
    }

    /// The function; where there is none behind us, one that fails with ENOSYS.
    #[inline]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.resolve();
        }
        // SAFETY: `F` is a function pointer type, of this function by the contract of `new`.
        unsafe { std::mem::transmute_copy(&address) }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self) -> *mut c_void {
        // The loader takes more stack than we do. Signals come in: a handler has room there.
        let found = stack::on_own(|| Ok(find(self.name)));
        let address = found.unwrap_or_else(|_| find(self.name));
        let address = if address.is_null() { missing as *mut c_void } else { address };
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

fn find(name: &CStr) -> *mut c_void {
    // Symbols that glibc keeps for old binaries only have no default version, and dlsym passes them over.
    const OLDEST: &CStr = if cfg!(target_arch = "aarch64") { c"GLIBC_2.17" } else { c"GLIBC_2.2.5" };
    // SAFETY: terminated strings.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if address.is_null() { dlvsym(libc::RTLD_NEXT, name.as_ptr(), OLDEST.as_ptr()) } else { address }
    }
}

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Stands for whatever function is missing: the C calling conventions let a function ignore its arguments.
unsafe extern "C" fn missing() -> c_int {
    errno::set(libc::ENOSYS);
    -1
}

/// Defines exported functions that call `body(real, arguments..)`, under each of the names given:
///
/// ```text
/// interpose! {
///     pread | pread64 => pread(fd: c_int, buffer: *mut c_void, len: usize, offset: off_t) -> ssize_t;
/// }
/// ```
///
/// `real` is the function of that very name behind us, so that a library loaded after this one
/// still sees the name that the program used. Bodies never panic: whatever may runs inside
/// [`crate::errno::serve`]. What unwinds is the end of a thread that was cancelled
/// ([`crate::cancel`]).
macro_rules! interpose {
    ($($($name:ident)|+ => $body:ident, $arguments:tt -> $result:ty;)+) => {
        $($($crate::real::interpose!(@one $name, $body, $arguments, $result);)+)+
    };
    (@one $name:ident, $body:ident, ($($argument:ident: $type:ty),*), $result:ty) => {
        // In a scope of its own: the body usually has the same name.
        const _: () = {
            const NAME: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                };
            // SAFETY: the type is that of the function we stand for.
            static REAL: $crate::real::Real<unsafe extern "C" fn($($type),*) -> $result> =
                unsafe { $crate::real::Real::new(NAME) };
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's promises are those that the C function asks for.
                unsafe { self::$body(REAL.get(), $($argument),*) }
            }
        };
    };
}
pub(crate) use interpose;
