//! The spool: what a traced process leaves behind (format; `docs/formats/trace.md`).
