//! The high-water listing, laid out as in the talk: for each new maximum a `#mark` line, its beginning, the code that
//! ran inside, and its end.

use crate::visible::one_line;
use lineup_model::figure::whole;
use lineup_tail::analysis::RegionRun;
use lineup_tail::high_water::Mark;
use lineup_tail::symbols::SymbolisedAddress;

/// The new maxima of a region in one run. Columns: instructions since the beginning, the code that ran, and its cycles,
/// I-stall cycles and instructions.
pub fn high_water_listing(run: &RegionRun) -> String {
    let mut text = String::new();
    for mark in &run.high_water {
        list(&mut text, mark);
    }
    text
}

fn place(place: &SymbolisedAddress) -> String {
    format!("{:016x} {}", place.address, one_line(&place.text()))
}

fn list(text: &mut String, mark: &Mark) {
    let mut line = |words: String| {
        text.push_str(words.trim_end());
        text.push('\n');
    };
    line(format!("#mark          : ----- {} max: {:>12} cycles -----", mark.number, whole(mark.cost.cycles)));
    line(format!("# start pc: {}", place(&mark.from)));
    line(format!("# {:>9} {:<44} {:>10} {:>10} {:>8}", "instr", "", "cycles", "I-stall", "instr"));
    for inner in &mark.inner {
        let name = format!(
            "{:indent$}{}",
            "",
            one_line(&inner.region),
            indent = 2 * inner.depth.saturating_sub(1).min(8)
        );
        line(format!(
            "# {:>9} {name:<44} {:>10} {:>10} {:>8}",
            inner.after_instructions,
            inner.cost.cycles,
            inner.cost.code_stall_cycles,
            inner.cost.instructions
        ));
    }
    if mark.inner_not_listed > 0 {
        line(format!("#           and {} more calls", mark.inner_not_listed));
    }
    let share =
        lineup_model::figure::share(mark.cost.code_stall_cycles as f64 / mark.cost.cycles.max(1) as f64);
    line(format!(
        "#           {:<44} {:>10} {:>10} {:>8}  I-stall {share}",
        "in all", mark.cost.cycles, mark.cost.code_stall_cycles, mark.cost.instructions
    ));
    line(format!("# end   pc: {}", place(&mark.to)));
}
