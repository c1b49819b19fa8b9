//! The text of a pool: the functions that take objects from blocks and give them back, and the calls of these.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::SplitMeaning;
use crate::kinds::cold_part::c_text::{Linkage, Naming, Style, after_includes, declaration_end, prototypes};
use crate::kinds::cold_part::class_text::is_free;
use crate::kinds::cold_part::heap_text::Calls;
use crate::options::WantedPool;
use crate::patch::text_edits::Edit;
use crate::proposal::PooledType;
use crate::text::definitions;
use crate::text::lex::Lexed;
use crate::text::located_declaration::{self, LocatedDeclaration};
use crate::text::sources::Sources;
use lineup_model::object_uses::{HeapCall, HeapFunction, HeapWrapper};
use std::collections::{BTreeMap, BTreeSet};

/// The header of `madvise`.
const MEMORY_HEADER: &str = "<sys/mman.h>";

/// Bytes of a block: with the allocator's header a page.
const BLOCK_BYTES: u64 = 4080;

/// Objects in a block at least.
const LEAST_OBJECTS: u64 = 16;

/// Bytes of a block that is a huge page.
const HUGE_BLOCK_BYTES: u64 = 2 << 20;

/// An object that is free holds a pointer.
const POINTER_BYTES: u64 = 8;

/// The edits of a pool.
pub(super) struct PoolText {
    /// By path.
    pub(super) edits: BTreeMap<String, Vec<Edit>>,
    pub(super) pooled: PooledType,
}

/// The edits that take the objects of single calls from blocks.
pub(super) fn write(
    sources: &Sources,
    split: &SplitMeaning,
    calls: &Calls,
    wanted: &WantedPool,
) -> Result<PoolText, Binding> {
    let found = declaration(sources, &split.names)?;
    let has_ends = !calls.ending.is_empty();
    let names = Names::of(sources, &found)?;
    let single = || calls.making.iter().filter(|(.., call)| call.count.is_none());
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut note = |path: &str, start: usize, edit: Edit| {
        edits.entry(path.to_owned()).or_default().push(edit);
        start
    };
    let mut makes = 0;
    for (path, function, call) in single() {
        let name = names.maker(*function, has_ends);
        let start = note(path, call.whole.start, (call.whole.clone(), format!("{name}()")));
        let first = starts.entry(path).or_insert(start);
        *first = start.min(*first);
        makes += 1;
    }
    let makers: BTreeSet<&str> = starts.keys().copied().collect();
    for (path, at) in &calls.ending {
        let start = note(path, at.start, (at.clone(), names.ender.clone()));
        let first = starts.entry(path).or_insert(start);
        *first = start.min(*first);
    }
    // The file with most calls that make objects has the functions.
    let in_file = |path: &&str| single().filter(|(own, ..)| own == path).count();
    let home = makers.iter().copied().max_by_key(in_file).unwrap_or_default();
    let is_shared = starts.len() > 1;
    let slot_bytes = slot_bytes(wanted, has_ends);
    let is_huge = wanted.is_on_huge_pages;
    let block = match is_huge {
        true => HUGE_BLOCK_BYTES / slot_bytes,
        false => (BLOCK_BYTES / slot_bytes).max(LEAST_OBJECTS),
    };
    let pool = Pool { names: &names, calls, has_ends, is_huge, block };
    let is_replaced = |call: &HeapCall| call.function != HeapFunction::Free && call.wrapper.is_some();
    if is_huge && split.heap_calls.iter().any(is_replaced) {
        return Err(unclear(
            &found,
            "a function of the program makes its objects, and it makes no huge pages",
        ));
    }
    if is_huge && pool.is_zeroed() {
        return Err(unclear(&found, "its blocks are zeroed, which huge pages are not for certain"));
    }
    let wrappers: Vec<&HeapWrapper> =
        split.heap_calls.iter().filter_map(|call| call.wrapper.as_ref()).collect();
    if is_shared && wrappers.iter().any(|wrapper| wrapper.is_static && wrapper.path != home) {
        return Err(unclear(&found, "a function of one file makes its objects, and others end them"));
    }
    let lexed = sources.lexed(home).ok_or_else(|| unclear(&found, "a call is not in the sources"))?;
    let at = starts.get(home).and_then(|start| before_statement(&lexed, *start));
    let at = at.ok_or_else(|| unclear(&found, "no place for functions is found before its calls"))?;
    let linkage = if is_shared { Linkage::Program } else { Linkage::File };
    let style = Style::of(lexed.text, indented_line(lexed.text), linkage);
    let mut functions = pool.functions(&style);
    if is_huge && !lexed.text.contains(MEMORY_HEADER) {
        let include = format!("#include {MEMORY_HEADER}\n");
        match after_includes(sources, home, lexed.line_at(at)) {
            Some(place) => edits.entry(home.to_owned()).or_default().push((place..place, include)),
            None => functions.insert_str(0, &format!("{include}\n")),
        }
    }
    edits.entry(home.to_owned()).or_default().push((at..at, functions));
    if is_shared {
        if found.path.ends_with(".c") {
            return Err(unclear(&found, "several files make and end its objects, and no header declares it"));
        }
        let end = declaration_end(&found)?;
        edits.entry(found.path.clone()).or_default().push((end..end, pool.prototypes()));
    }
    let pooled = PooledType {
        type_name: wanted.type_name.clone(),
        size_bytes: wanted.size_bytes,
        makes,
        ends: calls.ending.len(),
        block,
        is_on_huge_pages: is_huge,
    };
    Ok(PoolText { edits, pooled })
}

/// The first line that shows how a file is indented; lines of comments do not.
fn indented_line(text: &str) -> &str {
    let is_of_code =
        |line: &&str| line.starts_with([' ', '\t']) && !line.trim_start().starts_with(['*', '/']);
    text.lines().find(is_of_code).unwrap_or_default()
}

/// Bytes from one object of a block to the next. An object that comes back holds a pointer.
pub(super) fn slot_bytes(wanted: &WantedPool, has_ends: bool) -> u64 {
    match has_ends {
        true => wanted.size_bytes.max(POINTER_BYTES).next_multiple_of(POINTER_BYTES),
        false => wanted.size_bytes.max(1),
    }
}

/// The declaration, by the first of the names that has one.
fn declaration<'s>(sources: &'s Sources, names: &[String]) -> Result<LocatedDeclaration<'s>, Binding> {
    let mut refusal = None;
    for name in names {
        match located_declaration::find(sources, name, None) {
            Ok(found) => return Ok(found),
            Err(binding) => refusal = Some(binding),
        }
    }
    Err(refusal.unwrap_or_else(|| Binding::new(Constraint::OutsideSource).because("it has no name")))
}

fn unclear(found: &LocatedDeclaration<'_>, why: &str) -> Binding {
    Binding::new(Constraint::UnclearSource).at(&found.path, found.line()).because(why)
}

/// The first byte of the function in which a byte stands, or of the comment above it.
fn before_statement(lexed: &Lexed<'_>, byte: usize) -> Option<usize> {
    let token = lexed.tokens.partition_point(|token| token.start() < byte);
    let statements = definitions::statements(lexed);
    let statement = statements.iter().find(|one| one.tokens.contains(&token) && one.is_function)?;
    let mut first = statement.tokens.start;
    let depth =
        (0..first).filter(|&index| lexed.is_code(index)).fold(0_i64, |depth, index| match lexed.str(index) {
            "{" => depth + 1,
            "}" => depth - 1,
            _ => depth,
        });
    if depth != 0 {
        return None;
    }
    while first > 0 && lexed.tokens[first - 1].is_comment() {
        let gap = &lexed.text[lexed.tokens[first - 1].end()..lexed.tokens[first].start()];
        let starts_line = lexed.text[..lexed.tokens[first - 1].start()].ends_with('\n') || first == 1;
        if gap.matches('\n').count() > 1 || !starts_line {
            break;
        }
        first -= 1;
    }
    let start = lexed.tokens[first].start();
    (start == 0 || lexed.text[..start].ends_with('\n')).then_some(start)
}

/// The names that the edit gives.
struct Names {
    /// The struct, as the sources spell it.
    whole: String,
    /// The union of an object and the link to the next free one.
    slot: String,
    spare: String,
    maker: String,
    zeroed_maker: String,
    ender: String,
}

impl Names {
    /// Names in the style of the struct that no source has.
    fn of(sources: &Sources, found: &LocatedDeclaration<'_>) -> Result<Names, Binding> {
        let naming = Naming::of(&found.declaration);
        let joined = |words: &[&str]| naming.joined(words);
        for (maker, ender) in [("new", "free"), ("alloc", "release"), ("make", "drop")] {
            let names = Names {
                whole: naming.whole.clone(),
                slot: joined(&["slot"]),
                spare: joined(&["spare"]),
                maker: joined(&[maker]),
                zeroed_maker: joined(&[maker, "zeroed"]),
                ender: joined(&[ender]),
            };
            let new = [&names.slot, &names.spare, &names.maker, &names.zeroed_maker, &names.ender];
            if new.into_iter().all(|name| is_free(sources, name)) {
                return Ok(names);
            }
        }
        Err(unclear(found, "the sources have names of the functions of a pool already"))
    }

    /// The function that takes the place of `malloc` or `calloc`. Blocks that nothing comes back to are zeroed at once.
    fn maker(&self, function: HeapFunction, has_ends: bool) -> &str {
        match function {
            HeapFunction::Calloc if has_ends => &self.zeroed_maker,
            _ => &self.maker,
        }
    }
}

/// The functions of a pool.
struct Pool<'p> {
    names: &'p Names,
    calls: &'p Calls,
    /// Calls give objects back.
    has_ends: bool,
    /// Blocks are huge pages.
    is_huge: bool,
    /// Objects in a block.
    block: u64,
}

impl Pool<'_> {
    fn has(&self, function: HeapFunction) -> bool {
        self.calls.making.iter().any(|(_, own, call)| *own == function && call.count.is_none())
    }

    /// All of a block has the value that it was made with, since nothing comes back, and that is zero.
    fn is_zeroed(&self) -> bool {
        !self.has_ends && self.has(HeapFunction::Calloc)
    }

    /// The functions with their data, and an empty line.
    fn functions(&self, style: &Style) -> String {
        let Names { whole, slot, spare, .. } = self.names;
        let mut parts = Vec::new();
        if self.has_ends {
            parts.push(style.indented(&format!(
                "/* Objects come from blocks, side by side and without headers. The program keeps the blocks. */\n\
                 union {slot} {{\n\t{whole} object;\n\tunion {slot} *next;\n}};\n\nstatic union {slot} *{spare};\n"
            )));
        }
        parts.push(self.maker_text(style));
        parts.extend((self.has_ends && self.has(HeapFunction::Calloc)).then(|| self.zeroed_text(style)));
        parts.extend(self.has_ends.then(|| self.ender_text(style)));
        parts.push(String::new());
        parts.join("\n")
    }

    fn maker_text(&self, style: &Style) -> String {
        let Names { whole, slot, spare, maker, .. } = self.names;
        let block = self.block;
        let by = if self.is_zeroed() { HeapFunction::Calloc } else { HeapFunction::Malloc };
        let memory = self.calls.makes.memory(by, Some(&block.to_string()), "block");
        let head = format!("{whole} *{maker}(void)");
        let refill = match self.is_huge {
            true => "\tif (!left) {\n\t\tconst unsigned long size = 2UL << 20;\n\t\tvoid *memory;\n\n\
                     \t\tif (posix_memalign(&memory, size, size))\n\t\t\treturn 0;\n\
                     #ifdef MADV_HUGEPAGE\n\t\tmadvise(memory, size, MADV_HUGEPAGE);\n#endif\n\
                     \t\tblock = memory;\n\t\tleft = size / sizeof *block;\n\t}\n\tleft--;\n"
                .to_owned(),
            false => format!(
                "\tif (!left) {{\n\t\tblock = {memory};\n\t\tif (!block)\n\t\t\treturn 0;\n\t\tleft = {block};\n\t}}\n\tleft--;\n"
            ),
        };
        if !self.has_ends {
            let body =
                format!("\tstatic {whole} *block;\n\tstatic unsigned left;\n\n{refill}\treturn block++;\n");
            let comment = "/* Objects come from blocks, side by side and without headers. */\n";
            return comment.to_owned() + &style.function(&head, &body);
        }
        let body = format!(
            "\tstatic union {slot} *block;\n\tstatic unsigned left;\n\tunion {slot} *made = {spare};\n\n\
             \tif (made) {{\n\t\t{spare} = made->next;\n\t\treturn &made->object;\n\t}}\n{refill}\
             \treturn &block++->object;\n"
        );
        style.function(&head, &body)
    }

    fn zeroed_text(&self, style: &Style) -> String {
        let Names { whole, maker, zeroed_maker, .. } = self.names;
        style.function(
            &format!("{whole} *{zeroed_maker}(void)"),
            &format!(
                "\tstatic const {whole} none;\n\t{whole} *made = {maker}();\n\n\tif (made)\n\t\t*made = none;\n\treturn made;\n"
            ),
        )
    }

    fn ender_text(&self, style: &Style) -> String {
        let Names { whole, slot, spare, ender, .. } = self.names;
        style.function(
            &format!("void {ender}({whole} *ended)"),
            &format!(
                "\tunion {slot} *slot = (union {slot} *)ended;\n\n\tif (!slot)\n\t\treturn;\n\tslot->next = {spare};\n\
                 \t{spare} = slot;\n"
            ),
        )
    }

    /// Their declarations, for the header of the struct.
    fn prototypes(&self) -> String {
        let Names { whole, maker, zeroed_maker, ender, .. } = self.names;
        let zeroed = (self.has_ends && self.has(HeapFunction::Calloc)).then_some(zeroed_maker);
        prototypes(whole, std::iter::once(maker).chain(zeroed), self.has_ends.then_some(ender))
    }
}
