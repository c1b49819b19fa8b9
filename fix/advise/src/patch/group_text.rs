//! Groups and alignment of an order, written into a declaration whose members are in that order already: with the
//! kernel's macros where the sources have them, and else with comments and attributes.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::spelling::Spelling;
use crate::layout::subject::{Subject, member_names};
use crate::order_file::{Arrangement, Group};
use crate::text::body::{Body, Mode, TextUnit};
use crate::text::body_parts::BodyPartKind;
use crate::text::lines::line_start;
use crate::text::located_declaration;
use crate::text::marker_names::{BEGIN, END};
use crate::text::sources::Sources;
use std::collections::BTreeMap;

/// The way the sources mark groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `__cacheline_group_begin`, and the same with an alignment.
    Aligned,
    /// `__cacheline_group_begin` alone.
    Plain,
    /// Not at all.
    Comments,
}

/// Text to insert, by bytes of the text.
type Insertions = Vec<(usize, String)>;

/// The texts of `sources` that change.
///
/// # Errors
/// The reason why a group cannot be written.
pub(crate) fn write(
    sources: &Sources,
    subject: &Subject<'_>,
    spelling: &Spelling,
    arrangement: &Arrangement,
) -> Result<BTreeMap<String, String>, Binding> {
    let found = located_declaration::find(sources, &spelling.name, spelling.declared_at.as_ref())?;
    let body = Body::read(found, &member_names(subject))?;
    if body.mode != Mode::Lines {
        return Err(Binding::new(Constraint::UnclearSource)
            .at(&body.found.path, body.found.line())
            .because("members share lines, and groups and alignment need lines of their own"));
    }
    let writer = Writer { body, subject, style: style(sources), has_short: defines(sources, "__aligned") };
    let mut put = Insertions::new();
    for (place, align) in arrangement.align_bytes.iter().enumerate() {
        if let Some(align) = align {
            put.push(writer.alignment(arrangement, place, *align)?);
        }
    }
    let mut new_groups = Vec::new();
    for group in &arrangement.groups {
        if !writer.is_there(group) {
            put.extend(writer.group(arrangement, group)?);
            new_groups.push(group);
        }
    }
    let path = writer.body.found.path.clone();
    let mut edited = BTreeMap::from([(path, inserted(writer.body.found.lexed.text, put))]);
    if writer.style != Style::Comments {
        edited.extend(asserted(&sources.with(&edited), subject, &spelling.name, (arrangement, &new_groups)));
    }
    Ok(edited)
}

fn defines(sources: &Sources, name: &str) -> bool {
    let define = format!("#define {name}(");
    let spaced = format!("# define {name}(");
    sources.that_may_name(name).any(|(_, text)| text.contains(&define) || text.contains(&spaced))
}

fn style(sources: &Sources) -> Style {
    match (defines(sources, BEGIN), defines(sources, "__cacheline_group_begin_aligned")) {
        (true, true) => Style::Aligned,
        (true, false) => Style::Plain,
        (false, _) => Style::Comments,
    }
}

/// The text with all insertions; of several at one place, the first in the list stands first.
fn inserted(text: &str, mut put: Insertions) -> String {
    put.sort_by_key(|(at, _)| *at);
    let (mut new, mut from) = (String::with_capacity(text.len()), 0);
    for (at, what) in put {
        new.push_str(&text[from..at]);
        new.push_str(&what);
        from = at;
    }
    new + &text[from..]
}

struct Writer<'w> {
    body: Body<'w>,
    subject: &'w Subject<'w>,
    style: Style,
    /// Whether `__aligned(N)` is short for the attribute.
    has_short: bool,
}

impl Writer<'_> {
    /// True when the declaration has the group's markers already.
    fn is_there(&self, group: &Group) -> bool {
        let begin = format!("{BEGIN}__{}", group.name);
        member_names(self.subject).contains(&begin.as_str())
    }

    /// The unit of the member at a place of the order, and the member's name.
    fn unit(&self, arrangement: &Arrangement, place: usize) -> Result<(&TextUnit, &str), Binding> {
        let member =
            arrangement.order.get(place).and_then(|&field| self.subject.aggregate.members.get(field));
        let name = member.and_then(|member| member.name.as_deref()).unwrap_or("(anonymous)");
        let unit = self.body.units.iter().find(|unit| unit.names.iter().any(|known| known == name));
        let why = "a group begins and ends at a member with a name, and alignment is given to one";
        let refusal = || Binding::new(Constraint::UnclearSource).on([name]).because(why);
        unit.map(|unit| (unit, name)).ok_or_else(refusal)
    }

    /// The attribute behind a member that stands alone in its declaration.
    fn alignment(
        &self,
        arrangement: &Arrangement,
        place: usize,
        bytes: u64,
    ) -> Result<(usize, String), Binding> {
        let (unit, name) = self.unit(arrangement, place)?;
        let is_alone = unit.names.len() == 1 && unit.kind == BodyPartKind::Data && unit.pieces.len() == 1;
        let tokens = self.body.pieces[unit.pieces.start].tokens.clone();
        let lexed = &self.body.found.lexed;
        let last = tokens.rev().find(|&token| lexed.is_code(token)).filter(|&token| lexed.str(token) == ";");
        let Some(end) = last.filter(|_| is_alone) else {
            return Err(Binding::new(Constraint::OneDeclaration)
                .on([name])
                .because("only a member that is declared alone, and under no #if, can be aligned"));
        };
        let attribute = match self.has_short {
            true => format!(" __aligned({bytes})"),
            false => format!(" __attribute__((aligned({bytes})))"),
        };
        Ok((lexed.tokens[end].start(), attribute))
    }

    /// Lines around the members of a group.
    fn group(&self, arrangement: &Arrangement, group: &Group) -> Result<Insertions, Binding> {
        let (first, _) = self.unit(arrangement, group.members.start)?;
        let (last, _) = self.unit(arrangement, group.members.end.saturating_sub(1))?;
        let (start, end) = (self.body.span(first).start, self.body.span(last).end);
        let text = self.body.found.lexed.text;
        let declared = self.body.pieces[first.pieces.start].tokens.start;
        let declared = self.body.found.lexed.tokens[declared].start();
        let line = &text[line_start(text, declared)..declared];
        let indent: String = line.chars().take_while(|letter| letter.is_whitespace()).collect();
        let name = &group.name;
        let (begins, ends) = match (self.style, group.align_bytes) {
            (Style::Aligned, Some(bytes)) => (
                format!("{BEGIN}_aligned({name}, {bytes});"),
                Some(format!("{END}_aligned({name}, {bytes});")),
            ),
            (Style::Aligned | Style::Plain, _) => {
                (format!("{BEGIN}({name});"), Some(format!("{END}({name});")))
            }
            (Style::Comments, _) => (format!("/* {name} */"), None),
        };
        let mut put = vec![(start, format!("{indent}{begins}\n"))];
        put.extend(ends.map(|ends| (end, format!("{indent}{ends}\n"))));
        if let Some(bytes) = group.align_bytes.filter(|_| self.style != Style::Aligned) {
            for place in [group.members.start, group.members.end] {
                if place < arrangement.order.len() {
                    put.push(self.alignment(arrangement, place, bytes)?);
                }
            }
        }
        Ok(put)
    }
}

/// `CACHELINE_ASSERT_GROUP_MEMBER` for the members of new groups, where the sources assert the type's other groups.
fn asserted(
    sources: &Sources,
    subject: &Subject<'_>,
    type_name: &str,
    (arrangement, groups): (&Arrangement, &[&Group]),
) -> Option<(String, String)> {
    const ASSERT: &str = "CACHELINE_ASSERT_GROUP_MEMBER";
    let call = format!("{ASSERT}(struct {type_name},");
    let (path, text) = sources.that_may_name(ASSERT).find(|(_, text)| text.contains(&call))?;
    let last = text.rfind(&call)?;
    let begin = line_start(text, last);
    let end = last + text[last..].find('\n')? + 1;
    let mut lines = String::new();
    for group in groups {
        for &field in arrangement.order.get(group.members.clone()).into_iter().flatten() {
            let member = subject.aggregate.members.get(field)?;
            // Nobody can ask where a bit-field lies.
            if let (Some(name), None) = (member.name.as_deref(), member.bit_size) {
                lines += &format!("{}{call} {}, {name});\n", &text[begin..last], group.name);
            }
        }
    }
    Some((path.to_owned(), format!("{}{lines}{}", &text[..end], &text[end..])))
}
