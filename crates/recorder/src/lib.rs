//! In-process trace buffers.
