//! Figures on where the calls' time goes: by group of files, and calls without data over time.

use maud::{Markup, html};

use super::bars::BAR_END;
use super::parts::{TIME, figure, more, plot, time_ticks};
use crate::activity::Activity;
use crate::calls::{SLOTS, Work};
use crate::draw::{self, Plot};
use crate::units::Clock;
use crate::{ticks, units};

/// Groups of files drawn, those with the most time.
const GROUPS_DRAWN: usize = 12;
/// Height of a bar and of its row in pixels.
const HEIGHT: (f64, u32) = (14.0, 18);

/// Draws the time of each group's calls, or nothing if no call took any.
pub fn seconds(activity: &Activity) -> Markup {
    let calls = &activity.calls;
    let mut order: Vec<usize> = (0..calls.of_group.len()).filter(|&group| calls.ns_of(group) > 0).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(calls.ns_of(group)));
    let Some(&first) = order.first() else { return Markup::default() };
    let (longest_ns, hidden) = (calls.ns_of(first), order.len().saturating_sub(GROUPS_DRAWN));
    order.truncate(GROUPS_DRAWN);
    let clock = Clock::up_to(longest_ns as f64 * 1e-9);
    let is_used = |work: &Work| order.iter().any(|&group| calls.of_group[group][*work as usize].ns > 0);
    let content = html! {
        (legend(Work::ALL.into_iter().filter(is_used)))
        div.bars.sizes {
            @for &group in &order {
                div { code { (activity.summary.groups[group].pattern) } }
                div { (bar(activity, group, longest_ns, &clock)) }
            }
        }
        (more(hidden, "patterns of file names took less time."))
    };
    figure("Time by file and operation", "sum of the calls' durations over all processes.", content)
}

fn bar(activity: &Activity, group: usize, longest_ns: u64, clock: &Clock) -> Markup {
    let spent = &activity.calls.of_group[group];
    let share = |ns: u64| ns as f64 / longest_ns as f64 * BAR_END;
    let time = |ns: u64| clock.print(ns as f64 * 1e-9);
    let mut at = 0.0;
    let segments = Work::ALL.into_iter().map(|work| {
        let of = spent[work as usize];
        let (class, what) = work.legend();
        let calls = units::counted(of.calls, "call", "calls");
        let from = at;
        at += share(of.ns);
        (class, (from, at), format!("{what}: {} in {calls}", time(of.ns)))
    });
    let segments: Vec<_> = segments.filter(|(_, (from, to), _)| to > from).collect();
    let name = segments.iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join(", ");
    let content = html! {
        @for (class, ends, text) in &segments { (draw::rect(class, *ends, (1.0, HEIGHT.0), text)) }
        (draw::label("value", (at, HEIGHT.0 - 2.0), "start", 8, &time(activity.calls.ns_of(group))))
    };
    draw::drawing("pair", HEIGHT.1, &name, content)
}

/// Draws when calls without data were made, or nothing if there were none.
pub fn metadata(activity: &Activity) -> Markup {
    let span_ns = activity.span_ns.end - activity.span_ns.start;
    let slots = &activity.calls.over_time;
    let of = |slot: &[u64; Work::ALL.len()], work: Work| slot[work as usize];
    let all = |slot: &[u64; Work::ALL.len()]| Work::METADATA.iter().map(|&work| of(slot, work)).sum::<u64>();
    let peak = slots.iter().map(all).max().unwrap_or(0);
    if span_ns == 0 || peak == 0 {
        return Markup::default();
    }
    let is_used = |work: &Work| slots.iter().any(|slot| of(slot, *work) > 0);
    let used: Vec<Work> = Work::METADATA.into_iter().filter(is_used).collect();
    let heights = |work: Work| slots.iter().map(|slot| of(slot, work) as f64 / peak as f64).collect();
    let columns: Vec<(&str, Vec<f64>)> = used.iter().map(|&work| (work.legend().0, heights(work))).collect();
    let slot_s = span_ns as f64 * 1e-9 / SLOTS as f64;
    let name = format!("Opens and other calls without data over time, at most {peak} in a slot");
    let y = ticks::numbers(peak as f64);
    let frame = Plot { height: 110, name: &name, x: time_ticks(&activity.span_ns), y, downwards: false };
    figure(
        "Opens and other calls without data",
        format_args!("calls in {SLOTS} slots of {}.", units::seconds(slot_s)),
        plot(legend(used.into_iter()), &frame, (SLOTS, 100), draw::columns(&columns), TIME),
    )
}

fn legend(works: impl Iterator<Item = Work>) -> Markup {
    draw::legend(&works.map(Work::legend).collect::<Vec<_>>())
}
