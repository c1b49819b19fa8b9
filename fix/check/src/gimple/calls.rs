//! Calls: where an object's address goes as an argument.

use super::expression::Operand;
use super::library;
use super::program::Goal;
use super::uses::Walk;
use crate::facts::Short;
use crate::obligation::Kind;

impl<'a> Walk<'a, '_> {
    pub(super) fn call(&mut self, line: usize, call: &Operand<'a>) {
        let Some(callee) = call.callee else { return };
        let wanted: Vec<Option<Short>> =
            match (self.scope.of(callee), self.program.function(self.unit, callee)) {
                (Some(pointer), _) => pointer.parameters.iter().cloned().map(Some).collect(),
                (None, Some((unit, function))) => {
                    let parameters = function.parameters(&self.program.units[unit].types);
                    parameters.into_iter().map(|(_, short)| short).collect()
                }
                _ => Vec::new(),
            };
        for (index, argument) in call.inner.iter().enumerate() {
            let wanted = wanted.get(index).and_then(Option::as_ref);
            self.function_address(line, argument, wanted);
            let code = argument.short.as_ref().filter(|_| wanted.is_none());
            if let Some(about) = code.and_then(|code| self.pair.code_about(code)).map(str::to_owned) {
                self.add(line, Kind::HandedOut, &about, None);
            }
        }
        for (argument, wanted) in call.inner.iter().zip(&wanted) {
            let Some(to) = wanted.as_ref().filter(|to| argument.short.as_ref() != Some(to)) else { continue };
            if argument.int == Some(0) || self.is_function(argument) {
                continue;
            }
            let codes = [Some(to), argument.short.as_ref()].into_iter().flatten();
            if let Some(about) = codes.into_iter().find_map(|code| self.pair.code_about(code)) {
                self.add(line, Kind::ToOtherType, about, None);
            }
            if self.is_address(Some(to)) {
                let is_new = self.is_new(line, argument, to);
                self.found.push((line, Kind::FromOtherType, to.base.clone(), is_new.then_some("allocation")));
            }
        }
        for (index, argument) in call.inner.iter().enumerate() {
            let is_member = argument.is_address && self.changed_step(argument).is_some();
            let is_record = argument.short.as_ref().is_some_and(|short| short.is_record);
            if is_member && !is_record {
                let rule = self.member_argument(callee, index, call, argument);
                if rule.is_some() && self.program.function(self.unit, callee).is_none() {
                    self.sized.insert(line);
                }
                self.add(line, Kind::MemberAddress, &self.about(argument), rule);
            } else if self.is_address(argument.short.as_ref()) {
                self.object_argument(line, callee, index, call, argument);
            } else if argument
                .short
                .as_ref()
                .is_some_and(|short| short.is_object() && self.is_sensitive(short))
                && self.program.function(self.unit, callee).is_none()
            {
                self.add(line, Kind::HandedOut, &self.about(argument), None);
            }
        }
    }

    fn member_argument(
        &self,
        callee: &str,
        index: usize,
        call: &Operand<'a>,
        argument: &Operand<'a>,
    ) -> Option<&'static str> {
        let goal = self.goal(argument);
        if self.scope.of(callee).is_some() {
            return None;
        }
        let stays = match self.program.function(self.unit, callee) {
            Some((unit, function)) => {
                let parameters = function.parameters(&self.program.units[unit].types);
                match parameters.get(index) {
                    Some((Some(name), short)) => {
                        *short == argument.short && self.program.stays((unit, function), name, &goal)
                    }
                    _ => false,
                }
            }
            None => goal.library_stays(callee, index, call),
        };
        stays.then_some("within-member")
    }

    fn object_argument(
        &mut self,
        line: usize,
        callee: &'a str,
        index: usize,
        call: &Operand<'a>,
        argument: &Operand<'a>,
    ) {
        let Some(short) = argument.short.clone() else { return };
        let base = self.about(argument);
        let is_part = !self.pair.holders.contains(&short.base);
        if let Some(pointer) = self.scope.of(callee) {
            let is_typed = pointer.base == "function" && pointer.parameters.get(index) == Some(&short);
            let rule = (is_typed && !self.program.has_foreign_code).then_some("typed-call");
            self.add(line, Kind::IndirectCall, &base, rule);
            return;
        }
        if let Some((unit, function)) = self.program.function(self.unit, callee) {
            let parameters = function.parameters(&self.program.units[unit].types);
            let parameter = parameters.get(index);
            if parameter.is_some_and(|(_, of)| of.as_ref() == Some(&short)) {
                if argument.is_address && self.changed_step(argument).is_some() {
                    self.add(line, Kind::MemberAddress, &base, Some("struct-member"));
                }
                return;
            }
            let goal = Goal { object: Some(short), ..Goal::default() };
            let name = parameter.and_then(|(name, _)| *name);
            let is_back = name.is_some_and(|name| self.program.stays((unit, function), name, &goal));
            self.add(line, Kind::ToOtherType, &base, is_back.then_some("cast-back"));
            return;
        }
        let size = library::size_argument(callee, index).and_then(|size| call.inner.get(size));
        if library::is_opaque(callee) {
            let rule = Some("not-looked-at");
            self.add(line, Kind::HandedOut, &base, rule);
        } else if let Some(size) = size {
            // Bytes behind a part are those of other members.
            let is_one = |size: &Operand<'a>| size.int == Some(self.bytes_of(&short.base));
            let is_part = self.pair.parts.contains(&short.base);
            let is_whole = short.stars == 1 && self.is_whole(&short, size) && (!is_part || is_one(size));
            let is_zero = library::is_fill(callee)
                && (callee.contains("bzero") || call.inner.get(1).is_some_and(|value| value.int == Some(0)));
            let both = call.inner.iter().take(2).all(|other| other.short.as_ref() == Some(&short));
            let is_copy = library::is_copy(callee) && both;
            let rule = match (is_whole, is_zero, is_copy) {
                (true, true, _) => Some("whole-object-zero"),
                (true, _, true) => Some("whole-object-copy"),
                _ => None,
            };
            self.add(line, Kind::Bytes, &base, rule);
        } else {
            let has_number = call.inner.iter().enumerate().any(|(other, operand)| {
                other != index && operand.short.as_ref().is_none_or(|short| short.stars == 0)
            });
            // Code that is written for another type, or for none, may know what is around the member.
            let own = self.pair.new.function(callee).unwrap_or_default();
            let is_own = own.parameters.get(index) == Some(&short);
            let rule = (is_part && is_own && short.stars == 1 && !has_number).then_some("whole-member");
            self.add(line, Kind::HandedOut, &base, rule);
        }
    }

    /// A size in bytes that is a number of whole objects.
    fn is_whole(&self, short: &Short, size: &Operand<'a>) -> bool {
        let bytes = self.bytes_of(&short.base);
        let number = size.int.or_else(|| Some(self.numbers.multiples.get(size.name?)?.0));
        bytes > 0 && number.is_some_and(|number| number > 0 && number % bytes == 0)
    }

    fn bytes_of(&self, name: &str) -> i128 {
        self.pair.new.record(name).map_or(0, |record| i128::from(record.bytes))
    }
}
