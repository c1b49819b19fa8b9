//! Objects, addresses and functions that are seen as another type.

use super::expression::{Operand, Step};
use super::program::Goal;
use super::uses::Walk;
use crate::facts::Short;
use crate::obligation::Kind;

impl<'a> Walk<'a, '_> {
    pub(super) fn cast(
        &mut self,
        line: usize,
        of: Option<&Short>,
        to: Option<&Short>,
        inner: Option<&Operand<'a>>,
    ) {
        let is_null = inner.is_some_and(|inner| inner.int == Some(0));
        if of == to || is_null {
            return;
        }
        if let Some(of) = of.filter(|_| self.is_address(of)) {
            self.add(line, Kind::ToOtherType, &of.base.clone(), None);
        }
        if let Some(to) = to.filter(|_| self.is_address(to)) {
            self.add(line, Kind::FromOtherType, &to.base.clone(), None);
        }
        match inner.filter(|inner| self.is_function(inner)) {
            Some(inner) => self.function_address(line, inner, to),
            None => self.other_code(line, of, to),
        }
    }

    /// A pointer to a function becomes one of another type, or is made of one.
    fn other_code(&mut self, line: usize, of: Option<&Short>, to: Option<&Short>) {
        let mut codes = [of, to].into_iter().flatten();
        if let Some(about) = codes.find_map(|code| self.pair.code_about(code)).map(str::to_owned) {
            self.add(line, Kind::ToOtherType, &about, None);
        }
    }

    /// The name of a function.
    pub(super) fn is_function(&self, operand: &Operand<'_>) -> bool {
        operand.name.is_some_and(|name| {
            self.scope.of(name).is_none()
                && (self.program.function(self.unit, name).is_some()
                    || self.pair.new.function(name).is_some())
        })
    }

    /// A function goes to a pointer: what it takes must be what the pointer says.
    pub(super) fn function_address(&mut self, line: usize, value: &Operand<'a>, to: Option<&Short>) {
        let name = value.name.or(value.root.filter(|_| value.is_address && value.steps.is_empty()));
        let Some(name) = name.filter(|name| self.scope.of(name).is_none()) else { return };
        let own = match self.program.function(self.unit, name) {
            Some((unit, function)) => Some(function.short(&self.program.units[unit].types)),
            None => self.pair.new.function(name),
        };
        let Some(own) = own else { return };
        let said = to.filter(|to| to.base == "function").cloned().unwrap_or_default();
        if let Some(about) = self.pair.misfit(&own, &said) {
            self.add(line, Kind::ToOtherType, &about, None);
        }
    }

    /// A value of type `of` goes to a place of type `to`.
    pub(super) fn converted(
        &mut self,
        line: usize,
        to: Option<&Short>,
        of: Option<&Short>,
        value: Option<&Operand<'a>>,
    ) {
        let Some(to) = to else {
            if self.is_address(of) {
                self.add(line, Kind::NotUnderstood, &of.map(|of| of.base.clone()).unwrap_or_default(), None);
            }
            return;
        };
        if Some(to) == of {
            return;
        }
        if self.is_address(of) {
            let base = of.map(|of| of.base.clone()).unwrap_or_default();
            let rule = self.goes_back(line, of);
            self.add(line, Kind::ToOtherType, &base, rule);
        }
        if self.is_address(Some(to)) {
            let is_new = value.is_some_and(|value| self.is_new(line, value, to));
            self.found.push((line, Kind::FromOtherType, to.base.clone(), is_new.then_some("allocation")));
        }
        if !value.is_some_and(|value| self.is_function(value)) {
            self.other_code(line, of, Some(to));
        }
    }

    /// A local pointer of another type that only becomes the object's address again.
    fn goes_back(&self, line: usize, of: Option<&Short>) -> Option<&'static str> {
        let name = self.function.lines[line].words.first()?.name()?;
        let is_local = self.scope.names.contains_key(name) && self.function.lines[line].words.get(1)?.is("=");
        let is_local = is_local && self.scope.of(name).is_some_and(|short| short.stars > 0);
        let goal = Goal { object: of.cloned(), ..Goal::default() };
        (is_local && self.program.stays((self.unit, self.function), name, &goal)).then_some("cast-back")
    }

    /// The address of an object, compared with one of another type: it may be that of its first member.
    pub(super) fn compared(&mut self, line: usize, one: &Operand<'a>, other: &Operand<'a>) {
        let is_pointer = |short: &&Short| short.stars > 0 && short.base != "void";
        if self.is_address(one.short.as_ref())
            && other.short.as_ref().filter(is_pointer).is_some_and(|short| one.short.as_ref() != Some(short))
        {
            self.add(line, Kind::OtherType, &self.about(one), None);
        }
    }

    /// The union that a member is of, when others of its members could show what is stored by this one.
    pub(super) fn is_seen_in_union(&self, step: &Step) -> bool {
        let facts = self.pair.new;
        let Some(union) = facts.record(&step.record).and_then(|record| facts.union_of(record, &step.member))
        else {
            return false;
        };
        let own = facts.member(union, &step.member).map(|(member, _)| facts.short(member.of));
        let others = || union.members.iter().map(|member| facts.short(member.of));
        let is_here = |short: &Short| self.is_sensitive(short) && short.stars == 0;
        if self.pair.holders.contains(&union.name) && others().any(|short| is_here(&short)) {
            // Of one object and bytes, each use of the bytes is one by another type.
            let is_only = others().filter(|short| is_here(short)).count() == 1;
            return !(is_only && own.as_ref().is_some_and(is_here));
        }
        let carries = |short: &Short| {
            self.pair.is_address(short)
                || self.pair.is_code(short)
                || short.is_record && short.stars == 0 && self.pair.carriers.contains(&short.base)
        };
        own.as_ref().is_some_and(carries) && others().any(|short| own.as_ref() != Some(&short))
    }
}
