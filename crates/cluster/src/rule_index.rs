//! Finds the rule for a path among very many.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::plan::{Plan, Rule};

/// An index of a plan's rules by the shape of the paths that they match: the path with each run of
/// digits replaced by a mark. Patterns with `*` match paths of several shapes and are tried one by
/// one.
#[derive(Clone, Debug, Default)]
pub struct RuleIndex {
    /// Hash of the shape, and the rule; sorted.
    shapes: Vec<(u64, u32)>,
    /// The rules with a `*`, ascending.
    broad: Vec<u32>,
}

/// Stands for a run of digits.
const DIGITS: u16 = 256;

impl RuleIndex {
    /// The index of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut index = Self::default();
        for (number, rule) in (0..).zip(&plan.rules) {
            match shape_of_pattern(rule.pattern.as_bytes()) {
                Some(shape) => index.shapes.push((shape, number)),
                None => index.broad.push(number),
            }
        }
        index.shapes.sort_unstable();
        index
    }

    /// As [`Plan::rule_for`] of the plan that this is the index of. Takes O(log rules), if patterns
    /// have no `*`; allocates nothing.
    pub fn rule_for<'p>(&self, plan: &'p Plan, path: &Path) -> Option<&'p Rule> {
        let shape = shape_of_path(path.as_os_str().as_bytes());
        let rule = |&number: &u32| plan.rules.get(number as usize);
        let matches = |number: &&u32| rule(number).is_some_and(|rule| rule.matches(path));
        let first = self.shapes.partition_point(|(known, _)| *known < shape);
        let alike = self.shapes[first..].iter().take_while(|(known, _)| *known == shape);
        let narrow = alike.map(|(_, number)| number).find(matches);
        let broad = self.broad.iter().take_while(|&number| narrow.is_none_or(|narrow| number < narrow));
        broad.into_iter().find(matches).or(narrow).and_then(rule)
    }
}

/// The hash of the shape of all paths that a pattern matches; `None`: it has a `*`.
fn shape_of_pattern(pattern: &[u8]) -> Option<u64> {
    let mut shape = Shape::default();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] => return Some(shape.hash),
            [b'*', ..] => return None,
            [b'<', b'n', b'>', rest @ ..] => {
                shape.add(DIGITS);
                rest
            }
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
                shape.add_byte(*byte);
                rest
            }
        };
    }
}

fn shape_of_path(path: &[u8]) -> u64 {
    let mut shape = Shape::default();
    path.iter().for_each(|&byte| shape.add_byte(byte));
    shape.hash
}

/// The shape so far (FNV-1a).
struct Shape {
    hash: u64,
    last: u16,
}

impl Default for Shape {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, last: 0 }
    }
}

impl Shape {
    fn add_byte(&mut self, byte: u8) {
        self.add(if byte.is_ascii_digit() { DIGITS } else { byte.into() });
    }

    /// Adds a byte or a run of digits. Parts of one run count once.
    fn add(&mut self, next: u16) {
        if next != DIGITS || self.last != DIGITS {
            self.hash = (self.hash ^ u64::from(next)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.last = next;
    }
}
