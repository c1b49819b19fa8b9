//! BTF bytes to types, functions and variables.

use super::image::{RECORD_BYTES, Record, Sections, sections, string_at};
use super::needs::{self, Need, Needs};
use super::words::{Words, little_endian};
use crate::{Bytes, Error};
use foldhash::fast::FixedState;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Type, TypeId, TypeKind, Types,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The types, functions and variables of a BTF image.
#[derive(Clone, Debug)]
pub struct Btf {
    /// All types, including the base's. [`TypeId`]s are the image's type ids; id 0 is `void`.
    pub types: Types,
    /// Id of the first type of the image itself; the base's ids are lower.
    pub first_own: TypeId,
    /// Functions with their prototypes.
    pub functions: Vec<BtfFunction>,
    /// Variables. Offsets in their section, not addresses.
    pub variables: Vec<BtfVariable>,
}

/// A function's prototype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BtfFunction {
    /// Name.
    pub name: Arc<str>,
    /// Return type; `None` is `void`.
    pub returns: Option<TypeId>,
    /// The parameters in order.
    pub parameters: Vec<BtfParameter>,
}

/// Name and type of a parameter. A nameless one without a type stands for `...`.
pub type BtfParameter = (Option<Arc<str>>, Option<TypeId>);

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BtfVariable {
    /// Name.
    pub name: Arc<str>,
    /// Type.
    pub ty: TypeId,
    /// Name of its section, such as `.data..percpu`.
    pub section: Option<Arc<str>>,
    /// Offset in the section.
    pub offset: u64,
}

/// True when bytes start like a BTF image of either byte order.
pub fn is_btf(bytes: &[u8]) -> bool {
    matches!(bytes.get(..2), Some([0x9f, 0xeb] | [0xeb, 0x9f]))
}

/// The bytes of the `.BTF` section of an ELF file of any machine, as compilers for BPF and kernels' builds write it;
/// empty for a file without that section.
///
/// # Errors
/// When the bytes are no sound ELF file.
pub fn of_elf(bytes: impl Into<Bytes>) -> Result<Bytes, Error> {
    crate::elf::raw_section(bytes.into(), ".BTF")
}

/// Reads a BTF image. Split BTF (of a kernel module) needs the base that it continues.
///
/// # Errors
/// When an image is not BTF of version 1, contradicts itself, or refers to a base that was not given.
///
/// ```
/// assert!(lineup_debuginfo::btf::parse(b"\x7fELF", None).is_err());
/// ```
pub fn parse(bytes: &[u8], base: Option<&[u8]>) -> Result<Btf, Error> {
    read(bytes, base, true, None)
}

/// As [`parse`], without functions and variables, of which a kernel has more than types: a third of the time less.
///
/// # Errors
/// As for [`parse`].
pub fn parse_types(bytes: &[u8], base: Option<&[u8]>) -> Result<Btf, Error> {
    read(bytes, base, false, None)
}

/// As [`parse_types`], of the types in whose name one of `names` occurs, and the types that their layout depends on. A
/// type that they only point to has its name and no members; every other type is [`TypeKind::Opaque`]. For one type of
/// a kernel this takes less than half of the time.
///
/// # Errors
/// As for [`parse`].
pub fn parse_named_types(bytes: &[u8], base: Option<&[u8]>, names: &[&str]) -> Result<Btf, Error> {
    read(bytes, base, false, Some(names))
}

fn read(
    bytes: &[u8],
    base: Option<&[u8]>,
    keeps_functions: bool,
    names: Option<&[&str]>,
) -> Result<Btf, Error> {
    let bytes = little_endian(bytes);
    let base = base.map(little_endian);
    let needs = match names {
        None => Needs::All,
        Some(names) => needs::by_types_named(&bytes, base.as_deref(), names)?,
    };
    read_little(&bytes, base.as_deref(), Reader::new(keeps_functions), &needs)
}

fn read_little<'a>(
    bytes: &'a [u8],
    base: Option<&'a [u8]>,
    mut reader: Reader<'a>,
    needs: &Needs,
) -> Result<Btf, Error> {
    if let Some(base) = base {
        reader.image(base, false, needs)?;
    }
    let first_own = TypeId(reader.btf.types.len() as u32);
    reader.image(bytes, base.is_none(), needs)?;
    reader.btf.first_own = if base.is_some() { first_own } else { TypeId(0) };
    reader.finish();
    match reader.btf.types.break_containment().first() {
        Some(id) => Err(Error::damaged("BTF", format!("type {} holds itself, or more than any can", id.0))),
        None => Ok(reader.btf),
    }
}

/// Words of a member's record.
const MEMBER_WORDS: usize = 3;

struct Reader<'a> {
    btf: Btf,
    /// False when types alone are wanted.
    keeps_functions: bool,
    /// Strings of the base, then of the image itself: offsets run on.
    strings: Vec<&'a [u8]>,
    names: HashMap<u32, Arc<str>, FixedState>,
    prototypes: HashMap<u32, Vec<BtfParameter>, FixedState>,
    /// Old-style bit-fields: width and shift that an integer type carries, by id.
    narrow: HashMap<u32, (u32, u32), FixedState>,
    functions: Vec<(Arc<str>, u32)>,
    /// Variables by id, to be placed by their section.
    placed: HashMap<u32, (Arc<str>, u64), FixedState>,
    declared: Vec<(u32, Arc<str>, u32)>,
}

impl<'a> Reader<'a> {
    fn new(keeps_functions: bool) -> Self {
        let types = Types::new();
        let btf = Btf { types, first_own: TypeId(0), functions: Vec::new(), variables: Vec::new() };
        Reader {
            btf,
            keeps_functions,
            strings: Vec::new(),
            names: HashMap::default(),
            prototypes: HashMap::default(),
            narrow: HashMap::default(),
            functions: Vec::new(),
            placed: HashMap::default(),
            declared: Vec::new(),
        }
    }

    fn image(&mut self, bytes: &'a [u8], is_alone: bool, needs: &Needs) -> Result<(), Error> {
        let Sections { types, strings, shapes } = sections(bytes)?;
        self.strings.push(strings);
        match needs {
            Needs::All => {
                self.btf.types.reserve(types.len() / RECORD_BYTES);
                self.names.reserve(types.len() / (4 * RECORD_BYTES));
            }
            Needs::Some(needs) => self.btf.types.reserve(needs.len().saturating_sub(self.btf.types.len())),
        }
        if self.btf.types.is_empty() {
            self.push(None, None, TypeKind::Opaque);
        }
        let mut words = Words { bytes: types, at: 0 };
        while words.at < types.len() {
            let record = Record::next(self.btf.types.len() as u32, &mut words)?;
            if is_alone && record.name as usize >= strings.len() {
                return Err(Error::BtfBaseNeeded);
            }
            match needs.of(record.id) {
                Need::Whole => self.read(&record, &mut words, shapes)?,
                Need::Name => self.read_name(&record, &mut words, shapes)?,
                Need::Nothing => self.pass(&record, &mut words, shapes)?,
            }
        }
        Ok(())
    }

    /// Skips the part of a record after its fixed part, and keeps its id.
    fn pass(&mut self, record: &Record, words: &mut Words<'_>, shapes: &[u8]) -> Result<(), Error> {
        words.skip(record.rest_bytes(shapes)?)?;
        self.push(None, None, TypeKind::Opaque);
        Ok(())
    }

    /// As [`Self::read`], for a type that others only point to: a struct or union is only declared.
    fn read_name(&mut self, record: &Record, words: &mut Words<'_>, shapes: &[u8]) -> Result<(), Error> {
        let kind = match record.kind {
            4 => AggregateKind::Struct,
            5 => AggregateKind::Union,
            _ => return self.read(record, words, shapes),
        };
        words.skip(record.rest_bytes(shapes)?)?;
        let name = self.name(record.name);
        self.push(name, Some(u64::from(record.size_or_type)), aggregate(kind, Vec::new(), true));
        Ok(())
    }

    fn read(&mut self, record: &Record, words: &mut Words<'_>, shapes: &[u8]) -> Result<(), Error> {
        // Functions, variables and sections are no types.
        let is_wanted = self.keeps_functions || !matches!(record.kind, 12 | 14 | 15);
        let name = if is_wanted { self.name(record.name) } else { None };
        let size = Some(u64::from(record.size_or_type));
        let target = type_id(record.size_or_type);
        match record.kind {
            1 => {
                let encoding = words.next()?;
                let (bits, shift) = (encoding & 0xff, encoding >> 16 & 0xff);
                if u64::from(bits) < u64::from(record.size_or_type) * 8 {
                    self.narrow.insert(record.id, (bits, shift));
                }
                self.push(name, size, TypeKind::Scalar(scalar(encoding >> 24 & 0xf)));
            }
            2 => self.push(None, None, TypeKind::Pointer(target)),
            3 => {
                let (element, _index, count) = (words.next()?, words.next()?, words.next()?);
                let counts = vec![Some(u64::from(count))];
                self.push(None, None, TypeKind::Array { element: TypeId(element), counts });
            }
            4 | 5 => {
                let members = self.members(record, words)?;
                let kind = if record.kind == 4 { AggregateKind::Struct } else { AggregateKind::Union };
                self.push(name, size, aggregate(kind, members, false));
            }
            6 | 19 => {
                words.skip(record.rest_bytes(shapes)?)?;
                self.push(name, size, TypeKind::Enum);
            }
            7 => {
                let kind = if record.has_flag { AggregateKind::Union } else { AggregateKind::Struct };
                self.push(name, None, aggregate(kind, Vec::new(), true));
            }
            8 => self.push(name, None, TypeKind::Typedef(target)),
            9..=11 => {
                let keyword = ["volatile", "const", "restrict"][record.kind as usize - 9];
                self.push(Some(keyword.into()), None, TypeKind::Qualified(target));
            }
            12 => {
                self.functions.extend(name.clone().map(|name| (name, record.size_or_type)));
                self.push(name, None, TypeKind::Opaque);
            }
            13 => self.prototype(record, words)?,
            14 => {
                words.skip(record.rest_bytes(shapes)?)?;
                self.declared.extend(name.clone().map(|name| (record.id, name, record.size_or_type)));
                self.push(name, None, TypeKind::Opaque);
            }
            15 => self.section(record, words, name)?,
            16 => self.push(name, size, TypeKind::Scalar(ScalarKind::Float)),
            17 => {
                words.skip(record.rest_bytes(shapes)?)?;
                self.push(name, None, TypeKind::Opaque);
            }
            18 => self.push(name, None, TypeKind::Qualified(target)),
            // A kind that is not known here.
            _ => self.pass(record, words, shapes)?,
        }
        Ok(())
    }

    fn members(&mut self, record: &Record, words: &mut Words<'_>) -> Result<Vec<Member>, Error> {
        let mut members = Vec::with_capacity(record.count.min(words.left() / MEMBER_WORDS));
        for _ in 0..record.count {
            let (name, ty, offset) = (words.next()?, words.next()?, words.next()?);
            let (offset, width) =
                if record.has_flag { (offset & 0x00ff_ffff, offset >> 24) } else { (offset, 0) };
            members.push(Member {
                name: self.name(name),
                ty: TypeId(ty),
                offset_bits: Some(offset.into()),
                bit_size: (width > 0).then_some(width),
                declared_align: None,
                role: MemberRole::Field,
                declared_at: None,
            });
        }
        Ok(members)
    }

    fn prototype(&mut self, record: &Record, words: &mut Words<'_>) -> Result<(), Error> {
        let mut parameters = Vec::new();
        let mut named = Vec::new();
        for _ in 0..record.count {
            let (name, ty) = (words.next()?, words.next()?);
            parameters.extend(type_id(ty));
            if self.keeps_functions {
                named.push((self.name(name), type_id(ty)));
            }
        }
        if self.keeps_functions {
            self.prototypes.insert(record.id, named);
        }
        self.push(None, None, TypeKind::Function { returns: type_id(record.size_or_type), parameters });
        Ok(())
    }

    fn section(
        &mut self,
        record: &Record,
        words: &mut Words<'_>,
        name: Option<Arc<str>>,
    ) -> Result<(), Error> {
        for _ in 0..record.count {
            let (variable, offset, _size) = (words.next()?, words.next()?, words.next()?);
            if let Some(name) = &name {
                self.placed.insert(variable, (Arc::clone(name), offset.into()));
            }
        }
        self.push(name, None, TypeKind::Opaque);
        Ok(())
    }

    fn push(&mut self, name: Option<Arc<str>>, size_bytes: Option<u64>, kind: TypeKind) {
        self.btf.types.push(Type {
            name,
            size_bytes,
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::Other,
            kind,
        });
    }

    /// The string at an offset; `None` for the empty one and for one outside.
    fn name(&mut self, offset: u32) -> Option<Arc<str>> {
        if let Some(name) = self.names.get(&offset) {
            return Some(Arc::clone(name));
        }
        let bytes = string_at(self.strings.iter().copied(), offset)?;
        let name: Arc<str> = String::from_utf8_lossy(bytes).into();
        if name.is_empty() {
            return None;
        }
        self.names.insert(offset, Arc::clone(&name));
        Some(name)
    }

    /// Completes the facts that depend on all types: pointer sizes, sizes of typedefs, old-style bit-fields,
    /// prototypes.
    fn finish(&mut self) {
        let pointer_bytes = pointer_bytes(&self.btf.types);
        let sizes: Vec<Option<u64>> = self
            .btf
            .types
            .iter()
            .map(|(id, ty)| match &ty.kind {
                TypeKind::Pointer(_) => Some(pointer_bytes),
                TypeKind::Typedef(_) | TypeKind::Qualified(_) => {
                    let target = self.btf.types.strip(id).and_then(|id| self.btf.types.get(id))?;
                    let is_pointer = matches!(target.kind, TypeKind::Pointer(_));
                    if is_pointer { Some(pointer_bytes) } else { target.size_bytes }
                }
                _ => ty.size_bytes,
            })
            .collect();
        for (id, size) in (0..).zip(sizes) {
            let narrow = &self.narrow;
            let Some(ty) = self.btf.types.get_mut(TypeId(id)) else { continue };
            ty.size_bytes = size;
            let TypeKind::Aggregate(aggregate) = &mut ty.kind else { continue };
            for member in aggregate.members.iter_mut().filter(|member| member.bit_size.is_none()) {
                if let Some(&(bits, shift)) = narrow.get(&member.ty.0) {
                    member.bit_size = Some(bits);
                    member.offset_bits = member.offset_bits.map(|offset| offset + u64::from(shift));
                }
            }
        }
        for (name, prototype) in std::mem::take(&mut self.functions) {
            let Some(TypeKind::Function { returns, .. }) =
                self.btf.types.get(TypeId(prototype)).map(|ty| &ty.kind)
            else {
                continue;
            };
            let parameters = self.prototypes.get(&prototype).cloned().unwrap_or_default();
            self.btf.functions.push(BtfFunction { name, returns: *returns, parameters });
        }
        for (id, name, ty) in std::mem::take(&mut self.declared) {
            let (section, offset) =
                self.placed.get(&id).cloned().map_or((None, 0), |(name, offset)| (Some(name), offset));
            self.btf.variables.push(BtfVariable { name, ty: TypeId(ty), section, offset });
        }
    }
}

/// Id 0 is `void`.
fn type_id(id: u32) -> Option<TypeId> {
    (id != 0).then_some(TypeId(id))
}

fn aggregate(kind: AggregateKind, members: Vec<Member>, is_declaration: bool) -> TypeKind {
    TypeKind::Aggregate(Aggregate { kind, members, static_members: Vec::new(), is_declaration })
}

fn scalar(encoding: u32) -> ScalarKind {
    match encoding {
        0b010 | 0b011 => ScalarKind::Character,
        0b100 => ScalarKind::Boolean,
        encoding => ScalarKind::Integer { signed: encoding & 1 == 1 },
    }
}

/// BTF does not record the size of pointers; in the data models that Linux uses it is that of `long`.
fn pointer_bytes(types: &Types) -> u64 {
    let is_long = |ty: &Type| {
        matches!(ty.kind, TypeKind::Scalar(_))
            && matches!(ty.name.as_deref(), Some("long int" | "long unsigned int" | "long" | "unsigned long"))
    };
    types.iter().find(|(_, ty)| is_long(ty)).and_then(|(_, ty)| ty.size_bytes).unwrap_or(8)
}
