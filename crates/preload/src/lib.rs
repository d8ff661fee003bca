//! POSIX interposition.
