use stripewise_native::Stripe;

use super::*;
use crate::Driver;
use crate::tests::conformance::conformance;
use crate::tests::fake::Fake;

const K: u64 = 1 << 10;
const CONFIGURATION: &str = "server tcp://a:3334 1000\nserver tcp://b:3334 2000\nserver tcp://c:3334 3000\n";

fn orangefs(fake: &Fake) -> OrangeFs {
    OrangeFs { tools: TOOLS.map(|name| fake.tool(name)) }
}

fn servers(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("tcp://{name}:3334")).collect()
}

fn varied(stripes: &[(&str, u64)]) -> NativeLayout {
    let stripes = stripes.iter().map(|(name, width)| (format!("tcp://{name}:3334"), *width)).collect();
    NativeLayout::uniform(Stripe::Varied { stripes })
}

#[test]
fn conforms_on_a_fake() {
    let fake = Fake::new(CONFIGURATION);
    let listed =
        |width, names: &[&str]| NativeLayout::uniform(Stripe::Listed { width, servers: servers(names) });
    let supported = vec![
        varied(&[("b", 28 * K), ("a", 172 * K), ("b", 5)]),
        listed(28 * K, &["c", "a"]),
        NativeLayout::uniform(Stripe::Grouped {
            width: 64 * K,
            groups: 1,
            factor: 4,
            servers: servers(&["b", "c", "a"]),
        }),
    ];
    let many: Vec<(&str, u64)> = ["a", "b"].into_iter().cycle().map(|name| (name, 28 * K)).take(300).collect();
    let unsupported = vec![
        varied(&many),
        varied(&[("a", 0)]),
        listed(K, &["a", "a"]),
        NativeLayout::even(64 * K, 2, Some("hdd")),
        NativeLayout::even(64 * K, 1025, None),
    ];
    let mut bed = fake.bed(supported, unsupported, false);
    bed.refused = vec![(listed(64 * K, &["a", "nobody"]), "pvfs2-".into())];
    conformance(&orangefs(&fake), &bed).require("orangefs on a fake");
}

#[test]
fn what_it_offers() {
    let fake = Fake::new(CONFIGURATION);
    let probe = orangefs(&fake).probe(&fake.path("")).unwrap().unwrap();
    assert_eq!((probe.servers, probe.rights.len(), probe.pools.len()), (servers(&["a", "b", "c"]), 0, 0));
    assert_eq!(probe.notes[0], "the server with the least space, tcp://a:3334, has 1000");
}

#[test]
fn stripes_over_any_servers() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, layout) = (orangefs(&fake), NativeLayout::even(96 * K, 2, None));
    orangefs.prepare(&fake.path("dir"), &layout).unwrap();
    assert_eq!(orangefs.read_back(&fake.path("dir")).unwrap().layout.as_ref(), Some(&layout));
    orangefs.create(&fake.path("file"), &layout, 0o600).unwrap();
    let picked = orangefs.read_back(&fake.path("file")).unwrap().layout.unwrap();
    assert!(layout.is_met_by(&picked), "{picked}");
}

#[test]
fn a_files_hints_are_not_its_directorys() {
    let fake = Fake::new(CONFIGURATION);
    let (orangefs, dir) = (orangefs(&fake), fake.path(""));
    orangefs.create(&fake.path("file"), &varied(&[("b", 28 * K), ("a", 172 * K)]), 0o600).unwrap();
    assert_eq!(orangefs.read_back(&dir).unwrap().layout, None);
    std::fs::write(fake.path("other"), "x").unwrap();
    let other = orangefs.read_back(&fake.path("other")).unwrap().layout.unwrap();
    assert!(NativeLayout::even(64 * K, 3, None).is_met_by(&other), "{other}");
}

#[test]
fn tools_that_make_no_sense_are_said() {
    let with = |program| OrangeFs { tools: TOOLS.map(|_| Tool::at(program)) };
    let error = with("/bin/echo").read_back(Path::new("/tmp")).unwrap_err().to_string();
    assert!(error.contains("is not understood (no I/O server statistics)"), "{error}");
    assert_eq!(with("/bin/false").probe(Path::new("/tmp")).unwrap(), None);
    assert_eq!(with("/nowhere/pvfs2").probe(Path::new("/tmp")).unwrap(), None);
}
