//! Types and variables of one unit, as its debug information describes them.

use std::collections::{HashMap, HashSet};

/// Number of a type in a unit's debug information.
pub type TypeId = u64;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number, an enumeration or another type without parts.
    Scalar {
        /// Its name.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// A pointer to a type.
    Pointer(TypeId),
    /// A struct, union or class: an index into [`Facts::records`].
    Record(usize),
    /// An array; without a count it has no end of its own.
    Array {
        /// The element's type.
        of: TypeId,
        /// Number of elements.
        count: Option<u64>,
    },
    /// Another name or a qualifier.
    Same(TypeId),
    /// A function.
    Function,
}

/// A member of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name; an unnamed one has none.
    pub name: Option<String>,
    /// Its type.
    pub of: TypeId,
    /// Distance from the start of the record, in bits.
    pub at_bits: u64,
    /// Size in bits.
    pub bits: u64,
    /// It is a bit-field.
    pub is_bit_field: bool,
}

/// A struct, union or class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its tag, the name of its typedef, or `OUTER.MEMBER` for a type without a name.
    pub name: String,
    /// It is a union.
    pub is_union: bool,
    /// Its size.
    pub bytes: u64,
    /// Its members, in order.
    pub members: Vec<Member>,
}

/// A variable with a place in the object file.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The function that declares it.
    pub function: Option<String>,
    /// Its type.
    pub of: TypeId,
    /// Section and offset; none for a declaration.
    pub place: Option<(usize, u64)>,
    /// The symbol, where it differs from the name.
    pub symbol: Option<String>,
    /// Other units can name it; a function may declare it for itself.
    pub is_external: bool,
}

/// A type in short: a base, stars and dimensions of an array.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Short {
    /// Name of the record or scalar.
    pub base: String,
    /// The base is a record.
    pub is_record: bool,
    /// Number of pointers around it.
    pub stars: usize,
    /// Number of dimensions of an array of that.
    pub dimensions: usize,
    /// Of a function: its parameters.
    pub parameters: Vec<Short>,
    /// Of a function: the record that it returns, or a pointer to one.
    pub returned: Option<Box<Short>>,
}

impl Short {
    /// A pointer to a function.
    pub fn function(parameters: Vec<Self>, returned: Option<Self>) -> Self {
        let returned = returned.filter(|of| of.is_record).map(Box::new);
        Self { base: "function".into(), stars: 1, parameters, returned, ..Self::default() }
    }

    /// Of a function: what it takes and gives.
    pub fn signature(&self) -> impl Iterator<Item = &Self> {
        self.parameters.iter().chain(self.returned.as_deref())
    }

    /// The type of what a pointer of this type points at.
    pub fn pointed(&self) -> Option<Self> {
        (self.stars > 0 && self.dimensions == 0).then(|| Self { stars: self.stars - 1, ..self.clone() })
    }

    /// The type of the address of such a thing; an array becomes its first element.
    pub fn address(&self) -> Self {
        Self { stars: self.stars + 1, dimensions: 0, ..self.clone() }
    }

    /// It is one object of the record itself.
    pub fn is_object(&self) -> bool {
        self.is_record && self.stars == 0 && self.dimensions == 0
    }

    /// It points at objects of the record.
    pub fn is_pointer_to_object(&self) -> bool {
        self.is_record && self.stars == 1 && self.dimensions == 0
    }
}

/// Types and variables of a unit.
#[derive(Debug, Default)]
pub struct Facts {
    /// Types by number.
    pub types: HashMap<TypeId, Type>,
    /// Records with members.
    pub records: Vec<Record>,
    /// The first record of each name, once they are named.
    by_name: HashMap<String, usize>,
    /// Types by the name of their typedef.
    pub typedefs: HashMap<String, TypeId>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Parameters by the type of the function.
    pub parameters: HashMap<TypeId, Vec<TypeId>>,
    /// Types that functions return, by the type of the function.
    pub returned: HashMap<TypeId, TypeId>,
    /// Functions by name: their parameters are in `parameters`.
    pub functions: HashMap<String, TypeId>,
    /// Functions that other units can call.
    pub exported: HashSet<String>,
}

/// The beginning of the name of a type that has none, in its own unit.
pub const UNNAMED: &str = "<unnamed";

/// Chains of types are not followed further: a damaged file could have an endless one.
const DEPTH: usize = 64;

impl Facts {
    /// The type behind names and qualifiers.
    pub fn bare(&self, mut id: TypeId) -> Option<&Type> {
        for _ in 0..DEPTH {
            match self.types.get(&id)? {
                Type::Same(next) => id = *next,
                other => return Some(other),
            }
        }
        None
    }

    /// The record of that name.
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.records.get(*self.by_name.get(name)?)
    }

    /// The record that a type is, or that its elements are.
    pub fn record_of(&self, id: TypeId) -> Option<&Record> {
        let mut id = id;
        for _ in 0..DEPTH {
            match self.bare(id)? {
                Type::Record(index) => return self.records.get(*index),
                Type::Array { of, .. } => id = *of,
                _ => return None,
            }
        }
        None
    }

    /// A type in short.
    pub fn short(&self, id: TypeId) -> Short {
        self.short_within(id, 3)
    }

    fn short_within(&self, id: TypeId, depth: usize) -> Short {
        let mut short = Short::default();
        let mut id = id;
        for _ in 0..DEPTH {
            for _ in 0..DEPTH {
                let Some(Type::Same(next)) = self.types.get(&id) else { break };
                id = *next;
            }
            match self.bare(id) {
                Some(Type::Pointer(to)) => {
                    short.stars += 1;
                    id = *to;
                }
                Some(Type::Array { of, .. }) => {
                    // A pointer to an array steps over the array's elements.
                    short.dimensions += usize::from(short.stars == 0);
                    id = *of;
                }
                Some(Type::Record(index)) => {
                    short.base =
                        self.records.get(*index).map(|record| record.name.clone()).unwrap_or_default();
                    short.is_record = true;
                    return short;
                }
                Some(Type::Scalar { name, .. }) => {
                    short.base.clone_from(name);
                    return short;
                }
                Some(Type::Function) => {
                    short.base = "function".into();
                    if let Some(depth) = depth.checked_sub(1) {
                        let parameters = self.parameters.get(&id).into_iter().flatten();
                        short.parameters = parameters.map(|of| self.short_within(*of, depth)).collect();
                        let returned = self.returned.get(&id).map(|of| self.short_within(*of, depth));
                        short.returned = returned.filter(|of| of.is_record).map(Box::new);
                    }
                    return short;
                }
                Some(Type::Same(_)) | None => break,
            }
        }
        short.base = "void".into();
        short
    }

    /// A pointer to a function of that name, in short.
    pub fn function(&self, name: &str) -> Option<Short> {
        let id = self.functions.get(name)?;
        let parameters = self.parameters.get(id).into_iter().flatten().map(|of| self.short(*of)).collect();
        let returned = self.returned.get(id).map(|of| self.short(*of)).filter(|of| of.is_record);
        Some(Short::function(parameters, returned))
    }

    /// Size of a type in bytes.
    pub fn bytes(&self, id: TypeId) -> u64 {
        self.bytes_within(id, DEPTH)
    }

    fn bytes_within(&self, id: TypeId, depth: usize) -> u64 {
        match self.bare(id) {
            Some(Type::Scalar { bytes, .. }) => *bytes,
            Some(Type::Pointer(_)) => 8,
            Some(Type::Record(index)) => self.records.get(*index).map_or(0, |record| record.bytes),
            Some(Type::Array { of, count }) if depth > 0 => {
                self.bytes_within(*of, depth - 1).saturating_mul(count.unwrap_or(0))
            }
            _ => 0,
        }
    }

    /// The member of that name, also within unnamed members, with its distance from the record's start.
    pub fn member<'a>(&'a self, record: &'a Record, name: &str) -> Option<(&'a Member, u64)> {
        self.member_within(record, name, DEPTH)
    }

    fn member_within<'a>(
        &'a self,
        record: &'a Record,
        name: &str,
        depth: usize,
    ) -> Option<(&'a Member, u64)> {
        if let Some(member) = record.members.iter().find(|member| member.name.as_deref() == Some(name)) {
            return Some((member, member.at_bits));
        }
        record.members.iter().filter(|member| member.name.is_none() && depth > 0).find_map(|member| {
            let inner = self.record_of(member.of)?;
            let (found, at) = self.member_within(inner, name, depth - 1)?;
            Some((found, at + member.at_bits))
        })
    }

    /// The union whose member that is: the record itself, or the innermost unnamed one within it.
    pub fn union_of<'a>(&'a self, record: &'a Record, name: &str) -> Option<&'a Record> {
        let own = Some(record).filter(|record| record.is_union);
        if record.members.iter().any(|member| member.name.as_deref() == Some(name)) {
            return own;
        }
        let inner = record.members.iter().filter(|member| member.name.is_none());
        let mut inner = inner.filter_map(|member| self.record_of(member.of));
        inner
            .find(|inner| self.member(inner, name).is_some())
            .and_then(|inner| self.union_of(inner, name))
            .or(own)
    }

    /// Names of `starts` and of all records that hold one of them by value.
    pub fn holders(&self, starts: &HashSet<String>) -> HashSet<String> {
        let mut held = starts.clone();
        loop {
            let more: Vec<String> = self
                .records
                .iter()
                .filter(|record| !held.contains(&record.name))
                .filter(|record| {
                    let mut parts = record.members.iter().filter_map(|member| self.record_of(member.of));
                    parts.any(|part| held.contains(&part.name))
                })
                .map(|record| record.name.clone())
                .collect();
            if more.is_empty() {
                return held;
            }
            held.extend(more);
        }
    }

    /// Names of the records that lie by value within one of `starts`.
    pub fn parts(&self, starts: &HashSet<String>) -> HashSet<String> {
        let mut parts: HashSet<String> = HashSet::new();
        let mut open: Vec<&str> = starts.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            let Some(record) = self.record(name) else { continue };
            for part in record.members.iter().filter_map(|member| self.record_of(member.of)) {
                if parts.insert(part.name.clone()) {
                    open.push(&part.name);
                }
            }
        }
        parts
    }

    /// Gives records without a name the name of their typedef, or of the record that they lie in and of the member.
    pub fn name_records(&mut self) {
        let mut typedefs: Vec<(&String, &TypeId)> = self.typedefs.iter().collect();
        typedefs.sort();
        let named: Vec<(usize, String)> = typedefs
            .into_iter()
            .filter_map(|(name, id)| match self.bare(*id)? {
                Type::Record(index) => Some((*index, name.clone())),
                _ => None,
            })
            .collect();
        for (index, name) in named {
            if let Some(record) = self.records.get_mut(index).filter(|record| record.name.is_empty()) {
                record.name = name;
            }
        }
        for _ in 0..DEPTH {
            let mut names: Vec<(usize, String)> = Vec::new();
            for outer in self.records.iter().filter(|record| !record.name.is_empty()) {
                for member in &outer.members {
                    let mut id = member.of;
                    while let Some(Type::Array { of, .. } | Type::Pointer(of)) = self.bare(id) {
                        id = *of;
                    }
                    let Some(Type::Record(index)) = self.bare(id) else { continue };
                    let Some(inner) = self.records.get(*index).filter(|inner| inner.name.is_empty()) else {
                        continue;
                    };
                    let firsts: Option<&str> =
                        inner.members.iter().filter_map(|member| member.name.as_deref()).min();
                    let label = member.name.as_deref().or(firsts).unwrap_or("");
                    names.push((*index, format!("{}.{label}", outer.name)));
                }
            }
            if names.is_empty() {
                break;
            }
            for (index, name) in names {
                self.records[index].name = name;
            }
        }
        // The types of single variables: each is one of its own.
        let unnamed = self.records.iter_mut().filter(|record| record.name.is_empty());
        for (number, record) in unnamed.enumerate() {
            record.name = format!("{UNNAMED} {number}>");
        }
        for (index, record) in self.records.iter().enumerate() {
            self.by_name.entry(record.name.clone()).or_insert(index);
        }
    }
}
