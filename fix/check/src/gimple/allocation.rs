//! New memory: it has no type and no content, and holds a whole object.

use super::expression::Operand;
use super::library;
use super::program::Program;
use super::statement::{Statement, Value, read};
use super::uses::Walk;
use super::{Function, lexer::Token};
use crate::facts::Short;
use std::collections::HashSet;

/// Functions that call an allocator are followed no deeper.
const DEPTH: usize = 6;

impl<'a> Program<'a> {
    /// The arguments whose product is the size of the new memory that a function gives: nothing was written there but
    /// zeroes, and nothing else has its address. None for other functions.
    fn allocated(&self, unit: usize, name: &str, depth: usize) -> Option<Vec<usize>> {
        let Some((unit, function)) = self.function(unit, name) else {
            return library::allocated(name).map(<[usize]>::to_vec);
        };
        let key = (unit, function.name);
        if let Some(known) = self.allocators.borrow().get(&key) {
            return known.clone();
        }
        // A function that calls itself gives no new memory, as far as is known.
        self.allocators.borrow_mut().insert(key, None);
        let found = depth.checked_sub(1).and_then(|depth| self.passed_on(unit, function, depth));
        self.allocators.borrow_mut().insert(key, found.clone());
        found
    }

    fn passed_on(&self, unit: usize, function: &Function<'a>, depth: usize) -> Option<Vec<usize>> {
        let types = &self.units[unit].types;
        let mut scope = self.scope(&self.units[unit], function);
        let parameters = function.parameters(types);
        let mut statements = Vec::new();
        let mut aliases: HashSet<&str> = HashSet::new();
        for line in &function.lines {
            match read(line, &scope, types) {
                Some(Statement::Local(local, short)) => drop(scope.names.insert(local, short)),
                Some(statement) => {
                    if let Statement::Use(Value::One(value)) = &statement
                        && line.words.first().is_some_and(|word| word.is("return"))
                    {
                        aliases.insert(value.name?);
                    }
                    statements.push((line, statement));
                }
                None => return None,
            }
        }
        // All names of the memory: what is returned, where it came from, and where it went.
        loop {
            let count = aliases.len();
            for (_, statement) in &statements {
                if let Statement::Assign(Operand { name: Some(to), .. }, Value::One(value)) = statement
                    && let Some(of) = value.name
                    && (aliases.contains(to) || aliases.contains(of))
                {
                    aliases.extend([*to, of]);
                }
            }
            if aliases.len() == count {
                break;
            }
        }
        let is_own = |name: &&str| scope.names.contains_key(*name) || name.starts_with(['_', 'D']);
        let is_parameter = |name: &str| parameters.iter().position(|(own, _)| *own == Some(name));
        if aliases.is_empty() || !aliases.iter().all(|name| is_own(name) && is_parameter(name).is_none()) {
            return None;
        }
        let mut sizes: Option<Vec<usize>> = None;
        let mut written: HashSet<&str> = HashSet::new();
        for (line, statement) in &statements {
            let to = match statement {
                Statement::Assign(to, _) => to.name,
                _ => None,
            };
            written.extend(to);
            let Some(to) = to.filter(|to| aliases.contains(to)) else {
                let names = line.words.iter().filter_map(Token::name);
                let is_used = names.into_iter().any(|name| aliases.contains(name));
                if is_used && !is_harmless(statement) {
                    return None;
                }
                continue;
            };
            let Statement::Assign(_, Value::One(value)) = statement else { return None };
            match (value.callee, value.name, value.int) {
                (_, _, Some(0)) => {}
                (None, Some(name), _) if aliases.contains(name) && name != to => {}
                (Some(callee), ..) => {
                    let inner = self.allocated(unit, callee, depth)?;
                    let is_empty = value.inner.first().is_some_and(|first| first.int == Some(0));
                    if library::keeps_content(callee) && !is_empty {
                        return None;
                    }
                    let passed = |at: &usize| is_parameter(value.inner.get(*at)?.name?);
                    let passed = inner.iter().map(passed).collect::<Option<Vec<usize>>>()?;
                    if sizes.get_or_insert_with(|| passed.clone()) != &passed {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        let sizes = sizes?;
        let is_same = |at: &usize| parameters[*at].0.is_some_and(|name| !written.contains(name));
        sizes.iter().all(is_same).then_some(sizes)
    }
}

/// A use of new memory that leaves it new: it is returned, compared, freed or cleared.
fn is_harmless(statement: &Statement<'_>) -> bool {
    let is_name = |operand: &Operand<'_>| operand.name.is_some() || operand.int.is_some();
    match statement {
        Statement::Nothing => true,
        Statement::Use(Value::One(value)) | Statement::Assign(_, Value::One(value)) => match value.callee {
            Some(callee) => {
                let is_zero = value.inner.get(1).is_some_and(|value| value.int == Some(0));
                let is_cleared = library::is_fill(callee) && (is_zero || callee.contains("bzero"));
                value.inner.iter().all(is_name) && (is_cleared || library::is_opaque(callee))
            }
            None => matches!(statement, Statement::Use(_)) && value.name.is_some(),
        },
        Statement::Use(Value::Two(one, sign, other)) | Statement::Assign(_, Value::Two(one, sign, other)) => {
            matches!(*sign, "==" | "!=") && is_name(one) && is_name(other)
        }
        Statement::Assembler | Statement::Local(..) => false,
    }
}

impl<'a> Walk<'a, '_> {
    /// The call that made a value: the operand itself, or the one whose result a temporary name holds.
    pub(super) fn made_by(&self, line: usize, operand: &Operand<'a>) -> Option<Operand<'a>> {
        if operand.callee.is_some() {
            return Some(operand.clone());
        }
        let name = operand.name?;
        let lines = &self.function.lines[..line];
        let is_made = |line: &&super::Line<'_>| line.words.first().is_some_and(|word| word.is(name));
        let made = lines.iter().rev().find(is_made)?;
        match read(made, &self.scope, &self.program.units[self.unit].types)? {
            Statement::Assign(_, Value::One(call)) if call.callee.is_some() => Some(call),
            _ => None,
        }
    }

    /// New memory for at least one object of the type that `to` points at; none where it may be another or too small.
    pub(super) fn is_new(&mut self, line: usize, operand: &Operand<'a>, to: &Short) -> bool {
        let Some(call) = self.made_by(line, operand) else { return false };
        let Some(callee) = call.callee else { return false };
        let Some(sizes) = self.program.allocated(self.unit, callee, DEPTH) else { return false };
        let first = call.inner.first();
        if library::keeps_content(callee)
            && !first.is_some_and(|first| first.short.as_ref() == Some(to) || first.int == Some(0))
        {
            return false;
        }
        if to.stars > 1 {
            return true;
        }
        let bytes = self.pair.new.record(&to.base).map_or(0, |record| i128::from(record.bytes));
        let number = |at: &usize| {
            let argument = call.inner.get(*at)?;
            let name = argument.name;
            let multiple = name.and_then(|name| self.numbers.multiples.get(name)).map(|(number, _)| *number);
            let least = name.and_then(|name| self.numbers.least.get(name)).copied();
            argument.int.or(multiple).or(least)
        };
        // A factor that is not known is at least one.
        let known: Vec<i128> = sizes.iter().filter_map(number).collect();
        let product = known.iter().try_fold(1_i128, |product, number| product.checked_mul(*number));
        let is_large = product.is_some_and(|product| bytes > 0 && product >= bytes && !known.is_empty());
        if is_large && product.is_some_and(|product| product % bytes == 0) {
            self.covered.insert(line);
            return true;
        }
        is_large && !self.explained.contains_key(&line)
    }
}
