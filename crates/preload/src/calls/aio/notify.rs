//! Notifies the application of the end of a request, as its `struct sigevent` asks.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use libc::{pthread_attr_t, sigevent, sigval};

/// The members of `struct sigevent` for SIGEV_THREAD, which the libc crate does not expose.
#[repr(C)]
struct ThreadEvent {
    value: sigval,
    signal: c_int,
    notify: c_int,
    function: Option<extern "C" fn(sigval)>,
    attributes: *const pthread_attr_t,
}

struct Call {
    function: extern "C" fn(sigval),
    value: sigval,
}

pub fn notify(event: &sigevent) {
    match event.sigev_notify {
        libc::SIGEV_SIGNAL => send(event.sigev_signo, event.sigev_value),
        libc::SIGEV_THREAD => {
            // SAFETY: the same structure, with the members of this kind of notification.
            let event = unsafe { &*ptr::from_ref(event).cast::<ThreadEvent>() };
            if let Some(function) = event.function {
                start(Call { function, value: event.value }, event.attributes);
            }
        }
        _ => {}
    }
}

fn send(signal: c_int, value: sigval) {
    /// `siginfo_t`, for a signal with a value.
    #[repr(C)]
    struct Info {
        signal: c_int,
        error: c_int,
        code: c_int,
        padding: c_int,
        pid: libc::pid_t,
        uid: libc::uid_t,
        value: sigval,
        rest: [u64; 12],
    }
    const _: () = assert!(size_of::<Info>() == 128);
    // SAFETY: contains no pointers except the application's value.
    let _ = unsafe {
        let pid = libc::getpid();
        let code = libc::SI_ASYNCIO;
        let info = Info { signal, error: 0, code, padding: 0, pid, uid: libc::getuid(), value, rest: [0; 12] };
        let arguments = [pid as usize, signal as usize, ptr::from_ref(&info) as usize];
        crate::process::kernel::call(libc::SYS_rt_sigqueueinfo, arguments)
    };
}

/// Calls the function in a new thread with the attributes of the application.
fn start(call: Call, attributes: *const pthread_attr_t) {
    extern "C" fn main(call: *mut c_void) -> *mut c_void {
        // SAFETY: passed to this thread alone.
        let call = unsafe { Box::from_raw(call.cast::<Call>()) };
        // The signals that were blocked when the thread was started are unblocked.
        unsafe {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        }
        let Call { function, value } = *call;
        function(value);
        ptr::null_mut()
    }
    let call = Box::into_raw(Box::new(call));
    // SAFETY: the attributes are valid; the thread owns the call.
    unsafe {
        let mut own = MaybeUninit::uninit();
        libc::pthread_attr_init(own.as_mut_ptr());
        libc::pthread_attr_setdetachstate(own.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let chosen = if attributes.is_null() { own.as_ptr() } else { attributes };
        let mut thread = MaybeUninit::uninit();
        if libc::pthread_create(thread.as_mut_ptr(), chosen, main, call.cast()) != 0 {
            drop(Box::from_raw(call));
        }
        libc::pthread_attr_destroy(own.as_mut_ptr());
    }
}
