//! Writing the cold part of a struct of C: its declaration, the pointer to it, the functions that make and end both
//! parts, and each use of what it holds.
//!
//! `malloc` hands out memory in the order of its calls: asked for each part in turn, it would put cold parts between
//! hot ones, and no line would hold more of them than before. So hot parts of single objects come from blocks, which a
//! program of one thread can keep without a lock.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::kinds::cold_part::c_text::{
    Linkage, Naming, Style, after_includes, cold_comment, declaration_end, missing_include, part_declaration,
    prototypes,
};
use crate::kinds::cold_part::class_text::{
    self, ColdText, Leaving, STEMS, is_free, member_in_style, place, taken,
};
use crate::kinds::cold_part::heap_calls::MakingCall;
use crate::patch::text_edits::Edit;
use crate::proposal::{HeapChange, PartPlace};
use crate::text::sources::Sources;
use lineup_model::object_uses::{HeapCall, HeapFunction, HeapWrapper, Threads};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Hot parts in a block.
pub(crate) const BLOCK: u32 = 64;

/// The texts with these units in a cold part.
pub(crate) fn write(
    &Leaving { sources, ground, units, moved, meaning, .. }: &Leaving<'_>,
) -> Result<ColdText, Binding> {
    let body = &ground.body;
    let path = &body.found.path;
    let spans = class_text::leaving_lines(ground, units)?;
    let names = Names::of(sources, ground)?;
    let mut edits = class_text::through(sources, meaning, moved, &names.member)?;
    let mut calls = Calls::read(sources, &meaning.heap_calls)?;
    calls.makes.in_blocks = !calls.makes.several && meaning.threads == Threads::One;
    for (path, edit) in calls.edits(|function| names.maker(function), &names.ender) {
        edits.entry(path).or_default().push(edit);
    }
    let lexed = &body.found.lexed;
    let first = &lexed.text[spans[0].clone()];
    let own = edits.entry(path.clone()).or_default();
    own.extend(class_text::replaced(&spans, names.pointer(first)));
    let end = declaration_end(&body.found)?;
    let mut below = part_declaration(&cold_comment(&names.whole), &names.part, (lexed.text, &spans));
    let files: BTreeSet<&str> = meaning.heap_calls.iter().map(|call| call.path.as_str()).collect();
    let is_header = !path.ends_with(".c");
    // Each file has a list of its own in a header's functions: objects that one file makes and another ends would
    // never be used again.
    let is_shared = files.len() > 1 && is_header && calls.makes.in_blocks;
    let only = files.first().copied().filter(|only| files.len() == 1 && only != path);
    let home = if is_shared { calls.most_makers() } else { only };
    let wrappers: BTreeSet<&HeapWrapper> =
        meaning.heap_calls.iter().filter_map(|call| call.wrapper.as_ref()).collect();
    let unclear = |why: String| Binding::new(Constraint::UnclearSource).because(why);
    let is_unknown = |wrapper: &&&HeapWrapper| wrapper.is_static && home != Some(wrapper.path.as_str());
    if is_shared && let Some(wrapper) = wrappers.iter().find(is_unknown) {
        let why = format!("{} of one file makes or ends its objects, and others call for them", wrapper.name);
        return Err(unclear(why));
    }
    let place = home.and_then(|home| {
        let own = meaning.heap_calls.iter().filter(|call| call.path == home);
        Some((home, after_includes(sources, home, own.map(|call| call.line).min()?)?))
    });
    let functions = |path: &str, linkage: Linkage| {
        let style = Style::of(sources.get(path).unwrap_or_default(), first, linkage);
        names.functions(&style, &calls.makes)
    };
    match place {
        Some((home, at)) => {
            let declared = declarations(wrappers.iter().filter(|wrapper| is_shared || wrapper.path == home));
            // A file that calls `xmalloc` may lack the header of `free`.
            let has_header = sources.get(home).is_some_and(|text| text.contains("<stdlib.h>"));
            let include = if has_header { "" } else { "#include <stdlib.h>\n" };
            let linkage = if is_shared { Linkage::Program } else { Linkage::File };
            let text = format!("{include}\n{declared}{}", functions(home, linkage));
            edits.entry(home.to_owned()).or_default().push((at..at, text));
            if is_shared {
                below.push_str(&names.prototypes(&calls.makes));
            }
        }
        None if is_shared => {
            return Err(unclear("no file that makes its objects has a place for functions".to_owned()));
        }
        None => {
            if let Some(wrapper) = wrappers.iter().find(|wrapper| is_header && wrapper.is_static) {
                return Err(unclear(format!(
                    "{} makes or ends its objects, and the file of the struct does not know it",
                    wrapper.name
                )));
            }
            below.push('\n');
            below.push_str(&declarations(
                wrappers.iter().filter(|wrapper| is_header || wrapper.path == *path),
            ));
            below.push_str(&functions(path, if is_header { Linkage::Header } else { Linkage::File }));
            edits.entry(path.clone()).or_default().extend(missing_include(ground));
        }
    }
    edits.entry(path.clone()).or_default().push((end..end, format!("\n{below}")));
    let heap =
        HeapChange { makes: calls.making.len(), ends: calls.ending.len(), in_blocks: calls.makes.in_blocks };
    Ok(ColdText {
        member: names.member,
        place: PartPlace::Pointer(heap),
        texts: class_text::applied(sources, edits, ground)?,
    })
}

/// The calls that change.
pub(crate) struct Calls {
    pub(crate) making: Vec<(String, HeapFunction, MakingCall)>,
    /// The names of the functions that end objects, in bytes.
    pub(crate) ending: Vec<(String, Range<usize>)>,
    pub(crate) makes: Makes,
}

/// Declarations of the program's own functions, ahead of the functions that call them.
fn declarations<'w>(wrappers: impl Iterator<Item = &'w &'w HeapWrapper>) -> String {
    let mut text: String = wrappers.map(|wrapper| format!("{};\n", wrapper.declaration)).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The functions that are needed.
#[derive(Default)]
pub(crate) struct Makes {
    /// The names that the sources have for `malloc`, `calloc` and `free`, and whether each takes a number of objects and a
    /// size.
    pub(crate) by: BTreeMap<HeapFunction, (String, bool)>,
    /// Some calls make several objects at once.
    pub(crate) several: bool,
    /// Hot parts come from blocks.
    in_blocks: bool,
}

impl Makes {
    /// The functions that make objects.
    fn making(&self) -> impl Iterator<Item = HeapFunction> {
        self.by.keys().copied().filter(|by| *by != HeapFunction::Free)
    }

    fn ends(&self) -> bool {
        self.by.contains_key(&HeapFunction::Free)
    }

    /// A call for the memory of objects, by a function that the program calls for it.
    pub(crate) fn memory(&self, function: HeapFunction, count: Option<&str>, of: &str) -> String {
        match self.by.get(&function) {
            Some((name, true)) => format!("{name}({}, sizeof *{of})", count.unwrap_or("1")),
            Some((name, false)) => match count {
                Some(count) => format!("{name}({count} * sizeof *{of})"),
                None => format!("{name}(sizeof *{of})"),
            },
            // One of both makes objects.
            None => match function {
                HeapFunction::Malloc => self.memory(HeapFunction::Calloc, count, of),
                _ => self.memory(HeapFunction::Malloc, count, of),
            },
        }
    }

    /// The function that ends objects.
    fn free(&self) -> &str {
        self.by.get(&HeapFunction::Free).map_or("free", |(name, _)| name)
    }
}

impl Calls {
    pub(crate) fn read(sources: &Sources, calls: &[HeapCall]) -> Result<Calls, Binding> {
        let (mut making, mut ending, mut makes) = (Vec::new(), Vec::new(), Makes::default());
        for call in calls {
            let name = call.name();
            let at = place(sources, &call.path, (call.line, call.column), name)?;
            let takes_count = match &call.wrapper {
                Some(wrapper) => wrapper.takes_count,
                None => call.function == HeapFunction::Calloc,
            };
            let own = (name.to_owned(), takes_count);
            let known = makes.by.entry(call.function).or_insert_with(|| own.clone());
            if *known != own {
                let why = format!("{} and {name} make or end its objects", known.0);
                return Err(Binding::new(Constraint::UnclearSource).at(&call.path, call.line).because(why));
            }
            if call.function == HeapFunction::Free {
                ending.push((call.path.clone(), at..at + name.len()));
                continue;
            }
            let lexed = sources.lexed(&call.path);
            let made = lexed.and_then(|lexed| {
                let token = lexed.tokens.partition_point(|token| token.start() < at);
                MakingCall::read(&lexed, token, takes_count)
            });
            let made = made.ok_or_else(|| {
                let why = "the number of objects that a call makes is not understood";
                Binding::new(Constraint::UnclearSource).at(&call.path, call.line).because(why)
            })?;
            makes.several |= made.count.is_some();
            making.push((call.path.clone(), call.function, made));
        }
        Ok(Calls { making, ending, makes })
    }

    /// The source file with most of the calls that make objects.
    fn most_makers(&self) -> Option<&str> {
        let paths = || self.making.iter().map(|(path, ..)| path.as_str()).filter(|path| path.ends_with(".c"));
        paths().max_by_key(|path| (paths().filter(|own| own == path).count(), std::cmp::Reverse(*path)))
    }

    /// The calls of the new functions in place of those of the library's, by path.
    pub(crate) fn edits<'n>(
        &self,
        maker: impl Fn(HeapFunction) -> &'n str,
        ender: &str,
    ) -> Vec<(String, Edit)> {
        let mut edits: Vec<(String, Edit)> = Vec::new();
        for (path, function, call) in &self.making {
            let name = maker(*function);
            let whole = call.whole.clone();
            match &call.count {
                Some(count) => {
                    edits.push((path.clone(), (whole.start..count.start, format!("{name}("))));
                    edits.push((path.clone(), (count.end..whole.end, ")".to_owned())));
                }
                None => {
                    let count = if self.makes.several { "1" } else { "" };
                    edits.push((path.clone(), (whole, format!("{name}({count})"))));
                }
            }
        }
        edits.extend(self.ending.iter().map(|(path, at)| (path.clone(), (at.clone(), ender.to_owned()))));
        edits
    }
}

/// The names that the edit gives.
struct Names {
    /// The struct, as the sources spell it.
    whole: String,
    /// The struct of the cold members.
    part: String,
    /// The pointer to one.
    member: String,
    /// The functions that make objects, as `malloc` and as `calloc` do, and the one that ends them.
    maker: String,
    zeroed_maker: String,
    ender: String,
    /// The variable that leads to hot parts which no object uses.
    spare: String,
}

impl Names {
    /// Names in the style of the struct that no source has.
    fn of(sources: &Sources, ground: &Groundwork<'_>) -> Result<Names, Binding> {
        let naming = Naming::of(&ground.body.found.declaration);
        let joined = |words: &[&str]| naming.joined(words);
        for stem in STEMS {
            for (maker, ender) in [("new", "free"), ("alloc", "release"), ("make", "drop")] {
                let names = Names {
                    whole: naming.whole.clone(),
                    part: joined(&[stem]),
                    member: member_in_style(ground, stem),
                    maker: joined(&[maker]),
                    zeroed_maker: joined(&[maker, "zeroed"]),
                    ender: joined(&[ender]),
                    spare: joined(&["spare"]),
                };
                if names.all().into_iter().all(|name| is_free(sources, name)) {
                    return Ok(names);
                }
            }
        }
        Err(taken(ground))
    }

    /// The names that are new.
    fn all(&self) -> [&String; 6] {
        [&self.part, &self.member, &self.spare, &self.maker, &self.zeroed_maker, &self.ender]
    }

    fn maker(&self, function: HeapFunction) -> &str {
        match function {
            HeapFunction::Calloc => &self.zeroed_maker,
            _ => &self.maker,
        }
    }

    /// The pointer, in place of the first unit.
    fn pointer(&self, first: &str) -> String {
        let blank = first.len() - first.trim_start_matches([' ', '\t']).len();
        format!("{}struct {} *{};\n", &first[..blank], self.part, self.member)
    }

    fn functions(&self, style: &Style, makes: &Makes) -> String {
        let mut all: Vec<String> = Vec::new();
        if makes.in_blocks {
            all.push(format!(
                "/* Hot parts that no object uses: they come in blocks, side by side, and are kept. */\nstatic {} *{};\n",
                self.whole, self.spare
            ));
            all.push(self.block_maker_text(style, makes));
            all.extend(makes.by.contains_key(&HeapFunction::Calloc).then(|| self.block_zeroed_text(style)));
            all.extend(makes.ends().then(|| self.block_ender_text(style, makes.free())));
        } else {
            all.extend(makes.making().map(|by| self.maker_text(style, by, makes)));
            all.extend(makes.ends().then(|| self.ender_text(style, makes.free())));
        }
        all.join("\n")
    }

    /// Declarations of the functions that share blocks, for the header of the struct.
    fn prototypes(&self, makes: &Makes) -> String {
        let zeroed = makes.by.contains_key(&HeapFunction::Calloc).then_some(&self.zeroed_maker);
        let makers = std::iter::once(&self.maker).chain(zeroed);
        prototypes(&self.whole, makers, makes.ends().then_some(&self.ender))
    }

    /// The function that makes objects with both parts. The memory for no object is that for one: `free` reads it.
    fn maker_text(&self, style: &Style, function: HeapFunction, makes: &Makes) -> String {
        let (whole, part, member, name) = (&self.whole, &self.part, &self.member, self.maker(function));
        let (several, free) = (makes.several, makes.free());
        let allocated = |of: &str| {
            let takes_count = makes.by.get(&function).is_some_and(|(_, takes_count)| *takes_count);
            let count = if takes_count { "count ? count : 1" } else { "(count ? count : 1)" };
            makes.memory(function, several.then_some(count), of)
        };
        let (made, cold) = (allocated("made"), allocated("part"));
        let (counter, rest, parameters) = match several {
            true => (
                "\tsize_t at;\n",
                format!("\tfor (at = 1; at < count; at++)\n\t\tmade[at].{member} = part + at;\n"),
                "size_t count",
            ),
            false => ("", String::new(), "void"),
        };
        style.function(
            &format!("{whole} *{name}({parameters})"),
            &format!(
                "\t{whole} *made = {made};\n\tstruct {part} *part = {cold};\n{counter}\n\tif (!made || !part) {{\n\t\t{free}(made);\n\
                 \t\t{free}(part);\n\t\treturn NULL;\n\t}}\n\tmade->{member} = part;\n{rest}\treturn made;\n"
            ),
        )
    }

    fn ender_text(&self, style: &Style, free: &str) -> String {
        let (whole, member) = (&self.whole, &self.member);
        style.function(
            &format!("void {}({whole} *ended)", self.ender),
            &format!("\tif (ended)\n\t\t{free}(ended->{member});\n\t{free}(ended);\n"),
        )
    }

    /// The same with hot parts from blocks. Those that no object uses are in a list, linked by the pointer to the part.
    fn block_maker_text(&self, style: &Style, makes: &Makes) -> String {
        let Names { whole, part, member, maker, spare, .. } = self;
        let free = makes.free();
        let cold = makes.memory(HeapFunction::Malloc, None, "part");
        let block = makes.memory(HeapFunction::Malloc, Some("count"), "made");
        style.function(
            &format!("{whole} *{maker}(void)"),
            &format!(
                "\tconst size_t count = {BLOCK};\n\tstruct {part} *part = {cold};\n\t{whole} *made = {spare};\n\
                 \tsize_t at;\n\n\tif (part && !made) {{\n\t\tmade = {block};\n\
                 \t\tfor (at = 0; made && at < count; at++)\n\
                 \t\t\tmade[at].{member} = at + 1 < count ? (void *)(made + at + 1) : NULL;\n\t}}\n\
                 \tif (!part || !made) {{\n\t\t{free}(part);\n\t\treturn NULL;\n\t}}\n\
                 \t{spare} = (void *)made->{member};\n\tmade->{member} = part;\n\treturn made;\n"
            ),
        )
    }

    fn block_zeroed_text(&self, style: &Style) -> String {
        let Names { whole, part, member, maker, zeroed_maker, .. } = self;
        style.function(
            &format!("{whole} *{zeroed_maker}(void)"),
            &format!(
                "\tstatic const {whole} none;\n\tstatic const struct {part} nothing;\n\t{whole} *made = {maker}();\n\
                 \tstruct {part} *part;\n\n\tif (made) {{\n\t\tpart = made->{member};\n\t\t*made = none;\n\
                 \t\t*part = nothing;\n\t\tmade->{member} = part;\n\t}}\n\treturn made;\n"
            ),
        )
    }

    fn block_ender_text(&self, style: &Style, free: &str) -> String {
        let Names { whole, member, ender, spare, .. } = self;
        style.function(
            &format!("void {ender}({whole} *ended)"),
            &format!(
                "\tif (!ended)\n\t\treturn;\n\t{free}(ended->{member});\n\tended->{member} = (void *){spare};\n\
                 \t{spare} = ended;\n"
            ),
        )
    }
}
