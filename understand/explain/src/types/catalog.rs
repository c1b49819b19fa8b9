//! One numbering for the types of all images.
//!
//! The same struct described by two images, or twice by one, gets one number; a declaration gets the
//! number of its definition.

use crate::types::congruence::Congruence;
use crate::types::fields::{self, Field};
use foldhash::HashMap;
use lineup_model::types::{Aggregate, ScalarKind, TypeId, TypeKind, Types};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A type of any image, typedefs and qualifiers removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ty(pub u32);

/// The image and number under which a [`Ty`] is described.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Described {
    /// Index of the image.
    pub image: usize,
    /// Its type there.
    pub id: TypeId,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Aggregate { name: String, size_bytes: u64, shape: u64 },
    Own { image: usize, id: TypeId },
}

/// The types of all images, numbered.
pub struct Catalog<'a> {
    tables: Vec<&'a Types>,
    definitions: Vec<HashMap<&'a str, TypeId>>,
    /// Names of aggregates that only a `typedef` names.
    typedefs: Vec<HashMap<TypeId, &'a str>>,
    known: HashMap<(usize, TypeId), Option<Ty>>,
    keys: HashMap<Key, Ty>,
    /// Types of one image in the table of another.
    ids: HashMap<(usize, Ty), Option<TypeId>>,
    all: Vec<Described>,
    fields: HashMap<(Ty, u64, u64), Option<Rc<Field>>>,
    held: HashMap<(Ty, u64, Ty), bool>,
    pub(super) embedded: HashMap<(Ty, u64, u64), Option<(Ty, u64)>>,
}

/// The place of an address in a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    /// Offset in the type.
    pub offset: u64,
    /// False when it follows from the array that the displacement points into, not from the address.
    pub is_certain: bool,
}

impl<'a> Catalog<'a> {
    /// A catalog of these tables, one per image.
    pub fn new(tables: Vec<&'a Types>) -> Self {
        let definitions = tables.iter().map(|types| definitions(types)).collect();
        let typedefs = tables.iter().map(|types| typedefs(types)).collect();
        Self {
            tables,
            definitions,
            typedefs,
            known: HashMap::default(),
            keys: HashMap::default(),
            ids: HashMap::default(),
            all: Vec::new(),
            fields: HashMap::default(),
            held: HashMap::default(),
            embedded: HashMap::default(),
        }
    }

    /// The number of an image's type; `None` for `void` and unknown types.
    pub fn intern(&mut self, image: usize, id: TypeId) -> Option<Ty> {
        if let Some(known) = self.known.get(&(image, id)) {
            return *known;
        }
        let found = self.tables.get(image).and_then(|types| types.strip(id)).map(|id| self.number(image, id));
        self.known.insert((image, id), found);
        found
    }

    /// The types that an image describes.
    pub fn types_of(&self, image: usize) -> Option<&'a Types> {
        self.tables.get(image).copied()
    }

    /// The type that an image defines under a name.
    pub fn defined(&mut self, image: usize, name: &str) -> Option<Ty> {
        let id = *self.definitions.get(image)?.get(name)?;
        self.intern(image, id)
    }

    fn number(&mut self, image: usize, id: TypeId) -> Ty {
        let (image, id) = self.definition(image, id);
        let key = self.key(image, id);
        let next = Ty(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let ty = *self.keys.entry(key).or_insert(next);
        if ty == next {
            self.all.push(Described { image, id });
        }
        ty
    }

    /// The definition that completes a declaration: from its own image, else from any.
    fn definition(&self, image: usize, id: TypeId) -> (usize, TypeId) {
        let declared = self.tables.get(image).and_then(|types| types.get(id));
        let Some(name) = declared.and_then(|ty| match &ty.kind {
            TypeKind::Aggregate(aggregate) if aggregate.is_declaration || ty.size_bytes.is_none() => {
                ty.name.as_deref()
            }
            _ => None,
        }) else {
            return (image, id);
        };
        let in_image = |image: usize| Some((image, *self.definitions.get(image)?.get(name)?));
        in_image(image).or_else(|| (0..self.tables.len()).find_map(in_image)).unwrap_or((image, id))
    }

    fn key(&self, image: usize, id: TypeId) -> Key {
        let ty = self.tables.get(image).and_then(|types| types.get(id));
        // Structs of C often have no tag: `pthread_mutex_t` is one.
        let of_typedef = || self.typedefs.get(image).and_then(|names| names.get(&id)).copied();
        let name = ty.and_then(|ty| ty.name.as_deref()).or_else(of_typedef);
        match ty.map(|ty| (name, ty.size_bytes, &ty.kind)) {
            Some((Some(name), Some(size_bytes), TypeKind::Aggregate(aggregate))) => {
                Key::Aggregate { name: name.to_owned(), size_bytes, shape: shape(aggregate) }
            }
            _ => Key::Own { image, id },
        }
    }

    /// The image and number under which a type is described.
    pub fn described(&self, ty: Ty) -> Option<Described> {
        self.all.get(ty.0 as usize).copied()
    }

    /// The id of a type in an image's table: of the image that it was first seen in, or of another that defines the
    /// same type.
    pub fn id_in(&mut self, image: usize, ty: Ty) -> Option<TypeId> {
        let (types, described) = self.table(ty)?;
        if described.image == image {
            return Some(described.id);
        }
        if let Some(known) = self.ids.get(&(image, ty)) {
            return *known;
        }
        let id = match types.get(described.id)?.name.as_deref() {
            Some(name) => self.definitions.get(image)?.get(name).copied(),
            None => {
                let name = *self.typedefs.get(described.image)?.get(&described.id)?;
                let own = self.typedefs.get(image)?.iter();
                own.filter(|(_, own)| **own == name).map(|(id, _)| *id).min()
            }
        };
        let id = id.filter(|id| self.intern(image, *id) == Some(ty));
        self.ids.insert((image, ty), id);
        id
    }

    /// The table that describes a type, and its id there.
    pub fn table(&self, ty: Ty) -> Option<(&'a Types, Described)> {
        let described = self.described(ty)?;
        Some((self.tables.get(described.image)?, described))
    }

    /// The name of a type; of one without a tag, that of its `typedef`, else where it is declared.
    pub fn name(&self, ty: Ty) -> String {
        let Some((types, described)) = self.table(ty) else { return "(anonymous)".to_owned() };
        let found = types.get(described.id);
        if let Some(name) = found.and_then(|ty| ty.name.as_deref()) {
            return name.to_owned();
        }
        let of_typedef = self.typedefs.get(described.image).and_then(|names| names.get(&described.id));
        if let Some(name) = of_typedef {
            return (*name).to_owned();
        }
        let place = found.and_then(|ty| ty.declared_at.as_ref()).map(|at| {
            let file = at.file.rsplit('/').next().unwrap_or_default();
            format!("(anonymous at {file}:{})", at.line)
        });
        place.or_else(|| self.pointer_name(ty)).unwrap_or_else(|| "(anonymous)".to_owned())
    }

    /// The name of a pointer: `T *`.
    fn pointer_name(&self, ty: Ty) -> Option<String> {
        let (types, described) = self.table(ty)?;
        let (mut id, mut stars) = (described.id, String::new());
        for _ in 0..8 {
            id = match &types.get(id)?.kind {
                TypeKind::Pointer(target) => {
                    stars.push('*');
                    let Some(target) = target.and_then(|target| types.strip(target)) else {
                        return Some(format!("void {stars}"));
                    };
                    target
                }
                TypeKind::Function { .. } => return Some(format!("function {stars}")),
                _ => break,
            };
        }
        let name = types
            .get(id)?
            .name
            .as_deref()
            .or_else(|| self.typedefs.get(described.image).and_then(|names| names.get(&id)).copied())?;
        (!stars.is_empty()).then(|| format!("{name} {stars}"))
    }

    /// Size in bytes, when complete.
    pub fn size_bytes(&self, ty: Ty) -> Option<u64> {
        let (types, described) = self.table(ty)?;
        types.size_bytes(described.id)
    }

    /// True when a pointer to a scalar is of the type of the member at an offset of a type.
    pub fn holds_scalar(&mut self, (ty, offset): (Ty, u64), size_bytes: u64, scalar: Ty) -> bool {
        let field = self.field(ty, offset, size_bytes).filter(|field| field.members == 1);
        field.and_then(|field| field.leaf).is_some_and(|leaf| self.is_same_scalar(ty, leaf, scalar))
    }

    /// True when a member of this type in the table of `outer`, or an element of it, is a scalar like `scalar`: as
    /// wide, and a pointer, a float or an integer alike.
    pub fn is_same_scalar(&self, outer: Ty, member: TypeId, scalar: Ty) -> bool {
        let (Some((types, _)), Some((others, other))) = (self.table(outer), self.table(scalar)) else {
            return false;
        };
        let (Some(member), Some(other)) = (element(types, member), element(others, other.id)) else {
            return false;
        };
        let class = |types: &Types, id| types.get(id).and_then(|ty| scalar_class(&ty.kind));
        types.size_bytes(member) == others.size_bytes(other)
            && class(types, member).is_some_and(|own| class(others, other) == Some(own))
    }

    /// True for structs, unions and classes.
    pub fn is_aggregate(&self, ty: Ty) -> bool {
        self.table(ty).is_some_and(|(types, described)| types.aggregate(described.id).is_some())
    }

    /// The number of a pointer type's target; also for an aggregate that holds nothing but one pointer (smart
    /// pointers).
    pub fn pointee(&mut self, image: usize, id: TypeId) -> Option<Ty> {
        let types = *self.tables.get(image)?;
        let mut id = types.strip(id)?;
        for _ in 0..8 {
            match &types.get(id)?.kind {
                TypeKind::Pointer(Some(target)) => return self.element_of(image, *target),
                TypeKind::Aggregate(aggregate) => id = types.strip(only_field(types, aggregate)?)?,
                _ => return None,
            }
        }
        None
    }

    /// The type of an array's elements.
    pub fn elements(&mut self, image: usize, id: TypeId) -> Option<Ty> {
        let types = *self.tables.get(image)?;
        match &types.get(types.strip(id)?)?.kind {
            TypeKind::Array { element, .. } => self.intern(image, *element),
            _ => None,
        }
    }

    /// A pointer to an array is used as a pointer to its elements.
    fn element_of(&mut self, image: usize, target: TypeId) -> Option<Ty> {
        let types = *self.tables.get(image)?;
        let id = types.strip(target)?;
        match &types.get(id)?.kind {
            TypeKind::Array { element, .. } => self.intern(image, *element),
            TypeKind::Function { .. } => None,
            _ => self.intern(image, id),
        }
    }

    /// The field of a type at an offset, for an access of `size_bytes`.
    pub fn field(&mut self, ty: Ty, offset: u64, size_bytes: u64) -> Option<Rc<Field>> {
        let key = (ty, offset, size_bytes);
        if let Some(known) = self.fields.get(&key) {
            return known.clone();
        }
        let found = self
            .table(ty)
            .and_then(|(types, described)| fields::field_at(types, described.id, offset, size_bytes))
            .map(Rc::new);
        self.fields.insert(key, found.clone());
        found
    }

    /// The target type of the pointer at an offset of a type.
    pub fn pointee_at(&mut self, ty: Ty, offset: u64, pointer_bytes: u64) -> Option<Ty> {
        let field = self.field(ty, offset, pointer_bytes)?;
        let (types, described) = self.table(ty)?;
        let named = fields::erased_element(types, described.id, offset, pointer_bytes);
        let element = named.and_then(|name| self.definitions.get(described.image)?.get(name).copied());
        match element {
            Some(element) => self.intern(described.image, element),
            None => self.pointee(described.image, field.leaf?),
        }
    }

    /// The step between the possible distances of a pointer at an offset of a type: the size of its target, when it
    /// points to elements of an array, else 0.
    pub fn step_at(&self, ty: Ty, offset: u64, pointer_bytes: u64, target: Ty) -> u64 {
        let is_of_elements = self.table(ty).is_some_and(|(types, described)| {
            fields::points_to_elements(types, described.id, offset, pointer_bytes)
        });
        if is_of_elements { self.size_bytes(target).unwrap_or(0) } else { 0 }
    }

    /// True when `outer` holds an `inner` at `offset`, or is one.
    pub fn holds(&mut self, outer: Ty, offset: u64, inner: Ty) -> bool {
        let key = (outer, offset, inner);
        if let Some(known) = self.held.get(&key) {
            return *known;
        }
        let found = holds(self, outer, offset, inner);
        self.held.insert(key, found);
        found
    }

    /// True when every scalar of `view` lies in `outer` at the same offset under the same name: `outer` may
    /// then be used through a pointer to `view` (a common header, as interpreters have).
    pub fn begins_with(&self, outer: Ty, view: Ty) -> bool {
        let (Some(outer), Some(view)) = (self.table(outer), self.table(view)) else { return false };
        let Some((_, aggregate)) = view.0.aggregate(view.1.id) else { return false };
        let mut fields = aggregate.members.iter().filter_map(|member| {
            let size = member.bit_size.is_none().then(|| view.0.size_bytes(member.ty)).flatten()?;
            Some((member.name.as_deref()?, member.offset_bytes()?, size))
        });
        let mut any = false;
        let all = fields.all(|(name, offset, size)| {
            any = true;
            fields::field_at(outer.0, outer.1.id, offset, size.max(1))
                .is_some_and(|field| field.bytes.start == offset && field.may_be(name))
        });
        any && all
    }

    /// True when nothing follows the last member: an array of unknown length.
    pub fn has_open_end(&self, ty: Ty) -> bool {
        self.table(ty).is_some_and(|(types, described)| fields::has_open_end(types, described.id))
    }

    /// The place in an object of type `ty` (or in an array of them) of an address at this distance.
    pub fn spot(&mut self, ty: Ty, distance: Congruence, size_bytes: u64) -> Option<Spot> {
        let size = self.size_bytes(ty).filter(|size| *size > 0)?;
        if let Some(distance) = distance.exact() {
            let fits = u64::try_from(distance).ok().filter(|offset| {
                self.has_open_end(ty) || offset.checked_add(size_bytes).is_some_and(|end| end <= size)
            });
            return match fits {
                Some(offset) => Some(Spot { offset, is_certain: true }),
                // A neighbour in an array, or the struct around an embedded one: only a scalar's neighbours are of its
                // own type for certain.
                None if self.is_aggregate(ty) => None,
                None => {
                    let offset = distance.rem_euclid(i64::try_from(size).ok()?) as u64;
                    Some(Spot { offset, is_certain: false })
                }
            };
        }
        let in_only_array = self.in_only_array(ty, distance);
        // An array of unknown length has its objects lie alone.
        if let Some(offset) = in_only_array.filter(|_| self.has_open_end(ty)) {
            return Some(Spot { offset, is_certain: false });
        }
        if let Some(offset) = distance.remainder(size) {
            return Some(Spot { offset, is_certain: true });
        }
        let offset =
            self.in_array(ty, distance, size_bytes).filter(|offset| *offset < size).or(in_only_array)?;
        Some(Spot { offset, is_certain: false })
    }

    /// The smallest distance, when it lies in an array whose elements the others are apart.
    fn in_array(&mut self, ty: Ty, distance: Congruence, size_bytes: u64) -> Option<u64> {
        let offset = u64::try_from(distance.smallest()?).ok()?;
        let stride = self.field(ty, offset, size_bytes)?.stride_bytes?;
        distance.modulus.is_multiple_of(stride).then_some(offset)
    }

    /// The offset, in the first element, of a byte that lies any number of elements from there, when a type has only
    /// one array. A multiple of an element may be an object further on just as well.
    fn in_only_array(&self, ty: Ty, distance: Congruence) -> Option<u64> {
        let (types, described) = self.table(ty)?;
        let (start, stride) = fields::only_array(types, described.id)?;
        let from_start = distance.plus(Congruence::exactly(i64::try_from(start).ok()?.checked_neg()?));
        let is_of_array = stride > 1 && distance.modulus == stride;
        Some(start + from_start.remainder(stride).filter(|_| is_of_array)?)
    }
}

/// True when `outer` holds an object of type `inner` at `offset`, as a member, an element or a base, or
/// is that type itself.
fn holds(catalog: &mut Catalog<'_>, outer: Ty, offset: u64, inner: Ty) -> bool {
    let Some((types, described)) = catalog.table(outer) else { return false };
    let mut open = vec![(described.id, offset)];
    for _ in 0..256 {
        let Some((id, offset)) = open.pop() else { return false };
        if offset == 0 && catalog.intern(described.image, id) == Some(inner) {
            return true;
        }
        let Some(id) = types.strip(id) else { continue };
        match types.get(id).map(|ty| &ty.kind) {
            Some(TypeKind::Array { element, .. }) => {
                if let Some(each) = types.size_bytes(*element).filter(|each| *each > 0) {
                    open.push((*element, offset % each));
                }
            }
            Some(TypeKind::Aggregate(aggregate)) => {
                let last = aggregate.members.len().saturating_sub(1);
                let inside =
                    aggregate.members.iter().enumerate().filter(|(_, member)| member.bit_size.is_none());
                open.extend(inside.filter_map(|(index, member)| {
                    let extent = fields::extent(types, member, index == last)?;
                    extent.contains(&offset).then(|| (member.ty, offset - extent.start))
                }));
            }
            _ => {}
        }
    }
    false
}

/// The element type of an array, or the type itself.
fn element(types: &Types, id: TypeId) -> Option<TypeId> {
    let mut id = types.strip(id)?;
    for _ in 0..8 {
        match &types.get(id)?.kind {
            TypeKind::Array { element, .. } => id = types.strip(*element)?,
            _ => return Some(id),
        }
    }
    None
}

/// 0 for integers, characters, truth values and enumerations, 1 for floats, 2 for pointers.
fn scalar_class(kind: &TypeKind) -> Option<u8> {
    match kind {
        TypeKind::Scalar(ScalarKind::Float) => Some(1),
        TypeKind::Scalar(_) | TypeKind::Enum => Some(0),
        TypeKind::Pointer(_) => Some(2),
        _ => None,
    }
}

fn only_field(types: &Types, aggregate: &Aggregate) -> Option<TypeId> {
    let mut sized = aggregate.members.iter().filter(|member| types.size_bytes(member.ty) != Some(0));
    let only = sized.next()?;
    (sized.next().is_none() && only.offset_bits == Some(0)).then_some(only.ty)
}

/// By nameless aggregate, the typedef of it; a typedef of a typedef names one that has no other.
fn typedefs(types: &Types) -> HashMap<TypeId, &str> {
    let (mut names, mut distant) = (HashMap::default(), HashMap::default());
    for (id, ty) in types.iter() {
        let (TypeKind::Typedef(Some(named)), Some(name)) = (&ty.kind, ty.name.as_deref()) else { continue };
        let Some(target) = types.strip(id) else { continue };
        let is_nameless = types
            .get(target)
            .is_some_and(|target| target.name.is_none() && matches!(target.kind, TypeKind::Aggregate(_)));
        if is_nameless {
            let names = if *named == target { &mut names } else { &mut distant };
            names.entry(target).or_insert(name);
        }
    }
    for (target, name) in distant {
        names.entry(target).or_insert(name);
    }
    names
}

fn definitions(types: &Types) -> HashMap<&str, TypeId> {
    let mut map = HashMap::default();
    for (id, ty) in types.iter() {
        let is_complete = match &ty.kind {
            TypeKind::Aggregate(aggregate) => !aggregate.is_declaration,
            TypeKind::Scalar(_) | TypeKind::Enum => true,
            _ => false,
        };
        if let (Some(name), Some(_), true) = (ty.name.as_deref(), ty.size_bytes, is_complete) {
            map.entry(name).or_insert(id);
        }
    }
    map
}

/// A fingerprint that distinguishes aggregates of equal name and size.
fn shape(aggregate: &Aggregate) -> u64 {
    let mut hasher = DefaultHasher::new();
    for member in &aggregate.members {
        (member.name.as_deref(), member.offset_bits, member.bit_size).hash(&mut hasher);
    }
    hasher.finish()
}
