//! JSON output of `calibrate`.

use serde::Serialize;
use stripewise_calibrate::{NetworkReport, ServerReport};
use stripewise_model::{ClassParams, Network};

use super::measuring::Calibrated;

/// The complete output: the profile's parameters and the measurements behind them.
#[derive(Serialize)]
pub struct Report<'a> {
    profile: String,
    date: &'a str,
    method: &'a str,
    /// Parameters by class, as written to the profile.
    classes: std::collections::BTreeMap<&'a str, ClassParams>,
    network: Option<Network>,
    servers: &'a [ServerReport],
    network_measurements: &'a Option<NetworkReport>,
    /// Notes on targets that were measured together because they cannot be distinguished.
    notes: &'a [String],
}

/// Returns the report for `--json`.
pub fn report(calibrated: &Calibrated) -> Report<'_> {
    let profile = &calibrated.profile;
    let network = |network: &stripewise_cluster::profile::MeasuredNetwork| Network {
        establish_s: network.establish_s,
        per_byte_s: network.per_byte_s,
    };
    Report {
        profile: calibrated.output.display().to_string(),
        date: &profile.date,
        method: &profile.method,
        classes: profile.classes.iter().map(|(name, class)| (name.as_str(), class.params())).collect(),
        network: profile.network.as_ref().map(network),
        servers: &calibrated.servers,
        network_measurements: &calibrated.network,
        notes: &calibrated.notes,
    }
}
