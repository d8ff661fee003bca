//! `profile.toml`: the results of calibration. Format: `docs/formats/profile.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use stripewise_model::{ByCall, Call, CallCost, ClassParams, Service};

use crate::class_text::{SERVICE, read_four, service_keys, write_four};
use crate::reader::{Document, FileError, Table};
use crate::write::{amounts, key, quoted};

/// The format that this version reads and writes.
const PROFILE_VERSION: u64 = 1;

/// Measured parameters, and how they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Date of the measurement, as RFC 3339 text.
    pub date: String,
    /// Method of the measurement, in one line for people: sizes, repeats, direct or buffered.
    pub method: String,
    /// e and t, where a network was measured or given.
    pub network: Option<MeasuredNetwork>,
    /// The measured classes, by name.
    pub classes: BTreeMap<String, MeasuredClass>,
    /// What calls cost the client, by tier. Tiers that are not there were not measured.
    pub client: BTreeMap<String, MeasuredClient>,
}

/// e and t with their spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredNetwork {
    /// `e`, seconds.
    pub establish_s: f64,
    /// `t`, seconds per byte.
    pub per_byte_s: f64,
    /// Standard deviation of single measurements of `e`, seconds.
    pub establish_spread_s: f64,
    /// Standard error of `t`, seconds per byte.
    pub per_byte_spread_s: f64,
    /// Number of measurements used.
    pub samples: u64,
}

/// The four fits of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredClass {
    /// The target that was measured, `tier/index`.
    pub target: String,
    /// Whether the page cache was bypassed (O_DIRECT).
    pub direct_io: bool,
    /// The fit of each kind of request.
    pub fits: ClassParams<Fit>,
}

/// One least-squares fit of time against size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// α and β.
    pub service: Service,
    /// Standard error of α, seconds.
    pub startup_spread_s: f64,
    /// Standard error of β, seconds per byte.
    pub per_byte_spread_s: f64,
    /// Root mean square of (measured mean - fit) / fit over the sizes.
    pub residual_relative: f64,
    /// Number of measurements used.
    pub samples: u64,
    /// Number of measurements set aside as outliers.
    pub outliers: u64,
}

/// How exact measured parameters are. Parameters that were not measured count as exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// The fits of the measured classes, by name.
    pub classes: BTreeMap<String, ClassParams<Fit>>,
    /// The measurement of e and t.
    pub network: Option<MeasuredNetwork>,
}

impl Accuracy {
    /// Whether all parameters count as exact.
    pub fn is_exact(&self) -> bool {
        self.classes.is_empty() && self.network.is_none()
    }
}

impl Fit {
    /// The error of the time that the fit gives for `bytes`, seconds: the standard errors of α and
    /// β, and the mean distance of the measured sizes from the line.
    pub fn error_s(&self, bytes: u64) -> f64 {
        let of_line_s = self.startup_spread_s.hypot(bytes as f64 * self.per_byte_spread_s);
        of_line_s.hypot(self.residual_relative * self.service.busy_s(bytes))
    }
}

impl MeasuredNetwork {
    /// The error of the time that a connection and `bytes` take, seconds. The spread of `e` is that
    /// of single measurements, so the error of its mean is smaller.
    pub fn error_s(&self, bytes: u64) -> f64 {
        let establish_s = self.establish_spread_s / (self.samples.max(1) as f64).sqrt();
        establish_s.hypot(bytes as f64 * self.per_byte_spread_s)
    }
}

/// What calls on files of one tier cost the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredClient {
    /// The largest number of objects of a file that was measured.
    pub objects: u64,
    /// The fit of each kind of call.
    pub fits: ByCall<CallFit>,
}

/// One least-squares fit of time against number of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallFit {
    /// a, b, and the time on a plain file.
    pub cost: CallCost,
    /// Standard error of a, seconds.
    pub base_spread_s: f64,
    /// Standard error of b, seconds.
    pub per_object_spread_s: f64,
    /// Root mean square of (measured median - fit) / fit over the numbers of objects.
    pub residual_relative: f64,
    /// Number of measurements used.
    pub samples: u64,
}

impl MeasuredClient {
    /// The costs alone.
    pub fn costs(&self) -> ByCall<CallCost> {
        let cost = |call| Ok::<_, std::convert::Infallible>(self.fits.of_call(call).cost);
        let Ok(costs) = ByCall::try_of(cost);
        costs
    }
}

impl MeasuredClass {
    /// α and β alone.
    pub fn params(&self) -> ClassParams {
        ClassParams::of(|op, access| self.fits.of_kind(op, access).service)
    }
}

impl Profile {
    /// Parses `profile.toml`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// Any deviation from the documented format, with line, key, value and remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, FileError> {
        let document = Document::parse(text, file_name)?;
        let root = document.root();
        root.check_version(PROFILE_VERSION, REMEDY)?;
        root.allow_only("version, date, method, network, class, client")?;
        Ok(Self {
            classes: root.by_name("class", |_, item| read_class(&item.table()?))?,
            client: root.by_name("client", |_, item| read_client(&item.table()?))?,
            date: root.need("date", REMEDY)?.text()?.to_owned(),
            method: root.need("method", REMEDY)?.text()?.to_owned(),
            network: root.get("network").map(|item| read_network(&item.table()?)).transpose()?,
        })
    }

    /// The text of a `profile.toml`, which [`Profile::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(
            "# Measured by `stripewise calibrate`; overrides the class tables of the cluster file.\n",
        );
        let (date, method) = (quoted(&self.date), quoted(&self.method));
        let _ = writeln!(out, "version = {PROFILE_VERSION}\ndate = {date}\nmethod = {method}");
        if let Some(n) = &self.network {
            let numbers = [n.establish_s, n.per_byte_s, n.establish_spread_s, n.per_byte_spread_s];
            let numbers = amounts(NETWORK, numbers).join("\n");
            let _ = writeln!(out, "\n[network]\n{numbers}\nsamples = {}", n.samples);
        }
        for (name, class) in &self.classes {
            let _ = writeln!(out, "\n[class.{}]\ntarget = {}", key(name), quoted(&class.target));
            let _ = writeln!(out, "direct_io = {}", class.direct_io);
            write_four(&mut out, &class.fits, fit_keys);
        }
        for (tier, client) in &self.client {
            let _ = writeln!(out, "\n[client.{}]\nobjects = {}", key(tier), client.objects);
            for call in Call::ALL {
                let _ = writeln!(out, "{} = {{ {} }}", call.name(), call_keys(client.fits.of_call(call)));
            }
        }
        out
    }
}

const REMEDY: &str = "run `stripewise calibrate` again";
const NETWORK: [&str; 4] = ["establish_s", "per_byte_s", "establish_spread_s", "per_byte_spread_s"];
/// The keys of a fit that are not those of a service and not whole numbers.
const SPREADS: [&str; 3] = ["startup_spread_s", "per_byte_spread_s", "residual_relative"];

fn fit_keys(fit: &Fit) -> String {
    let spreads = amounts(SPREADS, [fit.startup_spread_s, fit.per_byte_spread_s, fit.residual_relative]);
    let (service, spreads) = (service_keys(&fit.service), spreads.join(", "));
    format!("{service}, {spreads}, samples = {}, outliers = {}", fit.samples, fit.outliers)
}

/// The keys of a fit of calls that are not whole numbers.
const CALL: [&str; 6] =
    ["base_s", "per_object_s", "plain_s", "base_spread_s", "per_object_spread_s", "residual_relative"];

fn call_keys(fit: &CallFit) -> String {
    let CallFit { cost, base_spread_s, per_object_spread_s, residual_relative, samples } = *fit;
    let CallCost { base_s, per_object_s, plain_s } = cost;
    let numbers = [base_s, per_object_s, plain_s, base_spread_s, per_object_spread_s, residual_relative];
    format!("{}, samples = {samples}", amounts(CALL, numbers).join(", "))
}

fn read_network(table: &Table<'_>) -> Result<MeasuredNetwork, FileError> {
    table.allow_only("establish_s, per_byte_s, establish_spread_s, per_byte_spread_s, samples")?;
    let [establish_s, per_byte_s, establish_spread_s, per_byte_spread_s] = table.amounts(NETWORK, REMEDY)?;
    let samples = table.need("samples", REMEDY)?.count()?;
    Ok(MeasuredNetwork { establish_s, per_byte_s, establish_spread_s, per_byte_spread_s, samples })
}

fn read_class(table: &Table<'_>) -> Result<MeasuredClass, FileError> {
    table.allow_only("target, direct_io, read, write")?;
    Ok(MeasuredClass {
        fits: read_four(table, [REMEDY; 2], read_fit)?,
        target: table.need("target", REMEDY)?.text()?.to_owned(),
        direct_io: table.need("direct_io", REMEDY)?.flag()?,
    })
}

fn read_fit(table: &Table<'_>) -> Result<Fit, FileError> {
    table.allow_only(
        "startup_s, per_byte_s, startup_spread_s, per_byte_spread_s, residual_relative, samples, outliers",
    )?;
    let [startup_s, per_byte_s] = table.amounts(SERVICE, REMEDY)?;
    let [startup_spread_s, per_byte_spread_s, residual_relative] = table.amounts(SPREADS, REMEDY)?;
    Ok(Fit {
        service: Service { startup_s, per_byte_s },
        startup_spread_s,
        per_byte_spread_s,
        residual_relative,
        samples: table.need("samples", REMEDY)?.count()?,
        outliers: table.need("outliers", REMEDY)?.count()?,
    })
}

fn read_client(table: &Table<'_>) -> Result<MeasuredClient, FileError> {
    table.allow_only("objects, open, create, close, stat, unlink, read, write")?;
    let fit = |call: Call| read_call(&table.need(call.name(), REMEDY)?.table()?);
    Ok(MeasuredClient { objects: table.need("objects", REMEDY)?.count()?, fits: ByCall::try_of(fit)? })
}

fn read_call(table: &Table<'_>) -> Result<CallFit, FileError> {
    table.allow_only(
        "base_s, per_object_s, plain_s, base_spread_s, per_object_spread_s, residual_relative, samples",
    )?;
    let [base_s, per_object_s, plain_s, base_spread_s, per_object_spread_s, residual_relative] =
        table.amounts(CALL, REMEDY)?;
    Ok(CallFit {
        cost: CallCost { base_s, per_object_s, plain_s },
        base_spread_s,
        per_object_spread_s,
        residual_relative,
        samples: table.need("samples", REMEDY)?.count()?,
    })
}
