//! Planners that choose a layout per file.
