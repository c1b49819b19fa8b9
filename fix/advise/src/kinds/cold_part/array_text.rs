//! Writing the cold part of a struct of C whose objects are the elements of arrays: arrays of parts, and each use of
//! what they hold.
//!
//! An object and its part have the same place in their arrays, so no object needs a pointer. `a[i].m` becomes
//! `a_cold[i].m`. Where a use has a pointer to an object, the place is its distance from the first: then the program has
//! one array for certain, and a function finds the part.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::{ObjectVariable, SplitMeaning};
use crate::kinds::cold_part::c_text::{
    Naming, Style, after_includes, after_variable, declaration_end, line_behind, missing_include,
    part_declaration,
};
use crate::kinds::cold_part::class_text::{
    self, ColdText, Leaving, STEMS, is_free, place, refused, taken, unclear,
};
use crate::kinds::cold_part::heap_text::Calls;
use crate::patch::text_edits::Edit;
use crate::proposal::PartPlace;
use crate::text::declaration::Declaration;
use crate::text::lex::Lexed;
use crate::text::member_object::MemberObject;
use crate::text::sources::Sources;
use lineup_model::object_uses::{HeapFunction, Storage};
use std::collections::{BTreeMap, BTreeSet};

/// The texts with these units in arrays of parts beside arrays that are variables.
pub(crate) fn declared(leaving: &Leaving<'_>) -> Result<ColdText, Binding> {
    let meaning = leaving.meaning;
    let mut edit = ArrayEdit::begin(leaving, &meaning.variables)?;
    let by_pointer = edit.reach(leaving)?;
    edit.declare(&meaning.variables, &by_pointer)?;
    edit.finish(PartPlace::Array { is_made: false })
}

/// The texts with these units in arrays of parts beside those that variables point to.
pub(crate) fn held(leaving: &Leaving<'_>) -> Result<ColdText, Binding> {
    let meaning = leaving.meaning;
    let pointers = holders(meaning)?;
    let mut edit = ArrayEdit::begin(leaving, &pointers)?;
    if let Some((path, line)) = edit.reach(leaving)?.into_iter().next() {
        return Err(refused("a pointer may lead into several arrays").at(&path, line));
    }
    edit.hold(meaning, &pointers)?;
    edit.finish(PartPlace::Array { is_made: true })
}

/// The texts with these units in an array of parts beside the only one that a call makes.
pub(crate) fn made(leaving: &Leaving<'_>) -> Result<ColdText, Binding> {
    let meaning = leaving.meaning;
    if !meaning.is_made_once {
        return Err(refused("the call that makes its objects may run again"));
    }
    let mut edit = ArrayEdit::begin(leaving, &[])?;
    edit.reach(leaving)?;
    edit.make(meaning)?;
    edit.finish(PartPlace::Array { is_made: true })
}

/// The variables that point to all objects, where each call that makes or ends some names one of them.
fn holders(meaning: &SplitMeaning) -> Result<Vec<ObjectVariable>, Binding> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for call in &meaning.heap_calls {
        let name = call.variable.as_deref();
        let name =
            name.ok_or_else(|| refused("no variable of a file has its objects").at(&call.path, call.line))?;
        names.insert(name);
    }
    let pointers = meaning.pointers.iter().filter(|one| names.contains(one.name.as_str()));
    for one in pointers.clone() {
        let moved =
            meaning.moved_pointers.contains(&one.name).then_some("a pointer to an array is set otherwise");
        if let Some(why) = one.refusal.as_deref().or(moved) {
            return Err(refused(why).at(&one.path, one.line));
        }
    }
    Ok(pointers.cloned().collect())
}

/// Files that reach parts by pointers to objects, with the first line that does.
type ByPointer = BTreeMap<String, u32>;

/// The edit as far as it is written.
struct ArrayEdit<'a> {
    sources: &'a Sources,
    ground: &'a Groundwork<'a>,
    names: Names,
    /// The first line that leaves.
    first: &'a str,
    /// The text behind the struct.
    below: String,
    edits: BTreeMap<String, Vec<Edit>>,
}

impl<'a> ArrayEdit<'a> {
    fn begin(
        &Leaving { sources, ground, units, .. }: &Leaving<'a>,
        variables: &[ObjectVariable],
    ) -> Result<Self, Binding> {
        let found = &ground.body.found;
        let spans = class_text::leaving_lines(ground, units)?;
        let names = Names::of(sources, ground, variables)?;
        let below = part_declaration(&names.whole, &names.part, (found.lexed.text, &spans));
        let first = &found.lexed.text[spans[0].clone()];
        let removed = class_text::replaced(&spans, String::new()).collect();
        let edits = [(found.path.clone(), removed)].into();
        Ok(ArrayEdit { sources, ground, names, first, below, edits })
    }

    /// The edited texts. What follows the struct stands before what follows a variable that it declares.
    fn finish(mut self, place: PartPlace) -> Result<ColdText, Binding> {
        let end = declaration_end(self.ground)?;
        let own = self.edits.entry(self.ground.body.found.path.clone()).or_default();
        own.insert(0, (end..end, format!("\n{}", self.below)));
        let member = self.names.arrays.values().next().unwrap_or(&self.names.first_part).clone();
        Ok(ColdText { member, place, texts: class_text::applied(self.sources, self.edits, self.ground)? })
    }

    fn add(&mut self, path: &str, edits: impl IntoIterator<Item = Edit>) {
        self.edits.entry(path.to_owned()).or_default().extend(edits);
    }

    /// Reaches moved members through the arrays of parts.
    fn reach(&mut self, &Leaving { meaning, moved, .. }: &Leaving<'_>) -> Result<ByPointer, Binding> {
        let mut by_pointer = ByPointer::new();
        // Of two expressions with one beginning, the longer opens first.
        for named in meaning.named.iter().rev().filter(|named| moved.contains(&named.member)) {
            let unclear = || {
                let why = format!("the object whose {} is named is not understood", named.member);
                Binding::new(Constraint::UnclearSource).at(&named.path, named.line).because(why)
            };
            let at = place(self.sources, &named.path, (named.line, named.column), &named.member)?;
            let lexed = self.sources.lexed(&named.path).ok_or_else(unclear)?;
            let token = lexed.tokens.partition_point(|token| token.start() < at);
            let known = named.object.as_ref().ok_or_else(unclear)?;
            let object = MemberObject::read(&lexed, token).ok_or_else(unclear)?;
            if line_and_column(&lexed, object.bytes.start) != (known.line, known.column) {
                return Err(unclear());
            }
            let array = known.array.as_ref().filter(|array| lexed.str(object.first) == array.as_str());
            match array.and_then(|array| self.names.arrays.get(array)).cloned() {
                Some(array) => self.add(&named.path, [(lexed.tokens[object.first].range(), array)]),
                None => {
                    by_pointer.insert(named.path.clone(), named.line);
                    self.add(&named.path, self.names.through_pointer(&object));
                }
            }
        }
        Ok(by_pointer)
    }

    /// Arrays of parts behind the declarations of arrays.
    fn declare(&mut self, variables: &[ObjectVariable], by_pointer: &ByPointer) -> Result<(), Binding> {
        if let Some((path, line)) = by_pointer.iter().next() {
            one_array(variables).map_err(|why| {
                refused(format!("a pointer may lead into several arrays: {why}")).at(path, *line)
            })?;
        }
        let header = variables.iter().map(|one| one.path.as_str()).find(|path| !path.ends_with(".c"));
        let mut found_by: BTreeSet<&str> = BTreeSet::new();
        for variable in by_place(variables) {
            let is_here = match header {
                Some(header) => header == variable.path && !by_pointer.is_empty(),
                None => by_pointer.contains_key(&variable.path),
            };
            let finder = (is_here && found_by.insert(&variable.path))
                .then(|| self.finder(&variable.path, (&variable.name, &self.names.arrays[&variable.name])));
            self.declare_beside(variable, finder)?;
        }
        let missing =
            by_pointer.iter().find(|(path, _)| header.is_none() && !found_by.contains(path.as_str()));
        let why = "the file names a member, and declares no array of its objects";
        missing.map_or(Ok(()), |(path, line)| Err(refused(why).at(path, *line)))
    }

    /// The array of parts, or a pointer to it, behind a declaration, and these functions.
    fn declare_beside(
        &mut self,
        variable: &ObjectVariable,
        functions: Option<String>,
    ) -> Result<(), Binding> {
        let unclear = || {
            let why = format!("the declaration of {} is not understood", variable.name);
            Binding::new(Constraint::UnclearSource).at(&variable.path, variable.line).because(why)
        };
        let position = (variable.line, variable.column);
        let at = place(self.sources, &variable.path, position, &variable.name)?;
        let lexed = self.sources.lexed(&variable.path).ok_or_else(unclear)?;
        let token = lexed.tokens.partition_point(|token| token.start() < at);
        let (bounds, end) = bounds(&lexed, token).ok_or_else(unclear)?;
        let storage = storage(&lexed, token, &self.ground.body.found.declaration);
        let storage = storage.unwrap_or(match variable.storage {
            Storage::Static => "static ",
            Storage::Extern => "extern ",
            Storage::Plain => "",
        });
        let star = if bounds.is_empty() { "*" } else { "" };
        let (part, array) = (&self.names.part, &self.names.arrays[&variable.name]);
        let declaration = format!("{storage}struct {part} {star}{array}{bounds};");
        let edit = match (line_behind(lexed.text, end), functions) {
            (Some(next), None) => (next..next, format!("{declaration}\n")),
            (Some(next), Some(functions)) => {
                let space = if lexed.text[next..].starts_with('\n') { "" } else { "\n" };
                (next..next, format!("{declaration}\n\n{functions}{space}"))
            }
            (None, None) => (end..end, format!(" {declaration}")),
            (None, Some(_)) => return Err(unclear()),
        };
        self.add(&variable.path, [edit]);
        Ok(())
    }

    /// The function that finds an object's part, from the first object and the first part.
    fn finder(&self, path: &str, (object, part): (&str, &str)) -> String {
        let Names { whole, part: part_type, finder, .. } = &self.names;
        let function = self.style(path).function(
            &format!("struct {part_type} *{finder}(const {whole} *one)"),
            &format!("\treturn {part} + (one - {object});\n"),
        );
        format!("/* The other members of {whole}. */\n{function}")
    }

    /// The style of a file's functions; of a header that of a file whose text changes.
    fn style(&self, path: &str) -> Style {
        let is_header = !path.ends_with(".c");
        let user = self.edits.keys().find(|path| path.ends_with(".c")).filter(|_| is_header);
        let text = self.sources.get(user.map_or(path, String::as_str)).unwrap_or_default();
        Style::of(text, self.first, is_header)
    }

    /// Pointers to arrays of parts behind those to arrays, and the calls that make and end both.
    fn hold(&mut self, meaning: &SplitMeaning, pointers: &[ObjectVariable]) -> Result<(), Binding> {
        let mut functions: BTreeMap<(String, String), String> = BTreeMap::new();
        let names: BTreeSet<&String> = self.names.arrays.keys().collect();
        for name in names.into_iter().cloned().collect::<Vec<_>>() {
            let own: Vec<_> = meaning
                .heap_calls
                .iter()
                .filter(|call| call.variable.as_ref() == Some(&name))
                .cloned()
                .collect();
            let calls = Calls::read(self.sources, &own)?;
            let (maker, ender) = (after_variable(&name, "new"), after_variable(&name, "free"));
            if !(is_free(self.sources, &maker) && is_free(self.sources, &ender)) {
                return Err(taken(self.ground));
            }
            for (path, edit) in calls.edits(|_| &maker, &ender) {
                self.add(&path, [edit]);
            }
            let part = self.names.arrays[&name].clone();
            for path in own.iter().map(|call| &call.path).collect::<BTreeSet<_>>() {
                let by: BTreeSet<HeapFunction> =
                    own.iter().filter(|call| call.path == *path).map(|call| call.function).collect();
                let makes: Vec<HeapFunction> =
                    by.iter().copied().filter(|by| *by != HeapFunction::Free).collect();
                if makes.len() > 1 {
                    return Err(unclear(self.ground, "an array is made by malloc and by calloc"));
                }
                let mut all: Vec<String> =
                    makes.into_iter().map(|by| self.maker(path, (&maker, &part, None), by)).collect();
                all.extend(by.contains(&HeapFunction::Free).then(|| self.ender(path, &ender, &part)));
                functions.insert((name.clone(), path.clone()), all.join("\n"));
            }
        }
        for pointer in by_place(pointers) {
            let own = functions.remove(&(pointer.name.clone(), pointer.path.clone()));
            self.declare_beside(pointer, own)?;
        }
        for ((_, path), text) in functions {
            let first =
                meaning.heap_calls.iter().filter(|call| call.path == path).map(|call| call.line).min();
            let at = first.and_then(|line| after_includes(self.sources, &path, line));
            let at =
                at.ok_or_else(|| unclear(self.ground, "a file that makes its objects has no #include"))?;
            self.add(&path, [(at..at, format!("\n{text}"))]);
        }
        Ok(())
    }

    /// The call that makes the only array, and those that end it.
    fn make(&mut self, meaning: &SplitMeaning) -> Result<(), Binding> {
        let calls = Calls::read(self.sources, &meaning.heap_calls)?;
        let Names { whole, part, first, first_part, maker, ender, .. } = &self.names;
        let path = &self.ground.body.found.path;
        let made = meaning.heap_calls.iter().find(|call| call.function != HeapFunction::Free);
        let made = made.ok_or_else(|| unclear(self.ground, "no call makes its objects"))?;
        let (is_header, ends) = (!path.ends_with(".c"), !calls.ending.is_empty());
        let storage = if is_header { "extern " } else { "static " };
        let mut below = format!(
            "\n/* The first object, and the first part. */\n{storage}{whole} *{first};\n\
             {storage}struct {part} *{first_part};\n\n{}",
            self.finder(path, (first, first_part))
        );
        if ends {
            below.push('\n');
            below.push_str(&self.ender(path, ender, first_part));
        }
        let mut all = calls.edits(|_| maker, ender);
        let function = self.maker(&made.path, (maker, first_part, Some(first)), made.function);
        all.extend(
            missing_include(self.ground).filter(|_| ends || !is_header).map(|edit| (path.clone(), edit)),
        );
        if is_header {
            let at = after_includes(self.sources, &made.path, made.line).filter(|_| made.path != *path);
            let at =
                at.ok_or_else(|| unclear(self.ground, "the file that makes its objects has no #include"))?;
            let defined = format!("\n{whole} *{first};\nstruct {part} *{first_part};\n\n{function}");
            all.push((made.path.clone(), (at..at, defined)));
        } else {
            below.push('\n');
            below.push_str(&function);
        }
        self.below.push_str(&below);
        for (path, edit) in all {
            self.add(&path, [edit]);
        }
        Ok(())
    }

    /// The function that makes objects and their parts. Callers of one that has no variable for the objects find them by
    /// `first`.
    fn maker(
        &self,
        path: &str,
        (name, parts, first): (&str, &str, Option<&str>),
        function: HeapFunction,
    ) -> String {
        let Names { whole, part, .. } = &self.names;
        let memory = |of: &str| match function {
            HeapFunction::Calloc => format!("calloc(count, sizeof *{of})"),
            _ => format!("malloc(count * sizeof *{of})"),
        };
        let (objects, cold) = (memory("made"), memory("part"));
        let first = first.map_or(String::new(), |first| format!("\t{first} = made;\n"));
        self.style(path).function(
            &format!("{whole} *{name}(size_t count)"),
            &format!(
                "\t{whole} *made = {objects};\n\tstruct {part} *part = {cold};\n\n\tif (!made || !part) {{\n\
                 \t\tfree(made);\n\t\tfree(part);\n\t\treturn NULL;\n\t}}\n{first}\t{parts} = part;\n\treturn made;\n"
            ),
        )
    }

    fn ender(&self, path: &str, name: &str, parts: &str) -> String {
        self.style(path).function(
            &format!("void {name}({} *ended)", self.names.whole),
            &format!("\tif (ended)\n\t\tfree({parts});\n\tfree(ended);\n"),
        )
    }
}

fn line_and_column(lexed: &Lexed<'_>, at: usize) -> (u32, u32) {
    let start = lexed.text[..at].rfind('\n').map_or(0, |end| end + 1);
    (lexed.line_at(at), u32::try_from(at - start + 1).unwrap_or(u32::MAX))
}

/// The names that the edit gives.
struct Names {
    /// The struct, as the sources spell it.
    whole: String,
    /// The struct of the cold members.
    part: String,
    /// The function that finds an object's part.
    finder: String,
    /// The arrays of parts, by the arrays of objects.
    arrays: BTreeMap<String, String>,
    /// Pointers to the first object and the first part of the only array.
    first: String,
    first_part: String,
    /// The functions that make that array and end it.
    maker: String,
    ender: String,
}

impl Names {
    /// Names in the style of the struct that no source has.
    fn of(
        sources: &Sources,
        ground: &Groundwork<'_>,
        variables: &[ObjectVariable],
    ) -> Result<Names, Binding> {
        let naming = Naming::of(ground);
        for stem in STEMS {
            let array = |one: &ObjectVariable| (one.name.clone(), after_variable(&one.name, stem));
            let names = Names {
                whole: naming.whole.clone(),
                part: naming.joined(&[stem]),
                finder: naming.joined(&[stem, "of"]),
                arrays: variables.iter().map(array).collect(),
                first: naming.joined(&["first"]),
                first_part: naming.joined(&["first", stem]),
                maker: naming.joined(&["array", "new"]),
                ender: naming.joined(&["array", "free"]),
            };
            if names.all(variables.is_empty()).all(|name| is_free(sources, name)) {
                return Ok(names);
            }
        }
        Err(taken(ground))
    }

    /// The names that are new.
    fn all(&self, has_only_array: bool) -> impl Iterator<Item = &String> {
        let of_array = [&self.first, &self.first_part, &self.maker, &self.ender];
        let of_array = of_array.into_iter().filter(move |_| has_only_array);
        [&self.part, &self.finder].into_iter().chain(self.arrays.values()).chain(of_array)
    }

    /// `finder(p)->` in place of `p->`.
    fn through_pointer(&self, object: &MemberObject) -> [Edit; 2] {
        let (start, finder) = (object.bytes.start, &self.finder);
        let (open, close) = match (object.is_in_brackets, object.is_arrow) {
            (true, true) => (finder.clone(), "->"),
            (_, true) => (format!("{finder}("), ")->"),
            (_, false) => (format!("{finder}(&"), ")->"),
        };
        [(start..start, open), (object.operator.clone(), close.to_owned())]
    }
}

/// Each place of a declaration once: a macro may make it `extern` in some units alone.
fn by_place(variables: &[ObjectVariable]) -> impl Iterator<Item = &ObjectVariable> {
    let places = variables.iter().map(|one| ((&one.path, one.line, one.column), one));
    places.collect::<BTreeMap<_, _>>().into_values()
}

/// Makes sure that these declarations are of one array.
fn one_array(variables: &[ObjectVariable]) -> Result<(), String> {
    let identity = |one: &ObjectVariable| {
        let path = (one.storage == Storage::Static).then(|| one.path.clone());
        (one.name.clone(), path)
    };
    let arrays: BTreeSet<_> = variables.iter().map(identity).collect();
    if arrays.len() > 1 {
        let names: BTreeSet<&str> = variables.iter().map(|one| one.name.as_str()).collect();
        return Err(names.into_iter().collect::<Vec<_>>().join(", "));
    }
    let repeated = variables.iter().find(|one| one.storage == Storage::Static && one.units > 1);
    repeated.map_or(Ok(()), |one| Err(format!("{} units have an array {}", one.units, one.name)))
}

/// The text before the struct's name in the declaration of this variable: `static`, a macro. `None` where the struct is
/// not named there.
fn storage<'t>(lexed: &Lexed<'t>, variable: usize, of: &Declaration) -> Option<&'t str> {
    let is_end = |at: usize| {
        !lexed.is_code(at) && !lexed.tokens[at].is_comment() || matches!(lexed.str(at), ";" | "}")
    };
    let first = (0..variable).rev().find(|&at| is_end(at)).map_or(0, |end| end + 1);
    let first = lexed.next_code(first, variable)?;
    let is_type = |&at: &usize| {
        let next = lexed.next_code(at + 1, variable).map_or("", |next| lexed.str(next));
        (lexed.str(at) == "struct" && of.tag.as_deref() == Some(next))
            || of.typedefs.iter().any(|name| name == lexed.str(at))
    };
    let at = (first..variable).find(is_type)?;
    let is_plain = (first..at).all(|at| lexed.is_word(at));
    is_plain.then(|| &lexed.text[lexed.tokens[first].start()..lexed.tokens[at].start()])
}

/// `[n]` behind an array's name, nothing behind a pointer's, and the end of the declaration; `None` where the declarator
/// has more than that.
fn bounds(lexed: &Lexed<'_>, name: usize) -> Option<(String, usize)> {
    let all = lexed.tokens.len();
    let mut at = lexed.next_code(name + 1, all)?;
    let mut bounds = "";
    let is_pointer = lexed.previous_code(name).is_some_and(|before| lexed.str(before) == "*");
    if !is_pointer {
        let close = lexed.closing(at, all).filter(|_| lexed.str(at) == "[")?;
        bounds = &lexed.text[lexed.tokens[at].start()..lexed.tokens[close].end()];
        at = lexed.next_code(close + 1, all)?;
    }
    let is_end = matches!(lexed.str(at), "," | ";") || (is_pointer && lexed.str(at) == "=");
    while lexed.str(at) != ";" {
        let next = if matches!(lexed.str(at), "(" | "[" | "{") { lexed.closing(at, all)? } else { at };
        at = lexed.next_code(next + 1, all)?;
    }
    is_end.then(|| (bounds.to_owned(), lexed.tokens[at].end()))
}
