//! A file's layout as `lfs getstripe` prints it.

use stripewise_cluster::size;
use stripewise_native::{Component, NativeLayout, Stripe};

const MIRRORS: &str = "lcm_mirror_count";
/// The keys whose values count.
const KEYS: [&str; 11] = [
    MIRRORS,
    "lcme_flags",
    "lcme_extent.e_start",
    "lcme_extent.e_end",
    "stripe_count",
    "stripe_size",
    "extension_size",
    "pattern",
    "stripe_offset",
    "pool",
    "l_ost_idx",
];
/// The options in the text of [`Striping::exact`] that a value follows.
const VALUED: [&str; 8] = ["-E", "-L", "-S", "-c", "-C", "-i", "-p", "-z"];
/// The options that stand alone: a further mirror, and the flag of its preferred components.
const ALONE: [&str; 2] = [MIRROR, PREFER];
const MIRROR: &str = "-N";
const PREFER: &str = "--comp-flags=prefer";
const END: &str = "-E";
const POOL: &str = "-p";
/// The pool that a component inherits from the default of its directory (`lov_pool_is_inherited`).
const INHERITED: &str = "none";
/// No pool (`lov_pool_is_ignored` in lustre_user.h): since 2.15.4.
const IGNORED: &str = "ignore";

/// The components of a file's layout, or of the layout that a directory's new files get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Striping {
    pub components: Vec<Part>,
    /// Copies of the data on other OSTs (FLR); 1: only the data.
    mirrors: u32,
    is_dir: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    start: u64,
    /// `None`: to the end of the file.
    pub end: Option<u64>,
    pub width: u64,
    /// Negative: -1 is as many as there are OSTs, -N (since 2.16) N times as many. `None` only
    /// while the component is parsed.
    pub count: Option<i32>,
    /// The bytes by which Lustre extends the component before this one (self-extending layouts).
    extension: Option<u64>,
    pattern: Pattern,
    preferred: bool,
    pub pool: Option<String>,
    /// The OST of the first stripe; `None`: any.
    pub first: Option<u32>,
    /// The OSTs of all stripes; empty: not chosen yet (a directory, a component that was never
    /// written).
    pub osts: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Pattern {
    #[default]
    Stripes,
    /// An OST may hold several stripes.
    Overstriped,
    /// On the metadata server (DoM).
    Metadata,
    /// A directory without a default: 0, or since 2.17 nothing.
    Unset,
    Other(String),
}

impl Striping {
    /// Parses the output of `lfs getstripe --yaml` (`lov_dump_user_lmm_v1v3` and `lov_dump_comp_v1`
    /// in lustre/utils/liblustreapi.c), in which every value follows its key. Directories' keys
    /// lack the `lmm_`; unknown keys are skipped. The error names the key that is missing or not
    /// understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self { mirrors: 1, ..Self::default() };
        let composite = text.contains("lcme_extent.e_end:");
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(long) = word.strip_suffix(':') else { continue };
            let key = long.trim_start_matches("lmm_");
            // A component begins with its identifier; a plain layout begins with its count.
            if key == "lcme_id" || (all.components.is_empty() && key == "stripe_count" && !composite) {
                all.components.push(Part::default());
            }
            if !KEYS.contains(&key) {
                continue;
            }
            all.is_dir |= long == "stripe_count";
            // llapi_lov_pattern_string of 2.17 prints nothing for a pattern that is not set.
            let value = match words.peek() {
                Some(next) if key == "pattern" && next.ends_with(':') => "",
                _ => words.next().ok_or_else(|| format!("{key} has no value"))?.trim_end_matches(','),
            };
            let odd = || format!("{key}: {value:?}");
            match (key, all.components.last_mut()) {
                (MIRRORS, _) => all.mirrors = value.parse().map_err(|_| odd())?,
                (_, None) => return Err(format!("{key} before any component")),
                (_, Some(part)) => part.take(key, value).ok_or_else(odd)?,
            }
        }
        if all.components.is_empty() {
            return Err("no stripe_count".to_owned());
        }
        match all.components.iter().find_map(Part::missing) {
            Some(key) => Err(format!("a component without a {key}")),
            None => Ok(all),
        }
    }

    /// The layout in the terms of the requested one: where that names a pool or leaves the OSTs
    /// open, the chosen OSTs are omitted. `None`: with every known detail. The error tells what of
    /// it a [`NativeLayout`] does not express.
    pub fn layout(&self, asked: Option<&NativeLayout>) -> Result<NativeLayout, String> {
        if self.mirrors > 1 {
            return Err(format!("it has {} mirrors", self.mirrors));
        }
        if let Some(reason) = self.components.iter().find_map(Part::inexpressible) {
            return Err(reason);
        }
        let parts = self.components.iter().enumerate().map(|(index, part)| {
            let asked = asked.and_then(|asked| asked.components.get(index));
            let stripe = match asked.map(|component| &component.stripe) {
                Some(Stripe::Even { .. }) => part.even(),
                Some(Stripe::Listed { servers, .. }) => part.listed(Some(servers)),
                _ => part.stripe(),
            };
            Component { end: part.end, stripe }
        });
        Ok(NativeLayout { components: parts.collect() })
    }

    /// The options of `lfs setstripe` that give a new file or a directory this layout: also with
    /// data on the metadata server, mirrors, extension, and counts below 0. `None`: no options do.
    /// They do not name the OSTs of a file, which Lustre may have chosen.
    ///
    /// `lfs setstripe --yaml` would not restore counts of -1: `llapi_layout_stripe_count_is_valid`
    /// in lustre/utils/liblustreapi_layout.c refuses them.
    pub fn exact(&self) -> Option<String> {
        if self.components.iter().any(|part| matches!(part.pattern, Pattern::Unset | Pattern::Other(_))) {
            return None;
        }
        let mut words = Vec::new();
        let mut pooled = false;
        for (index, part) in self.components.iter().enumerate() {
            if part.extension.is_some() {
                continue; // A part of the component before it.
            }
            let extended = self.components.get(index + 1).filter(|next| next.extension.is_some());
            if self.mirrors > 1 && part.start == 0 {
                words.push(MIRROR.to_owned());
            }
            let end = extended.unwrap_or(part).end;
            if self.components.len() > 1 || end.is_some() {
                words.extend(["-E".to_owned(), end.map_or("-1".to_owned(), size::format)]);
            }
            words.extend(part.options(self.is_dir, pooled));
            let extension = extended.and_then(|next| next.extension);
            words.extend(extension.into_iter().flat_map(|bytes| ["-z".to_owned(), size::format(bytes)]));
            words.extend(part.preferred.then(|| PREFER.to_owned()));
            // A component on the metadata server is given no pool, although it may have one.
            pooled = part.pool.is_some() && part.pattern != Pattern::Metadata;
        }
        Some(words.join(" "))
    }

    /// Whether this is a directory whose new files begin on a certain OST.
    pub fn is_pinned(&self) -> bool {
        self.is_dir && self.components.iter().any(|part| part.first.is_some())
    }

    /// The OSTs of the components that have a pool, which the layout does not contain.
    pub fn note(&self) -> Option<String> {
        let pooled = self.components.iter().filter(|part| part.pool.is_some() && !part.osts.is_empty());
        let osts: Vec<String> = pooled.map(|part| format!("on OSTs {}", list(&part.osts).join(", "))).collect();
        (!osts.is_empty()).then(|| osts.join(", then "))
    }
}

/// The words of a text of [`Striping::exact`]; `None`: it is none.
pub fn options(exact: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = exact.split(' ').collect();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let valued = VALUED.contains(word);
        // A value is a number, which may be negative, or a name.
        let takes = |value: &&str| value.parse::<i64>().is_ok() || !value.starts_with('-') && !value.is_empty();
        if !(ALONE.contains(word) || valued && rest.next().is_some_and(takes)) {
            return None;
        }
    }
    Some(words)
}

/// The options of `lfs setstripe` with `-p ignore` for each component without a pool, except those
/// on the metadata server, for which lfs refuses pools (`comp_args_to_layout`).
pub fn without_inherited_pools(options: &[String]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begin = 0;
    for (index, word) in options.iter().enumerate() {
        let begins = word == MIRROR || word == END && options[..index].last().is_none_or(|last| last != MIRROR);
        if begins && index > 0 {
            add_unpooled(&mut words, &options[begin..index]);
            begin = index;
        }
    }
    add_unpooled(&mut words, &options[begin..]);
    words
}

/// Adds the options of one component.
fn add_unpooled(words: &mut Vec<String>, component: &[String]) {
    words.extend_from_slice(component);
    match component.iter().position(|word| word == POOL) {
        Some(place) if component[place + 1] == INHERITED => {
            let value = words.len() - component.len() + place + 1;
            words[value] = IGNORED.to_owned();
        }
        Some(_) => {}
        None if component.iter().any(|word| word == "-L") => {}
        None => words.extend([POOL, IGNORED].map(str::to_owned)),
    }
}

/// Whether a text of [`Striping::exact`] describes mirrors.
pub fn is_mirrored(exact: &str) -> bool {
    exact.split(' ').any(|word| word == MIRROR)
}

impl Part {
    /// Takes a value. `None`: the value is not understood.
    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "lcme_flags" => self.preferred = value.split(',').any(|flag| flag == "prefer"),
            "lcme_extent.e_start" => self.start = value.parse().ok()?,
            "lcme_extent.e_end" => self.end = if value == "EOF" { None } else { Some(value.parse().ok()?) },
            "stripe_count" => self.count = Some(value.parse().ok()?),
            "stripe_size" => self.width = value.parse().ok()?,
            "extension_size" => self.extension = Some(value.parse().ok()?),
            "pattern" => self.pattern = Pattern::of(value),
            "stripe_offset" => self.first = if value == "-1" { None } else { Some(value.parse().ok()?) },
            // Servers before 2.15.4 keep the name, and their `lfs` prints it.
            "pool" => self.pool = Some(value.to_owned()).filter(|pool| pool != IGNORED),
            "l_ost_idx" => self.osts.push(value.parse().ok()?),
            _ => {}
        }
        Some(())
    }

    /// The key that every component needs and this one lacks.
    fn missing(&self) -> Option<&'static str> {
        match (self.count, self.width, &self.pattern, self.extension) {
            (None, ..) => Some("stripe_count"),
            (_, 0, Pattern::Stripes | Pattern::Overstriped, None) => Some("stripe_size"),
            _ => None,
        }
    }

    /// What of the component a [`NativeLayout`] does not express.
    fn inexpressible(&self) -> Option<String> {
        match (&self.pattern, self.count) {
            (Pattern::Metadata, _) => Some("it begins on the metadata server".to_owned()),
            (Pattern::Unset, _) => Some("it has no layout of its own".to_owned()),
            (Pattern::Other(name), _) => Some(format!("pattern {name} is not one of stripes")),
            _ if self.extension.is_some() => Some("it extends itself".to_owned()),
            (_, Some(count)) if count < 0 => Some(format!("its number of stripes is {count}, by the OSTs")),
            _ => None,
        }
    }

    /// The options of `lfs setstripe` for the component, without its end. `pooled`: the component
    /// before it has a pool, which this one would inherit.
    fn options(&self, is_dir: bool, pooled: bool) -> Vec<String> {
        if self.pattern == Pattern::Metadata {
            return ["-L", "mdt"].map(str::to_owned).into();
        }
        let counted = if self.pattern == Pattern::Overstriped { "-C" } else { "-c" };
        let count = self.count.unwrap_or_default().to_string();
        let mut words = vec!["-S".to_owned(), size::format(self.width), counted.to_owned(), count];
        if let (true, Some(first)) = (is_dir, self.first) {
            words.extend(["-i".to_owned(), first.to_string()]);
        }
        match &self.pool {
            Some(pool) => words.extend(["-p".to_owned(), pool.clone()]),
            None if pooled => words.extend(["-p", "none"].map(str::to_owned)),
            None => {}
        }
        words
    }

    fn even(&self) -> Stripe {
        let count = self.count.and_then(|count| count.try_into().ok()).unwrap_or(u32::MAX);
        Stripe::Even { width: self.width, count, pool: self.pool.clone() }
    }

    /// A list of OSTs. If the OSTs are not chosen yet, the requested list is assumed where its
    /// first OST and its length match.
    fn listed(&self, asked: Option<&Vec<String>>) -> Stripe {
        let servers = match asked {
            _ if !self.osts.is_empty() => list(&self.osts),
            Some(asked) if self.begins_like(asked) => asked.clone(),
            _ => return self.even(),
        };
        Stripe::Listed { width: self.width, servers }
    }

    fn begins_like(&self, asked: &[String]) -> bool {
        let first = self.first.is_none_or(|first| asked.first() == Some(&first.to_string()));
        self.pool.is_none() && first && self.count == Some(asked.len() as i32)
    }

    fn stripe(&self) -> Stripe {
        match (&self.pool, self.first) {
            (None, Some(first)) if self.osts.is_empty() && self.count == Some(1) => {
                Stripe::Listed { width: self.width, servers: vec![first.to_string()] }
            }
            (None, _) => self.listed(None),
            (Some(_), _) => self.even(),
        }
    }
}

impl Pattern {
    fn of(name: &str) -> Self {
        match name {
            // Versions before 2.11 print the number of raid0.
            "raid0" | "1" => Self::Stripes,
            "raid0,overstriped" | "overstriped" => Self::Overstriped,
            "mdt" => Self::Metadata,
            "" | "0" => Self::Unset,
            _ => Self::Other(name.to_owned()),
        }
    }
}

fn list(osts: &[u32]) -> Vec<String> {
    osts.iter().map(u32::to_string).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example in the comment on lov_dump_comp_v1 in lustre/utils/liblustreapi.c, as --yaml
    /// prints it.
    const COMPOSITE: &str = "\
  lcm_layout_gen:    2
  lcm_mirror_count:  1
  lcm_entry_count:   2
  component0:
    lcme_id:             1
    lcme_mirror_id:      0
    lcme_flags:          init
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  2
      lmm_stripe_size:   1048576
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: 1
      lmm_objects:
      - l_ost_idx: 1
        l_fid:     0x100010000:0x2:0x0
      - l_ost_idx: 0
        l_fid:     0x100000000:0x3:0x0

  component1:
    lcme_id:             2
    lcme_mirror_id:      0
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          flash
";

    #[test]
    fn components() {
        let striping = Striping::parse(COMPOSITE).unwrap();
        let [first, second] = &striping.components[..] else { panic!("{striping:?}") };
        assert_eq!(
            (first.end, first.width, first.count, &first.osts[..]),
            (Some(1 << 20), 1 << 20, Some(2), &[1, 0][..])
        );
        assert_eq!(
            (second.end, second.count, second.pool.as_deref(), second.first),
            (None, Some(-1), Some("flash"), None)
        );
        assert!(second.osts.is_empty());
        assert!(striping.layout(None).unwrap_err().contains("number of stripes is -1"));
        assert_eq!(striping.exact().unwrap(), "-E 1M -S 1M -c 2 -E -1 -S 4M -c -1 -p flash");
    }

    /// As lov_dump_comp_v1 of 2.15 prints the default of a directory.
    #[test]
    fn what_a_layout_does_not_express_is_kept_as_options() {
        let part = |start: u64, end: &str, flags: &str, rest: &str| {
            format!(
                "component0:\n lcme_id: N/A\n lcme_flags: {flags}\n lcme_extent.e_start: {start}\n lcme_extent.e_end: {end}\n {rest}\n"
            )
        };
        let text = [
            "lcm_mirror_count: 1\n".to_owned(),
            part(0, "65536", "0", "stripe_count: 0 stripe_size: 65536 pattern: mdt stripe_offset: -1"),
            part(65536, "65536", "0", "stripe_count: 2 stripe_size: 1048576 pattern: raid0 stripe_offset: -1"),
            part(
                65536,
                "1073741824",
                "extension",
                "stripe_count: 0 extension_size: 67108864 pattern: raid0 stripe_offset: -1",
            ),
            part(1 << 30, "EOF", "0", "stripe_count: -1 stripe_size: 1048576 pattern: raid0 stripe_offset: -1"),
        ];
        let striping = Striping::parse(&text.concat()).unwrap();
        let exact = striping.exact().unwrap();
        assert_eq!(exact, "-E 64K -L mdt -E 1G -S 1M -c 2 -z 64M -E -1 -S 1M -c -1");
        assert!(striping.layout(None).is_err() && options(&exact).is_some());
        let mirrored = "lcm_mirror_count: 2 ".to_owned()
            + &part(
                0,
                "EOF",
                "prefer",
                "stripe_count: 1 stripe_size: 1048576 pattern: raid0 stripe_offset: 3 pool: ssd",
            )
            + &part(
                0,
                "EOF",
                "0",
                "stripe_count: -2 stripe_size: 1048576 pattern: raid0,overstriped stripe_offset: -1",
            );
        let exact = Striping::parse(&mirrored).unwrap().exact().unwrap();
        assert_eq!(exact, "-N -E -1 -S 1M -c 1 -i 3 -p ssd --comp-flags=prefer -N -E -1 -S 1M -C -2 -p none");
        assert!(options(&exact).is_some());
        for text in ["", "-d", "-S", "-S 1M -y /x", "-S -d", "--mode=777", "x"] {
            assert_eq!(options(text), None, "{text:?}");
        }
    }

    #[test]
    fn components_without_a_pool_inherit_none() {
        for (options, expected) in [
            ("-S 1M -c 1", "-S 1M -c 1 -p ignore"),
            ("-S 1M -c 1 -p hdd", "-S 1M -c 1 -p hdd"),
            ("-S 64K -o 2,0", "-S 64K -o 2,0 -p ignore"),
            (
                "-E 64K -L mdt -E 1M -S 64K -c 2 -p ssd -E -1 -S 64K -c 1 -p none",
                "-E 64K -L mdt -E 1M -S 64K -c 2 -p ssd -E -1 -S 64K -c 1 -p ignore",
            ),
            (
                "-N -E 1M -S 64K -c 1 -E -1 -S 64K -c 1 -p ssd --comp-flags=prefer -N -E -1 -S 1M -c 2 -p none",
                "-N -E 1M -S 64K -c 1 -p ignore -E -1 -S 64K -c 1 -p ssd --comp-flags=prefer -N -E -1 -S 1M -c 2 -p ignore",
            ),
        ] {
            let words: Vec<String> = options.split(' ').map(str::to_owned).collect();
            assert_eq!(without_inherited_pools(&words).join(" "), expected);
        }
    }

    #[test]
    fn a_directory_without_a_default() {
        for pattern in ["0", ""] {
            let text = format!(
                "stripe_count:  1\nstripe_size:   1048576\npattern:       {pattern}\nstripe_offset: -1\n"
            );
            let striping = Striping::parse(&text).unwrap();
            assert!(striping.layout(None).unwrap_err().contains("no layout of its own"));
            assert_eq!((striping.exact(), striping.components[0].first), (None, None));
        }
    }

    #[test]
    fn plain_files_and_directories_in_both_forms() {
        // A file as `lfs getstripe` of 2.12 prints it without --yaml, less the table of objects.
        let file = "/mnt/f\nlmm_stripe_count:  8\nlmm_stripe_size:   1048576\nlmm_pattern:       raid0,overstriped\n\
                    lmm_layout_gen:    0\nlmm_stripe_offset: 10\nlmm_pool:          original\n";
        let part = &Striping::parse(file).unwrap().components[0];
        assert_eq!((part.count, part.first, part.pool.as_deref()), (Some(8), Some(10), Some("original")));
        let dir = "stripe-dir\nstripe_count:  4 stripe_size:   1048576 stripe_offset: 10\n";
        let striping = Striping::parse(dir).unwrap();
        assert_eq!(striping.layout(None).unwrap(), NativeLayout::even(1 << 20, 4, None));
        let one = Striping::parse("stripe_count:  1 stripe_size:   65536 pattern:  raid0 stripe_offset: 3\n")
            .unwrap();
        assert_eq!(one.layout(None).unwrap().to_string(), "64K on 3");
    }

    #[test]
    fn what_stripewise_does_not_know_is_said() {
        for (text, what) in [
            ("", "no stripe_count"),
            ("lmm_stripe_count: x lmm_stripe_size: 65536", "stripe_count: \"x\""),
            ("lmm_stripe_count: 1", "without a stripe_size"),
            ("lmm_stripe_count:", "has no value"),
            ("lcme_extent.e_end: 5", "before any component"),
        ] {
            let error = Striping::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_that_is_not_chosen_yet_is_believed_as_far_as_it_shows() {
        let dir = Striping::parse("stripe_count: 2 stripe_size: 65536 stripe_offset: 4").unwrap();
        let asked = |servers: &[&str]| {
            let servers = servers.iter().map(|&server| server.to_owned()).collect();
            NativeLayout::uniform(Stripe::Listed { width: 65536, servers })
        };
        assert!(asked(&["4", "7"]).is_met_by(&dir.layout(Some(&asked(&["4", "7"]))).unwrap()));
        assert!(!asked(&["5", "7"]).is_met_by(&dir.layout(Some(&asked(&["5", "7"]))).unwrap()));
        assert!(!asked(&["4"]).is_met_by(&dir.layout(Some(&asked(&["4"]))).unwrap()));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "([a-z_.]{0,6}|lcme_id|lmm_stripe_count|stripe_size|l_ost_idx|pool|lcme_extent.e_end|: |\\-?[0-9]{0,22}| |\n){0,40}") {
            let _ = (Striping::parse(&text).map(|striping| striping.exact()), options(&text));
        }
    }
}
