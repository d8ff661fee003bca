//! The storage for which a plan was made.

use stripewise_cluster::{Cluster, Tier};

use super::table::{Column, table, whole};
use crate::html::Html;
use crate::units;

/// Writes the tiers and the parameters that predictions use.
pub fn tiers(h: &mut Html, cluster: &Cluster) {
    let columns = [
        Column::text("Tier"),
        Column::text("class"),
        Column::number("servers"),
        Column::number("capacity each"),
        Column::number("random read"),
        Column::number("sequential read"),
        Column::number("random write"),
        Column::number("sequential write"),
        Column::text("parameters"),
    ];
    let caption = "Storage: time to start one access + time per MiB, as the predictions use them.";
    table(h, caption, &columns, |h| {
        for (index, tier) in cluster.tiers.iter().enumerate() {
            h.element("tr", &[], |h| tier_row(h, cluster, index, tier));
        }
    });
    let network = &cluster.network;
    if network.establish_s > 0.0 || network.per_byte_s > 0.0 {
        let text = format!(
            "Network: {} to establish a connection, {} per MiB.",
            units::seconds(network.establish_s),
            units::seconds(network.per_byte_s * MIB)
        );
        h.leaf("p", &[("class", "small")], &text);
    }
}

const MIB: f64 = 1048576.0;

fn tier_row(h: &mut Html, cluster: &Cluster, index: usize, tier: &Tier) {
    h.element("th", &[("scope", "row")], |h| {
        h.text(&tier.name);
        if tier.emulate {
            h.text(" ");
            h.leaf("span", &[("class", "pill bad")], "emulated");
        }
    });
    h.leaf("td", &[], &tier.class);
    whole(h, tier.driver.servers() as u64, units::count);
    whole(h, tier.capacity_per_server, units::bytes);
    let class = cluster.class_of_tier(index);
    for by_access in [class.map(|class| class.read), class.map(|class| class.write)] {
        for service in [by_access.map(|by| by.random), by_access.map(|by| by.sequential)] {
            let text = service.map_or("\u{2013}".to_owned(), |service| {
                let per_mib_s = service.per_byte_s * MIB;
                format!("{} + {}", units::short_seconds(service.startup_s), units::short_seconds(per_mib_s))
            });
            h.leaf("td", &[("class", "n")], &text);
        }
    }
    let measured = cluster.measured.contains_key(&tier.class);
    h.leaf("td", &[], if measured { "measured" } else { "by hand" });
}
