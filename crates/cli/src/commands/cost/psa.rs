//! PSA: the cost of a request on two classes of servers.

use anyhow::{bail, ensure};
use stripewise_cluster::size;
use stripewise_model::Service;
use stripewise_model::psa::Psa;

use super::args::Args;
use super::params::{Flag, Params};
use super::{Evaluation, of_network, of_service};

/// The HServers or the SServers.
struct Class {
    letter: char,
    servers: u32,
    stripe: f64,
    service: Service,
}

impl Class {
    /// Returns the seconds for which each server of the class is busy with one request.
    fn busy_s(&self) -> f64 {
        self.service.startup_s + self.stripe * self.service.per_byte_s
    }
}

pub fn evaluate(params: &Params) -> anyhow::Result<Evaluation> {
    let args = params.args;
    let classes = classes(params)?;
    let [h, s] = &classes;
    let (p, c) = (args.procs, args.per_node());
    let network = params.network()?;
    let model = Psa::new(network, (h.servers, h.service), (s.servers, s.service), p, c)?;
    let cost = model.heterogeneous(h.stripe, s.stripe)?;
    let touched = || classes.iter().filter(|class| class.stripe > 0.0);
    let slower = touched().reduce(|a, b| if b.busy_s() > a.busy_s() { b } else { a }).unwrap_or(h);
    let mut parameters = of_network(network).to_vec();
    for class in touched() {
        let [alpha, beta] = ["alpha", "beta"].map(|symbol| format!("{symbol}_{}", class.letter));
        parameters.extend(of_service([&alpha, &beta], class.service));
    }
    let k = touched().map(|class| class.servers).sum();
    let (size, slow) = (size::format(args.size), slower.letter);
    let [h_stripe, s_stripe, slow_stripe] = [h, s, slower].map(|class| bytes(class.stripe));
    Ok(Evaluation {
        model: args.model,
        request: format!(
            "PSA, {size} as {h_stripe} on each of {} HServers and {s_stripe} on each of {} SServers, \
             by each of {p} processes, {c} per node",
            h.servers, s.servers
        ),
        parameters,
        servers_touched: k,
        sharing: p,
        cost,
        formulas: [
            format!("max(c·k, p)·e = max({c}·{k}, {p})·e"),
            format!("max(c·S, p·h, p·s)·t = max({c}·{size}, {p}·{h_stripe}, {p}·{s_stripe})·t"),
            format!("p·α = {p}·α_{slow}, of the slower class"),
            format!("p·b·β = {p}·{slow_stripe}·β_{slow}"),
        ],
    })
}

fn classes(params: &Params) -> anyhow::Result<[Class; 2]> {
    let args = params.args;
    let h_class = ("--h-class", Some(args.h_class.as_deref().unwrap_or("hdd")));
    let s_class = ("--s-class", Some(args.s_class.as_deref().unwrap_or("ssd")));
    let hservers = params.servers("--hservers", args.hservers, h_class)?;
    let sservers = params.servers("--sservers", args.sservers, s_class)?;
    let [h, s] = stripes(args, hservers, sservers)?;
    // A request on one class alone does not need the parameters of the other class.
    let service = |stripe, alpha: Flag, beta: Flag, class| match stripe {
        0.0 => Ok(Service::default()),
        _ => params.service(alpha, beta, class),
    };
    let h_service = service(h, ("--alpha-h", args.alpha_h), ("--beta-h", args.beta_h), h_class)?;
    let s_service = service(s, ("--alpha-s", args.alpha_s), ("--beta-s", args.beta_s), s_class)?;
    Ok([
        Class { letter: 'h', servers: hservers, stripe: h, service: h_service },
        Class { letter: 's', servers: sservers, stripe: s, service: s_service },
    ])
}

/// Returns h and s with M·h + N·s = S. For a request on the HServers alone, h is S/M even if that
/// is not a whole number.
fn stripes(args: &Args, hservers: u32, sservers: u32) -> anyhow::Result<[f64; 2]> {
    let (m, n, size) = (f64::from(hservers), f64::from(sservers), args.size as f64);
    let each = |bytes: f64, servers: f64| if servers > 0.0 { bytes / servers } else { 0.0 };
    let [h, s] = match [args.h_stripe, args.s_stripe].map(|given| given.map(|bytes| bytes as f64)) {
        [None, None] => bail!("give --h-stripe, or --s-stripe (0: all on the HServers)"),
        [Some(h), Some(s)] => [h, s],
        [None, Some(s)] => [each(size - n * s, m), s],
        [Some(h), None] => [h, each(size - m * h, n)],
    };
    // Stripes given in whole bytes may have been rounded if one class has the whole request.
    let [h, s] = match [h, s] {
        [h, 0.0] if (m * h - size).abs() < m => [size / m, 0.0],
        [0.0, s] if (n * s - size).abs() < n => [0.0, size / n],
        other => other,
    };
    ensure!(
        h >= 0.0 && s >= 0.0 && (m * h + n * s - size).abs() < 0.5,
        "{hservers} stripes of {} and {sservers} of {} are not --size {}: a request of PSA fills one turn of the stripes; \
         leave --h-stripe or --s-stripe out, or use --model general",
        bytes(h),
        bytes(s),
        size::format(args.size),
    );
    Ok([h, s])
}

/// Formats bytes that need not be a whole number.
fn bytes(value: f64) -> String {
    if value >= 0.0 && value.fract() == 0.0 { size::format(value as u64) } else { format!("{value:.1} B") }
}
