//! A file's layout as `lfs getstripe` prints it.

use stripewise_native::{Component, NativeLayout, Stripe};

const MIRRORS: &str = "lcm_mirror_count";
/// The keys whose values count.
const KEYS: [&str; 8] = [
    MIRRORS,
    "lcme_extent.e_end",
    "stripe_count",
    "stripe_size",
    "pattern",
    "stripe_offset",
    "pool",
    "l_ost_idx",
];

/// The components of a file's layout, or of the layout that a directory's new files get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Striping {
    pub components: Vec<Part>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// `None`: to the end of the file.
    pub end: Option<u64>,
    pub width: u64,
    /// `u32::MAX`: as many as there are OSTs (-1). `None` only while the component is parsed.
    pub count: Option<u32>,
    pub pool: Option<String>,
    /// The OST of the first stripe; `None`: any.
    pub first: Option<u32>,
    /// The OSTs of all stripes; empty: not chosen yet (a directory, a component that was never
    /// written).
    pub osts: Vec<u32>,
}

impl Striping {
    /// Parses the output of `lfs getstripe --yaml` (`lov_dump_user_lmm_v1v3` and `lov_dump_comp_v1`
    /// in lustre/utils/liblustreapi.c), in which every value follows its key. Directories' keys
    /// lack the `lmm_`; unknown keys are skipped. The error names the key that is missing or not
    /// understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut components: Vec<Part> = Vec::new();
        let composite = text.contains("lcme_extent.e_end:");
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let Some(key) = word.strip_suffix(':') else { continue };
            let key = key.trim_start_matches("lmm_");
            // A component begins with its identifier; a plain layout begins with its count.
            if key == "lcme_id" || (components.is_empty() && key == "stripe_count" && !composite) {
                components.push(Part::default());
            }
            if !KEYS.contains(&key) {
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{key} has no value"))?.trim_end_matches(',');
            match (key, components.last_mut()) {
                (MIRRORS, _) if value == "1" => {}
                (MIRRORS, _) => return Err(format!("it has {value} mirrors, which stripewise does not know")),
                (_, None) => return Err(format!("{key} before any component")),
                (_, Some(part)) => part.take(key, value).ok_or_else(|| format!("{key}: {value:?}"))??,
            }
        }
        if components.is_empty() {
            return Err("no stripe_count".to_owned());
        }
        match components.iter().find_map(Part::missing) {
            Some(key) => Err(format!("a component without a {key}")),
            None => Ok(Self { components }),
        }
    }

    /// The layout in the terms of the requested one: where that names a pool or leaves the OSTs
    /// open, the chosen OSTs are omitted. `None`: with every known detail.
    pub fn layout(&self, asked: Option<&NativeLayout>) -> NativeLayout {
        let parts = self.components.iter().enumerate().map(|(index, part)| {
            let asked = asked.and_then(|asked| asked.components.get(index));
            let stripe = match asked.map(|component| &component.stripe) {
                Some(Stripe::Even { .. }) => part.even(),
                Some(Stripe::Listed { servers, .. }) => part.listed(Some(servers)),
                _ => part.stripe(),
            };
            Component { end: part.end, stripe }
        });
        NativeLayout { components: parts.collect() }
    }

    /// The OSTs of the components that have a pool, which the layout does not contain.
    pub fn note(&self) -> Option<String> {
        let pooled = self.components.iter().filter(|part| part.pool.is_some() && !part.osts.is_empty());
        let osts: Vec<String> = pooled.map(|part| format!("on OSTs {}", list(&part.osts).join(", "))).collect();
        (!osts.is_empty()).then(|| osts.join(", then "))
    }
}

impl Part {
    /// Takes a value. The outer `None`: the value is not understood; the inner error: stripewise
    /// does not support it.
    fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        match key {
            "lcme_extent.e_end" => self.end = if value == "EOF" { None } else { Some(value.parse().ok()?) },
            "stripe_count" => self.count = Some(if value == "-1" { u32::MAX } else { value.parse().ok()? }),
            "stripe_size" => self.width = value.parse().ok()?,
            // Versions before 2.11 print the number of raid0.
            "pattern" if !["raid0", "raid0,overstriped", "overstriped", "1"].contains(&value) => {
                return Some(Err(format!("pattern {value} is not one of stripes")));
            }
            "stripe_offset" => self.first = if value == "-1" { None } else { Some(value.parse().ok()?) },
            "pool" => self.pool = Some(value.to_owned()),
            "l_ost_idx" => self.osts.push(value.parse().ok()?),
            _ => {}
        }
        Some(Ok(()))
    }

    /// The key that every component needs and this one lacks.
    fn missing(&self) -> Option<&'static str> {
        match (self.count, self.width) {
            (None, _) => Some("stripe_count"),
            (_, 0) => Some("stripe_size"),
            _ => None,
        }
    }

    fn even(&self) -> Stripe {
        Stripe::Even { width: self.width, count: self.count.unwrap_or(u32::MAX), pool: self.pool.clone() }
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
        self.pool.is_none() && first && self.count == Some(asked.len() as u32)
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
            (None, Some(u32::MAX), Some("flash"), None)
        );
        assert!(second.osts.is_empty());
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
        assert_eq!(striping.layout(None), NativeLayout::even(1 << 20, 4, None));
        let one = Striping::parse("stripe_count:  1 stripe_size:   65536 pattern:  raid0 stripe_offset: 3\n")
            .unwrap();
        assert_eq!(one.layout(None).to_string(), "64K on 3");
    }

    #[test]
    fn what_stripewise_does_not_know_is_said() {
        for (text, what) in [
            ("", "no stripe_count"),
            ("lmm_stripe_count: x lmm_stripe_size: 65536", "stripe_count: \"x\""),
            ("lmm_stripe_count: 1", "without a stripe_size"),
            ("lmm_stripe_count:", "has no value"),
            ("lmm_stripe_count: 0 lmm_stripe_size: 1048576 lmm_pattern: mdt", "pattern mdt"),
            ("lcm_mirror_count: 2 lcme_id: 1", "2 mirrors"),
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
        assert!(asked(&["4", "7"]).is_met_by(&dir.layout(Some(&asked(&["4", "7"])))));
        assert!(!asked(&["5", "7"]).is_met_by(&dir.layout(Some(&asked(&["5", "7"])))));
        assert!(!asked(&["4"]).is_met_by(&dir.layout(Some(&asked(&["4"])))));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "([a-z_.]{0,6}|lcme_id|lmm_stripe_count|stripe_size|l_ost_idx|pool|lcme_extent.e_end|: |\\-?[0-9]{0,22}| |\n){0,40}") {
            let _ = Striping::parse(&text);
        }
    }
}
