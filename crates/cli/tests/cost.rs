//! `stripewise cost`, run as a user runs it. The expected numbers are computed by hand.

mod support;

use serde_json::Value;
use support::{Place, directories, tier};

fn json(arguments: &str) -> Value {
    Place::new().json(&format!("cost {arguments} --json"))
}

/// Checks the terms establish, transfer, startup and io, and their sum.
#[track_caller]
fn assert_terms(arguments: &str, terms: [f64; 4]) {
    let found = json(arguments);
    let keys = ["establish_s", "transfer_s", "startup_s", "io_s", "total_s"];
    let expected = terms.into_iter().chain([terms.iter().sum()]);
    for (key, expected) in keys.into_iter().zip(expected) {
        let value = found[key].as_f64().unwrap_or_else(|| panic!("{key} in {found}"));
        assert!((value - expected).abs() < 1e-12, "{key} is {value}, not {expected}: {found}");
    }
}

#[track_caller]
fn assert_refused(arguments: &str, message: &str) {
    assert_eq!(Place::new().error(&format!("cost {arguments}")), message);
}

const CIL: &str = "--model cil --groups 8 --servers 16 --procs 8 --procs-per-node 1 --size 1M \
    --establish 3e-4 --per-byte 7.95e-9 --alpha 3e-4 --beta 7.95e-9";

/// Seconds for one mebibyte on the network or on one disk.
const MIB_S: f64 = 0.0083361792;

#[test]
fn cil() {
    assert_terms(&format!("{CIL} --layout 1-DH"), [0.0048, MIB_S, 0.0024, MIB_S / 2.0]);
    assert_terms(&format!("{CIL} --layout 1-DV"), [0.0003, MIB_S, 0.0003, MIB_S]);
    assert_terms(&format!("{CIL} --layout 2-D"), [0.0006, MIB_S, 0.0003, MIB_S / 2.0]);
}

const PSA: &str = "--model psa --hservers 4 --sservers 4 --procs 16 --procs-per-node 2 --size 512K \
    --establish 3e-4 --per-byte 7.95e-9 --alpha-h 3e-4 --beta-h 7.95e-9 --alpha-s 5e-5 --beta-s 2.38e-9";

#[test]
fn psa() {
    // A 64 KiB stripe of 16 processes is a mebibyte.
    assert_terms(&format!("{PSA} --h-stripe 64K --s-stripe 64K"), [0.0048, MIB_S, 0.0048, MIB_S]);
    assert_terms(&format!("{PSA} --h-stripe 128K --s-stripe 0"), [0.0048, 2.0 * MIB_S, 0.0048, 2.0 * MIB_S]);
    // All on the SServers: 16 · 128 KiB = 2 MiB at 2.38e-9.
    let on_ssd = 2_097_152.0 * 2.38e-9;
    assert_terms(&format!("{PSA} --h-stripe 0 --s-stripe 128K"), [0.0048, 2.0 * MIB_S, 0.0008, on_ssd]);
}

#[test]
fn psa_works_the_other_stripe_out() {
    let both = json(&format!("{PSA} --h-stripe 120K --s-stripe 8K"));
    assert_eq!(json(&format!("{PSA} --h-stripe 120K")), both);
    assert_eq!(json(&format!("{PSA} --s-stripe 8K")), both);
    // 512 KiB on three servers give a fractional number of bytes on each.
    let thirds = json(&format!("{PSA} --hservers 3 --s-stripe 0").replace("--hservers 4", ""));
    assert!((thirds["io_s"].as_f64().unwrap() - 16.0 * 524_288.0 / 3.0 * 7.95e-9).abs() < 1e-12);
}

const SLA: &str = "--model sla --servers 8 --groups 2 --stripe 64K --offset 0 --size 8K --procs 32 \
    --alpha 3e-4 --beta 7.95e-9";

#[test]
fn sla() {
    let io_s = 8192.0 * 7.95e-9;
    assert_terms(&format!("{SLA} --target hservers --layout 1-DH"), [0.0, 0.0, 3e-4 * 16.5, io_s]);
    assert_terms(&format!("{SLA} --target sservers --layout 1-DH"), [0.0, 0.0, 3e-4 * 16.5, io_s]);
    assert_terms(&format!("{SLA} --target sservers --layout 1-DV"), [0.0, 0.0, 3e-4 * 2.5, io_s]);
    assert_terms(&format!("{SLA} --target sservers --layout 2-D"), [0.0, 0.0, 3e-4 * 8.5, io_s]);
}

#[test]
fn sla_counts_the_servers_from_the_offset() {
    // 64 KiB from the middle of a stripe lie on two servers, half on each.
    let args = SLA.replace("--offset 0", "--offset 32K").replace("--size 8K", "--size 64K");
    let io_s = 32_768.0 * 7.95e-9;
    assert_terms(&format!("{args} --layout 1-DH"), [0.0, 0.0, 3e-4 * (1.0 + 31.0 * 2.0 / 3.0), io_s]);
}

#[test]
fn text_shows_k_q_parameters_terms_and_formulas() {
    let expected = "\
CIL, 2-D(8) on 16 servers: 1M by each of 8 processes, 1 per node
servers touched: k = 2; processes that share each of them: q = 1
e = 3e-4, t = 7.95e-9, alpha = 3e-4, beta = 7.95e-9

 term           seconds  formula
 establish  0.000600000  max(c·k, q)·e = max(1·2, 1)·e
 transfer   0.008336179  max(c·S, q·S/k)·t = max(1·1M, 1·1M/2)·t
 startup    0.000300000  q·α = 1·α
 io         0.004168090  q·(S/k)·β = 1·(1M/2)·β
 total      0.013404269
";
    assert_eq!(Place::new().text(&format!("cost {CIL} --layout 2-D")), expected);
}

/// Writes a cluster file, and returns its path in quotes.
fn cluster() -> (Place, String) {
    let place = Place::new();
    let hdd = [(3e-4, 7.95e-9), (1e-4, 7.95e-9), (4e-4, 7.95e-9), (2e-4, 7.95e-9)];
    let ssd = [(5e-5, 2.38e-9), (5e-5, 2.38e-9), (5e-5, 4e-9), (5e-5, 4e-9)];
    let text = "[network]\nestablish_s = 3e-4\nper_byte_s = 7.95e-9\n".to_owned()
        + &tier("hdd", hdd, &directories("/d/h", 4), "1T", false)
        + &tier("ssd", ssd, &directories("/d/s", 4), "1G", false);
    place.write("cluster.toml", &text);
    let path = format!("'{}'", place.path("cluster.toml").display());
    (place, path)
}

#[test]
fn parameters_of_a_cluster_file() {
    let (_place, path) = cluster();
    let file = format!("-c {path}");
    let from_file = format!("--model psa {file} --procs 16 --procs-per-node 2 --size 512K --h-stripe 64K");
    assert_eq!(json(&from_file), json(&format!("{PSA} --h-stripe 64K")));
    assert_terms(&format!("{from_file} --op write --access sequential"), [0.0048, MIB_S, 0.0032, MIB_S]);
    // A flag overrides the file.
    assert_terms(&format!("{from_file} --alpha-h 1e-3 --establish 0"), [0.0, MIB_S, 0.016, MIB_S]);
    // ⌈6/4⌉ = 2 processes on each SSD.
    let cil = format!("--model cil --layout 1-DV --class ssd {file} --procs 6 --size 1M");
    assert_terms(&cil, [0.0006, 2.0 * MIB_S, 1e-4, 2.0 * 1_048_576.0 * 2.38e-9]);
    assert_terms(&format!("{SLA} --layout 1-DV {file}"), [0.0, 0.0, 3e-4 * 2.5, 8192.0 * 7.95e-9]);
}

/// Measured parameters next to the cluster file are used, unless the user declines them.
#[test]
fn a_profile_overrides_the_cluster_file() {
    let (place, path) = cluster();
    let measured = "{ startup_s = 1e-3, per_byte_s = 0, startup_spread_s = 0, per_byte_spread_s = 0, \
         residual_relative = 0, samples = 1, outliers = 0 }";
    let lines = ["read.random", "read.sequential", "write.random", "write.sequential"]
        .map(|key| format!("{key} = {measured}\n"))
        .concat();
    let text = format!(
        "version = 1\ndate = \"2026-11-21T01:00:00Z\"\nmethod = \"by hand\"\n\
         [class.ssd]\ntarget = \"ssd/0\"\ndirect_io = true\n{lines}"
    );
    place.write("profile.toml", &text);
    let cil = format!("--model cil --layout 1-DV --class ssd -c {path} --procs 4 --size 1M");
    assert_terms(&cil, [0.0003, MIB_S, 1e-3, 0.0]);
    assert_terms(&format!("{cil} --profile none"), [0.0003, MIB_S, 5e-5, 1_048_576.0 * 2.38e-9]);
}

#[test]
fn general_on_any_cycle() {
    let (_place, path) = cluster();
    let general = format!("--model general -c {path} --procs 16 --procs-per-node 2");
    let psa_shaped = format!("{general} --cycle 'hdd/0-3:64K ssd/0-3:64K' --size 512K");
    assert_terms(&psa_shaped, [0.0048, MIB_S, 0.0048, MIB_S]);
    // 96 KiB from offset 32 KiB lie as 32 KiB on hdd/0 and 64 KiB on ssd/2; 4 processes share a
    // server.
    let two = format!("{general} --cycle 'hdd/0:64K ssd/2:64K' --offset 32K --size 96K --sharing 4");
    let (kib_32, kib_64) = (32_768.0, 65_536.0);
    let hdd = [4.0 * 3e-4, 4.0 * kib_32 * 7.95e-9];
    assert_terms(&two, [4.0 * 3e-4, 4.0 * kib_64 * 7.95e-9, hdd[0], hdd[1]]);
    assert_eq!(json(&two)["servers_touched"], 2);
}

#[test]
fn missing_parameters() {
    let missing = |flag: &str, class: &str| {
        format!("{flag} is missing: give it, or a cluster file with -c FILE and {class}")
    };
    let cil = "--model cil --layout 1-DH --procs 8 --size 1M";
    assert_refused(cil, &missing("--alpha", "--class"));
    assert_refused(&format!("{cil} --alpha 1"), &missing("--beta", "--class"));
    assert_refused(&format!("{cil} --alpha 1 --beta 1"), &missing("--servers", "--class"));
    let network = "--establish is missing: give it, or a cluster file with -c FILE";
    assert_refused(&format!("{cil} --alpha 1 --beta 1 --servers 4"), network);
    assert_refused("--model cil --procs 8 --size 1M", "--layout is missing: 1-DH, 1-DV or 2-D");
    assert_refused("--model cil --layout 2-D --procs 8 --size 1M", "--groups is missing: 2-D needs it");
    let psa = "--model psa --procs 8 --size 1M";
    assert_refused(psa, &missing("--hservers", "--h-class"));
    let stripes = "give --h-stripe, or --s-stripe (0: all on the HServers)";
    assert_refused(&format!("{psa} --hservers 4 --sservers 4"), stripes);
    let no_stripe = SLA.replace("--stripe 64K", "");
    assert_refused(&format!("{no_stripe} --layout 1-DH"), "--stripe is missing: sla needs the stripe size");
    let cycle = "--cycle is missing: such as 'hdd/0-3:64K ssd/0:8K'";
    assert_refused("--model general --procs 8 --size 1M", cycle);
}

#[test]
fn impossible_values() {
    let instead = |arguments: &str, old: &str, new: &str| {
        assert!(arguments.contains(old));
        format!("{} --layout 1-DH", arguments.replace(old, new))
    };
    let zero = |what: &str| format!("{what} is 0; it must be at least 1");
    assert_refused(&instead(CIL, "--servers 16", "--servers 0"), &zero("the number of servers"));
    assert_refused(&instead(CIL, "--procs 8", "--procs 0"), &zero("the number of processes"));
    assert_refused(&instead(SLA, "--stripe 64K", "--stripe 0"), &zero("the stripe"));
    let size = "the request size is 0 bytes; it must be a finite number above 0";
    assert_refused(&instead(CIL, "--size 1M", "--size 0"), size);
    let alpha = |value: &str| {
        format!("the startup time (alpha) is {value}; it must be a finite number of seconds, 0 or more")
    };
    assert_refused(&instead(CIL, "--alpha 3e-4", "--alpha -1"), &alpha("-1"));
    assert_refused(&instead(CIL, "--alpha 3e-4", "--alpha nan"), &alpha("NaN"));
    assert_refused(&instead(SLA, "--alpha 3e-4", "--alpha inf"), &alpha("inf"));
    let groups = format!("{CIL} --layout 2-D").replace("--groups 8", "--groups 17");
    assert_refused(&groups, "17 groups of 16 servers; 2-D needs 1 to 16 groups");
    let far = "a request of 8192 bytes at offset 9223372036854775807 ends past 2^63";
    assert_refused(&instead(SLA, "--offset 0", "--offset 9223372036854775807"), far);
    assert_refused(
        &format!("{PSA} --h-stripe 64K --s-stripe 8K"),
        "4 stripes of 64K and 4 of 8K are not --size 512K: a request of PSA fills one turn of the stripes; \
         leave --h-stripe or --s-stripe out, or use --model general",
    );
}

/// A flag that the model would ignore is rejected, because the result would answer a different
/// question.
#[test]
fn flags_of_other_models() {
    let is_refused = |arguments: &str, flag: &str, models: &str, model: &str| {
        let message = format!("{flag} is no flag of --model {model}, only of {models}: leave it out");
        assert_refused(&format!("{arguments} {flag}"), &message);
    };
    let (cil, psa) = (format!("{CIL} --layout 1-DH"), format!("{PSA} --h-stripe 64K"));
    let sla = format!("{SLA} --layout 1-DH");
    let general = "--model general --procs 8 --size 1M --cycle hdd/0:64K";
    for (flag, models, at) in [
        ("--groups 8", "cil, sla", "psa general"),
        ("--layout 2-D", "cil, sla", "psa general"),
        ("--servers 8", "cil, sla", "psa general"),
        ("--alpha 3e-4", "cil, sla", "psa general"),
        ("--beta 0e0", "cil, sla", "psa general"),
        ("--class hdd", "cil, sla", "psa general"),
        ("--hservers 4", "psa", "cil sla general"),
        ("--sservers 4", "psa", "cil sla general"),
        ("--h-stripe 64K", "psa", "cil sla general"),
        ("--s-stripe 0", "psa", "cil sla general"),
        ("--alpha-h 1e-3", "psa", "cil sla general"),
        ("--beta-h 1e-9", "psa", "cil sla general"),
        ("--alpha-s 1e-3", "psa", "cil sla general"),
        ("--beta-s 1e-9", "psa", "cil sla general"),
        ("--h-class hdd", "psa", "cil sla general"),
        ("--s-class ssd", "psa", "cil sla general"),
        ("--target hservers", "sla", "cil psa general"),
        ("--stripe 64K", "sla", "cil psa general"),
        ("--offset 0", "sla, general", "cil psa"),
        ("--sharing 2", "general", "cil psa sla"),
        ("--procs-per-node 1", "cil, psa, general", "sla"),
        ("--establish 3e-4", "cil, psa, general", "sla"),
        ("--per-byte 1e-9", "cil, psa, general", "sla"),
    ] {
        for model in at.split(' ') {
            let arguments = match model {
                "cil" => &cil,
                "psa" => &psa,
                "sla" => &sla,
                _ => general,
            };
            is_refused(arguments, flag, models, model);
        }
    }
    let cycle = "--cycle 'hdd/0:64K' is no flag of --model psa, only of general: leave it out";
    assert_refused(&format!("{psa} --cycle 'hdd/0:64K'"), cycle);
}

#[test]
fn bad_cluster_files_and_classes() {
    let (place, path) = cluster();
    let cil = "--model cil --layout 1-DH --procs 8 --size 1M";
    let no_class =
        format!("--class tape: {} has no servers of this class; it has hdd, ssd", path.replace('\'', ""));
    assert_refused(&format!("{cil} -c {path} --class tape"), &no_class);
    let absent = place.path("absent.toml");
    let absent = absent.display();
    let unreadable = format!("{absent} cannot be read: No such file or directory (os error 2)");
    assert_refused(&format!("{cil} -c '{absent}' --class hdd"), &unreadable);
    let general = format!("--model general -c {path} --procs 1 --size 1M");
    assert_refused(
        &format!("{general} --cycle 'hdd/4:64K'"),
        "--cycle: there is no target \"hdd/4\" in the cluster",
    );
    assert_refused(
        &format!("{general} --cycle 'hdd/0:64K' --sharing 2"),
        "--sharing and --procs-per-node must be at most --procs, which is 1",
    );
}
