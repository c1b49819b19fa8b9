//! Members that no hot call uses, moved out of the objects of a class of C++, a struct of C or a struct of Rust into
//! memory of their own. Where calls use the members of an array's elements in groups, each group leaves for an array.
//!
//! A class of C++ keeps one member that owns that memory. It is made with the object, copied, assigned and destroyed
//! with it, and it never changes its memory in between: each object keeps its own values, moved-from objects included,
//! and threads that read an object write nothing. A struct of C keeps a pointer to that memory, which the calls that make
//! its objects ask for and those that end them give back; elements of an array keep none, since their parts are in an
//! array too. A struct of Rust keeps a `Box`. Whatever the edit cannot follow keeps a member, or all of them, in place.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::{Effect, ObjectVariable, SeenBy, SplitMeaning};
use crate::error::AdviseError;
use crate::judge::compiler::Compiled;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::cold_part::array_text;
use crate::kinds::cold_part::boxed_part::{self, BoxedPart};
use crate::kinds::cold_part::class_text::{self, ColdText, Leaving, LeavingPart, refused};
use crate::kinds::cold_part::columns::Columns;
use crate::kinds::cold_part::heap_text::{self, Calls};
use crate::kinds::{saving_share, sketch};
use crate::layout::holders::in_tuple;
use crate::layout::spelling::{Spelling, bare, spelling};
use crate::layout::subject::{Subject, member_name};
use crate::proposal::{
    Advice, COLUMNS, Check, ColdPartProposal, HeapChange, PartPlace, RegionLines, SPLIT, SizeChange,
    Suggestion,
};
use crate::text::lex::Lexed;
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_model::first_names;
use lineup_model::object_uses::HeapFunction;
use lineup_model::types::{Language, TypeId, Types};
use std::collections::BTreeSet;

/// With one member fewer in the object and one more, a structured binding would compile and mean something else.
const LEAST_MEMBERS: usize = 2;

/// Members named in a description.
const NAMED: usize = 8;

/// Cold parts of classes.
pub(crate) struct ColdParts;

impl FixKind for ColdParts {
    fn name(&self) -> KindName {
        SPLIT
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let (usage, types) = (task.usage, task.types);
        for id in usage.own_aggregates(types) {
            let tuple = in_tuple(types, id);
            let owner = tuple.map_or(id, |(inner, _)| inner);
            let Some(holder) = Subject::new(types, id, usage) else { continue };
            let Some(subject) = Subject::new(types, owner, usage) else { continue };
            let Some(spelling) = spelling(types, subject.id) else { continue };
            let is_rust = types.get(subject.id).is_some_and(|ty| ty.language == Language::Rust);
            let meaning = task.options.meaning.split_of(&spelling.names).filter(|_| !is_rust);
            let is_tried = advice.is_split(&spelling.name) || advice.not_split.contains_key(&spelling.name);
            if is_tried || !is_rust && meaning.is_none() {
                continue;
            }
            let ways = Way::all(task, &subject, meaning);
            for (number, way) in ways.iter().enumerate() {
                let planned = match meaning {
                    Some(meaning) => plan(task, advice, (&subject, &spelling), meaning, way),
                    None => plan_in_rust(task, advice, (&subject, &spelling), way)?,
                };
                let written = match planned {
                    Ok(planned) => confirm(task, advice, (&subject, &spelling), &holder, planned)?,
                    Err(binding) => Err(binding),
                };
                match written {
                    Ok(proposal) => match saving_share::too_little(usage, task.options, &describe(&proposal))
                    {
                        Some(little) => advice.too_little.push(little),
                        None => {
                            advice.edited.extend(proposal.edited.clone());
                            advice.cold_parts.push(proposal);
                        }
                    },
                    Err(_) if number + 1 < ways.len() => continue,
                    Err(binding) => {
                        advice.suggestions.extend(way.by_hand(&subject, &spelling, &binding));
                        advice.not_split.insert(name_of(types, holder.id), binding.clone());
                        advice.not_split.insert(spelling.name.clone(), binding);
                    }
                }
                break;
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.cold_parts.iter().map(describe).chain(advice.suggestions_of(COLUMNS)).collect()
    }
}

fn name_of(types: &Types, id: TypeId) -> String {
    types.get(id).and_then(|ty| ty.name.as_deref()).unwrap_or("(anonymous)").to_owned()
}

/// The members that leave an object.
enum Way {
    /// Groups that calls use together, as far as they are known before the sources are read.
    Columns(Columns),
    /// Those that no call of a region uses.
    Cold(BTreeSet<usize>),
}

impl Way {
    /// The ways that may gain, the best first.
    fn all(task: &Task<'_>, subject: &Subject<'_>, meaning: Option<&SplitMeaning>) -> Vec<Way> {
        let is_array = meaning.is_some_and(|meaning| is_array(task.sources, meaning));
        let named = (0..subject.aggregate.members.len()).map(|field| [field].into());
        let columns = is_array
            .then(|| Columns::of(task, subject, &named.collect::<Vec<_>>()))
            .flatten()
            .map(Way::Columns);
        columns.into_iter().chain(Way::cold(task, subject)).collect()
    }

    /// `None` where calls use most of an object.
    fn cold(task: &Task<'_>, subject: &Subject<'_>) -> Option<Way> {
        let in_tuples = task.usage.own_aggregates(task.types).into_iter().filter_map(|id| {
            let (_, at) = in_tuple(task.types, id).filter(|(inner, _)| *inner == subject.id)?;
            Some((Subject::new(task.types, id, task.usage)?, at))
        });
        let in_tuples: Vec<(Subject<'_>, u64)> = in_tuples.collect();
        let holders = [(subject, 0)].into_iter().chain(in_tuples.iter().map(|(holder, at)| (holder, *at)));
        let used = sketch::used_within(subject, &holders.collect::<Vec<_>>())?;
        let used_bytes = used.iter().fold(0u64, |sum, (_, _, size)| sum.saturating_add(*size));
        let size_bytes = task.types.size_bytes(subject.id)?;
        let hot: BTreeSet<usize> = used.iter().map(|(field, ..)| *field).collect();
        let members = (0..subject.aggregate.members.len()).filter(|field| !hot.contains(field)).collect();
        let is_worth = used_bytes > 0 && used_bytes.saturating_mul(2) <= size_bytes;
        is_worth.then_some(Way::Cold(members))
    }

    /// The name under which the change is tried.
    fn owner(&self, type_name: &str) -> String {
        match self {
            Way::Columns(_) => format!("{type_name} (an array for each member)"),
            Way::Cold(_) => format!("{type_name} (cold part)"),
        }
    }

    /// Arrays that a person could make; a cold part has a sketch of its own.
    fn by_hand(&self, subject: &Subject<'_>, spelling: &Spelling, because: &Binding) -> Option<Suggestion> {
        let Way::Columns(columns) = self else { return None };
        let fields = |fields: &BTreeSet<usize>| -> Vec<String> {
            fields.iter().map(|field| member_name(subject.aggregate, *field)).collect()
        };
        let groups = columns.groups.iter().map(|group| &group.fields).chain([&columns.kept]).map(fields);
        let name = &spelling.name;
        let summary = format!(
            "By hand, since a patch was refused ({because}): in place of an array of {name}, an array for each of {}.",
            in_groups(&groups.collect::<Vec<_>>())
        );
        Some(Suggestion::new(COLUMNS, name, summary))
    }
}

/// True of a struct of C whose objects lie in arrays, as far as the sources show it.
fn is_array(sources: &Sources, meaning: &SplitMeaning) -> bool {
    let is_wrapped = meaning.heap_calls.iter().any(|call| call.wrapper.is_some());
    let has_several = || Calls::read(sources, &meaning.heap_calls).is_ok_and(|calls| calls.makes.several);
    meaning.seen_by == SeenBy::C && (!meaning.variables.is_empty() || !is_wrapped && has_several())
}

/// Groups of members in words.
fn in_groups(groups: &[Vec<String>]) -> String {
    let in_words = |group: &Vec<String>| match group.len() {
        1 => group[0].clone(),
        _ => format!("({})", first_names(group, NAMED)),
    };
    groups.iter().map(in_words).collect::<Vec<_>>().join(", ")
}

/// The proposal for one class, compiled; or the reason why there is none. Calls use its objects in those of `holder`.
fn confirm(
    task: &mut Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    holder: &Subject<'_>,
    Planned { text, moved, columns, owner }: Planned,
) -> Result<Result<ColdPartProposal, Binding>, AdviseError> {
    let mut all = advice.edited.clone();
    all.extend(text.texts.clone());
    let disagrees = |why: String| Binding::new(Constraint::CompilerDisagrees).because(why);
    let compiled = match task.judge.compile(&all) {
        Ok(compiled) => compiled,
        Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
    };
    let before_bytes = task.types.size_bytes(subject.id).unwrap_or(0);
    let has_pointer = !matches!(text.place, PartPlace::Array { .. });
    let (check, after_bytes) = match size_in(&compiled, task.usage, (subject, spelling), &text, &moved) {
        None if compiled.is_empty() => {
            (Check::Predicted, predicted(task.types, subject, &moved, has_pointer))
        }
        None => return Ok(Err(disagrees("the build has no such class".into()))),
        Some(size) => (Check::CompiledRecordedOnly, size),
    };
    if after_bytes >= before_bytes {
        let why = format!("objects of {before_bytes} bytes would have {after_bytes}");
        return Ok(Err(Binding::new(Constraint::NeverLarger).because(why)));
    }
    let holder_bytes = task.types.size_bytes(holder.id).unwrap_or(before_bytes);
    let holder_after = (holder_bytes + after_bytes).saturating_sub(before_bytes);
    let name = |field: &usize| member_name(subject.aggregate, *field);
    let stay = (0..subject.aggregate.members.len()).filter(|field| !moved.contains(field));
    Ok(Ok(ColdPartProposal {
        type_name: spelling.name.clone(),
        holder: name_of(task.types, holder.id),
        member: text.member,
        moved: moved.iter().map(name).collect(),
        kept: stay.map(|field| name(&field)).collect(),
        groups: columns
            .iter()
            .flat_map(|columns| &columns.groups)
            .map(|one| one.fields.iter().map(name).collect())
            .collect(),
        files: text.texts.keys().cloned().collect(),
        lines: match &columns {
            Some(columns) => lines_of_columns(task, holder, columns),
            None => lines(task, holder, holder_after),
        },
        sizes: vec![SizeChange { data_model: task.usage.abi.data_model(), before_bytes, after_bytes }],
        check,
        place: text.place,
        owner,
        edited: text.texts,
    }))
}

/// An edit.
struct Planned {
    /// The edited texts.
    text: ColdText,
    /// The members that leave the object.
    moved: BTreeSet<usize>,
    /// Their groups, where each leaves for an array of its own.
    columns: Option<Columns>,
    /// The name under which it is tried.
    owner: String,
}

/// Reasons that keep a type of any language as it is.
fn hold_of_type(
    task: &Task<'_>,
    (subject, spelling): (&Subject<'_>, &Spelling),
    way: &Way,
) -> Result<(), Binding> {
    let options = task.options;
    if let Some(failed) = options.refusal_of(&way.owner(&spelling.name)) {
        return Err(failed.constraints.into_iter().next().unwrap_or_else(|| refused("it was tried")));
    }
    if subject.is_fought_over() {
        return Err(refused("threads contend for its objects"));
    }
    if options.pins.iter().any(|(ty, _)| *ty == spelling.name || spelling.names.contains(ty)) {
        return Err(Binding::new(Constraint::Pinned));
    }
    Ok(())
}

/// The same for a struct of Rust.
fn plan_in_rust(
    task: &mut Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    way: &Way,
) -> Result<Result<Planned, Binding>, AdviseError> {
    let Way::Cold(cold) = way else { return Ok(Err(refused("only elements of arrays of C are grouped"))) };
    let options = task.options;
    if options.keeps.iter().any(|kept| *kept == spelling.name || spelling.names.contains(kept)) {
        return Ok(Err(Binding::new(Constraint::Kept)));
    }
    if let Err(binding) = hold_of_type(task, (subject, spelling), way) {
        return Ok(Err(binding));
    }
    let name = |field: &usize| member_name(subject.aggregate, *field);
    let owner = way.owner(&spelling.name);
    let names: BTreeSet<String> = cold.iter().map(name).collect();
    let sources = task.sources.with(&advice.edited);
    let written = boxed_part::write(task.judge, (&sources, &advice.edited), bare(&spelling.name), &names)?;
    Ok(written.map(|BoxedPart { texts, moved, member, held }| {
        let moved = cold.iter().copied().filter(|field| moved.contains(&name(field))).collect();
        Planned {
            text: ColdText { member, place: PartPlace::Boxed(held), texts },
            moved,
            columns: None,
            owner,
        }
    }))
}

/// The same for a class of C++ or a struct of C.
fn plan(
    task: &Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    meaning: &SplitMeaning,
    way: &Way,
) -> Result<Planned, Binding> {
    let (options, sources) = (task.options, task.sources);
    hold_of_type(task, (subject, spelling), way)?;
    let writers = writers(sources, meaning, way);
    // A variable says more than a use. Where there is none, a use says more than that no call was seen.
    if let (Err(binding), false) = (&writers, meaning.variables.is_empty()) {
        return Err(binding.clone());
    }
    if let Some(hold) = meaning.holds.iter().find(|hold| hold.names.is_empty()) {
        return Err(hold.clone());
    }
    let writers = writers?;
    if let Some(why) = options.meaning.unread() {
        return Err(refused(why));
    }
    match meaning.seen_by {
        SeenBy::Cpp => {
            program_allows(sources)?;
            traits_allow(sources, bare(&spelling.name))?;
        }
        SeenBy::C => {}
        SeenBy::Both => return Err(refused("units of C and of C++ use it")),
    }
    let ground = Groundwork::lay(subject, spelling, sources, options)
        .map_err(|all| all.into_iter().next().unwrap_or_else(|| refused("its text is not understood")))?;
    let path = &ground.body.found.path;
    let mut held = options.meaning.holds(&spelling.names, path);
    if let Some(hold) = held.find(|hold| hold.effect != Effect::Relative) {
        return Err(hold.binding.clone());
    }
    let is_about_text = |binding: &&Binding| !ABOUT_ORDER.contains(&binding.constraint);
    if let Some(binding) = ground.holds.bindings.iter().find(is_about_text) {
        return Err(binding.clone());
    }
    let in_order = options.meaning.holds(&spelling.names, path).flat_map(|hold| &hold.binding.names);
    let held: BTreeSet<&String> = meaning.holds.iter().flat_map(|hold| &hold.names).chain(in_order).collect();
    let stays = |field: &usize| {
        let name = subject.aggregate.members[*field].name.as_ref();
        name.is_none_or(|name| held.contains(&name.to_string()))
    };
    let members: BTreeSet<usize> = match way {
        Way::Columns(_) => (0..subject.aggregate.members.len()).collect(),
        Way::Cold(members) => members.clone(),
    };
    let leaving: BTreeSet<usize> = members.into_iter().filter(|field| !stays(field)).collect();
    let mut units = class_text::leaving_units(&ground, &leaving, |field| {
        task.types.size_bytes(subject.aggregate.members[field].ty).unwrap_or(0)
    });
    let fields = |unit: &usize| ground.ranges[*unit].clone().collect::<BTreeSet<usize>>();
    let columns = match way {
        Way::Columns(_) => {
            let of_units: Vec<BTreeSet<usize>> = units.iter().map(fields).collect();
            let columns = Columns::of(task, subject, &of_units);
            let hold = meaning.holds.iter().find_map(|hold| hold.detail.as_deref());
            let held = hold.map_or(String::new(), |held| format!("; {held}"));
            let why = "members that calls use apart are declared together, or have to stay";
            let columns = columns.ok_or_else(|| refused(format!("{why}{held}")))?;
            units.retain(|unit| columns.kept.is_disjoint(&fields(unit)));
            Some(columns)
        }
        Way::Cold(_) => None,
    };
    let moved: BTreeSet<usize> = units.iter().flat_map(fields).collect();
    let least = if meaning.seen_by == SeenBy::Cpp { LEAST_MEMBERS } else { 1 };
    if moved.len() < least {
        let because = meaning.holds.iter().find(|hold| !hold.names.is_empty());
        let why =
            because.map_or(String::new(), |hold| format!("; {}", hold.detail.clone().unwrap_or_default()));
        return Err(refused(format!("fewer than {least} members could leave the object{why}")));
    }
    let names = |field: &usize| member_name(subject.aggregate, *field);
    let moved_names: BTreeSet<String> = moved.iter().map(names).collect();
    let part = |(group, is_cold): (&BTreeSet<usize>, bool)| LeavingPart {
        units: units.iter().copied().filter(|unit| fields(unit).is_subset(group)).collect(),
        members: group.iter().map(names).collect(),
        is_cold,
    };
    let parts: Vec<LeavingPart> = match &columns {
        Some(columns) => columns.groups.iter().map(|one| part((&one.fields, !one.is_hot))).collect(),
        None => vec![part((&moved, true))],
    };
    let leaving =
        Leaving { sources, ground: &ground, units: &units, moved: &moved_names, parts: &parts, meaning };
    let mut text = Err(refused("no edit is written"));
    for write in writers {
        text = write(&leaving);
        if text.is_ok() {
            break;
        }
    }
    let text = text?;
    if let Some(path) = text.texts.keys().find(|path| advice.edited.contains_key(*path)) {
        return Err(refused(format!("another change edits {path}")));
    }
    Ok(Planned { text, moved, columns, owner: way.owner(&spelling.name) })
}

/// Constraints on an order that say nothing against leaving the object.
const ABOUT_ORDER: [Constraint; 7] = [
    Constraint::ConstructorOrder,
    Constraint::AccessSection,
    Constraint::OneDeclaration,
    Constraint::NestedType,
    Constraint::Heading,
    Constraint::OneThing,
    Constraint::KeptApart,
];

/// Writes an edit.
type Writer = fn(&Leaving<'_>) -> Result<ColdText, Binding>;

/// The writers for objects of this kind, the best first: values of C++, elements of arrays of C, objects of C that calls
/// make.
fn writers(sources: &Sources, meaning: &SplitMeaning, way: &Way) -> Result<&'static [Writer], Binding> {
    if meaning.seen_by == SeenBy::Cpp {
        return Ok(&[class_text::write]);
    }
    let at = |one: &ObjectVariable, why: &str| Err(refused(why).at(&one.path, one.line));
    let is_made = meaning.heap_calls.iter().any(|call| call.function != HeapFunction::Free);
    match (meaning.variables.first(), is_made) {
        (None, false) => Err(refused("no call is seen that makes its objects")),
        (None, true) => Ok(match (is_array(sources, meaning), way) {
            (true, Way::Columns(_)) => &[array_text::held, array_text::made],
            (true, Way::Cold(_)) => &[array_text::held, array_text::made, heap_text::write],
            (false, _) => &[heap_text::write],
        }),
        (Some(variable), _) if !meaning.heap_calls.is_empty() => {
            at(variable, "a variable is or holds an object, and calls make others")
        }
        _ => match meaning.variables.iter().find_map(|one| Some((one, one.refusal.as_deref()?))) {
            Some((variable, why)) => at(variable, why),
            None => Ok(&[array_text::declared]),
        },
    }
}

/// Refuses programs in which memory of an object's own may not be there, or not be that of one process.
fn program_allows(sources: &Sources) -> Result<(), Binding> {
    const WORDS: [(&str, bool, &str); 12] = [
        ("sigaction", false, "a signal handler could copy an object"),
        ("signal", true, "a signal handler could copy an object"),
        ("MAP_SHARED", false, "processes share memory"),
        ("shm_open", false, "processes share memory"),
        ("shmget", false, "processes share memory"),
        ("shmat", false, "processes share memory"),
        ("interprocess", false, "processes share memory"),
        ("longjmp", false, "a jump over functions could leave objects that nothing destroys"),
        ("siglongjmp", false, "a jump over functions could leave objects that nothing destroys"),
        ("__cxa_atexit", false, "code runs after the program's own"),
        ("bad_alloc", false, "the program handles a lack of memory"),
        ("set_new_handler", false, "the program handles a lack of memory"),
    ];
    for (word, is_called, why) in WORDS {
        let is_it = |lexed: &Lexed<'_>, index: usize| {
            let next = lexed.next_code(index + 1, lexed.tokens.len());
            let is_call = next.is_some_and(|next| lexed.str(next) == "(");
            lexed.is_word(index) && (!is_called || is_call)
        };
        if let Some((path, line)) = first_use(sources, word, is_it) {
            return Err(refused(why).at(path, line));
        }
    }
    let is_new = |lexed: &Lexed<'_>, index: usize| lexed.str(index + 1) == "new";
    if let Some((path, line)) = first_use(sources, "operator", is_new) {
        return Err(refused("the program has an allocator of its own").at(path, line));
    }
    Ok(())
}

/// Refuses a class of which the program asks for properties that it loses: `std::is_trivially_copyable<Item>`.
fn traits_allow(sources: &Sources, name: &str) -> Result<(), Binding> {
    const TRAITS: [&str; 14] = [
        "has_unique_object_representations",
        "has_unique_object_representations_v",
        "is_pod",
        "is_pod_v",
        "is_trivial",
        "is_trivial_v",
        "is_trivially_copy_assignable",
        "is_trivially_copy_assignable_v",
        "is_trivially_copy_constructible",
        "is_trivially_copy_constructible_v",
        "is_trivially_copyable",
        "is_trivially_copyable_v",
        "is_trivially_destructible",
        "is_trivially_destructible_v",
    ];
    let is_of_class = |lexed: &Lexed<'_>, index: usize| {
        let rest = index + 1..lexed.tokens.len();
        rest.take_while(|&at| !matches!(lexed.str(at), ">" | ";" | "{")).any(|at| lexed.str(at) == name)
    };
    match TRAITS.into_iter().find_map(|word| first_use(sources, word, is_of_class)) {
        Some((path, line)) => Err(refused("the program asks how its objects are copied").at(path, line)),
        None => Ok(()),
    }
}

/// The first place, file and line, at which a token is this word and `is_it` holds.
fn first_use<'s>(
    sources: &'s Sources,
    word: &'s str,
    is_it: impl Fn(&Lexed<'_>, usize) -> bool,
) -> Option<(&'s str, u32)> {
    sources.that_may_name(word).find_map(|(path, _)| {
        let lexed = sources.lexed(path)?;
        let is_word = |&index: &usize| lexed.str(index) == word && is_it(&lexed, index);
        let index = (0..lexed.tokens.len()).find(is_word)?;
        Some((path, lexed.line_at(lexed.tokens[index].start())))
    })
}

/// The size of the class in the build that has the new member, or none of those that moved.
fn size_in(
    compiled: &[Compiled],
    usage: &Usage,
    (subject, spelling): (&Subject<'_>, &Spelling),
    text: &ColdText,
    moved: &BTreeSet<usize>,
) -> Option<u64> {
    let build = compiled.iter().find(|build| build.abi == usage.abi)?;
    let kind = subject.aggregate.kind;
    build.types.iter().find_map(|(id, ty)| {
        let (own, aggregate) = build.types.aggregate(id)?;
        let has = |name: &str| aggregate.members.iter().any(|one| one.name.as_deref() == Some(name));
        let is_edited = match text.place {
            PartPlace::Array { .. } => {
                !moved.iter().any(|field| has(&member_name(subject.aggregate, *field)))
            }
            _ => has(&text.member),
        };
        let is_it = own == id && aggregate.kind == kind && ty.name.as_deref() == Some(spelling.name.as_str());
        (is_it && is_edited).then(|| build.types.size_bytes(id)).flatten()
    })
}

/// The size without these members, and with a pointer where the object has one, without a compiler.
fn predicted(types: &Types, subject: &Subject<'_>, moved: &BTreeSet<usize>, has_pointer: bool) -> u64 {
    const POINTER_BYTES: u64 = 8;
    let size = |field: &usize| types.size_bytes(subject.aggregate.members[*field].ty).unwrap_or(0);
    let gone: u64 = moved.iter().map(size).sum();
    let left = types.size_bytes(subject.id).unwrap_or(0).saturating_sub(gone);
    (left + if has_pointer { POINTER_BYTES } else { 0 }).next_multiple_of(POINTER_BYTES)
}

/// Lines per call now, and with objects of `after_bytes` side by side: a lower bound. A call that uses an object needs a
/// line.
fn lines(task: &Task<'_>, subject: &Subject<'_>, after_bytes: u64) -> Vec<RegionLines> {
    let mut rows = sketch::lines(task, subject, after_bytes);
    for row in &mut rows {
        let objects = row.after * row.line_bytes as f64 / after_bytes.max(1) as f64;
        row.after = row.after.max(objects.min(1.0)).min(row.before.unwrap_or(f64::INFINITY));
    }
    rows
}

/// The same for elements whose members leave in groups.
fn lines_of_columns(task: &Task<'_>, subject: &Subject<'_>, columns: &Columns) -> Vec<RegionLines> {
    let mut rows = sketch::lines(task, subject, 0);
    for row in &mut rows {
        row.after = columns.lines.get(&row.id).copied().unwrap_or_default();
    }
    rows
}

fn describe(one: &ColdPartProposal) -> Description {
    let count = |bytes: fn(&SizeChange) -> u64| one.sizes.first().map_or(0, bytes);
    let shrinks = format!(
        "An object shrinks from {} to {} bytes.",
        count(|size| size.before_bytes),
        count(|size| size.after_bytes)
    );
    let summary = match one.groups.len() {
        0 => format!(
            "{} members that calls do not use leave the object for memory of their own: {}. {shrinks}",
            one.moved.len(),
            first_names(&one.moved, NAMED),
        ),
        groups => format!(
            "Calls use members of an element apart from others. {} leave for {groups} arrays: {}. {shrinks}",
            one.moved.len(),
            in_groups(&one.groups)
        ),
    };
    let mut reasons = vec![format!("In the object stay {}.", first_names(&one.kept, NAMED))];
    reasons.extend(match &one.place {
        PartPlace::Value => as_a_value(&one.member),
        PartPlace::Pointer(heap) => in_two_parts(&one.member, *heap),
        PartPlace::Array { is_made } => in_two_arrays(&one.member, *is_made),
        PartPlace::Boxed(held) => in_a_box(&one.member, held),
    });
    Description {
        reasons,
        lines: one.lines.clone(),
        sizes: one.sizes.clone(),
        check: Some(one.check),
        is_in_patch: !one.edited.is_empty(),
        ..Description::told(if one.groups.is_empty() { SPLIT } else { COLUMNS }, &one.type_name, summary)
    }
}

/// A class of C++.
fn as_a_value(member: &str) -> Vec<String> {
    vec![
        format!(
            "{member} is a value: it is copied, assigned and destroyed with the object. The price is one more allocation for \
             each object, and one more load for each use of a moved member."
        ),
        "Where memory runs out, making or copying an object can fail, and moving one ends the program."
            .to_owned(),
    ]
}

/// A struct of Rust.
fn in_a_box(member: &str, held: &str) -> Vec<String> {
    let mut reasons = vec![
        format!(
            "{member} is a Box of them, which is moved, cloned, compared and dropped with the object. The price is one more \
             allocation for each object, and one more load for each use of a moved field."
        ),
        "Cargo checked every target of the workspace, with the features of the build command. Code under other \
         conditions was not compiled."
            .to_owned(),
    ];
    reasons
        .extend((!held.is_empty()).then(|| format!("Calls do not use these either, but they stay: {held}.")));
    reasons
}

/// A struct of C.
fn in_two_parts(member: &str, heap: HeapChange) -> Vec<String> {
    let times = |count: usize| match count {
        0 => "no call".to_owned(),
        1 => "one call".to_owned(),
        count => format!("{count} calls"),
    };
    let mut reasons = vec![
        format!(
            "{member} points to them: {} make objects with both parts, and {} end both. The price is one more allocation \
             where objects are made, and one more load for each use of a moved member.",
            times(heap.makes),
            times(heap.ends)
        ),
        "Where memory for one part runs out, the call gives back the other and NULL, as it did for the whole."
            .to_owned(),
    ];
    if heap.in_blocks {
        let block = heap_text::BLOCK;
        reasons.push(format!("Hot parts come in blocks of {block}, which the program keeps until it ends."));
    }
    reasons
}

/// Elements of arrays.
fn in_two_arrays(array: &str, is_made: bool) -> Vec<String> {
    let mut reasons = vec![format!(
        "{array} has them, in the order of the objects: no object has a pointer to its part. The price is the distance \
         from the first object where a use of a moved member has a pointer to its object."
    )];
    if is_made {
        reasons.push(
            "One call makes all objects, and runs once. Where memory for one array runs out, it gives back the other and \
             NULL, as it did for the whole."
                .to_owned(),
        );
    }
    reasons
}
