//! Trace records, trace files, phases and pattern statistics.
