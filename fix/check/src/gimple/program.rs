//! All functions of a program, and where an address goes in them.

use super::expression::{Operand, Scope};
use super::statement::{Statement, Value, read};
use super::{Function, Types, library};
use crate::facts::Short;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A unit's functions, their types and what is known of its names.
#[derive(Debug)]
pub struct Unit<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its functions after the change.
    pub functions: Vec<Function<'a>>,
    /// Its types.
    pub types: Types<'a>,
    /// Types of its global variables.
    pub globals: HashMap<&'a str, Short>,
    /// Types that its functions return.
    pub returned: HashMap<&'a str, Option<Short>>,
}

impl<'a> Unit<'a> {
    /// A unit.
    pub fn new(name: &'a str, functions: Vec<Function<'a>>, types: Types<'a>) -> Self {
        let facts = types.facts;
        let globals = facts.variables.iter().filter(|variable| variable.function.is_none());
        let globals = globals.map(|variable| (variable.name.as_str(), facts.short(variable.of))).collect();
        let returned = functions.iter().map(|function| (function.name, function.returned(&types))).collect();
        Self { name, functions, types, globals, returned }
    }

    /// A scope with a function's parameters.
    fn scope<'t>(
        &'t self,
        function: &Function<'a>,
        others: &'t HashMap<&'a str, Option<Short>>,
    ) -> Scope<'a, 't>
    where
        'a: 't,
    {
        let parameters = function.parameters(&self.types);
        let mut names: HashMap<&'a str, Short> =
            parameters.into_iter().filter_map(|(name, short)| Some((name?, short?))).collect();
        if let Some(returned) = function.returned(&self.types) {
            names.insert("<retval>", returned);
        }
        Scope { types: &self.types, names, globals: &self.globals, returned: &self.returned, others }
    }
}

pub(super) type Allocators<'a> = HashMap<(usize, &'a str), Option<Vec<usize>>>;

/// A program.
#[derive(Debug)]
pub struct Program<'a> {
    /// Its units.
    pub units: Vec<Unit<'a>>,
    by_name: HashMap<&'a str, Vec<(usize, usize)>>,
    /// Names that stand in bodies: called, or their address taken.
    pub mentioned: HashSet<&'a str>,
    /// It loads code or makes it.
    pub has_foreign_code: bool,
    returned: HashMap<&'a str, Option<Short>>,
    /// Functions that were searched for new memory, by unit and name: the arguments that are its size.
    pub(super) allocators: RefCell<Allocators<'a>>,
}

/// Calls are followed no deeper.
const DEPTH: usize = 6;

impl<'a> Program<'a> {
    /// A program of these units.
    pub fn new(units: Vec<Unit<'a>>) -> Self {
        let mut by_name: HashMap<&'a str, Vec<(usize, usize)>> = HashMap::new();
        let mut mentioned = HashSet::new();
        let mut has_foreign_code = false;
        for (number, unit) in units.iter().enumerate() {
            for (index, function) in unit.functions.iter().enumerate() {
                by_name.entry(function.name).or_default().push((number, index));
                for line in &function.lines {
                    let names = line.words.iter().filter_map(super::lexer::Token::name);
                    mentioned.extend(names.filter(|name| *name != function.name));
                    has_foreign_code |= line
                        .words
                        .windows(2)
                        .any(|two| two[1].is("(") && two[0].name().is_some_and(library::is_loader));
                    has_foreign_code |= maps_code(&line.words);
                }
            }
        }
        let returned = units.iter().flat_map(|unit| unit.returned.clone()).collect();
        Self { units, by_name, mentioned, has_foreign_code, returned, allocators: RefCell::default() }
    }

    /// A scope with a function's parameters.
    pub fn scope<'t>(&'t self, unit: &'t Unit<'a>, function: &Function<'a>) -> Scope<'a, 't> {
        unit.scope(function, &self.returned)
    }

    /// The function of that name which a call in `unit` reaches; none where several others have that name.
    pub fn function(&self, unit: usize, name: &str) -> Option<(usize, &Function<'a>)> {
        let found = self.by_name.get(name)?;
        let only = found.first().filter(|_| found.len() == 1);
        let (unit, index) = found.iter().find(|(own, _)| *own == unit).or(only)?;
        Some((*unit, &self.units[*unit].functions[*index]))
    }

    /// True when the memory behind a name of a function is only reached through it as its own type, or as an object of
    /// the type that it was before: nothing steps out of it, keeps it or looks at its bytes.
    pub fn stays(&self, at: (usize, &Function<'a>), name: &'a str, goal: &Goal) -> bool {
        self.stays_within(at, name, goal, DEPTH)
    }

    fn stays_within(
        &self,
        (unit, function): (usize, &Function<'a>),
        name: &'a str,
        goal: &Goal,
        depth: usize,
    ) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let own = &self.units[unit];
        let mut scope = self.scope(own, function);
        let mut aliases: HashSet<&str> = HashSet::from([name]);
        // A loop may use a name above the line that makes it one.
        for _ in 0..2 {
            for line in &function.lines {
                let statement = read(line, &scope, &own.types);
                if let Some(Statement::Local(local, short)) = statement {
                    scope.names.insert(local, short);
                    continue;
                }
                let is_used =
                    line.words.iter().any(|word| word.name().is_some_and(|name| aliases.contains(name)));
                if !is_used {
                    continue;
                }
                let Some(statement) = statement else { return false };
                if !self.statement_stays(unit, &statement, &mut aliases, &scope, goal, depth) {
                    return false;
                }
            }
        }
        true
    }

    fn statement_stays(
        &self,
        unit: usize,
        statement: &Statement<'a>,
        aliases: &mut HashSet<&'a str>,
        scope: &Scope<'a, '_>,
        goal: &Goal,
        depth: usize,
    ) -> bool {
        match statement {
            Statement::Nothing | Statement::Local(..) => true,
            Statement::Assembler => false,
            Statement::Use(Value::Two(one, sign, other)) => goal.allows(one, sign, other, aliases),
            Statement::Use(Value::One(value)) if value.callee.is_none() => !mentions(value, aliases),
            Statement::Use(Value::One(call)) => self.call_stays(unit, call, aliases, goal, depth),
            Statement::Assign(to, Value::Two(one, sign, other)) => {
                !mentions(to, aliases) && goal.allows(one, sign, other, aliases)
            }
            Statement::Assign(to, Value::One(value)) => {
                if to.root.is_some_and(|root| aliases.contains(root)) && to.name.is_none() {
                    return goal.is_plain_place(to) && !value.name.is_some_and(|name| aliases.contains(name));
                }
                if value.callee.is_some() {
                    return self.call_stays(unit, value, aliases, goal, depth);
                }
                if value.name.is_some_and(|name| aliases.contains(name)) {
                    let Some(to) = to.name else { return false };
                    let short = scope.names.get(to);
                    match short {
                        Some(short) if goal.object.as_ref() == Some(short) => return true,
                        Some(short) if goal.scalar.as_ref().is_some_and(|own| own != short) => return false,
                        Some(short) if scope.globals.contains_key(to) && short.stars == 0 => return false,
                        _ if !scope.globals.contains_key(to) => {
                            aliases.insert(to);
                            return true;
                        }
                        _ => return false,
                    }
                }
                // A cast names the object's type; other casts lose it.
                if let Some((_, to_type)) = &value.cast {
                    return goal.object.is_some() && *to_type == goal.object;
                }
                let is_free = to.name.is_some() || !mentions(to, aliases);
                is_free && (goal.is_plain_place(value) || !mentions(value, aliases))
            }
        }
    }

    fn call_stays(
        &self,
        unit: usize,
        call: &Operand<'a>,
        aliases: &HashSet<&'a str>,
        goal: &Goal,
        depth: usize,
    ) -> bool {
        let Some(callee) = call.callee else { return false };
        call.inner.iter().enumerate().all(|(index, argument)| {
            if !argument.root.is_some_and(|root| aliases.contains(root)) {
                return true;
            }
            if argument.name.is_none() {
                return !argument.is_address && goal.is_plain_place(argument);
            }
            match self.function(unit, callee) {
                Some((other, function)) => {
                    let parameters = function.parameters(&self.units[other].types);
                    let Some((Some(name), short)) = parameters.get(index) else { return false };
                    let is_own = goal.scalar.is_none() || *short == goal.scalar;
                    goal.object.is_some() && *short == goal.object
                        || is_own && self.stays_within((other, function), name, goal, depth)
                }
                None => goal.library_stays(callee, index, call),
            }
        })
    }
}

/// True when an operand, or one within it, begins with one of these names.
fn mentions(operand: &Operand<'_>, names: &HashSet<&str>) -> bool {
    operand.root.is_some_and(|root| names.contains(root))
        || operand.inner.iter().any(|inner| mentions(inner, names))
}

/// True for a call of `mmap` with a protection that lets the memory be executed, or one that is no number.
pub fn maps_code(words: &[super::lexer::Token<'_>]) -> bool {
    let Some(at) =
        words.windows(2).position(|two| two[1].is("(") && (two[0].is("mmap") || two[0].is("mmap64")))
    else {
        return false;
    };
    let arguments = super::at_commas(&words[at + 2..]);
    match arguments.get(2) {
        Some([super::lexer::Token::Int(protection)]) => protection & 4 != 0,
        _ => true,
    }
}

/// Permitted uses of an address.
#[derive(Debug, Default)]
pub struct Goal {
    /// The type of the address: it may become this again, and then is no question any more.
    pub object: Option<Short>,
    /// Size in bytes of what lies there.
    pub bytes: u64,
    /// It is read and written as its own type only, by pointers of this type: `*p`.
    pub scalar: Option<Short>,
    /// It is an array of characters.
    pub is_text: bool,
}

impl Goal {
    /// A load or store of the thing itself, at its own address.
    fn is_plain_place(&self, operand: &Operand<'_>) -> bool {
        self.scalar.is_some() && operand.is_load && operand.steps.is_empty() && operand.seen_as.is_empty()
    }

    /// A comparison that does not depend on where the thing lies within its object.
    fn allows(&self, one: &Operand<'_>, sign: &str, other: &Operand<'_>, aliases: &HashSet<&str>) -> bool {
        let is_typed = |operand: &Operand<'_>| self.scalar.is_none() || operand.short == self.scalar;
        let is_own = |operand: &Operand<'_>| {
            operand.int == Some(0)
                || operand.name.is_some_and(|name| aliases.contains(name) || is_typed(operand))
        };
        matches!(sign, "==" | "!=") && is_own(one) && is_own(other)
    }

    /// A function of the library stays within the bytes.
    pub fn library_stays(&self, callee: &str, index: usize, call: &Operand<'_>) -> bool {
        if library::is_opaque(callee) {
            return self.object.is_some() && self.scalar.is_none();
        }
        if self.scalar.is_none() {
            return false;
        }
        let size = library::size_argument(callee, index).and_then(|size| call.inner.get(size)?.int);
        size.is_some_and(|size| size >= 0 && size <= i128::from(self.bytes))
            || self.is_text && library::is_text(callee)
    }
}
