//! Evaluates the chosen cost model.

use anyhow::{Context, ensure};
use stripewise_cluster::{parse_cycle, size};
use stripewise_layout::{Layout, MAX_OFFSET};
use stripewise_model::cil::Cil;
use stripewise_model::sla::Sla;
use stripewise_model::{PreparedCost, Server, Service, Startup, Striping};

use super::args::{Args, LayoutName, Model, Side};
use super::params::Params;
use super::{Evaluation, foreign, of_network, of_service, psa};

pub fn evaluate(args: &Args) -> anyhow::Result<Evaluation> {
    foreign::refuse(args)?;
    let params = Params::new(args)?;
    match args.model {
        Model::Cil => cil(&params),
        Model::Psa => psa::evaluate(&params),
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
        parameters: [of_network(network), of_service(["alpha", "beta"], service)].concat(),
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
        parameters: of_service(["alpha", "beta"], service).to_vec(),
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
    let cluster = params.cluster("--model general")?;
    let cycle = parse_cycle(text, cluster).map_err(anyhow::Error::msg).context("--cycle")?;
    let layout = Layout::single(cycle).context("--cycle")?;
    let (p, c, q) = (args.procs, args.per_node(), args.sharing.unwrap_or(args.procs));
    ensure!(p > 0 && q > 0 && args.size > 0, "--procs, --sharing and --size must be at least 1");
    ensure!(q <= p && c <= p, "--sharing and --procs-per-node must be at most --procs, which is {p}");
    let ends_past = args.begin().checked_add(args.size).is_none_or(|end| end > MAX_OFFSET);
    ensure!(!ends_past, "a request of {} bytes at offset {} ends past 2^63", args.size, args.begin());
    let network = params.network()?;
    let service_of = |tier: usize| {
        let class = cluster.class_of_tier(tier).context("a parsed cluster has parameters for every tier")?;
        anyhow::Ok(class.service(args.op, args.access))
    };
    let mut servers = Vec::new();
    let mut parameters = of_network(network).to_vec();
    for (index, tier) in cluster.tiers.iter().enumerate() {
        let service = service_of(index)?;
        servers.resize(servers.len() + tier.driver.servers(), Server::new(service, q)?);
        let [alpha, beta] = ["alpha", "beta"].map(|symbol| format!("{symbol} {}", tier.name));
        parameters.extend(of_service([&alpha, &beta], service));
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
    Ok(match layout {
        LayoutName::OneDh => Striping::OneDh,
        LayoutName::OneDv => Striping::OneDv,
        LayoutName::TwoD => {
            Striping::TwoD { groups: args.groups.context("--groups is missing: 2-D needs it")? }
        }
    })
}
