//! The text shown for a type or a member, in Markdown.

use crate::constraints;
use crate::evidence::Evidence;
use crate::view::{MemberPlace, Share, View, shares};
use lineup_advise::guard::Lock;
use lineup_advise::outline::DeclaredMember;
use lineup_model::figure;
use lineup_model::layout::Row;
use lineup_model::types::{AggregateKind, Language};
use std::collections::BTreeSet;

/// Members listed of each region, most used first.
const MOST_MEMBERS: usize = 8;

/// Longer names are cut.
const MOST_NAME_CHARS: usize = 120;

/// The files that were read in addition to the program.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'b> {
    /// The known uses, and the file's name.
    pub(crate) evidence: Option<(&'b Evidence, &'b str)>,
    pub(crate) lock: Option<&'b Lock>,
}

impl<'b> Beside<'b> {
    fn evidence(self) -> Option<&'b Evidence> {
        self.evidence.map(|(evidence, _)| evidence)
    }
}

/// The text of a type, or of one of its members; `None` when debug information has no such member.
pub(crate) fn text(view: &View<'_>, member: Option<&DeclaredMember>, beside: Beside<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(why) = view.freshness.in_words(&view.program_name) {
        parts.push(format!("**As built, not as written here**: {why}."));
    }
    match member {
        None => parts.extend(of_type(view, beside)),
        Some(member) => parts.extend(of_member(view, member, beside)?),
    }
    Some(parts.join("\n\n"))
}

fn of_type(view: &View<'_>, beside: Beside<'_>) -> Vec<String> {
    let layout = &view.layout;
    let align = view.align_bytes().map(|bytes| format!(", alignment {bytes}")).unwrap_or_default();
    let mut parts = vec![format!(
        "**{} {}** · {}{align}, {} of {}",
        keyword(view),
        code(view.type_name()),
        figure::counted(layout.size_bytes, "byte"),
        figure::counted(layout.lines(), "line"),
        layout.line_size.bytes()
    )];
    parts.extend(holes(view));
    let lines = view.used(beside.evidence());
    if let Some((evidence, file)) = beside.evidence.filter(|_| !lines.is_empty()) {
        let regions: BTreeSet<usize> = lines
            .iter()
            .flat_map(|line| &line.parts)
            .flat_map(|part| &part.uses)
            .map(|one| one.region)
            .collect();
        let rows: Vec<String> = regions.into_iter().map(|region| hottest(view, evidence, region)).collect();
        parts.push(format!(
            "Recorded ({}), of each function's accesses to it:\n{}",
            code(file),
            rows.join("\n")
        ));
    } else if let Some((_, file)) = beside.evidence {
        parts.push(format!("No recorded call used it ({}).", code(file)));
    }
    if let Some(lock) = beside.lock {
        let groups = constraints::groups(lock, view.type_name(), view.program.abi).count();
        let broken = constraints::broken(lock, view.type_name(), &view.program.types, view.program.abi);
        if groups > 0 {
            let kept = if broken.is_empty() { "kept" } else { "not kept" };
            let messages: String = broken.iter().map(|one| format!("\n- {}", plain(&one.message))).collect();
            parts.push(format!(
                "lineup.lock holds {}: {kept}.{messages}",
                figure::counted(groups as u64, "group")
            ));
        }
    }
    let held = beside.evidence().map_or(&[][..], |evidence| evidence.held(view.type_name()));
    let whole: Vec<String> = held
        .iter()
        .filter(|one| one.members.is_empty())
        .map(|one| format!("\n- {}", plain(&one.because)))
        .collect();
    if !whole.is_empty() {
        parts.push(format!("Not reordered by advice:{}", whole.concat()));
    }
    parts
}

fn keyword(view: &View<'_>) -> &'static str {
    let is_rust = view.program.types.get(view.layout.id).is_some_and(|ty| ty.language == Language::Rust);
    match view.layout.kind {
        AggregateKind::Struct => "struct",
        AggregateKind::Class => "class",
        AggregateKind::Union => "union",
        AggregateKind::Variants if is_rust => "enum",
        AggregateKind::Variants => "variants",
    }
}

fn holes(view: &View<'_>) -> Option<String> {
    let layout = &view.layout;
    let mut told = Vec::new();
    if layout.holes() > 0 {
        let name = |row: &Row| row.name.as_deref().map_or("a member without a name".to_string(), code);
        let before = layout.rows.iter().filter(|row| row.gap_before.bytes > 0);
        let before: Vec<String> = before
            .map(|row| format!("{} before {}", row.gap_before.bytes, name(row)))
            .take(MOST_MEMBERS)
            .collect();
        let more = if layout.holes() > MOST_MEMBERS { ", …" } else { "" };
        let holes = figure::counted(layout.holes() as u64, "hole");
        told.push(format!(
            "{holes}, {}: {}{more}",
            figure::counted(layout.hole_bytes(), "byte"),
            before.join(", ")
        ));
    }
    if layout.hole_bits() > 0 {
        told.push(format!("{} unused between bit-fields", figure::counted(layout.hole_bits(), "bit")));
    }
    if layout.padding.bytes > 0 && !layout.rows.is_empty() {
        told.push(format!("{} of padding at the end", figure::counted(layout.padding.bytes, "byte")));
    }
    let straddling: Vec<String> =
        layout.straddling().filter_map(|row| row.name.as_deref()).map(code).take(MOST_MEMBERS).collect();
    if !straddling.is_empty() {
        told.push(format!("on more lines than they need: {}", straddling.join(", ")));
    }
    (!told.is_empty()).then(|| told.join("; ") + ".")
}

/// A region's most used members.
fn hottest(view: &View<'_>, evidence: &Evidence, region: usize) -> String {
    let lines = view.used(Some(evidence));
    let mut members: Vec<(&str, Share)> = Vec::new();
    for row in &view.layout.rows {
        let Some(start) = row.offset_bits.map(|bits| bits / 8) else { continue };
        let bytes = start..start.saturating_add(row.size_bytes.unwrap_or(0));
        let share = shares(lines, &bytes).into_iter().find(|share| share.accesses.region == region);
        members.extend(share.map(|share| (row.name.as_deref().unwrap_or("(without a name)"), share)));
    }
    members.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    let shown: Vec<String> = members
        .iter()
        .take(MOST_MEMBERS)
        .map(|(name, share)| format!("{} {}", code(name), figure::share(share.share)))
        .collect();
    let more = if members.len() > MOST_MEMBERS { ", …" } else { "" };
    format!("- {}: {}{more}", region_name(evidence, region), shown.join(", "))
}

fn region_name(evidence: &Evidence, region: usize) -> String {
    evidence.regions.get(region).map_or("a function".to_string(), |name| code(name))
}

fn of_member(view: &View<'_>, member: &DeclaredMember, beside: Beside<'_>) -> Option<Vec<String>> {
    let place = view.place(&member.path)?;
    let path = member.path.join(".");
    let ty = view.program.types.spell(Some(place.ty), "");
    let mut parts = vec![format!(
        "**{}** {} · {}",
        code(&format!("{}.{path}", view.type_name())),
        code(&ty),
        where_it_lies(view, &place)
    )];
    if place.gap_before.bytes > 0 {
        parts.push(format!("{} before it.", figure::counted(place.gap_before.bytes, "unused byte")));
    }
    if let Some((evidence, file)) = beside.evidence {
        let lines = view.used(Some(evidence));
        let rows: Vec<String> =
            shares(lines, &place.bytes()).iter().map(|share| used(evidence, share)).collect();
        parts.push(match rows.is_empty() {
            true => format!("No recorded call used it ({}).", code(file)),
            false => format!("Recorded ({}):\n{}", code(file), rows.join("\n")),
        });
        parts.extend(threads(view, evidence, &place));
    }
    let reasons =
        constraints::reasons(&path, view.type_name(), view.program.abi, (beside.lock, beside.evidence()));
    if !reasons.is_empty() {
        let reasons: String = reasons.iter().map(|reason| format!("\n- {}", plain(reason))).collect();
        parts.push(format!("Pinned:{reasons}"));
    }
    Some(parts)
}

fn where_it_lies(view: &View<'_>, place: &MemberPlace) -> String {
    let offset = place.offset_bits / 8;
    let size = match (place.bit_size, place.size_bytes) {
        (Some(bits), _) => {
            format!("bit {}, {}", place.offset_bits % 8, figure::counted(u64::from(bits), "bit"))
        }
        (None, Some(bytes)) => figure::counted(bytes, "byte"),
        (None, None) => "size not known".to_string(),
    };
    let bytes = place.bytes();
    let lines = view.line().lines(offset, bytes.end - bytes.start);
    let lines = match lines.start() == lines.end() {
        true => format!("line {}", lines.start()),
        false => format!("lines {} to {}", lines.start(), lines.end()),
    };
    let element = if place.is_of_first_element { ", of the first element" } else { "" };
    format!("offset {offset}, {size}, {lines} of {} bytes{element}", view.line().bytes())
}

fn used(evidence: &Evidence, share: &Share) -> String {
    let accesses = share.accesses;
    format!(
        "- {}: {} of its accesses to the type; {} loads, {} stores per call",
        region_name(evidence, accesses.region),
        figure::share(share.share),
        per_call(accesses.loads),
        per_call(accesses.stores)
    )
}

fn per_call(count: f64) -> String {
    if count > 0.0 && count < 0.01 { "fewer than 0.01".to_string() } else { format!("{count:.2}") }
}

/// The threads that used a member, when there are several.
fn threads(view: &View<'_>, evidence: &Evidence, place: &MemberPlace) -> Option<String> {
    let bytes = place.bytes();
    let lines = view.used(Some(evidence));
    let of_it = lines.iter().flat_map(|line| &line.parts).filter(|part| bytes.contains(&part.offset));
    let (mut readers, mut writers) = (BTreeSet::new(), BTreeSet::new());
    for (reading, writing) in of_it.filter_map(|part| part.threads.as_ref()) {
        readers.extend(reading);
        writers.extend(writing);
    }
    if readers.union(&writers).count() == 0 {
        return None;
    }
    Some(format!("Read by {}, written by {}.", named_threads(&readers), named_threads(&writers)))
}

/// Threads by their numbers in the recording.
pub(crate) fn named_threads(threads: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = threads.iter().map(u32::to_string).collect();
    match numbers.len() {
        0 => "no thread".to_string(),
        1 => format!("thread {}", numbers[0]),
        2..=8 => format!("threads {}", numbers.join(", ")),
        more => format!("{more} threads"),
    }
}

/// A name from a program: as code, so that nothing in it is taken for Markdown.
fn code(name: &str) -> String {
    format!("`{}`", plain(name).replace('`', "'"))
}

/// Removes characters that would end the line or control the viewer, and shortens the text.
pub(crate) fn plain(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MOST_NAME_CHARS * 4)
        .map(|one| if one.is_control() { '\u{fffd}' } else { one })
        .collect();
    if let Some((cut, _)) = shown.char_indices().nth(MOST_NAME_CHARS * 2) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_stay_names() {
        assert_eq!(code("a`b\n[x](y)"), "`a'b\u{fffd}[x](y)`");
        assert_eq!(plain(&"x".repeat(1000)).chars().count(), 2 * MOST_NAME_CHARS + 1);
        assert_eq!(figure::counted(1, "byte") + &figure::counted(2, "byte"), "1 byte2 bytes");
    }
}
