//! Chart of what each server has to do, in the present layouts and in the planned ones.

use maud::{Markup, html};
use stripewise_plan::{Demand, ServerLoad};

use super::bars::{BAR_END, Bar, bars};
use super::parts::figure;
use crate::draw;
use crate::units::{self, Clock};

/// Servers drawn one by one. Of more servers, each tier has the busiest one and the mean.
const SERVERS_DRAWN: usize = 24;

/// Draws the seconds that each server is busy, or nothing if no server has anything to do.
pub fn figure_of(loads: &[ServerLoad]) -> Markup {
    let rows = if loads.len() > SERVERS_DRAWN { by_tier(loads) } else { loads.to_vec() };
    let longest_s = rows.iter().flat_map(|row| [row.now.busy_s, row.planned.busy_s]).fold(0.0, f64::max);
    if longest_s <= 0.0 {
        return Markup::default();
    }
    let legend = [("measured", "in the present layouts"), ("expected", "in the planned ones")];
    figure(
        "Load of each server",
        format_args!(
            "seconds that the requests keep it busy, and their bytes, in all runs; without copying in the background. {}",
            balance(loads)
        ),
        html! {
            (draw::legend(&legend))
            div.bars.tight {
                @for row in &rows {
                    div { (row.server) }
                    div { (pair(row, longest_s)) }
                }
            }
        },
    )
}

fn pair(row: &ServerLoad, longest_s: f64) -> Markup {
    let clock = Clock::up_to(longest_s);
    let bar = |class, meaning, demand: Demand| Bar {
        class,
        meaning,
        end: demand.busy_s / longest_s * BAR_END,
        text: format!("{}, {}", clock.print(demand.busy_s), units::bytes(demand.bytes.round() as u64)),
        range: None,
    };
    bars(&row.server, &[bar("measured", "now ", row.now), bar("expected", "planned ", row.planned)])
}

/// Says how much busier than the mean the busiest server is.
fn balance(loads: &[ServerLoad]) -> String {
    let ratio = |of: fn(&ServerLoad) -> Demand| {
        let busy = || loads.iter().map(|load| of(load).busy_s);
        let sum: f64 = busy().sum();
        let most = busy().fold(0.0, f64::max);
        if sum > 0.0 { most * loads.len() as f64 / sum } else { 1.0 }
    };
    let (now, planned) = (ratio(|load| load.now), ratio(|load| load.planned));
    format!(
        "The busiest server works {} as long as the mean now, {} planned.",
        units::factor(now),
        units::factor(planned)
    )
}

/// The busiest server and the mean of each tier.
fn by_tier(loads: &[ServerLoad]) -> Vec<ServerLoad> {
    let tier = |load: &ServerLoad| load.server.rsplit_once('/').map_or("", |(tier, _)| tier).to_owned();
    let of_tier = |servers: &[ServerLoad]| {
        let (name, count) = (tier(&servers[0]), servers.len());
        let row = |what: &str, of: &dyn Fn(fn(&ServerLoad) -> Demand) -> Demand| ServerLoad {
            server: format!("{name}, {what} of {count}"),
            now: of(|load| load.now),
            planned: of(|load| load.planned),
        };
        [row("the busiest", &|of| busiest(servers, of)), row("mean", &|of| mean(servers, of))]
    };
    loads.chunk_by(|one, next| tier(one) == tier(next)).flat_map(of_tier).collect()
}

fn busiest(servers: &[ServerLoad], of: fn(&ServerLoad) -> Demand) -> Demand {
    let most = servers.iter().map(of).max_by(|one, other| one.busy_s.total_cmp(&other.busy_s));
    most.unwrap_or_default()
}

fn mean(servers: &[ServerLoad], of: fn(&ServerLoad) -> Demand) -> Demand {
    let mean =
        |part: fn(Demand) -> f64| servers.iter().map(|load| part(of(load))).sum::<f64>() / servers.len() as f64;
    Demand { bytes: mean(|demand| demand.bytes), busy_s: mean(|demand| demand.busy_s) }
}
