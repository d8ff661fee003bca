//! Claims of S6: placement in the layout that gains most (SLA §5.3). Its cells are those of S1, S2,
//! S4 and S5.

use super::setting::{PLACED, STOCK};
use crate::claim::{Experiment, Paper};
use crate::experiments::making::{figure, gain, labels};

/// Returns S6 without its cells.
pub(super) fn s6() -> Experiment {
    let mut claims = Vec::new();
    let mut claim = |part: &str, key: &str, value: &str, over: &str, claimed: (f64, f64)| {
        let of = labels([("op", "write"), ("part", part), (key, value)]);
        claims.push(gain(&format!("{part}, {key} {value}, LCP"), of, "LCP", over, claimed));
    };
    for size in ["8K", "64K", "512K"] {
        claim("sizes", "size", size, "SCA", (0.063, 0.132));
    }
    claim("sizes", "size", "4M", STOCK, (0.058, 0.058));
    for procs in ["8", "32", "128"] {
        claim("processes", "procs", procs, "SCA", (0.115, 0.188));
        claim("processes", "procs", procs, STOCK, (0.382, 0.566));
    }
    for (spacing, more, stock) in
        [("0", 0.045, 0.223), ("1K", 0.056, 0.306), ("2K", 0.067, 0.322), ("4K", 0.095, 0.426)]
    {
        claim("HPIO", "spacing", spacing, "SCA", (more, more));
        claim("HPIO", "spacing", spacing, STOCK, (stock, stock));
    }
    for (procs, more, stock) in
        [("100", 0.102, 0.342), ("200", 0.114, 0.454), ("300", 0.126, 0.468), ("400", 0.212, 0.667)]
    {
        claim("tile-IO", "procs", procs, "SCA", (more, more));
        claim("tile-IO", "procs", procs, STOCK, (stock, stock));
    }
    let plot = |part: &str, key: &str, what: &str| {
        figure(&format!("LCP, {part}: writes"), labels([("op", "write"), ("part", part)]), (key, what), &PLACED)
    };
    Experiment {
        id: "S6",
        paper: Paper::Sla,
        title: "Layout-aware placement",
        setting: "writes as in S1, S2, S4, S5; SCA has its copies in 1-DH, LCP each in the layout that gains most",
        claimed: "LCP over SCA a further +6 to +13 % (sizes), +12 to +19 % (processes), +5 to +10 % (HPIO), +10 to +21 % (tile-IO)",
        claims,
        figures: vec![
            plot("sizes", "size", "bytes of a request"),
            plot("processes", "procs", "processes"),
            plot("HPIO", "spacing", "bytes between regions"),
            plot("tile-IO", "procs", "processes"),
        ],
        cells: |_| Vec::new(),
    }
}
