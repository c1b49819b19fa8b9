//! The verdict, with its evidence.

use super::elements::sentence;
use crate::chart::{IntervalMark, QuantileSeries, quantile_plot, ratio_interval};
use crate::study::{OutputCheck, ProofReport, TimeReport, TimeVerdict};
use lineup_model::figure::{NO_ESTIMATE, change, is_estimate, time_ns, whole};
use lineup_prove::detectable_in_words;
use lineup_prove::links::links_mean;
use maud::{Markup, html};

pub(super) fn proof(proof: Option<&ProofReport>, not_proven: Option<&str>) -> Markup {
    let Some(proof) = proof else {
        return match not_proven {
            Some(reason) => html! { p { "Not proven: " (sentence(reason)) } },
            None => html! { p { "No comparison was run: nothing on this page is proven." } },
        };
    };
    html! {
        @if let Some(reason) = not_proven { p { "Not proven: " (sentence(reason)) } }
        dl.facts {
            dt { "Effects" }
            dd { (sentence(&proof.effects_sentence())) }
            dt { "Output" }
            dd {
                @match &proof.output {
                    OutputCheck::Equal => { "standard output, standard error and exit status equal in all " (whole(proof.runs)) " runs" }
                    OutputCheck::NotRepeatable(difference) => { (proof.not_repeatable()) ": " (sentence(difference)) }
                }
            }
            @for within in &proof.calls_within {
                dt { "Counted as equal" }
                dd { (sentence(within)) }
            }
            @if let Some(reason) = &proof.time_not_claimed {
                dt { "Whole-process time" }
                dd { "not claimed: " (sentence(reason)) }
            }
            @if let Some(time) = &proof.time { (facts(time, proof.blocks)) }
        }
        @if let Some(time) = &proof.time { (charts(time)) }
    }
}

fn facts(time: &TimeReport, blocks: u64) -> Markup {
    html! {
        dt { "Whole-process time" }
        dd {
            span.verdict { (time.verdict.word()) } " "
            @if is_estimate(time.ratio_low, time.ratio_high) {
                (change(time.ratio)) ", " (format!("{:.0}", 100.0 * time.level)) " % interval " (change(time.ratio_low)) " to " (change(time.ratio_high))
            } @else { (NO_ESTIMATE) }
            ", " (whole(blocks)) " mirrored blocks, " (time.links_in_words())
        }
        dt { "Meaning" }
        dd { (meaning(time)) }
        dt { "Links" }
        dd { (links_mean(time.links)) }
        dt { "Smallest detectable" }
        dd { (detectable_in_words(time.smallest_detectable)) }
        @if let Some(noise) = &time.noise {
            dt { "Noise" }
            dd { (noise) }
        }
    }
}

fn meaning(time: &TimeReport) -> String {
    let margin = lineup_model::figure::level(time.margin);
    match time.verdict {
        TimeVerdict::Changed => "the interval excludes no change".into(),
        TimeVerdict::Equivalent => {
            format!("the interval lies within {margin} of no change: no gain and no loss that matters")
        }
        TimeVerdict::Inconclusive => {
            format!("the interval includes no change and reaches beyond {margin}: these runs do not say")
        }
    }
}

fn charts(time: &TimeReport) -> Markup {
    let interval =
        IntervalMark { ratio: time.ratio, low: time.ratio_low, high: time.ratio_high, margin: time.margin };
    let title = format!(
        "Change of time {}, from {} to {}",
        change(time.ratio),
        change(time.ratio_low),
        change(time.ratio_high)
    );
    let series = [("before", &time.before_ns), ("after", &time.after_ns)]
        .map(|(label, values)| QuantileSeries { label: label.into(), values: values.clone() });
    html! {
        div.pair {
            figure { (ratio_interval(&title, &interval)) }
            figure { (quantile_plot("Time of every run, before and after", "time of one run", &series, time_ns)) }
        }
    }
}
