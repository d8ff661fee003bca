//! POSIX interposition: definitions of the C functions that programs call, in front of libc's.
//!
//! [`calls`] defines them, [`descriptors`] knows what they are called on, and [`process`] holds
//! what the library has in this process.
//!
//! Everything here may run before constructors and after destructors, in signal handlers, and in
//! forked and vforked children. A call on an unmanaged file allocates nothing and takes no lock.
//! While a call on a managed file holds locks, signals and forks wait ([`process::guard`]).

#[macro_use]
mod process;
mod calls;
mod descriptors;
