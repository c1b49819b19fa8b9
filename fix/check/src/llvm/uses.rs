//! Uses of changed types in IR, and the obligations that they leave.

use super::equal::{Gep, array_element, gep};
use super::ir_module::{Function, Line};
use super::lexer::{at_commas, group};
use super::types::{Definitions, record_name};
use super::unit::Unit;
use crate::gimple::library;
use crate::obligation::{Findings, Kind, Obligation};
use std::collections::{HashMap, HashSet};

pub(super) struct Walk<'a, 'u> {
    pub(super) unit: &'u Unit<'a>,
    defined: &'u HashMap<&'a str, &'u Function<'a>>,
    pub(super) function: &'u Function<'a>,
    uses: HashMap<&'a str, Vec<usize>>,
    pub(super) made: HashMap<&'a str, usize>,
    pub(super) covered: HashSet<usize>,
    found: Vec<(usize, Kind, String, Option<&'static str>)>,
    plain: u64,
    touches: bool,
    /// Lines of assembler.
    assemblers: Vec<usize>,
    has_foreign_code: bool,
}

/// A call: callee, arguments, and whether it is assembler.
pub(super) struct Call<'w, 'a> {
    pub(super) callee: &'a str,
    pub(super) arguments: Vec<&'w [&'a str]>,
}

/// Looks at a unit.
pub fn look<'a>(
    unit: &Unit<'a>,
    defined: &HashMap<&'a str, &Function<'a>>,
    mentioned: &HashSet<&str>,
) -> Findings {
    let mut findings = Findings::default();
    let has_foreign_code = defined.values().any(|function| function.lines.iter().any(makes_code));
    for (function, differences) in unit.module.functions.iter().zip(&unit.differences) {
        let mut walk = Walk {
            unit,
            defined,
            function,
            uses: HashMap::new(),
            made: HashMap::new(),
            covered: HashSet::new(),
            found: Vec::new(),
            plain: 0,
            touches: false,
            assemblers: Vec::new(),
            has_foreign_code,
        };
        walk.all(mentioned.contains(function.name));
        for difference in differences {
            if let Some(record) =
                difference.record.as_ref().filter(|_| !walk.covered.contains(&difference.line))
            {
                walk.found.push((difference.line, Kind::Constant, record.clone(), None));
            }
        }
        findings.plain += walk.plain;
        for (line, kind, about, rule) in walk.found {
            let line = function.lines.get(line).unwrap_or(&function.head);
            findings.obligations.push(Obligation {
                unit: unit.name.into(),
                function: function.name.trim_start_matches('@').into(),
                place: line.place.and_then(|place| unit.places.get(&place).cloned()).unwrap_or_default(),
                kind,
                about,
                statement: line.words.join(" "),
                rule,
            });
        }
    }
    findings.obligations.extend(data(unit));
    findings
}

/// Obligations of global objects: sections of their own, numbers and addresses in initial data.
fn data(unit: &Unit<'_>) -> Vec<Obligation> {
    let mut found = Vec::new();
    let assembler = unit.module.rest.iter().find(|line| line.words.first() == Some(&"module"));
    if let Some(line) = assembler.filter(|_| !unit.pair.changed.is_empty()) {
        found.push(Obligation {
            unit: unit.name.into(),
            function: "the unit".into(),
            place: String::new(),
            kind: Kind::Assembler,
            about: String::new(),
            statement: line.text.chars().take(160).collect(),
            rule: None,
        });
    }
    for (line, differences) in unit.module.globals.iter().zip(&unit.data) {
        let mut add = |kind, about: &str| {
            found.push(Obligation {
                unit: unit.name.into(),
                function: line.words.first().map(|name| name.trim_start_matches('@')).unwrap_or("").into(),
                place: String::new(),
                kind,
                about: about.into(),
                statement: line.text.chars().take(160).collect(),
                rule: None,
            });
        };
        let start =
            line.words.iter().position(|word| matches!(*word, "global" | "constant")).unwrap_or(0) + 1;
        let rest = line.words.get(start..).unwrap_or_default();
        let of = &rest[..Definitions::length(rest).unwrap_or(0).min(rest.len())];
        let holder =
            of.iter().filter_map(|word| record_name(word)).find(|name| unit.pair.holders.contains(*name));
        let is_object = of.last() != Some(&"*");
        if let Some(holder) = holder.filter(|_| is_object && line.words.contains(&"section")) {
            add(Kind::NamedSection, holder);
        }
        for record in differences.iter().filter_map(|difference| difference.record.as_ref()) {
            add(Kind::Constant, record);
        }
        for (at, word) in rest.iter().enumerate() {
            match *word {
                "getelementptr" => {
                    let steps = gep(&rest[at..]).map(|address| steps(unit, &address)).unwrap_or_default();
                    if let Some((record, member, _)) = steps.last() {
                        add(Kind::MemberAddress, &format!("{record}.{member}"));
                    }
                }
                "bitcast" | "ptrtoint" | "inttoptr" => {
                    let length = group(&rest[at + 1..]).unwrap_or(1);
                    let inside = &rest[at + 1..at + 1 + length];
                    let name = inside.iter().filter_map(|word| record_name(word));
                    if let Some(record) = name.into_iter().find(|name| is_sensitive_name(unit, name)) {
                        add(Kind::ToOtherType, record);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn is_sensitive_name(unit: &Unit<'_>, name: &str) -> bool {
    unit.pair.holders.contains(name) || unit.pair.parts.contains(name)
}

fn makes_code(line: &Line<'_>) -> bool {
    let Some(call) = call(&line.words) else { return false };
    let name = call.callee.trim_start_matches('@');
    let protection = call.arguments.get(2).and_then(|argument| argument.last()?.parse::<i64>().ok());
    library::is_loader(name)
        || matches!(name, "mmap" | "mmap64") && protection.is_none_or(|protection| protection & 4 != 0)
}

/// Reads a call or invoke.
pub(super) fn call<'w, 'a>(words: &'w [&'a str]) -> Option<Call<'w, 'a>> {
    let at = words.iter().position(|word| matches!(*word, "call" | "invoke"))?;
    if at > 4 {
        return None;
    }
    let rest = &words[at + 1..];
    let callee = rest.windows(2).position(|two| {
        two[1] == "(" && (two[0].starts_with('@') || two[0].starts_with('%') && record_name(two[0]).is_none())
    });
    let (callee, open) = match callee {
        Some(callee) => (rest[callee], callee + 1),
        // A cast of a function: its name stands within.
        None => {
            let cast = rest.iter().position(|word| *word == "bitcast")?;
            let length = group(&rest[cast + 1..])?;
            let name = rest[cast + 1..cast + 1 + length].iter().find(|word| word.starts_with('@'))?;
            (*name, cast + 1 + length)
        }
    };
    let length = group(rest.get(open..)?)?;
    Some(Call { callee, arguments: at_commas(&rest[open + 1..open + length - 1]) })
}

/// True when a constant index lies behind the end of its array.
fn is_past(unit: &Unit<'_>, address: &Gep<'_, '_>) -> bool {
    let mut of: Vec<&str> = address.source.to_vec();
    for index in address.indices.iter().skip(1) {
        let number = index.last().and_then(|index| index.parse::<u64>().ok());
        if let Some(element) = array_element(&of) {
            let count = of.get(1).and_then(|count| count.parse::<u64>().ok()).filter(|count| *count > 0);
            if number.zip(count).is_some_and(|(number, count)| number >= count) {
                return true;
            }
            of = element.to_vec();
            continue;
        }
        let elements = unit.module.definitions.elements(&of).unwrap_or_default();
        let Some(element) = number.and_then(|number| elements.get(number as usize)) else { return false };
        of = element.of.to_vec();
    }
    false
}

/// The members that an address goes through: record, member, size in bytes, of changed types and their holders.
fn steps(unit: &Unit<'_>, address: &Gep<'_, '_>) -> Vec<(String, String, u64)> {
    let definitions = &unit.module.definitions;
    let mut of: Vec<&str> = address.source.to_vec();
    let mut found = Vec::new();
    for index in address.indices.iter().skip(1) {
        if let Some(element) = array_element(&of) {
            of = element.to_vec();
            continue;
        }
        let Some(elements) = definitions.elements(&of) else { return found };
        let element = index.last().and_then(|index| elements.get(index.parse::<usize>().ok()?));
        let Some(element) = element else { return found };
        if let Some(record) =
            of.first().and_then(|name| record_name(name)).filter(|record| unit.pair.holders.contains(*record))
        {
            let members =
                unit.pair.new.record(record).map(|record| record.members.as_slice()).unwrap_or_default();
            let member = members.iter().find(|member| {
                member.at_bits <= element.at * 8 && element.at * 8 < member.at_bits + member.bits.max(1)
            });
            let name =
                member.and_then(|member| member.name.clone()).unwrap_or_else(|| format!("+{}", element.at));
            found.push((record.to_owned(), name, element.bytes));
        }
        of = element.of.to_vec();
    }
    found
}

impl<'a> Walk<'a, '_> {
    /// The changed type, its holder or part, that a type is a pointer to.
    pub(super) fn pointed<'w>(&self, of: &'w [&'a str]) -> Option<&'a str> {
        let of = &of[..Definitions::length(of)?.min(of.len())];
        let name = of.iter().find_map(|word| record_name(word))?;
        let is_pointer = of.last() == Some(&"*");
        (is_pointer && is_sensitive_name(self.unit, name)).then_some(name)
    }

    fn all(&mut self, is_mentioned: bool) {
        for (index, line) in self.function.lines.iter().enumerate() {
            let is_made = line.words.get(1) == Some(&"=");
            if let Some(name) = line.words.first().filter(|_| is_made) {
                self.made.insert(name, index);
            }
            for word in
                line.words.iter().skip(if is_made { 2 } else { 0 }).filter(|word| word.starts_with('%'))
            {
                self.uses.entry(word).or_default().push(index);
            }
        }
        let head = &self.function.head.words;
        let open = head.iter().position(|word| *word == self.function.name).unwrap_or(0) + 1;
        let length = group(head.get(open..).unwrap_or_default()).unwrap_or(0);
        let parameters = at_commas(head.get(open + 1..(open + length).saturating_sub(1)).unwrap_or_default());
        let taken = parameters.iter().find_map(|parameter| self.pointed(parameter));
        self.touches |= taken.is_some();
        if let Some(record) = taken.filter(|record| self.unit.pair.holders.contains(*record))
            && !is_mentioned
            && self.function.name != "@main"
        {
            self.found.push((usize::MAX, Kind::Entry, record.into(), None));
        }
        for index in 0..self.function.lines.len() {
            self.line(index);
        }
        if self.touches {
            for index in std::mem::take(&mut self.assemblers) {
                self.add(index, Kind::Assembler, "", None);
            }
            self.stayed_constants();
        }
    }

    fn add(&mut self, line: usize, kind: Kind, about: &str, rule: Option<&'static str>) {
        self.touches = true;
        if rule.is_some() {
            self.covered.insert(line);
        }
        self.found.push((line, kind, about.into(), rule));
    }

    fn line(&mut self, index: usize) {
        let function = self.function;
        let line = &function.lines[index];
        let words = line.words.as_slice();
        self.touches |= words
            .iter()
            .any(|word| record_name(word).is_some_and(|name| self.unit.pair.holders.contains(name)));
        if makes_code(line) && !self.unit.pair.changed.is_empty() {
            self.add(index, Kind::ForeignCode, "", None);
        }
        let (name, operation) = match words {
            [name, "=", operation, ..] => (Some(*name), *operation),
            [operation, ..] => (None, *operation),
            [] => return,
        };
        if words.contains(&"asm") {
            match self.unit.named_in_text(line.text) {
                Some(record) => self.add(index, Kind::Assembler, record, None),
                None => self.assemblers.push(index),
            }
            return;
        }
        match (name, operation) {
            (Some(name), "getelementptr") => self.address(index, name, &words[2..]),
            (Some(name), "bitcast" | "ptrtoint" | "inttoptr" | "addrspacecast") => {
                let to = words.iter().rposition(|word| *word == "to").unwrap_or(words.len());
                self.cast(index, name, &words[3..to], words.get(to + 1..).unwrap_or_default());
            }
            _ => {}
        }
        if !matches!(operation, "getelementptr" | "bitcast" | "ptrtoint" | "inttoptr") {
            self.constants(index, operation, words);
        } else if let Some(inner) = words.get(3..) {
            self.constants(index, operation, inner);
        }
        if let Some(call) = call(words) {
            self.call(index, &call);
        }
    }

    /// Addresses and casts within operands.
    fn constants(&mut self, index: usize, operation: &str, words: &[&'a str]) {
        for (at, word) in words.iter().enumerate() {
            if words.get(at + 1) != Some(&"(") && words.get(at + 2) != Some(&"(") {
                continue;
            }
            match *word {
                "getelementptr" => {
                    let Some(address) = gep(&words[at..]) else { continue };
                    let steps = steps(self.unit, &address);
                    let Some((record, member, _)) = steps.last() else { continue };
                    // As the place that a load or store uses it is a plain access.
                    let is_step = words[..at].iter().any(|word| matches!(*word, "getelementptr" | "bitcast"));
                    let is_place = !is_step
                        && (operation == "load"
                            || operation == "store" && at > 3 && words[..at].contains(&","));
                    self.plain += u64::from(is_place);
                    if is_past(self.unit, &address) {
                        self.add(index, Kind::ArrayEnd, &format!("{record}.{member}"), None);
                    } else if !is_place {
                        self.add(index, Kind::MemberAddress, &format!("{record}.{member}"), None);
                    }
                }
                "bitcast" | "ptrtoint" | "inttoptr" => {
                    let length = group(&words[at + 1..]).unwrap_or(0);
                    let inside = &words[at + 1..at + 1 + length];
                    let name = inside
                        .iter()
                        .find_map(|word| record_name(word).filter(|name| is_sensitive_name(self.unit, name)));
                    if let Some(name) = name {
                        let rule = self.is_only_marked(words).then_some("not-looked-at");
                        self.add(index, Kind::ToOtherType, name, rule);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_only_marked(&self, words: &[&str]) -> bool {
        call(words).is_some_and(|call| call.callee.starts_with("@llvm.lifetime") || is_opaque(call.callee))
    }

    fn address(&mut self, index: usize, name: &'a str, words: &[&'a str]) {
        let Some(address) = gep(words) else { return };
        let steps = steps(self.unit, &address);
        let Some((record, member, bytes)) = steps.last().cloned() else { return };
        self.plain += 1;
        self.touches = true;
        if self.is_open_end(&record, &member, &address) {
            self.add(index, Kind::ArrayEnd, &format!("{record}.{member}"), None);
        }
        let is_plain = self.stays(self.function, name, bytes, 6, true);
        if is_plain {
            return;
        }
        // The member's type is the last element's.
        let part = self.unit.pair.new.record(&record).and_then(|outer| {
            let (found, _) = self.unit.pair.new.member(outer, &member)?;
            Some(self.unit.pair.new.short(found.of).is_object())
        });
        let rule = if part == Some(true) && address.indices.len() == 2 {
            Some("struct-member")
        } else if self.stays(self.function, name, bytes, 6, false) {
            Some("within-member")
        } else {
            None
        };
        self.add(index, Kind::MemberAddress, &format!("{record}.{member}"), rule);
    }

    fn is_open_end(&self, record: &str, member: &str, address: &Gep<'_, 'a>) -> bool {
        let find = |facts: &crate::facts::Facts| {
            let outer = facts.record(record)?;
            let (found, at) = facts.member(outer, member)?;
            let last = outer.members.iter().map(|member| member.at_bits).max()?;
            match facts.bare(found.of) {
                Some(crate::facts::Type::Array { count, .. }) => Some((at >= last, count.unwrap_or(0), at)),
                _ => None,
            }
        };
        is_past(self.unit, address)
            || match (find(self.unit.pair.old), find(self.unit.pair.new)) {
                (Some((true, count, before)), Some((is_last, _, after))) => {
                    count <= 1 && (!is_last || before != after)
                }
                _ => false,
            }
    }

    /// True when an address is only loaded from and stored to; with `is_strict` without functions in between.
    fn stays(&self, function: &Function<'a>, name: &str, bytes: u64, depth: usize, is_strict: bool) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let lines = function.lines.iter().filter(|line| {
            let from = if line.words.get(1) == Some(&"=") { 2 } else { 0 };
            line.words.iter().skip(from).any(|word| *word == name)
        });
        lines.into_iter().all(|line| {
            let words = line.words.as_slice();
            let (result, operation) = match words {
                [result, "=", operation, ..] => (Some(*result), *operation),
                [operation, ..] => (None, *operation),
                [] => return true,
            };
            match operation {
                "load" | "icmp" | "cmpxchg" | "atomicrmw" => true,
                "store" => {
                    let parts = at_commas(words);
                    let is_value = parts.first().is_some_and(|value| value.contains(&name));
                    let place = parts.get(1).and_then(|place| place.last());
                    !is_value
                        || !is_strict
                            && place.is_some_and(|place| self.slot_stays(function, place, bytes, depth))
                }
                "getelementptr" => gep(&words[2..]).is_some_and(|address| {
                    let is_base = address.base.last() == Some(&name);
                    let is_first = address.indices.first().is_some_and(|index| index.last() == Some(&"0"));
                    let is_part = address.indices.len() > 1;
                    let result = result.unwrap_or("");
                    !is_base || is_first && is_part && self.stays(function, result, 0, depth, is_strict)
                }),
                "bitcast" => {
                    self.stays(function, result.unwrap_or(""), bytes, depth, is_strict)
                        && self.is_untyped(function, result)
                }
                "call" | "invoke" => !is_strict && self.argument_stays(line, name, bytes, depth),
                _ => false,
            }
        })
    }

    /// A cast to bytes is fine as long as nothing loads through it.
    fn is_untyped(&self, function: &Function<'a>, name: Option<&str>) -> bool {
        let Some(name) = name else { return false };
        function.lines.iter().filter(|line| line.words.iter().skip(2).any(|word| *word == name)).all(|line| {
            matches!(line.words.first(), Some(&("call" | "tail"))) || line.words.get(2) == Some(&"call")
        })
    }

    /// A local variable that holds an address: all that is loaded from it stays.
    fn slot_stays(&self, function: &Function<'a>, slot: &str, bytes: u64, depth: usize) -> bool {
        let is_local = function
            .lines
            .iter()
            .any(|line| line.words.first() == Some(&slot) && line.words.get(2) == Some(&"alloca"));
        is_local
            && function.lines.iter().filter(|line| line.words.iter().skip(1).any(|word| *word == slot)).all(
                |line| match line.words.as_slice() {
                    [result, "=", "load", ..] => self.stays(function, result, bytes, depth, false),
                    ["store", ..] => {
                        at_commas(&line.words).first().is_some_and(|value| !value.contains(&slot))
                    }
                    [result, "=", "bitcast", ..] => self.is_untyped(function, Some(result)),
                    _ => false,
                },
            )
    }

    fn argument_stays(&self, line: &Line<'a>, name: &str, bytes: u64, depth: usize) -> bool {
        let Some(call) = call(&line.words) else { return false };
        if call.callee.starts_with("@llvm.lifetime") {
            return true;
        }
        call.arguments.iter().enumerate().filter(|(_, argument)| argument.last() == Some(&name)).all(
            |(index, _)| {
                if let Some(function) = self.defined.get(call.callee) {
                    return self.stays(function, &format!("%{index}"), bytes, depth, false)
                        && !function.head.words.contains(&"...");
                }
                let size = size_of(&call, index);
                size.is_some_and(|size| size <= bytes)
            },
        )
    }

    fn cast(&mut self, index: usize, name: &'a str, of: &[&'a str], to: &[&'a str]) {
        let value = of.last().copied().unwrap_or("");
        let (from, goal) = (self.pointed(of), self.pointed(to));
        if let Some(record) = from {
            let rule = self.cast_rule(name, record);
            self.add(index, Kind::ToOtherType, record, rule);
        }
        if let Some(record) = goal {
            // New memory has no type yet.
            let is_new = self.is_new(value, record, to);
            self.add(index, Kind::FromOtherType, record, is_new.then_some("allocation"));
        }
        let carriers = [of, to].map(|side| {
            let names = side.iter().filter_map(|word| record_name(word));
            names.into_iter().find(|name| self.unit.pair.carriers.contains(*name))
        });
        if let [Some(carrier), _] | [_, Some(carrier)] = carriers
            && carriers[0] != carriers[1]
            && ![of, to].iter().any(|side| side.first() == Some(&"i8"))
        {
            self.add(index, Kind::ToOtherType, carrier, None);
        }
    }

    /// The rule for an object's address as bytes: marked, freed, or copied and cleared as a whole.
    fn cast_rule(&mut self, name: &str, record: &str) -> Option<&'static str> {
        let size = self.unit.pair.new.record(record).map_or(0, |record| record.bytes);
        let uses = self.uses.get(name).cloned().unwrap_or_default();
        let mut rule = "not-looked-at";
        for line in uses {
            let call = call(&self.function.lines[line].words)?;
            let at = call.arguments.iter().position(|argument| argument.last() == Some(&name))?;
            if call.callee.starts_with("@llvm.lifetime") || is_opaque(call.callee) {
                continue;
            }
            let count = size_of(&call, at).filter(|count| size > 0 && *count > 0 && count % size == 0)?;
            let _ = count;
            let bare = bare(call.callee);
            if library::is_fill(bare) && call.arguments.get(1)?.last() == Some(&"0") {
                rule = "whole-object-zero";
            } else if library::is_copy(bare) {
                let is_same = call.arguments.iter().take(2).all(|argument| {
                    let made = argument.last().and_then(|value| self.made.get(value));
                    let words =
                        made.map(|line| self.function.lines[*line].words.as_slice()).unwrap_or_default();
                    let to = words.iter().rposition(|word| *word == "to").unwrap_or(0);
                    words.get(3..to).and_then(|of| self.pointed(of)) == Some(record)
                });
                if !is_same {
                    return None;
                }
                rule = "whole-object-copy";
            } else {
                return None;
            }
            self.covered.insert(line);
        }
        Some(rule)
    }

    fn call(&mut self, index: usize, call: &Call<'_, 'a>) {
        if call.callee.starts_with("@llvm.") {
            return;
        }
        let parameters = self.defined.get(call.callee).map(|function| {
            let head = &function.head.words;
            let open = head.iter().position(|word| *word == function.name).unwrap_or(0) + 1;
            let length = group(head.get(open..).unwrap_or_default()).unwrap_or(0);
            at_commas(head.get(open + 1..(open + length).saturating_sub(1)).unwrap_or_default())
        });
        for (number, argument) in call.arguments.iter().enumerate() {
            let wanted = parameters.as_ref().and_then(|parameters| self.pointed(parameters.get(number)?));
            let given = self.pointed(argument);
            if let Some(wanted) =
                wanted.filter(|wanted| given != Some(*wanted) && argument.last() != Some(&"null"))
            {
                self.add(index, Kind::FromOtherType, wanted, None);
            }
            let Some(record) = given else { continue };
            if parameters.is_some() {
                if wanted != Some(record) {
                    self.add(index, Kind::ToOtherType, record, None);
                }
            } else if call.callee.starts_with('%') {
                let rule = (!self.has_foreign_code).then_some("typed-call");
                self.add(index, Kind::IndirectCall, record, rule);
            } else {
                let is_part = !self.unit.pair.holders.contains(record);
                let is_alone = call.arguments.iter().all(|other| other.contains(&"*"));
                let rule = (is_part && is_alone).then_some("whole-member");
                self.add(index, Kind::HandedOut, record, rule);
            }
        }
        // A function of another unit that gives or takes another type than here.
        if let Some(function) = self.defined.get(call.callee) {
            let named = |words: &[&'a str]| -> Vec<&'a str> {
                words.iter().filter_map(|word| record_name(word)).collect()
            };
            let line = &self.function.lines[index].words;
            let at = line.iter().position(|word| *word == call.callee).unwrap_or(line.len());
            let own = line.iter().position(|word| matches!(*word, "call" | "invoke")).unwrap_or(0);
            let given = function.head.words.iter().position(|word| *word == function.name).unwrap_or(0);
            let (here, there) = (named(&line[own..at.max(own)]), named(&function.head.words[..given]));
            let changed = there.iter().chain(&here).find(|name| self.unit.pair.holders.contains(**name));
            if let Some(changed) = changed.filter(|_| here != there) {
                self.add(index, Kind::TwoTypes, changed, None);
            }
        }
    }

    /// `memset` or `memcpy` of clang over the whole of what its pointer pointed at before the cast to bytes.
    fn fills_a_member(&self, words: &[&'a str]) -> bool {
        let Some(call) = call(words).filter(|call| call.callee.starts_with("@llvm.mem")) else {
            return false;
        };
        let made = call.arguments.first().and_then(|argument| self.made.get(argument.last()?));
        let cast = made.map(|line| self.function.lines[*line].words.as_slice()).unwrap_or_default();
        if cast.get(2) != Some(&"bitcast") {
            return false;
        }
        let of = cast.get(3..).unwrap_or_default();
        let length = Definitions::length(of).unwrap_or(1);
        let pointed = of.get(..length.saturating_sub(1)).and_then(|of| self.unit.module.definitions.size(of));
        pointed.is_some_and(|(bytes, _)| size_of(&call, 0) == Some(bytes))
    }

    fn stayed_constants(&mut self) {
        for (index, line) in self.function.lines.iter().enumerate() {
            let words = &line.words;
            let operation = if words.get(1) == Some(&"=") { words.get(2) } else { words.first() };
            let is_bytes = operation == Some(&"getelementptr")
                && words.get(4).or(words.get(3)).is_some_and(|of| *of == "i8");
            let is_call = call(words).is_some_and(|call| !call.callee.starts_with("@llvm.lifetime"));
            if !(is_bytes || is_call)
                || self.covered.contains(&index)
                || self.found.iter().any(|(at, _, _, rule)| *at == index && rule.is_none())
            {
                continue;
            }
            let number = |two: &[&str]| {
                matches!(two[0], "i64" | "i32" | "noundef").then(|| two[1].parse::<i128>().ok()).flatten()
            };
            let was = |number: i128| {
                self.unit.pair.was_offset(number).or_else(|| self.unit.pair.was_offset(-number))
            };
            if self.fills_a_member(words) {
                continue;
            }
            if let Some(about) = words.windows(2).filter_map(number).find_map(was) {
                self.found.push((index, Kind::StayedConstant, about, None));
            }
        }
    }
}

/// `@llvm.memcpy.p0i8.p0i8.i64` is `memcpy`.
fn bare(callee: &str) -> &str {
    let name = callee.trim_start_matches('@');
    name.strip_prefix("llvm.").map_or(name, |rest| rest.split('.').next().unwrap_or(rest))
}

fn is_opaque(callee: &str) -> bool {
    library::is_opaque(bare(callee)) || matches!(bare(callee), "_ZdlPv" | "_ZdlPvm")
}

/// The constant size that a function of the library gets for an argument.
fn size_of(call: &Call<'_, '_>, index: usize) -> Option<u64> {
    let size = library::size_argument(bare(call.callee), index)?;
    call.arguments.get(size)?.last()?.parse().ok()
}
