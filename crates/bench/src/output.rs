//! What the workloads print with `--json`.

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The fields of the programs' output that are used here.
#[derive(Debug, Deserialize)]
pub struct Output {
    phases: Vec<Phase>,
    /// Bytes that were read back and compared.
    pub verified_bytes: u64,
    wrong_bytes: u64,
}

/// Result of one direction.
#[derive(Debug, Deserialize)]
pub struct Phase {
    op: String,
    /// Seconds between the barriers before and after the requests.
    pub elapsed_s: f64,
    /// Seconds of the slowest close; 0 if the program does not measure it (h5py).
    #[serde(default)]
    pub close_s: f64,
    /// Bytes transferred by all processes.
    pub bytes: u64,
}

impl Output {
    /// Parses the output. Wrong bytes are an error, and bytes that were read and not verified.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let output: Self =
            serde_json::from_str(text).with_context(|| format!("the program printed: {text}"))?;
        ensure!(output.wrong_bytes == 0, "{} wrong bytes were read", output.wrong_bytes);
        if let Ok(read) = output.phase("read") {
            let (verified, bytes) = (output.verified_bytes, read.bytes);
            ensure!(verified == bytes, "{verified} bytes were verified of {bytes}");
        }
        Ok(output)
    }

    /// Returns the phase of one direction, `read` or `write`.
    pub fn phase(&self, op: &str) -> anyhow::Result<&Phase> {
        let phase = self.phases.iter().find(|phase| phase.op == op);
        phase.with_context(|| format!("the program did not {op}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"{"program": "ior", "ranks": 2, "phases": [
        {"op": "write", "elapsed_s": 0.5, "open_s": 0.1, "close_s": 0.25, "bytes": 64, "rank_s": [0.5]},
        {"op": "read", "elapsed_s": 0.75, "open_s": 0.1, "close_s": 0.0, "bytes": 64, "rank_s": [0.5]}],
        "verified_bytes": 64, "wrong_bytes": 0}"#;

    #[test]
    fn outputs_are_read_and_wrong_bytes_are_errors() {
        let output = Output::parse(OUTPUT).unwrap();
        assert_eq!(output.phase("write").unwrap().close_s, 0.25);
        assert_eq!(output.phase("read").unwrap().elapsed_s, 0.75);
        let error = |from, to| format!("{:#}", Output::parse(&OUTPUT.replace(from, to)).unwrap_err());
        assert_eq!(error(r#""wrong_bytes": 0"#, r#""wrong_bytes": 8"#), "8 wrong bytes were read");
        assert_eq!(error(r#""verified_bytes": 64"#, r#""verified_bytes": 8"#), "8 bytes were verified of 64");
        assert!(error("phases", "faces").contains("the program printed"));
    }
}
