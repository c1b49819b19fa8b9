//! What debug info says about registers and stack slots of a function, place by place.

use crate::catalog::{Catalog, Ty};
use crate::instruction::Register;
use lineup_model::program::{Function, Location, Variable};
use std::collections::HashMap;
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
    pub offset: i64,
    /// The variable, by name number.
    pub variable: u32,
}

/// A variable that lives on the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Link addresses for which it does.
    pub range: Range<u64>,
    /// Where.
    pub slot: Slot,
    /// Its type.
    pub ty: Ty,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The variable, by name number.
    pub variable: u32,
}

/// Where a local variable's bytes start.
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
}

impl Located {
    /// Collects from parameters, variables and inlined copies.
    pub fn of(catalog: &mut Catalog<'_>, names: &mut Names, image: usize, function: &Function) -> Self {
        let mut located = Located::default();
        for variable in function.parameters.iter().chain(&function.variables) {
            located.add(catalog, names, image, (&function.name, &function.ranges), variable);
        }
        for inlined in &function.inlined {
            for variable in &inlined.variables {
                located.add(catalog, names, image, (&inlined.name, &inlined.ranges), variable);
            }
        }
        located
    }

    fn add(
        &mut self,
        catalog: &mut Catalog<'_>,
        names: &mut Names,
        image: usize,
        (function, scope): (&str, &[Range<u64>]),
        variable: &Variable,
    ) {
        let Some(id) = variable.ty else { return };
        let pointee = catalog.pointee(image, id);
        let Some(ty) = catalog.intern(image, id) else { return };
        let size_bytes = catalog.size_bytes(ty).unwrap_or(0);
        let number = names.number(format!("{function}: {}", variable.name.as_deref().unwrap_or("(unnamed)")));
        for place in &variable.places {
            let ranges = place.range.as_ref().map_or(scope, std::slice::from_ref);
            for range in ranges {
                let fact = |register, offset| {
                    let target = pointee?;
                    Some(RegisterFact {
                        range: range.clone(),
                        register: Register(register),
                        target,
                        offset,
                        variable: number,
                    })
                };
                let local = |slot| Local { range: range.clone(), slot, ty, size_bytes, variable: number };
                match place.at {
                    Location::Register(register) => self.registers.extend(fact(register, 0)),
                    Location::RegisterPlus { register, offset } => {
                        self.registers.extend(fact(register, offset.wrapping_neg()));
                    }
                    Location::Memory { register, offset } => {
                        self.locals.push(local(Slot::Above(Register(register), offset)));
                    }
                    Location::Frame { offset } => self.locals.push(local(Slot::FrameBase(offset))),
                    _ => {}
                }
            }
        }
    }
}
