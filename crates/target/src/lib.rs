//! Component files in targets, parallel fan-out, emulated servers.
