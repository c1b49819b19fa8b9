//! Writing the parts of a struct of C whose objects are the elements of arrays: a cold part, or one for each group of
//! members that calls use together; arrays of parts, and each use of what they hold.
//!
//! An object and its parts have the same place in their arrays, so no object needs a pointer. `a[i].m` becomes
//! `a_cold[i].m`. Where a use has a pointer to an object, the place is its distance from the first: then the program has
//! one array for certain, and a function finds the part.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::{ObjectVariable, SplitMeaning};
use crate::kinds::cold_part::c_text::{
    Linkage, Naming, Style, after_includes, after_variable, cold_comment, declaration_end, line_behind,
    missing_include, part_declaration,
};
use crate::kinds::cold_part::class_text::{
    self, ColdText, Leaving, LeavingPart, STEMS, is_free, place, refused, taken, unclear,
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
    if let Some((path, found)) = edit.reach(leaving)?.into_iter().next() {
        return Err(refused("a pointer may lead into several arrays").at(&path, found.line));
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
    let by_pointer = edit.reach(leaving)?;
    edit.make(meaning, &by_pointer)?;
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

/// Files that reach parts by pointers to objects.
type ByPointer = BTreeMap<String, FoundParts>;

/// The parts that a file reaches by pointers to objects.
#[derive(Default)]
struct FoundParts {
    /// The first line that does.
    line: u32,
    /// By their places in [`Names::parts`].
    parts: BTreeSet<usize>,
}

/// All parts that files reach by pointers.
fn all_found(by_pointer: &ByPointer) -> BTreeSet<usize> {
    by_pointer.values().flat_map(|found| &found.parts).copied().collect()
}

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
        &Leaving { sources, ground, units, parts, .. }: &Leaving<'a>,
        variables: &[ObjectVariable],
    ) -> Result<Self, Binding> {
        let found = &ground.body.found;
        let spans = class_text::leaving_lines(ground, units)?;
        let names = Names::of(sources, ground, parts, variables)?;
        let declared = parts.iter().zip(&names.parts).map(|(leaving, part)| {
            let spans = class_text::leaving_lines(ground, &leaving.units)?;
            Ok(part_declaration(&part.comment, &part.name, (found.lexed.text, &spans)))
        });
        let below = declared.collect::<Result<Vec<String>, Binding>>()?.join("\n");
        let first = &found.lexed.text[spans[0].clone()];
        let removed = class_text::replaced(&spans, String::new()).collect();
        let edits = [(found.path.clone(), removed)].into();
        Ok(ArrayEdit { sources, ground, names, first, below, edits })
    }

    /// The edited texts. What follows the struct stands before what follows a variable that it declares.
    fn finish(mut self, place: PartPlace) -> Result<ColdText, Binding> {
        let end = declaration_end(&self.ground.body.found)?;
        let own = self.edits.entry(self.ground.body.found.path.clone()).or_default();
        own.insert(0, (end..end, format!("\n{}", self.below)));
        let part = &self.names.parts[0];
        let member = part.arrays.values().next().unwrap_or(&part.first).clone();
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
            let has = |part: &PartNames| part.members.contains(&named.member);
            let index = self.names.parts.iter().position(has).ok_or_else(unclear)?;
            let part = &self.names.parts[index];
            match array.and_then(|array| part.arrays.get(array)).cloned() {
                Some(array) => self.add(&named.path, [(lexed.tokens[object.first].range(), array)]),
                None => {
                    let edits = part.through_pointer(&object);
                    let found = by_pointer.entry(named.path.clone()).or_default();
                    found.line = named.line;
                    found.parts.insert(index);
                    self.add(&named.path, edits);
                }
            }
        }
        Ok(by_pointer)
    }

    /// Arrays of parts behind the declarations of arrays.
    fn declare(&mut self, variables: &[ObjectVariable], by_pointer: &ByPointer) -> Result<(), Binding> {
        if let Some((path, found)) = by_pointer.iter().next() {
            one_array(variables).map_err(|why| {
                refused(format!("a pointer may lead into several arrays: {why}")).at(path, found.line)
            })?;
        }
        let header = variables.iter().map(|one| one.path.as_str()).find(|path| !path.ends_with(".c"));
        let mut found_by: BTreeSet<&str> = BTreeSet::new();
        for variable in by_place(variables) {
            let here: BTreeSet<usize> = match header {
                Some(header) if header == variable.path => all_found(by_pointer),
                Some(_) => BTreeSet::new(),
                None => by_pointer.get(&variable.path).map(|found| found.parts.clone()).unwrap_or_default(),
            };
            let is_first = !here.is_empty() && found_by.insert(&variable.path);
            let finders = is_first.then(|| {
                let array = |part: &PartNames| part.arrays[&variable.name].clone();
                self.finders(&variable.path, &here, (&variable.name, &array))
            });
            self.declare_beside(variable, finders)?;
        }
        let missing =
            by_pointer.iter().find(|(path, _)| header.is_none() && !found_by.contains(path.as_str()));
        let why = "the file names a member, and declares no array of its objects";
        missing.map_or(Ok(()), |(path, found)| Err(refused(why).at(path, found.line)))
    }

    /// The arrays of parts, or pointers to them, behind a declaration, and these functions.
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
        let declared = self.names.parts.iter().map(|part| {
            let array = &part.arrays[&variable.name];
            format!("{storage}struct {} {star}{array}{bounds};", part.name)
        });
        let declared: Vec<String> = declared.collect();
        let edit = match (line_behind(lexed.text, end), functions) {
            (Some(next), None) => (next..next, format!("{}\n", declared.join("\n"))),
            (Some(next), Some(functions)) => {
                let space = if lexed.text[next..].starts_with('\n') { "" } else { "\n" };
                (next..next, format!("{}\n\n{functions}{space}", declared.join("\n")))
            }
            (None, None) => (end..end, format!(" {}", declared.join(" "))),
            (None, Some(_)) => return Err(unclear()),
        };
        self.add(&variable.path, [edit]);
        Ok(())
    }

    /// The functions that find these parts of an object, from the first object and each first part.
    fn finders(
        &self,
        path: &str,
        parts: &BTreeSet<usize>,
        (object, first): (&str, &dyn Fn(&PartNames) -> String),
    ) -> String {
        let whole = &self.names.whole;
        let finder = |part: &PartNames| {
            let function = self.style(path).function(
                &format!("struct {} *{}(const {whole} *one)", part.name, part.finder),
                &format!("\treturn {} + (one - {object});\n", first(part)),
            );
            let found = if part.is_cold { "The other members" } else { &part.members.join(", ") };
            format!("/* {found} of {whole}. */\n{function}")
        };
        parts.iter().map(|part| finder(&self.names.parts[*part])).collect::<Vec<_>>().join("\n")
    }

    /// The style of a file's functions; of a header that of a file whose text changes.
    fn style(&self, path: &str) -> Style {
        let is_header = !path.ends_with(".c");
        let user = self.edits.keys().find(|path| path.ends_with(".c")).filter(|_| is_header);
        let text = self.sources.get(user.map_or(path, String::as_str)).unwrap_or_default();
        Style::of(text, self.first, if is_header { Linkage::Header } else { Linkage::File })
    }

    /// Pointers to arrays of parts behind those to arrays, and the calls that make and end both.
    fn hold(&mut self, meaning: &SplitMeaning, pointers: &[ObjectVariable]) -> Result<(), Binding> {
        let mut functions: BTreeMap<(String, String), String> = BTreeMap::new();
        let names: BTreeSet<&String> = pointers.iter().map(|pointer| &pointer.name).collect();
        for name in names {
            let own: Vec<_> = meaning
                .heap_calls
                .iter()
                .filter(|call| call.variable.as_ref() == Some(name))
                .cloned()
                .collect();
            let calls = Calls::read(self.sources, &own)?;
            let (maker, ender) = (after_variable(name, "new"), after_variable(name, "free"));
            if !(is_free(self.sources, &maker) && is_free(self.sources, &ender)) {
                return Err(taken(self.ground));
            }
            for (path, edit) in calls.edits(|_| &maker, &ender) {
                self.add(&path, [edit]);
            }
            let parts: Vec<String> = self.names.parts.iter().map(|part| part.arrays[name].clone()).collect();
            for path in own.iter().map(|call| &call.path).collect::<BTreeSet<_>>() {
                let by: BTreeSet<HeapFunction> =
                    own.iter().filter(|call| call.path == *path).map(|call| call.function).collect();
                let makes: Vec<HeapFunction> =
                    by.iter().copied().filter(|by| *by != HeapFunction::Free).collect();
                if makes.len() > 1 {
                    return Err(unclear(self.ground, "an array is made by malloc and by calloc"));
                }
                let mut all: Vec<String> =
                    makes.into_iter().map(|by| self.maker(path, (&maker, &parts, None), by)).collect();
                all.extend(by.contains(&HeapFunction::Free).then(|| self.ender(path, &ender, &parts)));
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
    fn make(&mut self, meaning: &SplitMeaning, by_pointer: &ByPointer) -> Result<(), Binding> {
        let calls = Calls::read(self.sources, &meaning.heap_calls)?;
        let Names { whole, first, maker, ender, parts } = &self.names;
        let path = &self.ground.body.found.path;
        let made = meaning.heap_calls.iter().find(|call| call.function != HeapFunction::Free);
        let made = made.ok_or_else(|| unclear(self.ground, "no call makes its objects"))?;
        let (is_header, ends) = (!path.ends_with(".c"), !calls.ending.is_empty());
        let firsts: Vec<String> = parts.iter().map(|part| part.first.clone()).collect();
        let storage = if is_header { "extern " } else { "static " };
        let of_parts = |storage: &str| -> String {
            parts.iter().map(|part| format!("{storage}struct {} *{};\n", part.name, part.first)).collect()
        };
        let each = if parts.len() == 1 { "the first part" } else { "the first of each part" };
        let mut below = format!(
            "\n/* The first object, and {each}. */\n{storage}{whole} *{first};\n{}",
            of_parts(storage)
        );
        let finders = self.finders(path, &all_found(by_pointer), (first, &|part| part.first.clone()));
        for function in [finders, if ends { self.ender(path, ender, &firsts) } else { String::new() }] {
            if !function.is_empty() {
                below.push('\n');
                below.push_str(&function);
            }
        }
        let mut all = calls.edits(|_| maker, ender);
        let function = self.maker(&made.path, (maker, &firsts, Some(first)), made.function);
        all.extend(
            missing_include(self.ground).filter(|_| ends || !is_header).map(|edit| (path.clone(), edit)),
        );
        if is_header {
            let at = after_includes(self.sources, &made.path, made.line).filter(|_| made.path != *path);
            let at =
                at.ok_or_else(|| unclear(self.ground, "the file that makes its objects has no #include"))?;
            let defined = format!("\n{whole} *{first};\n{}\n{function}", of_parts(""));
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
        (name, variables, first): (&str, &[String], Option<&str>),
        function: HeapFunction,
    ) -> String {
        let Names { whole, parts, .. } = &self.names;
        let memory = |of: &str| match function {
            HeapFunction::Calloc => format!("calloc(count, sizeof *{of})"),
            _ => format!("malloc(count * sizeof *{of})"),
        };
        let number = |index: usize| if parts.len() == 1 { String::new() } else { (index + 1).to_string() };
        let locals: Vec<String> = (0..parts.len()).map(|index| format!("part{}", number(index))).collect();
        let mut body = format!("\t{whole} *made = {};\n", memory("made"));
        for (part, local) in parts.iter().zip(&locals) {
            body.push_str(&format!("\tstruct {} *{local} = {};\n", part.name, memory(local)));
        }
        let all: Vec<&str> = ["made"].into_iter().chain(locals.iter().map(String::as_str)).collect();
        body.push_str(&format!("\n\tif (!{}) {{\n", all.join(" || !")));
        all.iter().for_each(|one| body.push_str(&format!("\t\tfree({one});\n")));
        body.push_str("\t\treturn NULL;\n\t}\n");
        let set = |(variable, value): (&str, &str)| format!("\t{variable} = {value};\n");
        body.extend(first.map(|first| set((first, "made"))));
        body.extend(variables.iter().map(String::as_str).zip(locals.iter().map(String::as_str)).map(set));
        body.push_str("\treturn made;\n");
        self.style(path).function(&format!("{whole} *{name}(size_t count)"), &body)
    }

    fn ender(&self, path: &str, name: &str, variables: &[String]) -> String {
        let ends: String = variables.iter().map(|one| format!("\t\tfree({one});\n")).collect();
        let [open, close] = if variables.len() == 1 { ["", ""] } else { [" {", "\t}\n"] };
        self.style(path).function(
            &format!("void {name}({} *ended)", self.names.whole),
            &format!("\tif (ended){open}\n{ends}{close}\tfree(ended);\n"),
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
    /// A pointer to the first object of the only array.
    first: String,
    /// The functions that make that array and end it.
    maker: String,
    ender: String,
    /// By part.
    parts: Vec<PartNames>,
}

/// The names of a part.
struct PartNames {
    /// Its struct.
    name: String,
    /// The comment above it.
    comment: String,
    /// The function that finds an object's part.
    finder: String,
    /// The arrays of parts, by the arrays of objects.
    arrays: BTreeMap<String, String>,
    /// A pointer to the first part of the only array.
    first: String,
    /// The members that it has.
    members: Vec<String>,
    is_cold: bool,
}

/// More members than these are not all in the name of their part.
const NAMED: usize = 3;

impl Names {
    /// Names in the style of the struct that no source has.
    fn of(
        sources: &Sources,
        ground: &Groundwork<'_>,
        parts: &[LeavingPart],
        variables: &[ObjectVariable],
    ) -> Result<Names, Binding> {
        let naming = Naming::of(&ground.body.found.declaration);
        for attempt in 0..STEMS.len() {
            let part = |part: &LeavingPart| PartNames::of(&naming, part, attempt, variables);
            let names = Names {
                whole: naming.whole.clone(),
                first: naming.joined(&["first"]),
                maker: naming.joined(&["array", "new"]),
                ender: naming.joined(&["array", "free"]),
                parts: parts.iter().map(part).collect(),
            };
            let new: BTreeSet<&String> = names.all(variables.is_empty()).collect();
            let are_distinct = new.len() == names.all(variables.is_empty()).count();
            if are_distinct && new.into_iter().all(|name| is_free(sources, name)) {
                return Ok(names);
            }
        }
        Err(match parts.iter().all(|part| part.is_cold) {
            true => taken(ground),
            false => unclear(ground, "the sources have the names of its members' arrays already"),
        })
    }

    /// The names that are new.
    fn all(&self, has_only_array: bool) -> impl Iterator<Item = &String> {
        let of_array = [&self.first, &self.maker, &self.ender];
        let of_array = of_array.into_iter().filter(move |_| has_only_array);
        let of_parts = self.parts.iter().flat_map(move |part| {
            let first = has_only_array.then_some(&part.first);
            [&part.name, &part.finder].into_iter().chain(part.arrays.values()).chain(first)
        });
        of_array.chain(of_parts)
    }
}

impl PartNames {
    fn of(naming: &Naming, part: &LeavingPart, attempt: usize, variables: &[ObjectVariable]) -> PartNames {
        let LeavingPart { members, is_cold, .. } = part;
        let whole = &naming.whole;
        let stem = match (members.as_slice(), *is_cold) {
            (_, true) => STEMS[attempt].to_owned(),
            ([first, .., last], _) if members.len() > NAMED => format!("{first}_to_{last}"),
            _ => members.join("_"),
        };
        let stem = match (is_cold, attempt) {
            (true, _) | (_, 0) => stem,
            (_, 1) => stem + "_part",
            _ => stem + "_column",
        };
        let comment = match (is_cold, members.len()) {
            (true, _) => cold_comment(whole),
            (_, 1) => format!("A member of {whole}, in an array of its own."),
            _ => format!("Members of {whole} that hot loops use together, in an array of their own."),
        };
        let array = |one: &ObjectVariable| (one.name.clone(), after_variable(&one.name, &stem));
        PartNames {
            name: naming.joined(&[&stem]),
            comment,
            finder: naming.joined(&[&stem, "of"]),
            arrays: variables.iter().map(array).collect(),
            first: naming.joined(&["first", &stem]),
            members: members.clone(),
            is_cold: *is_cold,
        }
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
