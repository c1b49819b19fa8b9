//! A translation unit's syntax tree as plain data: the rules' input, with no library behind it.

use crate::member_facts::AllMemberFacts;
use crate::split_facts::AllSplitFacts;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Index of a [`Node`] in [`Tree::nodes`].
pub(crate) type NodeId = usize;
/// Index of a [`Type`] in [`Tree::types`].
pub(crate) type TypeId = usize;
/// Index of a [`Record`] in [`Tree::records`].
pub(crate) type RecordId = usize;
/// Index of a [`Decl`] in [`Tree::decls`].
pub(crate) type DeclId = usize;
/// A name that is the same in every unit: libclang's USR, or a member's name.
pub(crate) type Name = Arc<str>;

/// Added to the name of a variable that outlives the function which libclang names it after.
pub(crate) const OUTLIVES: &str = " (static)";

/// One unit.
#[derive(Default, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) types: Vec<Type>,
    pub(crate) records: Vec<Record>,
    pub(crate) decls: Vec<Decl>,
    /// Files by [`Site::file`].
    pub(crate) files: Vec<Name>,
    /// The arguments of calls; `None` for unwritten ones.
    pub(crate) arguments: HashMap<NodeId, Vec<Option<NodeId>>>,
    /// The operands' uses, from the texts of statements of assembly.
    pub(crate) operands: HashMap<NodeId, Operands>,
    /// Texts as they are written, with quotation marks.
    pub(crate) texts: HashMap<NodeId, Name>,
    /// Atomic operations, which libclang has no kind for: the address comes first.
    pub(crate) atomics: HashSet<NodeId>,
    /// Uses of a pointer's target, with the alignment that its type requires, where that is a vector's or more.
    pub(crate) asked_alignments: HashMap<NodeId, u64>,
    pub(crate) function_types: HashMap<TypeId, FunctionType>,
    /// The names of members of objects whose type only a template's instances know, by the nodes that name them.
    pub(crate) dependent_members: HashMap<NodeId, Name>,
    /// The templates around `sizeof` of what only their instances know.
    pub(crate) dependent_sizes: HashMap<NodeId, Vec<Name>>,
    /// The numbers that are given to templates, by the parameters' names.
    pub(crate) template_numbers: Vec<(Name, NodeId)>,
    /// The functions that are given a variable's address where its scope ends, by the variable's node.
    pub(crate) cleanups: HashMap<NodeId, Name>,
    /// The nodes at the top level of the project's own files.
    pub(crate) roots: Vec<NodeId>,
    /// The facts about classes whose members an edit may move out of the object.
    pub(crate) splitting: AllSplitFacts,
    /// The facts about structs whose members an edit may remove, or give smaller types.
    pub(crate) members: AllMemberFacts,
    /// The compiler call takes no designated initialisers.
    pub(crate) forbids_designators: bool,
    /// The language's designated initialisers follow the order of members.
    pub(crate) is_cpp: bool,
}

/// A position in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Site {
    /// Index in [`Tree::files`].
    pub(crate) file: usize,
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column, from 1.
    pub(crate) column: u32,
    /// True when a macro made it: of braces and `sizeof`, and of arguments of a macro.
    pub(crate) is_in_macro: bool,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) ty: TypeId,
    /// The declaration that a name, a member, a call or a declaration refers to.
    pub(crate) decl: Option<DeclId>,
    pub(crate) site: Site,
    pub(crate) children: Vec<NodeId>,
    /// The value of integer literals, `sizeof` and `offsetof`, and of sizes given to calls.
    pub(crate) value: Option<i64>,
    /// A subtraction, where that could be read from the text.
    pub(crate) is_minus: bool,
    /// The operator that joins two numbers, or of an assignment, where the text shows it.
    pub(crate) operator: Option<Operator>,
}

/// The uses of assembly's operands in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Operands {
    /// A number is added to one: the used bytes lie elsewhere.
    pub(crate) is_moved: bool,
    /// They must lie at multiples of this many bytes, which are used as one.
    pub(crate) vector_bytes: Option<u64>,
    /// An instruction uses this many bytes, at any place.
    pub(crate) word_bytes: Option<u64>,
    /// An address is in a register that the text names, such as one that a parameter arrives in.
    pub(crate) names_address: bool,
    /// There is no instruction: the statement only keeps the compiler from moving or removing others.
    pub(crate) are_unused: bool,
}

/// Operators of numbers that carry information about addresses and strides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    ShiftLeft,
    ShiftRight,
    Divide,
    And,
    Or,
    Xor,
    Remainder,
    Assign,
    /// `.*` and `->*`, in templates.
    PointedMember,
    /// `==` and `!=`.
    Equal,
    /// `<`, `<=`, `>` and `>=`.
    Less,
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A function's definition.
    Function,
    Variable,
    Assertion,
    DeclRef,
    Member,
    Call,
    /// A cast that is written.
    Cast,
    /// Parentheses, implicit casts and the like: the value of the last child.
    Wrap,
    AddressOf,
    Deref,
    /// `++` and `--` of pointers.
    Step,
    /// `++` and `--` of an operand that is no pointer.
    Count,
    Binary,
    CompoundAssign,
    Conditional,
    Subscript,
    InitList,
    /// `.member = value` in an initialiser.
    Designated,
    CompoundLiteral,
    SizeOf,
    OffsetOf,
    Integer,
    /// C++'s `new`.
    New,
    This,
    Assembly,
    Return,
    Switch,
    Case,
    /// The name of a type.
    TypeRef,
    /// The name of a member in `offsetof` and designators.
    MemberRef,
    /// Everything else.
    Other,
}

/// A type, without `const` and `restrict`.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) kind: TypeKind,
    pub(crate) size_bytes: Option<u64>,
    /// Canonical, without qualifiers: equal texts are equal types.
    pub(crate) spelling: Name,
    pub(crate) is_volatile: bool,
}

/// The kinds of types that the rules distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TypeKind {
    Void,
    /// Integers of one byte, and `std::byte`.
    Byte,
    Scalar,
    /// Pointers and references.
    Pointer(TypeId),
    Array(TypeId, Option<u64>),
    Record(RecordId),
    Function,
    /// A type that only a template's instances know.
    Dependent,
    Other,
}

/// A struct, class or union.
#[derive(Clone, Default, Debug)]
pub(crate) struct Record {
    pub(crate) usr: Option<Name>,
    /// Tag and typedef names.
    pub(crate) names: Vec<String>,
    pub(crate) is_union: bool,
    pub(crate) is_complete: bool,
    /// Declared outside the project.
    pub(crate) is_foreign: bool,
    pub(crate) file: Option<Name>,
    pub(crate) line: u32,
    pub(crate) size_bytes: u64,
    pub(crate) fields: Vec<Field>,
    pub(crate) bases: Vec<RecordId>,
    /// The compiler compares objects member by member, in order.
    pub(crate) is_ordered: bool,
    /// Its own constructors, destructor or initial values run code of the program.
    pub(crate) runs_code: bool,
    /// The class template that it is an instance of.
    pub(crate) template: Option<Name>,
    /// It has private members, so that values in braces are a constructor's and never its members'.
    pub(crate) is_closed: bool,
}

/// A member. Anonymous structs and unions have an empty name.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Name,
    pub(crate) ty: TypeId,
    pub(crate) offset_bits: u64,
    /// The alignment that the compiler gives it in any position.
    pub(crate) align_bytes: u64,
    /// The width of a bit-field.
    pub(crate) bits: Option<u64>,
}

/// The parameters and results of functions of one type.
#[derive(Clone, Default, Debug)]
pub(crate) struct FunctionType {
    pub(crate) takes: Vec<TypeId>,
    pub(crate) gives: Option<TypeId>,
}

impl FunctionType {
    /// The parameters by their index, from 0, and the result.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Option<usize>, TypeId)> {
        let takes = self.takes.iter().enumerate().map(|(at, &ty)| (Some(at), ty));
        takes.chain(self.gives.map(|ty| (None, ty)))
    }
}

/// A declaration that names refer to.
#[derive(Clone, Debug)]
pub(crate) struct Decl {
    pub(crate) usr: Name,
    pub(crate) name: Name,
    pub(crate) kind: DeclKind,
    /// Shown to other objects by the linker.
    pub(crate) is_exported: bool,
    /// The number of parameters that a function names.
    pub(crate) parameters: usize,
    /// A function's parameters and result: of an old definition its type does not name them.
    pub(crate) signature: FunctionType,
    /// A method that other classes may define, too.
    pub(crate) is_virtual: bool,
    /// The methods of the program's own classes that it takes the place of.
    pub(crate) overrides: Vec<Name>,
    pub(crate) ty: TypeId,
    /// The function template that a function was made from.
    pub(crate) template: Option<Name>,
    /// The class of a method.
    pub(crate) class: Option<RecordId>,
    /// The linker's name, by a label or an alias, where that is another name.
    pub(crate) linked_as: Option<Name>,
    /// The section that a variable is put into.
    pub(crate) section: Option<Name>,
    /// A variable that this declaration does not define.
    pub(crate) is_elsewhere: bool,
}

impl Decl {
    /// A function that other units find by its name. C++ puts the types of its parameters into that.
    pub(crate) fn is_function_of_other_units(&self) -> bool {
        self.kind == DeclKind::Function && self.class.is_none() && self.usr.starts_with("c:@F@")
    }

    /// A variable that other units find by its name: outside functions, and not `static`.
    pub(crate) fn is_seen_by_other_units(&self) -> bool {
        self.kind == DeclKind::Variable && self.usr.starts_with("c:@") && !self.usr.contains("@F@")
    }
}

/// The kind of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeclKind {
    Function,
    /// Constructors, destructors and functions that the compiler generates.
    Special,
    Template,
    Variable,
    /// The parameter of this function, from 0.
    Parameter(Name, usize),
    Field(RecordId),
    Enumerator,
    Other,
}

impl Tree {
    /// True when a node or one below it is of one of these kinds.
    pub(crate) fn has_below(&self, id: NodeId, kinds: &[Kind]) -> bool {
        let node = self.node(id);
        kinds.contains(&node.kind) || node.children.iter().any(|&child| self.has_below(child, kinds))
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    pub(crate) fn ty(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    /// The type that a node's pointer, reference or array leads to.
    pub(crate) fn pointee(&self, ty: TypeId) -> Option<TypeId> {
        match self.types[ty].kind {
            TypeKind::Pointer(to) | TypeKind::Array(to, _) => Some(to),
            _ => None,
        }
    }

    /// The record that a pointer or array leads to, through arrays of arrays.
    pub(crate) fn record_pointed_to(&self, ty: TypeId) -> Option<RecordId> {
        let to = self.pointee(ty)?;
        match self.types[to].kind {
            TypeKind::Record(record) => Some(record),
            TypeKind::Array(..) => self.record_pointed_to(to),
            _ => None,
        }
    }

    pub(crate) fn record_of(&self, ty: TypeId) -> Option<RecordId> {
        match self.types[ty].kind {
            TypeKind::Record(record) => Some(record),
            _ => None,
        }
    }

    pub(crate) fn decl_of(&self, node: NodeId) -> Option<&Decl> {
        self.nodes[node].decl.map(|decl| &self.decls[decl])
    }

    /// The field that a member expression names.
    pub(crate) fn field_named(&self, id: NodeId) -> Option<&Field> {
        let decl = self.decl_of(id)?;
        let DeclKind::Field(record) = decl.kind else { return None };
        self.records[record].fields.iter().find(|field| field.name == decl.name)
    }

    /// The record of a name.
    pub(crate) fn record_called(&self, usr: &Name) -> Option<RecordId> {
        self.records.iter().position(|record| record.usr.as_ref() == Some(usr))
    }

    /// A field of the record of a name.
    pub(crate) fn field(&self, usr: &Name, member: &Name) -> Option<&Field> {
        self.records[self.record_called(usr)?].fields.iter().find(|field| field.name == *member)
    }

    /// A node without parentheses and implicit conversions.
    pub(crate) fn bare(&self, mut id: NodeId) -> NodeId {
        while self.nodes[id].kind == Kind::Wrap {
            let Some(&inner) = self.nodes[id].children.last() else { break };
            id = inner;
        }
        id
    }

    /// The same without written casts, either.
    pub(crate) fn uncast(&self, mut id: NodeId) -> NodeId {
        while matches!(self.nodes[id].kind, Kind::Wrap | Kind::Cast) {
            let Some(&inner) = self.nodes[id].children.last() else { break };
            id = inner;
        }
        id
    }

    /// The node and everything below it.
    pub(crate) fn below(&self, id: NodeId) -> Vec<NodeId> {
        let mut all = vec![id];
        let mut at = 0;
        while at < all.len() {
            all.extend(self.nodes[all[at]].children.iter().copied());
            at += 1;
        }
        all
    }

    /// The members of which the unit makes pointers to members: `&T::m`.
    pub(crate) fn pointed_members(&self) -> BTreeSet<Name> {
        let is_address = |node: &&Node| matches!(node.kind, Kind::AddressOf | Kind::Count);
        let named = self.nodes.iter().filter(is_address).filter_map(|node| {
            let named = self.bare(*node.children.first()?);
            let decl = self.decl_of(named).filter(|_| self.node(named).kind == Kind::DeclRef)?;
            matches!(decl.kind, DeclKind::Field(_)).then(|| decl.name.clone())
        });
        named.collect()
    }
}
