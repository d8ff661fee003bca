//! The only room that makes system calls: interface, real, faulty.
