//! Uses of changed types in a program's functions, and the obligations that they leave.

use super::equal::Explained;
use super::expression::{Operand, Scope, Step};
use super::lexer::Token;
use super::numbers::Numbers;
use super::program::{Goal, Program, maps_code};
use super::statement::{Statement, Value, read};
use super::{Function, Line, library};
use crate::facts::Short;
use crate::map::Pair;
use crate::obligation::{Findings, Kind, Obligation};
use std::collections::{HashMap, HashSet};

/// Rules that hold for the numbers of a statement, too.
const EXPLAINING: [&str; 5] =
    ["follows-layout", "member-stays", "whole-object-zero", "whole-object-copy", "no-instruction"];

/// Looks at one function.
pub(super) struct Walk<'a, 'p> {
    pub(super) program: &'p Program<'a>,
    pub(super) pair: &'p Pair<'p>,
    pub(super) unit: usize,
    pub(super) function: &'p Function<'a>,
    pub(super) scope: Scope<'a, 'p>,
    pub(super) explained: HashMap<usize, String>,
    /// Lines whose numbers a rule covers.
    pub(super) covered: HashSet<usize>,
    /// Lines whose number is the size of a member.
    pub(super) sized: HashSet<usize>,
    pub(super) numbers: Numbers<'a>,
    /// Parts by whose pointers something else of that type is reached: the next one, or one that is compared.
    stepped: HashSet<String>,
    pub(super) found: Vec<(usize, Kind, String, Option<&'static str>)>,
    strange: Vec<usize>,
    /// Lines of assembler that gets no object.
    assemblers: Vec<usize>,
    touches: bool,
    plain: u64,
}

/// Looks at all functions of a unit. `explained` holds by function the numbers that differ.
pub fn look<'a>(
    program: &Program<'a>,
    unit: usize,
    pair: &Pair<'_>,
    explained: &[Vec<Explained>],
) -> Findings {
    let mut findings = Findings::default();
    let own = &program.units[unit];
    for (function, explained) in own.functions.iter().zip(explained) {
        let numbers = explained.iter().filter(|number| !number.record.is_empty());
        let mut walk = Walk {
            program,
            pair,
            unit,
            function,
            scope: program.scope(own, function),
            explained: numbers.map(|number| (number.line, number.record.clone())).collect(),
            covered: HashSet::new(),
            sized: HashSet::new(),
            numbers: Numbers::default(),
            stepped: HashSet::new(),
            found: Vec::new(),
            strange: Vec::new(),
            assemblers: Vec::new(),
            touches: false,
            plain: 0,
        };
        walk.all();
        for number in explained.iter().filter(|number| number.is_line) {
            walk.found.push((number.line, Kind::Constant, String::new(), Some("line-number")));
        }
        findings.functions += 1;
        findings.explained += explained.len() as u64;
        findings.plain += walk.plain;
        findings.stepped.extend(walk.stepped);
        for (line, kind, about, rule) in walk.found {
            let line = function.lines.get(line).unwrap_or(&function.head);
            findings.obligations.push(Obligation {
                unit: own.name.into(),
                function: function.name.into(),
                place: line.place.unwrap_or("").into(),
                kind,
                about,
                statement: without_places(line),
                rule,
            });
        }
    }
    findings
}

/// The text of a line without the places in it.
fn without_places(line: &Line<'_>) -> String {
    let mut text = line.text;
    let mut found = String::new();
    while let Some(at) = text.find('[') {
        let (before, rest) = text.split_at(at);
        found.push_str(before);
        let end = rest.find(']').map_or(rest.len(), |end| end + 1);
        let inside = &rest[..end];
        if inside.split(':').count() < 3 || inside.contains(['(', '"']) {
            found.push_str(inside);
            text = &rest[end..];
        } else {
            text = rest[end..].strip_prefix(' ').unwrap_or(&rest[end..]);
        }
    }
    found.push_str(text);
    found
}

impl<'a> Walk<'a, '_> {
    fn all(&mut self) {
        let own = &self.program.units[self.unit];
        let parameters = self.function.parameters(&own.types);
        let takes: Vec<&Short> = parameters.iter().filter_map(|(_, short)| short.as_ref()).collect();
        self.touches |= takes.iter().any(|short| self.is_sensitive(short));
        let holder = takes.iter().find(|short| short.stars > 0 && self.pair.holders.contains(&short.base));
        if let Some(holder) = holder
            && self.function.name != "main"
            && !self.program.mentioned.contains(self.function.name)
        {
            self.found.push((usize::MAX, Kind::Entry, holder.base.clone(), None));
        }
        let unnamed = self.of_unnamed_types();
        for (index, line) in self.function.lines.iter().enumerate() {
            if !unnamed.is_empty() && line.place.is_some() {
                let mut names = line.words.iter().filter_map(Token::name);
                if names.any(|name| unnamed.contains(name)) {
                    self.found.push((index, Kind::NotUnderstood, String::new(), None));
                }
            }
            match read(line, &self.scope, &own.types) {
                Some(statement) => self.statement(index, &statement),
                None => {
                    let mut names = line.words.iter().filter_map(Token::name);
                    self.touches |=
                        names.any(|name| self.scope.of(name).is_some_and(|short| self.is_sensitive(short)));
                    self.strange.push(index);
                }
            }
            let makes_code = maps_code(&line.words)
                || line
                    .words
                    .windows(2)
                    .any(|two| two[1].is("(") && two[0].name().is_some_and(library::is_loader));
            if makes_code && !self.pair.changed.is_empty() {
                self.found.push((index, Kind::ForeignCode, String::new(), None));
            }
        }
        if self.touches {
            for index in std::mem::take(&mut self.assemblers) {
                let is_idle = is_idle(&self.function.lines[index].words);
                self.add(index, Kind::Assembler, "", is_idle.then_some("no-instruction"));
            }
            for index in std::mem::take(&mut self.strange) {
                self.found.push((index, Kind::NotUnderstood, String::new(), None));
            }
            self.stayed_constants();
        }
        let mut rest: Vec<(usize, String)> =
            self.explained.iter().map(|(line, record)| (*line, record.clone())).collect();
        rest.sort();
        for (line, record) in rest {
            if !self.covered.contains(&line) {
                self.found.push((line, Kind::Constant, record, None));
            }
        }
    }

    /// Local variables of types without a name that hold objects: `union { struct node n; char bytes[8]; } both;`.
    fn of_unnamed_types(&self) -> HashSet<&'a str> {
        let types = &self.program.units[self.unit].types;
        let (mut found, mut holds) = (HashSet::new(), Vec::new());
        let mut is_body = false;
        for line in &self.function.lines {
            let words = &line.words;
            let is_type = words.last().is_some_and(|word| word.is("struct") || word.is("union"));
            if is_type {
                is_body = true;
            } else if std::mem::take(&mut is_body) {
                holds.push(false);
            } else if let Some(own) = holds.last_mut() {
                if words.first().is_some_and(|word| word.is("}")) {
                    let is_holder = holds.pop().unwrap_or_default();
                    if is_holder {
                        found.extend(words.iter().filter_map(Token::name));
                    }
                    if let Some(outer) = holds.last_mut() {
                        *outer |= is_holder;
                    }
                } else {
                    let declared = super::declared(words, types);
                    *own |= declared.is_some_and(|(_, short)| short.stars == 0 && self.is_sensitive(&short));
                }
            }
        }
        found
    }

    pub(super) fn is_sensitive(&self, short: &Short) -> bool {
        self.pair.is_sensitive(short)
    }

    pub(super) fn is_address(&self, short: Option<&Short>) -> bool {
        short.is_some_and(|short| self.pair.is_address(short))
    }

    pub(super) fn add(&mut self, line: usize, kind: Kind, about: &str, rule: Option<&'static str>) {
        if rule.is_some_and(|rule| EXPLAINING.contains(&rule)) {
            self.covered.insert(line);
        }
        self.found.push((line, kind, about.into(), rule));
    }

    /// The last member on a path that belongs to a changed type or one that holds it.
    pub(super) fn changed_step<'o>(&self, operand: &'o Operand<'_>) -> Option<&'o Step> {
        operand.steps.iter().rev().find(|step| self.pair.holders.contains(&step.record))
    }

    pub(super) fn about(&self, operand: &Operand<'_>) -> String {
        match self.changed_step(operand) {
            Some(step) => format!("{}.{}", step.record, step.member),
            None => operand.short.as_ref().map(|short| short.base.clone()).unwrap_or_default(),
        }
    }

    fn statement(&mut self, line: usize, statement: &Statement<'a>) {
        match statement {
            Statement::Nothing => {}
            Statement::Local(name, short) => {
                self.touches |= self.is_sensitive(short);
                self.scope.names.insert(name, short.clone());
                self.covered.insert(line);
            }
            Statement::Assembler => {
                let words = &self.function.lines[line].words;
                let names = words.iter().filter_map(Token::name).chain(words.iter().flat_map(names_in_text));
                let types: Vec<Short> = names.filter_map(|name| self.scope.of(name).cloned()).collect();
                let about =
                    types.iter().find(|short| self.is_sensitive(short)).map(|short| short.base.clone());
                match about {
                    Some(about) => self.add(line, Kind::Assembler, &about, None),
                    None => self.assemblers.push(line),
                }
            }
            Statement::Use(value) => {
                self.value(line, value);
                if let Value::One(operand) = value
                    && operand.is_address
                    && self.changed_step(operand).is_some()
                {
                    self.member_address(line, operand, None);
                }
            }
            Statement::Assign(to, value) => self.assign(line, to, value),
        }
    }

    fn value(&mut self, line: usize, value: &Value<'a>) {
        match value {
            Value::One(one) => self.operand(line, one),
            Value::Two(one, sign, other) => {
                self.operand(line, one);
                self.operand(line, other);
                let is_difference = *sign == "-" && other.short.as_ref().is_some_and(|short| short.stars > 0);
                for operand in [one, other] {
                    if operand.is_address && self.changed_step(operand).is_some() && !is_comparison(sign) {
                        self.add(line, Kind::Arithmetic, &self.about(operand), None);
                    }
                }
                if is_difference && one.short != other.short && self.is_address(other.short.as_ref()) {
                    self.add(line, Kind::Arithmetic, &self.about(other), None);
                }
                if is_difference || matches!(*sign, "<" | ">" | "<=" | ">=") {
                    self.steps(one.short.as_ref());
                }
                if is_comparison(sign) {
                    self.compared(line, one, other);
                    self.compared(line, other, one);
                }
            }
        }
    }

    /// A pointer to a part is used to reach others of its type.
    fn steps(&mut self, short: Option<&Short>) {
        let part = short.filter(|short| short.stars == 1 && self.pair.parts.contains(&short.base));
        self.stepped.extend(part.map(|part| part.base.clone()));
    }

    /// A name that nothing declares here: a variable of the function around this one.
    fn is_of_outer_function(&self, operand: &Operand<'_>) -> bool {
        let name = operand.root.filter(|_| operand.is_address && operand.steps.is_empty());
        name.is_some_and(|name| {
            self.scope.of(name).is_none()
                && !name.starts_with('_')
                && !name.contains('.')
                && self.program.function(self.unit, name).is_none()
                && self.pair.new.function(name).is_none()
        })
    }

    /// Looks at an operand by itself.
    fn operand(&mut self, line: usize, operand: &Operand<'a>) {
        let facts = self.pair.new;
        self.touches |= operand.short.as_ref().is_some_and(|short| self.is_sensitive(short));
        for step in &operand.steps {
            self.touches |= self.pair.holders.contains(&step.record);
            if self.is_seen_in_union(step) {
                let about = format!("{}.{}", step.record, step.member);
                self.add(line, Kind::OtherType, &about, None);
            }
            if self.pair.holders.contains(&step.record) && facts.record(&step.record).is_none() {
                let about = format!("{}.{}", step.record, step.member);
                self.add(line, Kind::TwoTypes, &about, None);
            } else if self.pair.changed.contains(&step.record) {
                self.plain += u64::from(!operand.is_address);
                if step.index.is_some() && self.is_open_end(step) {
                    let about = format!("{}.{}", step.record, step.member);
                    self.add(line, Kind::ArrayEnd, &about, None);
                }
            }
            let is_lost = step.record == "?"
                && self.pair.changed.iter().any(|name| {
                    facts.record(name).is_some_and(|record| facts.member(record, &step.member).is_some())
                });
            if is_lost {
                self.touches = true;
                self.add(line, Kind::NotUnderstood, &format!("?.{}", step.member), None);
            }
        }
        if !self.pair.changed.is_empty() && self.is_of_outer_function(operand) {
            self.add(line, Kind::NotUnderstood, "", None);
        }
        for (of, to) in &operand.seen_as {
            let about = [of, to].into_iter().flatten().find(|short| self.is_sensitive(short));
            if let Some(about) = about.map(|short| short.base.clone()) {
                self.touches = true;
                self.add(line, Kind::OtherType, &about, None);
            }
        }
        if let Some((of, to)) = &operand.cast {
            self.cast(line, of.as_ref(), to.as_ref(), operand.inner.first());
        }
        for inner in &operand.inner {
            self.operand(line, inner);
        }
        if operand.callee.is_some() {
            self.call(line, operand);
        }
    }

    /// An array at the old end of a type with one element or none may be longer than it says.
    fn is_open_end(&self, step: &Step) -> bool {
        let find = |facts: &crate::facts::Facts| {
            let record = facts.record(&step.record)?;
            let (member, at) = facts.member(record, &step.member)?;
            let last = record.members.iter().map(|member| member.at_bits).max()?;
            let elements = step.of.as_ref().map_or(0, |of| of.dimensions);
            let length = match facts.bare(member.of) {
                Some(crate::facts::Type::Array { count, .. }) => count.unwrap_or(0),
                _ => return None,
            };
            Some((at >= last && elements > 0, length, at))
        };
        match (find(self.pair.old), find(self.pair.new)) {
            (Some((was_last, length, before)), Some((is_last, _, after))) => {
                let is_past = matches!(step.index, Some(Some(index)) if index >= i128::from(length.max(1)));
                is_past || was_last && length <= 1 && (!is_last || before != after)
            }
            _ => false,
        }
    }

    fn assign(&mut self, line: usize, to: &Operand<'a>, value: &Value<'a>) {
        self.operand(line, to);
        self.value(line, value);
        let is_temporary = to.name.is_some_and(|name| {
            !self.scope.names.contains_key(name) && !self.scope.globals.contains_key(name)
        });
        let holder = match value {
            Value::One(one) => self.holder_of_first(line, to, one),
            Value::Two(..) => None,
        };
        let is_moved = holder.is_some();
        let result = match value {
            Value::One(one) => holder.or_else(|| one.short.clone()),
            Value::Two(one, sign, other) => self.computed(line, to, (one, sign, other)),
        };
        if is_temporary && let Some(name) = to.name {
            if let Some(short) = &result {
                self.scope.names.insert(name, short.clone());
                if short.is_object() && self.is_sensitive(short) {
                    self.add(line, Kind::OtherType, &short.base.clone(), None);
                }
            }
            if let Value::Two(one, sign, other) = value
                && let Some(number) = other.int.or(one.int)
            {
                self.numbers.learn(name, sign, signed(number), line);
            }
        }
        if is_moved {
            return;
        }
        let Value::One(one) = value else {
            if !is_temporary {
                self.converted(line, to.short.as_ref(), result.as_ref(), None);
            }
            return;
        };
        self.function_address(line, one, to.short.as_ref());
        if one.is_address && self.changed_step(one).is_some() {
            self.member_address(line, one, Some(to));
            return;
        }
        if is_temporary {
            // A temporary name of memory that has no type yet: it gets one where it goes.
            return;
        }
        if let Some(short) = to.short.as_ref().filter(|short| short.is_object() && self.is_sensitive(short)) {
            let is_same = one.short.as_ref() == Some(short)
                || one.is_list
                || one.callee.is_some() && one.short.is_none();
            if !is_same {
                self.add(line, Kind::OtherType, &short.base.clone(), None);
            }
            return;
        }
        if one.cast.is_none() && one.int != Some(0) {
            self.converted(line, to.short.as_ref(), one.short.as_ref(), Some(one));
        }
    }

    /// The type of a computed value, with the checks of pointers that move.
    fn computed(
        &mut self,
        line: usize,
        to: &Operand<'a>,
        (one, sign, other): (&Operand<'a>, &str, &Operand<'a>),
    ) -> Option<Short> {
        if is_comparison(sign) {
            return Some(Short { base: "int".into(), ..Short::default() });
        }
        let pointer = one.short.as_ref().filter(|short| short.stars > 0);
        let Some(pointer) = pointer.filter(|_| sign == "+") else {
            return match one.int {
                None if sign != "-" || one.short.as_ref().is_none_or(|short| short.stars == 0) => {
                    one.short.clone()
                }
                _ => None,
            };
        };
        if !self.is_sensitive(pointer) || pointer.stars > 1 {
            return Some(pointer.clone());
        }
        let size = self.pair.new.record(&pointer.base).map_or(0, |record| i128::from(record.bytes));
        let number = other.int.map(signed).map(|number| (number, line));
        let number = number.or_else(|| other.name.and_then(|name| self.numbers.multiples.get(name).copied()));
        // From a member to the object that holds it.
        let becomes_other = to.short.as_ref().is_some_and(|to| to != pointer);
        let holder = other.int.and_then(|number| self.holder_at(&pointer.base, -signed(number)));
        let is_explained = self.explained.contains_key(&line);
        let holder = holder.filter(|(name, _, stays)| {
            *stays != is_explained && to.short.as_ref().is_none_or(|to| to.base == *name)
        });
        if let Some((number, at)) = number
            && size > 0
            && number % size == 0
            && !(becomes_other && holder.is_some())
        {
            self.covered.extend([line, at]);
            self.steps(Some(pointer));
            return Some(pointer.clone());
        }
        match holder {
            Some((holder, member, stays)) => {
                let rule = if stays { "member-stays" } else { "follows-layout" };
                self.add(line, Kind::Arithmetic, &format!("{holder}.{member}"), Some(rule));
                Some(Short { base: holder, is_record: true, stars: 1, ..Short::default() })
            }
            None => {
                self.add(line, Kind::Arithmetic, &pointer.base.clone(), None);
                // Only the name's own type, if it has one, says which member lies there.
                to.short.clone()
            }
        }
    }

    /// From a member that is the first one now to the object that holds it: the distance was another one.
    fn holder_of_first(&mut self, line: usize, to: &Operand<'a>, one: &Operand<'a>) -> Option<Short> {
        let part = one.short.as_ref().filter(|short| short.stars == 1 && self.is_sensitive(short))?;
        let (holder, member, stays) = self.holder_at(&part.base, 0)?;
        let is_holder = to.short.as_ref().is_none_or(|to| to.base == holder);
        if stays || !is_holder || !self.explained.contains_key(&line) {
            return None;
        }
        self.add(line, Kind::Arithmetic, &format!("{holder}.{member}"), Some("follows-layout"));
        Some(Short { base: holder, is_record: true, stars: 1, ..Short::default() })
    }

    /// The changed type with a member of type `part` at this distance after the change, and whether it stays there.
    fn holder_at(&self, part: &str, distance: i128) -> Option<(String, String, bool)> {
        let distance = u64::try_from(distance).ok()?;
        let mut names: Vec<&String> = self.pair.changed.iter().collect();
        names.sort();
        names.into_iter().find_map(|name| {
            let record = self.pair.new.record(name)?;
            let member = record.members.iter().find(|member| {
                member.at_bits == distance * 8
                    && self.pair.new.record_of(member.of).is_some_and(|record| record.name == part)
            })?;
            let label = member.name.clone()?;
            let old = self.pair.old.record(name)?;
            let (_, before) = self.pair.old.member(old, &label)?;
            Some((name.clone(), label, before == member.at_bits))
        })
    }

    /// Permitted uses of a member's address.
    pub(super) fn goal(&self, operand: &Operand<'a>) -> Goal {
        let step = operand.steps.last();
        let of = step.and_then(|step| step.of.clone());
        let bytes = step.and_then(|step| {
            let record = self.pair.new.record(&step.record)?;
            let (member, _) = self.pair.new.member(record, &step.member)?;
            Some(member.bits / 8)
        });
        let is_first = step.is_some_and(|step| matches!(step.index, None | Some(Some(0))));
        let is_closed = step.is_some_and(|step| !self.is_open_end(step));
        let is_text = is_closed && of.is_some_and(|of| of.base.ends_with("char") && of.dimensions == 1);
        Goal {
            object: None,
            bytes: if is_first { bytes.unwrap_or(0) } else { 0 },
            scalar: operand.short.clone(),
            is_text,
        }
    }

    /// The address of a member goes to a place, or is returned.
    fn member_address(&mut self, line: usize, operand: &Operand<'a>, to: Option<&Operand<'a>>) {
        let about = self.about(operand);
        let is_own_type = to.is_some_and(|to| to.short.is_none() || to.short == operand.short);
        let is_record = operand.short.as_ref().is_some_and(|short| short.is_record && short.stars == 1);
        let name = to.and_then(|to| to.name).filter(|name| !self.scope.globals.contains_key(name));
        let rule = if is_record && is_own_type {
            Some("struct-member")
        } else if let Some(name) = name.filter(|_| is_own_type) {
            let goal = self.goal(operand);
            self.program.stays((self.unit, self.function), name, &goal).then_some("within-member")
        } else {
            None
        };
        self.add(line, Kind::MemberAddress, &about, rule);
    }

    /// A record of another type that a pointer points at. An object's address became one only by a conversion, which is
    /// an obligation of its own.
    fn other_record(&self, short: &Short) -> bool {
        short.is_record && short.stars == 1 && !self.is_sensitive(short)
    }

    /// The rule for a call with a number, and without an address that could be one of an object.
    fn typed_arguments(&self, line: &Line<'a>) -> Option<&'static str> {
        let types = &self.program.units[self.unit].types;
        let call = match read(line, &self.scope, types)? {
            Statement::Use(Value::One(call)) | Statement::Assign(_, Value::One(call)) => call,
            _ => return None,
        };
        call.callee?;
        let is_typed = |argument: &Operand<'a>| {
            argument.int.is_some()
                || argument.short.as_ref().is_some_and(|short| match short.stars {
                    0 => short.base != "void" && !short.is_record,
                    _ => self.other_record(short),
                })
        };
        call.inner.iter().all(is_typed).then_some("typed-arguments")
    }

    /// The rule for a pointer to another record that moves by whole elements of it.
    fn whole_elements(&self, line: &Line<'a>) -> Option<&'static str> {
        let types = &self.program.units[self.unit].types;
        let Some(Statement::Assign(_, Value::Two(one, "+", other))) = read(line, &self.scope, types) else {
            return None;
        };
        let of = one.short.as_ref().filter(|short| self.other_record(short))?;
        let bytes = i128::from(self.pair.new.record(&of.base)?.bytes);
        (bytes > 0 && signed(other.int?) % bytes == 0).then_some("whole-elements")
    }

    /// Numbers that were an offset or size before, and stay, where they may be one.
    fn stayed_constants(&mut self) {
        for (index, line) in self.function.lines.iter().enumerate() {
            let is_known = [&self.covered, &self.sized].iter().any(|lines| lines.contains(&index));
            if is_known || self.explained.contains_key(&index) {
                continue;
            }
            let is_call = line.words.windows(2).any(|two| two[0].name().is_some() && two[1].is("("))
                && !line.words.first().is_some_and(|word| word.is("if") || word.is("switch"));
            let plus = line.words.iter().position(|word| word.is("+"));
            let is_sum = plus.is_some_and(|plus| {
                let name = plus.checked_sub(1).and_then(|at| line.words[at].name());
                name.and_then(|name| self.scope.of(name)).is_none_or(|short| short.stars > 0)
            });
            let numbers = line.words.iter().filter_map(|word| match word {
                Token::Int(number) => Some(signed(*number)),
                _ => None,
            });
            let was = |number: i128| self.pair.was_offset(number).or_else(|| self.pair.was_offset(-number));
            let about = numbers.filter(|_| is_call || is_sum).find_map(was);
            let is_listed = self.found.iter().any(|(at, kind, _, rule)| {
                *at == index && rule.is_none() && !matches!(kind, Kind::ForeignCode)
            });
            if let Some(about) = about.filter(|_| !is_listed) {
                let rule = if is_call { self.typed_arguments(line) } else { self.whole_elements(line) };
                self.found.push((index, Kind::StayedConstant, about, rule));
            }
        }
    }
}

/// Words in the text of assembler, which may be names of objects.
fn names_in_text<'a>(word: &Token<'a>) -> impl Iterator<Item = &'a str> {
    let text = match word {
        Token::Other(text) if text.starts_with('"') => *text,
        _ => "",
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// Assembler without operands that only aligns code or does nothing.
fn is_idle(words: &[Token<'_>]) -> bool {
    let text = words.iter().find_map(|word| match word {
        Token::Other(text) if text.starts_with('"') => Some(text.trim_matches('"')),
        _ => None,
    });
    let aligns = |line: &str| {
        let bits = line.strip_prefix(".p2align ");
        bits.is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.is_some_and(|text| matches!(text, "" | "nop" | "pause") || aligns(text))
        && !words.iter().any(|word| word.is(":"))
}

fn is_comparison(sign: &str) -> bool {
    matches!(sign, "==" | "!=" | "<" | ">" | "<=" | ">=")
}

/// GCC prints negative distances as large numbers.
fn signed(number: i128) -> i128 {
    if number >= 1 << 63 { number - (1 << 64) } else { number }
}
