//! Writing the cold part of a class: its declaration, the member that owns it, and each use of what it holds.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::SplitMeaning;
use crate::kinds::cold_part::constructor_list;
use crate::patch::text_edits::{Edit, apply};
use crate::proposal::PartPlace;
use crate::text::body::Mode;
use crate::text::body_parts::BodyPartKind;
use crate::text::lex::Kind;
use crate::text::sources::Sources;
use crate::text::word_set::has_word;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

/// The edited texts.
pub(crate) struct ColdText {
    /// The name of the member that owns the cold part, or of the array of parts.
    pub(crate) member: String,
    /// Where the part is.
    pub(crate) place: PartPlace,
    /// Whole texts by path.
    pub(crate) texts: BTreeMap<String, String>,
}

/// The units of text whose members all leave, of the access section from which most bytes leave.
pub(crate) fn leaving_units(
    ground: &Groundwork<'_>,
    leaving: &BTreeSet<usize>,
    bytes: impl Fn(usize) -> u64,
) -> Vec<usize> {
    let body = &ground.body;
    let leaves = |unit: &usize| {
        let range = ground.ranges[*unit].clone();
        let is_data = matches!(body.units[*unit].kind, BodyPartKind::Data);
        is_data && !range.is_empty() && range.into_iter().all(|field| leaving.contains(&field))
    };
    let all: Vec<usize> = (0..body.units.len().min(ground.ranges.len())).filter(leaves).collect();
    let mut by_segment: BTreeMap<u32, u64> = BTreeMap::new();
    for &unit in &all {
        let of_unit: u64 = ground.ranges[unit].clone().map(&bytes).sum();
        *by_segment.entry(body.units[unit].segment).or_default() += of_unit;
    }
    let most = by_segment.into_iter().max_by_key(|(segment, bytes)| (*bytes, u32::MAX - segment));
    all.into_iter().filter(|&unit| most.is_some_and(|(most, _)| body.units[unit].segment == most)).collect()
}

/// The members that are to leave, and all that the edit is written from.
pub(crate) struct Leaving<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) ground: &'a Groundwork<'a>,
    pub(crate) units: &'a [usize],
    /// The members of these units.
    pub(crate) moved: &'a BTreeSet<String>,
    /// The parts that they leave for; writers of a single one need not look.
    pub(crate) parts: &'a [LeavingPart],
    pub(crate) meaning: &'a SplitMeaning,
}

/// Units that leave for one part.
pub(crate) struct LeavingPart {
    pub(crate) units: Vec<usize>,
    /// The members of these units, as declared.
    pub(crate) members: Vec<String>,
    /// No call uses them.
    pub(crate) is_cold: bool,
}

/// The texts with these units in a cold part.
pub(crate) fn write(
    &Leaving { sources, ground, units, moved, meaning, .. }: &Leaving<'_>,
) -> Result<ColdText, Binding> {
    let path = &ground.body.found.path;
    let spans = leaving_lines(ground, units)?;
    let names = Names::of(sources, ground)?;
    let mut edits = through(sources, meaning, moved, &names.member)?;
    let mut listed: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for named in meaning.initialised.iter().filter(|named| moved.contains(&named.member)) {
        let at = place(sources, &named.path, (named.line, named.column), &named.member)?;
        let lexed = sources
            .lexed(&named.path)
            .ok_or_else(|| unclear(ground, "a constructor is not in the sources"))?;
        let index = lexed.tokens.partition_point(|token| token.start() < at);
        listed.entry(&named.path).or_default().push(index);
    }
    for (path, names_listed) in listed {
        let found = sources
            .lexed(path)
            .and_then(|lexed| constructor_list::moved(&lexed, &names_listed, &names.member));
        let found = found.ok_or_else(|| unclear(ground, "the list of a constructor is not understood"))?;
        edits.entry(path.to_owned()).or_default().extend(found);
    }
    let block = names.block(ground.body.found.lexed.text, &spans, meaning.is_compared);
    edits.entry(path.clone()).or_default().extend(replaced(&spans, block));
    Ok(ColdText { member: names.member, place: PartPlace::Value, texts: applied(sources, edits, ground)? })
}

/// A reason that keeps all members in the object.
pub(crate) fn refused(why: impl Into<String>) -> Binding {
    Binding::new(Constraint::KeptInObject).because(why)
}

/// The reason that the text of a declaration is not understood.
pub(crate) fn unclear(ground: &Groundwork<'_>, why: &str) -> Binding {
    let found = &ground.body.found;
    Binding::new(Constraint::UnclearSource).at(&found.path, found.line()).because(why)
}

/// The lines of these units, at least one.
pub(crate) fn leaving_lines(ground: &Groundwork<'_>, units: &[usize]) -> Result<Vec<Range<usize>>, Binding> {
    let body = &ground.body;
    if body.mode != Mode::Lines {
        return Err(unclear(ground, "members share lines with others"));
    }
    let spans: Vec<Range<usize>> = units.iter().map(|&unit| body.span(&body.units[unit])).collect();
    if spans.is_empty() { Err(unclear(ground, "no member leaves")) } else { Ok(spans) }
}

/// Edits that put a text in place of the first of these lines, and remove the others.
pub(crate) fn replaced(spans: &[Range<usize>], by: String) -> impl Iterator<Item = Edit> {
    let texts = std::iter::once(by).chain(std::iter::repeat(String::new()));
    spans.iter().cloned().zip(texts)
}

/// The edits, by path, that reach moved members through the new one.
pub(crate) fn through(
    sources: &Sources,
    meaning: &SplitMeaning,
    moved: &BTreeSet<String>,
    member: &str,
) -> Result<BTreeMap<String, Vec<Edit>>, Binding> {
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    for named in meaning.named.iter().filter(|named| moved.contains(&named.member)) {
        let at = place(sources, named.path.as_str(), (named.line, named.column), &named.member)?;
        edits.entry(named.path.clone()).or_default().push((at..at, format!("{member}->")));
    }
    Ok(edits)
}

/// The texts with all edits.
pub(crate) fn applied(
    sources: &Sources,
    edits: BTreeMap<String, Vec<Edit>>,
    ground: &Groundwork<'_>,
) -> Result<BTreeMap<String, String>, Binding> {
    let mut texts = BTreeMap::new();
    for (path, edits) in edits {
        let Some(text) = sources.get(&path) else {
            return Err(Binding::new(Constraint::OutsideSource).because(format!("{path} uses its members")));
        };
        let new = apply(text, edits).ok_or_else(|| unclear(ground, "two edits meet in one place"))?;
        texts.insert(path, new);
    }
    Ok(texts)
}

/// The first byte of a member's name, where the text has it there: after `.` or `->`, or alone.
pub(crate) fn place(
    sources: &Sources,
    path: &str,
    (line, column): (u32, u32),
    member: &str,
) -> Result<usize, Binding> {
    let unclear = || {
        let why = format!("{member} is not at column {column}");
        Binding::new(Constraint::UnclearSource).at(path, line).because(why)
    };
    let lexed = sources.lexed(path).ok_or_else(unclear)?;
    let mut starts = std::iter::once(0).chain(lexed.text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.nth(line.saturating_sub(1) as usize).ok_or_else(unclear)?;
    let at = start + column.saturating_sub(1) as usize;
    let index = lexed.tokens.partition_point(|token| token.start() < at);
    let is_name =
        lexed.tokens.get(index).is_some_and(|token| token.start() == at && token.kind == Kind::Word);
    let is_scoped = lexed.previous_code(index).is_some_and(|before| lexed.str(before) == "::");
    (is_name && lexed.str(index) == member && !is_scoped).then_some(at).ok_or_else(unclear)
}

/// The stems of new names: the first that the sources do not have is taken.
pub(crate) const STEMS: [&str; 3] = ["cold", "seldom", "rarely"];

/// The name of a new member in the style of the others.
pub(crate) fn member_in_style(ground: &Groundwork<'_>, stem: &str) -> String {
    let members: Vec<&String> = ground.body.units.iter().flat_map(|unit| &unit.names).collect();
    let of_half = |has: fn(&str) -> bool| 2 * members.iter().filter(|name| has(name)).count() > members.len();
    let (ends, begins) = (of_half(|name| name.ends_with('_')), of_half(|name| name.starts_with("m_")));
    match (begins, ends) {
        (true, _) => format!("m_{stem}"),
        (_, true) => format!("{stem}_"),
        _ => stem.to_owned(),
    }
}

/// True when no source has this word.
pub(crate) fn is_free(sources: &Sources, name: &str) -> bool {
    !sources.iter().any(|(_, text)| has_word(text, name))
}

/// The reason why there is no name for the new member.
pub(crate) fn taken(ground: &Groundwork<'_>) -> Binding {
    unclear(ground, "the sources have the names cold, seldom and rarely already")
}

/// The names that the edit gives.
struct Names {
    /// The struct of the cold members.
    part: String,
    /// The class that owns one.
    owner: String,
    /// The member.
    member: String,
}

impl Names {
    /// Names in the style of the class that no source has.
    fn of(sources: &Sources, ground: &Groundwork<'_>) -> Result<Names, Binding> {
        let tag = ground.body.found.declaration.tag.clone().unwrap_or_default();
        let is_snake = tag.starts_with(|c: char| c.is_ascii_lowercase());
        let types = |stem: &str| match is_snake {
            true => (format!("{stem}_part"), format!("{stem}_box")),
            false => {
                let mut letters = stem.chars();
                let upper = letters.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(letters);
                let upper: String = upper.collect();
                (format!("{upper}Part"), format!("{upper}Box"))
            }
        };
        for stem in STEMS {
            let (member, (part, owner)) = (member_in_style(ground, stem), types(stem));
            if [&member, &part, &owner].into_iter().all(|name| is_free(sources, name)) {
                return Ok(Names { part, owner, member });
            }
        }
        Err(taken(ground))
    }

    /// The struct, the class and the member, at the place of the first unit.
    fn block(&self, text: &str, spans: &[Range<usize>], is_compared: bool) -> String {
        let first = &text[spans[0].clone()];
        let blank = first.len() - first.trim_start_matches([' ', '\t']).len();
        let indent = &first[..blank];
        let step = if indent.contains('\t') { "\t" } else { &"    "[..indent.len().clamp(2, 4)] };
        let (part, owner, member) = (&self.part, &self.owner, &self.member);
        let mut out = String::new();
        let line = |out: &mut String, depth: usize, words: &str| {
            let _ = writeln!(out, "{indent}{}{words}", step.repeat(depth));
        };
        line(&mut out, 0, "// Members that hot loops leave alone, in memory of their own.");
        line(&mut out, 0, &format!("struct {part} {{"));
        for span in spans {
            for row in text[span.clone()].split_inclusive('\n') {
                if row.trim().is_empty() {
                    continue;
                }
                out.push_str(step);
                out.push_str(row);
            }
        }
        if is_compared {
            line(&mut out, 1, &format!("bool operator==(const {part}&) const = default;"));
        }
        line(&mut out, 0, "};");
        line(&mut out, 0, &format!("class {owner} {{"));
        line(&mut out, 0, "public:");
        line(&mut out, 1, &format!("explicit {owner}() : part_(new {part}()) {{}}"));
        line(&mut out, 1, &format!("{owner}(const {owner}& other) : part_(new {part}(*other.part_)) {{}}"));
        let moved = format!("static_cast<{part}&&>(*other.part_)");
        line(&mut out, 1, &format!("{owner}({owner}&& other) noexcept : part_(new {part}({moved})) {{}}"));
        line(&mut out, 1, &format!("~{owner}() {{ delete part_; }}"));
        line(&mut out, 1, &format!("{owner}& operator=(const {owner}& other) {{"));
        line(&mut out, 2, "*part_ = *other.part_;");
        line(&mut out, 2, "return *this;");
        line(&mut out, 1, "}");
        line(&mut out, 1, &format!("{owner}& operator=({owner}&& other) noexcept {{"));
        line(&mut out, 2, &format!("*part_ = {moved};"));
        line(&mut out, 2, "return *this;");
        line(&mut out, 1, "}");
        if is_compared {
            line(
                &mut out,
                1,
                &format!("bool operator==(const {owner}& other) const {{ return *part_ == *other.part_; }}"),
            );
        }
        line(&mut out, 1, &format!("{part}* operator->() {{ return part_; }}"));
        line(&mut out, 1, &format!("const {part}* operator->() const {{ return part_; }}"));
        out.push('\n');
        line(&mut out, 0, "private:");
        line(&mut out, 1, &format!("{part}* const part_;"));
        line(&mut out, 0, "};");
        line(&mut out, 0, &format!("{owner} {member}{{}};"));
        out
    }
}
