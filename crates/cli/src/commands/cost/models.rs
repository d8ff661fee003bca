//! Evaluates a request by the chosen cost model.

use anyhow::{Context, bail, ensure};
use serde::{Serialize, Serializer};
use stripewise_cluster::{parse_cycle, size};
use stripewise_layout::{Layout, MAX_OFFSET};
use stripewise_model::cil::Cil;
use stripewise_model::psa::Psa;
use stripewise_model::sla::Sla;
use stripewise_model::{Cost, Network, PreparedCost, Server, Service, Startup, Striping};

use super::args::{Args, LayoutName, Model, Side};
use super::params::{Flag, Params};

/// A cost and the values needed to understand it.
#[derive(Serialize)]
pub struct Evaluation {
    pub model: Model,
    /// One line that describes the evaluated request.
    pub request: String,
    /// The parameters used (e, t, alpha, beta), by symbol.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(String, f64)>,
    /// Number of servers that the request touches: k or w in the papers.
    pub servers_touched: u32,
    /// q: number of processes that share each server.
    pub sharing: u32,
    #[serde(flatten)]
    pub cost: Cost,
    /// Formulas of the four terms in the papers' symbols, with the values filled in.
    pub formulas: [String; 4],
}

fn as_map<S: Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(symbol, value)| (symbol, value)))
}

fn of_network(network: Network) -> [(String, f64); 2] {
    [("e".to_owned(), network.establish_s), ("t".to_owned(), network.per_byte_s)]
}

/// Returns the parameters of a server, by symbol. The suffix distinguishes classes of servers.
fn of_service(suffix: &str, service: Service) -> [(String, f64); 2] {
    [(format!("alpha{suffix}"), service.startup_s), (format!("beta{suffix}"), service.per_byte_s)]
}

pub fn evaluate(args: &Args) -> anyhow::Result<Evaluation> {
    args.refuse_foreign()?;
    let params = Params::new(args)?;
    match args.model {
        Model::Cil => cil(&params),
        Model::Psa => psa(&params),
        Model::Sla => sla(&params),
        Model::General => general(&params),
    }
}

fn cil(params: &Params) -> anyhow::Result<Evaluation> {
    let args = params.args;
    let striping = striping(args)?;
    let (service, servers) = one_class(params)?;
    let (p, c) = (args.procs, args.per_node());
    let network = params.network()?;
    let model = Cil::new(network, service, servers, p, c)?;
    let view = model.view(striping)?;
    let (k, n, q) = (view.connections, view.divided_by, view.sharing);
    let size = size::format(args.size);
    Ok(Evaluation {
        model: args.model,
        request: format!("CIL, {striping} on {servers} servers: {size} by each of {p} processes, {c} per node"),
        servers_touched: k,
        sharing: q,
        parameters: [of_network(network), of_service("", service)].concat(),
        cost: model.cost(striping, args.size as f64)?,
        formulas: [
            format!("max(c·k, q)·e = max({c}·{k}, {q})·e"),
            format!("max(c·S, q·S/k)·t = max({c}·{size}, {q}·{size}/{n})·t"),
            format!("q·α = {q}·α"),
            format!("q·(S/k)·β = {q}·({size}/{n})·β"),
        ],
    })
}

fn sla(params: &Params) -> anyhow::Result<Evaluation> {
    let args = params.args;
    let striping = striping(args)?;
    let side = match args.target.unwrap_or(Side::Hservers) {
        Side::Hservers if striping != Striping::OneDh => "HServers (where the paper has 1-DH only)",
        Side::Hservers => "HServers",
        Side::Sservers => "SServers",
    };
    let (service, servers) = one_class(params)?;
    let stripe = args.stripe.context("--stripe is missing: sla needs the stripe size")?;
    let model = Sla::new(service, servers, args.procs, stripe)?;
    let view = model.view(striping, args.begin(), args.size)?;
    let (w, q, largest) = (view.touched, view.sharing, size::format(view.largest));
    let (size, offset, p) = (size::format(args.size), size::format(args.begin()), args.procs);
    let stripe = size::format(stripe);
    Ok(Evaluation {
        model: args.model,
        request: format!(
            "SLA, {striping} on {servers} {side} in stripes of {stripe}: {size} at {offset}, {p} processes"
        ),
        parameters: of_service("", service).to_vec(),
        servers_touched: w,
        sharing: q,
        cost: model.cost(striping, args.begin(), args.size)?,
        formulas: [
            "not part of this model".to_owned(),
            "not part of this model".to_owned(),
            format!("a + w/(w+1)·(b-a) = α + {w}/{}·({q}α-α)", w + 1),
            format!("s_max·β = {largest}·β"),
        ],
    })
}

fn general(params: &Params) -> anyhow::Result<Evaluation> {
    let args = params.args;
    let text = args.cycle.as_deref().context("--cycle is missing: such as 'hdd/0-3:64K ssd/0:8K'")?;
    let cluster = params.cluster.as_ref();
    let cluster = cluster.context("--model general needs a cluster file: give it with -c FILE")?;
    let cycle = parse_cycle(text, cluster).map_err(anyhow::Error::msg).context("--cycle")?;
    let layout = Layout::single(cycle).context("--cycle")?;
    let (p, c, q) = (args.procs, args.per_node(), args.sharing.unwrap_or(args.procs));
    ensure!(p > 0 && q > 0 && args.size > 0, "--procs, --sharing and --size must be at least 1");
    ensure!(q <= p && c <= p, "--sharing and --procs-per-node must be at most --procs, which is {p}");
    let ends_past = args.begin().checked_add(args.size).is_none_or(|end| end > MAX_OFFSET);
    ensure!(!ends_past, "a request of {} bytes at offset {} ends past 2^63", args.size, args.begin());
    let network = params.network()?;
    let mut servers = Vec::new();
    let mut parameters = of_network(network).to_vec();
    for (index, tier) in cluster.tiers.iter().enumerate() {
        let class = cluster.class_of_tier(index).context("a parsed cluster has parameters for every tier")?;
        let service = class.service(args.op, args.access);
        servers.resize(servers.len() + tier.driver.servers(), Server::new(service, q)?);
        parameters.extend(of_service(&format!(" {}", tier.name), service));
    }
    let prepared = PreparedCost::new(&layout, &servers, network, c, Startup::EverySharer)?;
    let k = layout.targets_touched(args.begin(), args.size) as u32;
    let (size, offset) = (size::format(args.size), size::format(args.begin()));
    Ok(Evaluation {
        model: args.model,
        request: format!("{text}: {size} at {offset}, by each of {p} processes, {c} per node"),
        parameters,
        servers_touched: k,
        sharing: q,
        cost: prepared.cost(args.begin(), args.size),
        formulas: [
            format!("max(c·k, max q_i)·e = max({c}·{k}, {q})·e"),
            format!("max(c·S, max q_i·b_i)·t = max({c}·{size}, {q}·max b_i)·t"),
            format!("q_i·α_i = {q}·α of the slowest server"),
            format!("q_i·b_i·β_i = {q}·b·β of the slowest server"),
        ],
    })
}

/// Returns the parameters and the number of servers of a model of one class.
fn one_class(params: &Params) -> anyhow::Result<(Service, u32)> {
    let args = params.args;
    let class = ("--class", args.class.as_deref());
    let service = params.service(("--alpha", args.alpha), ("--beta", args.beta), class)?;
    Ok((service, params.servers("--servers", args.servers, class)?))
}

fn striping(args: &Args) -> anyhow::Result<Striping> {
    let layout = args.layout.context("--layout is missing: 1-DH, 1-DV or 2-D")?;
    let groups = || args.groups.context("--groups is missing: 2-D needs it");
    Ok(match layout {
        LayoutName::OneDh => Striping::OneDh,
        LayoutName::OneDv => Striping::OneDv,
        LayoutName::TwoD => Striping::TwoD { groups: groups()? },
    })
}

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

fn psa(params: &Params) -> anyhow::Result<Evaluation> {
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
        parameters.extend(of_service(&format!("_{}", class.letter), class.service));
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
