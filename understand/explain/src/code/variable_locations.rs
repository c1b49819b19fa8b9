//! The places of a function's variables in registers and stack slots, from debug info.

use crate::code::abstract_value::Origin;
use crate::code::instruction::Register;
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::Congruence;
use lineup_model::program::{Function, Location, Piece, Variable};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Texts by number, so that values stay small.
#[derive(Default, Debug)]
pub struct Names {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The number of a text.
    pub fn number(&mut self, text: String) -> u32 {
        let next = self.all.len() as u32;
        let all = &mut self.all;
        *self.numbers.entry(text).or_insert_with_key(|text| {
            all.push(text.clone());
            next
        })
    }

    /// The text with a number.
    pub fn text(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", String::as_str)
    }
}

/// While the program counter is in `range`, `register` points `offset` bytes into a `target`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisterFact {
    /// Link addresses.
    pub range: Range<u64>,
    /// The register.
    pub register: Register,
    /// Type of the object.
    pub target: Ty,
    /// Distance of the pointer from the object's start.
    pub offset: Congruence,
    /// The variable or its member.
    pub origin: Origin,
    /// True when the variable is in several places, of which this is one.
    pub is_piece: bool,
}

/// A variable, or the part of one, that lives on the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Link addresses for which it does.
    pub range: Range<u64>,
    /// The place.
    pub slot: Slot,
    /// The whole variable's type.
    pub ty: Ty,
    /// The bytes of the variable that lie there.
    pub bytes: Range<u64>,
    /// The variable, by name number.
    pub variable: u32,
}

/// The place of the first of a local variable's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// At the frame base plus this.
    FrameBase(i64),
    /// At a register plus this.
    Above(Register, i64),
}

/// Everything located in one function.
#[derive(Default, Debug)]
pub struct Located {
    /// Pointers in registers.
    pub registers: Vec<RegisterFact>,
    /// Variables on the stack.
    pub locals: Vec<Local>,
    /// The types that its variables point to, at any place.
    pub pointees: BTreeSet<Ty>,
}

/// A variable whose places are read.
struct LocatedVariable {
    ty: Ty,
    size_bytes: u64,
    /// The type it points to, when it is a pointer.
    pointee: Option<Ty>,
    /// The type of its elements, when it is a parameter that is an array: callers pass its address, as Fortran does.
    elements: Option<Ty>,
    /// Its name's number.
    name: u32,
}

/// Bytes of a variable, with their target when they are a pointer.
struct Part {
    bytes: Range<u64>,
    target: Option<Ty>,
    /// Size of an element when the target is one of an array, else 0.
    step: u64,
    origin: Origin,
    is_piece: bool,
}

impl Located {
    /// Collects from parameters, variables and inlined copies.
    pub fn of(
        catalog: &mut Catalog<'_>,
        names: &mut Names,
        image: usize,
        function: &Function,
        pointer_bytes: u64,
    ) -> Self {
        let mut located = Located::default();
        let own = |variable| (&function.name, &function.ranges, variable);
        let parameters = function.parameters.iter().map(own).map(|one| (one, true));
        let inlined = function.inlined.iter().flat_map(|inlined| {
            inlined.variables.iter().map(move |variable| (&inlined.name, &inlined.ranges, variable))
        });
        let variables = function.variables.iter().map(own).chain(inlined).map(|one| (one, false));
        for ((function, scope, variable), is_parameter) in parameters.chain(variables) {
            let Some(id) = variable.ty else { continue };
            let pointee = catalog.pointee(image, id);
            let elements = if is_parameter { catalog.elements(image, id) } else { None };
            located.pointees.extend(pointee.or(elements));
            let Some(ty) = catalog.intern(image, id) else { continue };
            let size_bytes = catalog.size_bytes(ty).unwrap_or(0);
            let name = variable.name.as_deref().unwrap_or("(unnamed)");
            let name = names.number(format!("{function}: {name}"));
            located.add(
                catalog,
                &LocatedVariable { ty, size_bytes, pointee, elements, name },
                scope,
                variable,
                pointer_bytes,
            );
        }
        located
    }

    fn add(
        &mut self,
        catalog: &mut Catalog<'_>,
        known: &LocatedVariable,
        scope: &[Range<u64>],
        variable: &Variable,
        pointer_bytes: u64,
    ) {
        for place in &variable.places {
            for range in place.range.as_ref().map_or(scope, std::slice::from_ref) {
                if let Location::Pieces(pieces) = &place.at {
                    for piece in pieces {
                        let part = part_of(catalog, known, piece, pointer_bytes);
                        self.part(known, range, &piece.at, part);
                    }
                } else {
                    let origin = Origin::Variable(known.name);
                    let (bytes, target) = (0..known.size_bytes, known.pointee);
                    let part = Part { bytes, target, step: 0, origin, is_piece: false };
                    self.part(known, range, &place.at, part);
                }
            }
        }
    }

    /// Adds the place of a part of a variable. A value without a place adds nothing about memory.
    fn part(&mut self, known: &LocatedVariable, range: &Range<u64>, at: &Location, part: Part) {
        let Part { bytes, target, step, origin, is_piece } = part;
        let is_empty = bytes.is_empty();
        let fact = |target: Option<Ty>, register, offset| {
            Some(RegisterFact {
                range: range.clone(),
                register: Register(register),
                target: target?,
                offset: Congruence::new(offset, step),
                origin,
                is_piece,
            })
        };
        let local = |slot| Local { range: range.clone(), slot, ty: known.ty, bytes, variable: known.name };
        match *at {
            Location::Register(register) => self.registers.extend(fact(target, register, 0)),
            Location::RegisterPlus { register, offset } => {
                self.registers.extend(fact(target, register, offset.wrapping_neg()));
            }
            Location::Memory { register, offset } if known.elements.is_some() && !is_piece => {
                let target = known.elements;
                self.registers.extend(fact(target, register, offset.wrapping_neg()));
            }
            // Debug info may claim bytes past the end of the variable.
            Location::Memory { .. } | Location::Frame { .. } if is_empty => {}
            Location::Memory { register, offset } => {
                self.locals.push(local(Slot::Above(Register(register), offset)));
            }
            Location::Frame { offset } => self.locals.push(local(Slot::FrameBase(offset))),
            _ => {}
        }
    }
}

/// A piece as far as it lies in its variable. It is a pointer when it is just the bytes of one.
fn part_of(catalog: &mut Catalog<'_>, known: &LocatedVariable, piece: &Piece, pointer_bytes: u64) -> Part {
    let (ty, offset) = (known.ty, piece.offset);
    let end = offset.saturating_add(piece.size_bytes).min(known.size_bytes);
    let is_pointer = piece.size_bytes == pointer_bytes
        && catalog.field(ty, offset, pointer_bytes).is_some_and(|field| {
            let size = field.bytes.end - field.bytes.start;
            let apart = offset.checked_sub(field.bytes.start);
            size == pointer_bytes && apart.is_some_and(|apart| apart.is_multiple_of(pointer_bytes))
        });
    let target = is_pointer.then(|| catalog.pointee_at(ty, offset, pointer_bytes)).flatten();
    Part {
        bytes: offset.min(end)..end,
        target,
        step: target.map_or(0, |target| catalog.step_at(ty, offset, pointer_bytes, target)),
        origin: if offset == 0 { Origin::Variable(known.name) } else { Origin::Member(ty, offset) },
        is_piece: true,
    }
}
