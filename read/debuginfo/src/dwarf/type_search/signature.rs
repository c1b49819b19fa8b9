//! Signatures that are equal when two entries describe types that are laid out, and shown, alike.
//!
//! [`crate::dwarf::types::keys`] compares all types of units that were read; these signatures are of single types,
//! found by following references from one entry. They cover everything that a layout shows: names, offsets and sizes of
//! members, embedded types in turn, and the names of pointed-to types.

use crate::dwarf::attributes::Field;
use crate::dwarf::entries::Entries;
use crate::dwarf::files::Files;
use crate::dwarf::kind::RawKind;
use crate::dwarf::name::Name;
use crate::dwarf::reference::Ref;
use crate::dwarf::types::raw::{ChildKind, Detail};
use crate::dwarf::{MAX_CHAIN, Unit, View};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// Deeper nesting is not followed.
const MAX_DEPTH: u32 = 48;

/// The kind of type that a named entry stands for.
pub(crate) enum Described {
    /// A complete struct, class or union.
    Complete(u64),
    /// One of this name, which the unit only declares.
    Elsewhere(u64, String),
    /// Nothing that has members.
    Other,
}

/// The depth to which a type is described.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Depth {
    /// Its contents.
    Whole,
    /// Only its name: behind a pointer.
    Name,
}

/// The signatures of a unit's types.
pub(crate) struct Signatures<'s, 'u, 'a> {
    view: &'s View<'a>,
    number: u32,
    files: Files<'s, 'a>,
    entries: &'s mut Entries<'u, 'a>,
    known: HashMap<(u32, Depth), u64, FixedState>,
}

/// An entry as far as signatures need it.
struct Node<'a> {
    kind: RawKind,
    name: Option<Name<'a>>,
    size: Option<u64>,
    target: Ref,
    is_declaration: bool,
}

impl<'s, 'u, 'a> Signatures<'s, 'u, 'a> {
    pub(crate) fn new(
        view: &'s View<'a>,
        (number, unit): (u32, &'s Unit<'a>),
        entries: &'s mut Entries<'u, 'a>,
    ) -> Option<Self> {
        let files = Files::new(view.file_names_of(number)?, unit);
        Some(Signatures { view, number, files, entries, known: HashMap::default() })
    }

    /// The kind of type that the entry at an offset stands for; `None` when this unit does not show that.
    pub(crate) fn of_named(&mut self, offset: u32) -> Option<Described> {
        let mut at = offset;
        for _ in 0..MAX_CHAIN {
            let node = self.node(at)?;
            match (node.kind, node.target) {
                (RawKind::Aggregate(_), _) if node.is_declaration && at == offset => {
                    return Some(Described::Other);
                }
                (RawKind::Aggregate(_), _) if node.is_declaration => {
                    let Some(name) = node.name else { return Some(Described::Other) };
                    let name = crate::dwarf::text(name.text());
                    return Some(Described::Elsewhere(hash(&(self.own_name(offset)?, &name)), name));
                }
                (RawKind::Aggregate(_), _) => {
                    let place = self.declared_at(at);
                    let whole = self.signature(at, Depth::Whole, 0)?;
                    return Some(Described::Complete(hash(&(self.own_name(offset)?, place, whole))));
                }
                (RawKind::Typedef | RawKind::Qualifier(_), Ref::Local(target)) => at = target,
                (RawKind::Typedef | RawKind::Qualifier(_), Ref::Elsewhere(_) | Ref::Broken) => return None,
                _ => return Some(Described::Other),
            }
        }
        None
    }

    fn own_name(&mut self, offset: u32) -> Option<u64> {
        self.node(offset).map(|node| node.name.map_or(0, Name::id))
    }

    fn node(&mut self, offset: u32) -> Option<Node<'a>> {
        self.entries.seek(offset);
        let code = self.entries.next().ok()??;
        self.entries.read(code).ok()?;
        let kind = self.entries.about(code)?.kind?;
        let found = &self.entries.attributes;
        Some(Node {
            kind,
            name: found.name(),
            size: found.size_bytes(),
            target: found.reference(Field::Target, self.view, self.number),
            is_declaration: found.is_set(Field::IsDeclaration),
        })
    }

    /// The place where the type at an offset was declared.
    fn declared_at(&mut self, offset: u32) -> (Option<String>, u32) {
        let detail = Detail::read(self.entries, self.view, (self.number, offset));
        (self.files.path(detail.file.into()).filter(|_| detail.line != 0), detail.line)
    }

    fn of(&mut self, reference: Ref, depth: Depth, nesting: u32) -> Option<u64> {
        match reference {
            Ref::Nothing => Some(1),
            Ref::Local(offset) => self.signature(offset, depth, nesting + 1),
            Ref::Elsewhere(_) | Ref::Broken => None,
        }
    }

    fn signature(&mut self, offset: u32, depth: Depth, nesting: u32) -> Option<u64> {
        if nesting > MAX_DEPTH {
            return None;
        }
        if let Some(known) = self.known.get(&(offset, depth)) {
            return Some(*known);
        }
        let node = self.node(offset)?;
        let mut hasher = FixedState::default().build_hasher();
        (node.kind, node.name.map(Name::id)).hash(&mut hasher);
        match node.kind {
            RawKind::Range => return None,
            RawKind::Enum | RawKind::Base | RawKind::Opaque => {
                let detail = Detail::read(self.entries, self.view, (self.number, offset));
                (node.size, detail.encoding).hash(&mut hasher);
            }
            RawKind::Aggregate(_) | RawKind::Typedef if depth == Depth::Name => {}
            RawKind::Typedef | RawKind::Qualifier(_) => {
                self.of(node.target, depth, nesting)?.hash(&mut hasher)
            }
            RawKind::Pointer | RawKind::Reference | RawKind::RvalueReference => {
                self.of(node.target, Depth::Name, nesting)?.hash(&mut hasher);
            }
            RawKind::MemberPointer => return None,
            RawKind::Array => self.parts(offset, &node, depth, nesting)?.hash(&mut hasher),
            RawKind::Function => self.parts(offset, &node, Depth::Name, nesting)?.hash(&mut hasher),
            RawKind::Aggregate(_) => self.parts(offset, &node, Depth::Whole, nesting)?.hash(&mut hasher),
        }
        let signature = hasher.finish();
        self.known.insert((offset, depth), signature);
        Some(signature)
    }

    /// The parts of a type, and the targets of their references.
    fn parts(&mut self, offset: u32, node: &Node<'a>, depth: Depth, nesting: u32) -> Option<u64> {
        let detail = Detail::read(self.entries, self.view, (self.number, offset));
        let mut hasher = FixedState::default().build_hasher();
        (node.size, node.is_declaration, detail.align, detail.descriptor_bytes, detail.stride_bits)
            .hash(&mut hasher);
        self.of(node.target, depth, nesting)?.hash(&mut hasher);
        for child in &detail.children {
            child.what.hash(&mut hasher);
            if matches!(child.what, ChildKind::Member(_) | ChildKind::Static) {
                (child.name.map(Name::id), child.place, child.bit_size, child.align).hash(&mut hasher);
            }
            self.of(child.target, depth, nesting)?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }
}

fn hash(of: &impl Hash) -> u64 {
    FixedState::default().hash_one(of)
}
