//! Sizes in bytes, written as `64K`, `1G`, ... (binary).
