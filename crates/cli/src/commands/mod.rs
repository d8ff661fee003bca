//! One module per command: its flags, and how its result is printed.

pub mod advise;
pub mod calibrate;
pub mod cat;
pub mod cost;
pub mod cp;
pub mod export;
pub mod fsck;
pub mod generate;
pub mod init;
pub mod mount;
pub mod place;
pub mod plan;
pub mod report;
pub mod rm;
pub mod run;
pub mod settle;
pub mod sim;
pub mod status;
pub mod synth;
pub mod trace;
pub mod trial;
