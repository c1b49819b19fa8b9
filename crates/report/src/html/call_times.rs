//! How long the regions' calls take, before and after.

use super::lines::{name, scroll};
use crate::figure::{change, share, short_time_ns, whole};
use crate::study::{StudyReport, region_letter};
use maud::{Markup, html};

pub(super) fn call_times(report: &StudyReport) -> Markup {
    let rows = || {
        let numbered = report.regions.iter().enumerate();
        numbered.filter_map(|(index, region)| Some((index, region, region.time.as_ref()?)))
    };
    if rows().next().is_none() {
        return html! {};
    }
    let table = html! {
        table {
            thead {
                tr {
                    th { "" } th { "region" } th.n { "calls in a run" } th.n { "before" } th.n { "after" } th.n { "change" }
                    th { "interval" } th { "verdict" } th.n { "smallest detectable" }
                }
            }
            tbody {
                @for (index, region, time) in rows() {
                    @let all = &time.all_calls;
                    @let [before, after] = time.mean_ns();
                    tr {
                        td { span.letter { (region_letter(index)) } }
                        td.name { (name(&region.name)) }
                        td.n { (whole(time.calls_per_run)) }
                        td.n { (short_time_ns(before)) }
                        td.n { (short_time_ns(after)) }
                        td.n { (change(all.ratio)) }
                        td { (change(all.ratio_low)) " to " (change(all.ratio_high)) " (" (share(all.level)) ")" }
                        td { span.verdict { (all.verdict.word()) } }
                        td.n { (share(all.smallest_detectable)) }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Time of calls" }
        p.muted { "Mean time of a call, callees included: entry and exit are stamped in runs of their own, in mirrored blocks." }
        (scroll("Time of calls, by region", &table))
    }
}
