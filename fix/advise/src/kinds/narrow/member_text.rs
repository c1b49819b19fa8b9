//! Writing members that leave, and integers with smaller types: the declaration, the statements that write them, and
//! casts where the type of a value decides the meaning of an expression.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::{Meaning, MemberMeaning};
use crate::kinds::cold_part::class_text::{applied, leaving_lines, replaced, unclear};
use crate::kinds::narrow::statements::{byte_at, removed};
use crate::patch::text_edits::Edit;
use crate::text::body::TextUnit;
use crate::text::lex::{Kind, Lexed};
use crate::text::sources::{Sources, has_word};
use lineup_model::object_uses::MemberAccess;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A type that a member gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SmallerType {
    /// As the sources spell it.
    pub(crate) spelled: String,
    pub(crate) size_bytes: u64,
}

/// The smallest type of fewer than `before_bytes` that holds these values, in the style of the file that declares it.
pub(crate) fn smaller_type(text: &str, before_bytes: u64, low: i64, high: i64) -> Option<SmallerType> {
    const WIDTHS: [(u64, i64, [&str; 2]); 3] = [
        (1, 1 << 8, ["unsigned char", "signed char"]),
        (2, 1 << 16, ["unsigned short", "short"]),
        (4, 1 << 32, ["unsigned int", "int"]),
    ];
    let has_fixed = ["uint8_t", "uint16_t", "uint32_t", "int8_t", "int16_t", "int32_t"];
    let is_fixed =
        includes(text, &["<stdint.h>", "<inttypes.h>"]) && has_fixed.iter().any(|name| has_word(text, name));
    if (0..=1).contains(&low) && high <= 1 && before_bytes > 1 && includes(text, &["<stdbool.h>"]) {
        return Some(SmallerType { spelled: "bool".to_owned(), size_bytes: 1 });
    }
    let fits = |values: i64| (low >= 0 && high < values, low >= -(values / 2) && high < values / 2);
    let (size_bytes, is_natural, names) = WIDTHS.into_iter().find_map(|(size, values, names)| {
        let (natural, signed) = fits(values);
        (size < before_bytes && (natural || signed)).then_some((size, natural, names))
    })?;
    let spelled = match is_fixed {
        true => format!("{}int{}_t", if is_natural { "u" } else { "" }, 8 * size_bytes),
        false => names[usize::from(!is_natural)].to_owned(),
    };
    Some(SmallerType { spelled, size_bytes })
}

fn includes(text: &str, headers: &[&str]) -> bool {
    let directives = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    let mut included = directives.filter(|directive| directive.trim_start().starts_with("include"));
    included.any(|line| headers.iter().any(|header| line.contains(header)))
}

/// The bytes of the type in the declaration of a unit; `None` where it is more than words, or a declarator more than a
/// name.
pub(crate) fn type_words(ground: &Groundwork<'_>, unit: &TextUnit) -> Option<Range<usize>> {
    const BASIC: [&str; 7] = ["signed", "unsigned", "char", "short", "int", "long", "enum"];
    let body = &ground.body;
    let [piece] = &body.pieces[unit.pieces.clone()] else { return None };
    let lexed = &body.found.lexed;
    let tokens: Vec<usize> = piece.tokens.clone().filter(|&index| lexed.is_code(index)).collect();
    let first = unit.names.first()?;
    let name = (1..tokens.len()).find(|&at| {
        lexed.str(tokens[at]) == first
            && tokens.get(at + 1).is_some_and(|&next| matches!(lexed.str(next), "," | ";"))
    })?;
    let declarators: Vec<&str> = tokens[name..].iter().map(|&index| lexed.str(index)).collect();
    let plain: Vec<&str> = unit.names.iter().flat_map(|name| [name.as_str(), ","]).collect();
    let is_plain = declarators.len() == plain.len()
        && declarators.last() == Some(&";")
        && declarators[..declarators.len() - 1] == plain[..plain.len() - 1];
    let words = &tokens[..name];
    let is_basic = |&index: &usize| BASIC.contains(&lexed.str(index));
    let is_type = words.iter().all(|&index| lexed.tokens[index].kind == Kind::Word)
        && match words {
            [_] => true,
            [keyword, _] if lexed.str(*keyword) == "enum" => true,
            all => all.iter().all(is_basic),
        };
    let range = lexed.tokens[*words.first()?].start()..lexed.tokens[*words.last()?].end();
    (is_plain && is_type).then_some(range)
}

/// Where code names the member that no compiler saw: a part that the build leaves out, or a macro that nothing uses.
pub(crate) fn unseen(sources: &Sources, meaning: &Meaning, member: &str) -> Option<(String, u32)> {
    let uses = meaning.members.iter().flat_map(|one| &one.uses).filter(|used| used.member == member);
    let mut known: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for used in uses {
        let at = sources.get(&used.path).and_then(|text| byte_at(text, (used.line, used.column)));
        known.entry(&used.path).or_default().extend(at);
    }
    sources.that_may_name(member).find_map(|(path, _)| {
        let lexed = sources.lexed(path)?;
        let is_unseen = |&index: &usize| {
            let token = &lexed.tokens[index];
            match token.kind {
                Kind::Word => {
                    lexed.str(index) == member
                        && is_behind_object(&lexed, index)
                        && !known.get(path).is_some_and(|places| places.contains(&token.start()))
                }
                Kind::Directive => names_member(&lexed.text[token.range()], member),
                _ => false,
            }
        };
        let index = (0..lexed.tokens.len()).find(is_unseen)?;
        Some((path.to_owned(), lexed.line_at(lexed.tokens[index].start())))
    })
}

fn is_behind_object(lexed: &Lexed<'_>, name: usize) -> bool {
    let before = lexed.previous_code(name);
    match before.map(|before| (before, lexed.str(before))) {
        Some((_, ".")) => true,
        Some((before, ">")) => before.checked_sub(1).is_some_and(|dash| lexed.str(dash) == "-"),
        _ => false,
    }
}

/// True of a directive with the word behind `.` or `->`.
fn names_member(directive: &str, member: &str) -> bool {
    let lexed = Lexed::new(directive.trim_start().trim_start_matches('#'));
    (0..lexed.tokens.len()).any(|index| lexed.str(index) == member && is_behind_object(&lexed, index))
}

/// The members that change.
pub(crate) struct Changing<'c> {
    /// The units of text that leave.
    pub(crate) leaving: Vec<usize>,
    /// The names of their members.
    pub(crate) removed: BTreeSet<String>,
    /// The units whose members get another type.
    pub(crate) retyped: Vec<(usize, &'c SmallerType)>,
    /// The old type of each member that gets another.
    pub(crate) before: BTreeMap<String, String>,
}

/// The texts with these changes.
pub(crate) fn write(
    sources: &Sources,
    ground: &Groundwork<'_>,
    meaning: &MemberMeaning,
    changing: &Changing<'_>,
) -> Result<BTreeMap<String, String>, Binding> {
    let body = &ground.body;
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    let own = edits.entry(body.found.path.clone()).or_default();
    if !changing.leaving.is_empty() {
        own.extend(replaced(&leaving_lines(ground, &changing.leaving)?, String::new()));
    }
    for (unit, ty) in &changing.retyped {
        let words = type_words(ground, &body.units[*unit]);
        let words = words.ok_or_else(|| unclear(ground, "the declaration of a member is not understood"))?;
        own.push((words, ty.spelled.clone()));
    }
    for used in &meaning.uses {
        if changing.removed.contains(&used.member) {
            let edit = removed(sources, used)?;
            edits.entry(used.path.clone()).or_default().extend(edit);
        }
        let before = changing.before.get(&used.member);
        if let (Some(before), MemberAccess::Read { cast_at: Some(at) }) = (before, used.access) {
            let text = sources.get(&used.path);
            let at = text.and_then(|text| byte_at(text, at)).ok_or_else(|| {
                Binding::new(Constraint::OutsideSource).because(format!("{} uses its members", used.path))
            })?;
            edits.entry(used.path.clone()).or_default().push((at..at, format!("({before})")));
        }
    }
    applied(sources, edits, ground)
}
