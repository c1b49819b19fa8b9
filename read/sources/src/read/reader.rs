//! The reader of a unit.

use super::arms;
use super::cleanups::cleanup;
use super::macros::Macros;
use super::seen_functions::SeenFunctions;
use super::splitting::Splitting;
use crate::libclang::{Cursor, Type as ClangType, Unit};
use crate::member_facts::AllMemberFacts;
use crate::tree::{DeclId, Kind, Name, Node, NodeId, Operator, RecordId, Site, Tree, Type, TypeId, TypeKind};
use crate::variants::Variants;
use clang_sys::*;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Reads the parts of a unit that stand in files below `root`, but for the functions of headers that are known.
pub(crate) fn read(
    unit: &Unit,
    root: &Path,
    is_cpp: bool,
    known: Option<&SeenFunctions>,
    variants: &Variants,
) -> Tree {
    let mut reader = Reader::new(root, known, variants);
    if known.is_none() {
        reader.macros = Macros::of(unit.files());
    }
    reader.tree.is_cpp = is_cpp;
    for cursor in unit.root().children() {
        reader.top_level(cursor);
    }
    reader.finish()
}

/// The prefixes of the names of atomic operations.
const ATOMIC: [&str; 3] = ["__atomic_", "__c11_atomic_", "atomic_"];

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

/// The lines of files, as far as they were asked for.
#[derive(Default)]
pub(super) struct Texts(HashMap<usize, Vec<Vec<u8>>>);

impl Texts {
    /// The line from there on.
    pub(super) fn line_from(&mut self, tree: &Tree, site: Site) -> Option<&[u8]> {
        let lines = self.0.entry(site.file).or_insert_with(|| {
            let text = std::fs::read(&*tree.files[site.file]).unwrap_or_default();
            text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
        });
        let line = lines.get((site.line as usize).checked_sub(1)?)?;
        line.get((site.column as usize).checked_sub(1)?..)
    }
}

impl Texts {
    /// The text from one place of a file to another, each a line and a column; `None` when it stands elsewhere.
    pub(super) fn between(
        &mut self,
        tree: &Tree,
        file: usize,
        from: (u32, u32),
        to: (u32, u32),
    ) -> Option<Vec<u8>> {
        let site = |(line, column): (u32, u32)| Site { file, line, column, is_in_macro: false };
        if from.0 == to.0 {
            let length = to.1.checked_sub(from.1)? as usize;
            return self.line_from(tree, site(from))?.get(..length).map(<[u8]>::to_vec);
        }
        let mut text = self.line_from(tree, site(from))?.to_vec();
        for line in from.0 + 1..to.0 {
            text.extend(self.line_from(tree, site((line, 1)))?);
        }
        let last = self.line_from(tree, site((to.0, 1)))?.get(..to.1.checked_sub(1)? as usize)?;
        text.extend(last);
        (from < to).then_some(text)
    }
}

pub(super) struct Reader<'u, 'r> {
    pub(super) tree: Tree,
    root: &'r Path,
    files: HashMap<String, usize>,
    pub(super) is_foreign_file: Vec<bool>,
    types: HashMap<(usize, CXTypeKind), TypeId>,
    pub(super) records: HashMap<String, RecordId>,
    pub(super) record_of_decl: HashMap<usize, RecordId>,
    pub(super) decls: HashMap<usize, DeclId>,
    /// The number of variables of functions by name.
    pub(super) met: HashMap<String, u32>,
    pub(super) texts: Texts,
    /// The number of templates and lambdas around the present node.
    generic: u32,
    /// The names of the templates among these.
    pub(super) templates: Vec<Name>,
    /// Statements that never run, by their expression's identity.
    skipped: HashSet<usize>,
    /// Records whose members are still to be read.
    pub(super) waiting: Vec<(RecordId, Cursor<'u>)>,
    pub(super) known: Option<&'r SeenFunctions>,
    pub(super) variants: &'r Variants,
    pub(super) macros: Macros,
    pub(super) splitting: Splitting<'u>,
    pub(super) members: AllMemberFacts,
}

impl<'u, 'r> Reader<'u, 'r> {
    fn new(root: &'r Path, known: Option<&'r SeenFunctions>, variants: &'r Variants) -> Self {
        let mut reader = Reader {
            tree: Tree::default(),
            root,
            files: HashMap::new(),
            is_foreign_file: Vec::new(),
            types: HashMap::new(),
            records: HashMap::new(),
            record_of_decl: HashMap::new(),
            decls: HashMap::new(),
            met: HashMap::new(),
            texts: Texts::default(),
            generic: 0,
            templates: Vec::new(),
            skipped: HashSet::new(),
            waiting: Vec::new(),
            known,
            variants,
            macros: Macros::default(),
            splitting: Splitting::default(),
            members: AllMemberFacts::default(),
        };
        reader.file(String::new());
        reader
    }

    fn finish(mut self) -> Tree {
        while let Some((id, cursor)) = self.waiting.pop() {
            self.fill(id, cursor);
        }
        self.tree.splitting = self.splitting.facts;
        self.tree.members = self.members;
        self.tree
    }

    pub(super) fn file(&mut self, name: String) -> usize {
        if let Some(&known) = self.files.get(&name) {
            return known;
        }
        let path = normal(Path::new(&name));
        let id = self.tree.files.len();
        self.tree.files.push(path.to_string_lossy().into());
        self.is_foreign_file.push(!path.starts_with(self.root));
        self.files.insert(name, id);
        id
    }

    pub(super) fn site(&mut self, cursor: Cursor<'u>) -> Site {
        let location = cursor.location();
        let file = self.file(location.file);
        Site { file, line: location.line, column: location.column, is_in_macro: location.is_in_macro }
    }

    /// True when the file has this text there; a macro's name stands where its body came from.
    pub(super) fn is_written(&mut self, site: Site, text: &str) -> bool {
        self.texts.line_from(&self.tree, site).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// True when the expression that moves a pointer there is a subtraction for certain.
    fn is_subtraction(&mut self, site: Site) -> bool {
        let text = self.texts.line_from(&self.tree, site);
        text.is_some_and(|text| self.macros.is_subtraction(text))
    }

    pub(super) fn is_foreign(&mut self, cursor: Cursor<'u>) -> bool {
        let site = self.site(cursor);
        self.is_foreign_file[site.file]
    }

    /// Declarations of the project's files; namespaces are opened.
    fn top_level(&mut self, cursor: Cursor<'u>) {
        if self.is_foreign(cursor) {
            return;
        }
        match cursor.kind() {
            CXCursor_Namespace | CXCursor_LinkageSpec | CXCursor_UnexposedDecl => {
                for child in cursor.children() {
                    self.top_level(child);
                }
            }
            _ if self.known.is_some_and(|known| known.has(cursor)) => {}
            _ => {
                let node = self.node(cursor);
                self.tree.roots.push(node);
            }
        }
    }

    fn node(&mut self, cursor: Cursor<'u>) -> NodeId {
        if cursor.kind() == CXCursor_TypedefDecl || cursor.kind() == CXCursor_TypeAliasDecl {
            self.name_record(cursor);
        }
        let ty = self.type_of(cursor.ty());
        let mut site = self.site(cursor);
        let children = self.children(cursor);
        let kind = self.kind(cursor, &children);
        site.is_in_macro |= match kind {
            Kind::InitList => !self.is_written(site, "{"),
            Kind::SizeOf => !self.is_written(site, "sizeof"),
            Kind::Assembly => !self.is_written(site, "asm") && !self.is_written(site, "__asm"),
            _ => false,
        };
        let decl = match cursor.kind() {
            CXCursor_DeclRefExpr | CXCursor_MemberRefExpr | CXCursor_CallExpr | CXCursor_MemberRef => {
                self.meant(cursor).map(|decl| self.decl(decl))
            }
            CXCursor_VarDecl
            | CXCursor_FunctionDecl
            | CXCursor_CXXMethod
            | CXCursor_Constructor
            | CXCursor_Destructor
            | CXCursor_ConversionFunction
            | CXCursor_FunctionTemplate
            | CXCursor_ParmDecl
            | CXCursor_FieldDecl
            | CXCursor_EnumConstantDecl => Some(self.decl(cursor)),
            _ => None,
        };
        let dependent = if decl.is_none() && kind == Kind::Member {
            self.dependent_member(cursor, &children)
        } else {
            None
        };
        let is_generic = is_generic(cursor);
        self.generic += u32::from(is_generic);
        let outer_templates = self.templates.len();
        self.templates.extend(template_named(cursor).filter(|_| is_generic));
        let value = self.constant((cursor, site), kind, ty, &children);
        let id = self.tree.nodes.len();
        let is_moving = kind == Kind::Binary && matches!(self.tree.types[ty].kind, TypeKind::Pointer(_));
        let is_minus = kind == Kind::Step && self.counts_down(cursor, site)
            || is_moving
                && match self.operator_between(site, &children) {
                    Some(known) => known == Operator::Minus,
                    None => {
                        let is_inner = children.first().is_some_and(|left| begins_with_operator(*left));
                        !is_inner && self.is_subtraction(site)
                    }
                };
        let (operator, child_count) = (self.operator(kind, ty, site, &children), children.len());
        let node = Node { kind, ty, decl, site, children: Vec::new(), value, is_minus, operator };
        self.tree.nodes.push(node);
        self.tree.dependent_members.extend(dependent.map(|name| (id, name)));
        if kind == Kind::Wrap && child_count > 1 && ATOMIC.iter().any(|name| self.is_written(site, name)) {
            self.tree.atomics.insert(id);
        }
        if matches!(kind, Kind::Step | Kind::Subscript | Kind::Member | Kind::New) && self.known.is_none() {
            let pointer = if kind == Kind::New { Some(&cursor) } else { children.first() };
            let asked = pointer.and_then(|pointer| asked_alignment(pointer.ty()));
            self.tree.asked_alignments.extend(asked.map(|bytes| (id, bytes)));
        }
        if cursor.kind() == CXCursor_StringLiteral && self.known.is_none() {
            self.tree.texts.insert(id, cursor.spelling().into());
        }
        if kind == Kind::Variable && self.known.is_none() {
            self.tree.cleanups.extend(cleanup(cursor, &children).map(|function| (id, function)));
        }
        if kind == Kind::Assembly && self.known.is_none() {
            let operands = self.operands(site);
            self.tree.operands.insert(id, operands);
        }
        let notes_splitting = self.known.is_none();
        if notes_splitting {
            match self.tree.is_cpp {
                true => self.note_splitting(cursor, &children),
                false => {
                    self.note_heap_object(cursor, &children);
                    self.note_members(cursor, &children);
                }
            }
            self.splitting.above.push(cursor);
        }
        let mut known: Vec<(usize, NodeId)> = Vec::with_capacity(children.len());
        let aligned = self.aligned_by_directive(cursor, site);
        for child in children {
            let node = self.node(child);
            let bytes = aligned.iter().find(|(name, _)| *name == child.spelling()).map(|(_, bytes)| *bytes);
            self.tree.asked_alignments.extend(bytes.map(|bytes| (node, bytes)));
            known.push((child.expression_identity(), node));
        }
        if notes_splitting {
            self.splitting.above.pop();
        }
        if kind == Kind::Call {
            let of = |argument: Cursor<'u>| {
                known
                    .iter()
                    .find(|(identity, _)| *identity == argument.expression_identity())
                    .map(|(_, node)| *node)
            };
            let arguments = cursor.arguments().into_iter().map(of).collect();
            self.tree.arguments.insert(id, arguments);
        }
        self.tree.nodes[id].children = known.into_iter().map(|(_, node)| node).collect();
        self.generic -= u32::from(is_generic);
        self.templates.truncate(outer_templates);
        self.note_dependent_size(id);
        self.note_template_numbers(id, cursor);
        self.settle_unary(id);
        self.settle_offset(id, cursor);
        id
    }

    /// The nodes below, except code that never runs.
    fn children(&mut self, cursor: Cursor<'u>) -> Vec<Cursor<'u>> {
        if cursor.kind() == CXCursor_SwitchStmt && self.generic == 0 {
            self.skipped.extend(arms::never_run(cursor).into_iter().map(Cursor::expression_identity));
        }
        let mut children = cursor.children();
        if cursor.kind() == CXCursor_CompoundStmt && !self.skipped.is_empty() {
            children.retain(|child| !self.skipped.contains(&child.expression_identity()));
        }
        children
    }

    /// The value of a constant expression. libclang must not be asked inside templates: it would follow expressions
    /// that have no value.
    fn constant(
        &mut self,
        (cursor, site): (Cursor<'u>, Site),
        kind: Kind,
        ty: TypeId,
        children: &[Cursor<'u>],
    ) -> Option<i64> {
        // `-1`.
        let is_of_number = || children.first().is_some_and(|first| first.kind() == CXCursor_IntegerLiteral);
        let is_number = matches!(self.tree.types[ty].kind, TypeKind::Scalar | TypeKind::Byte);
        match kind {
            Kind::Integer => cursor.evaluate(),
            Kind::Step if is_of_number() => cursor.evaluate(),
            Kind::SizeOf | Kind::OffsetOf | Kind::Binary if self.generic == 0 && is_number => {
                cursor.evaluate()
            }
            // `~(long)255`.
            Kind::Step if self.generic == 0 && is_number && self.changes_nothing(site) => cursor.evaluate(),
            Kind::DeclRef if self.generic == 0 && is_number && is_constant(cursor) => cursor.evaluate(),
            _ => None,
        }
    }

    fn kind(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) -> Kind {
        match cursor.kind() {
            kind if is_function(kind) && cursor.is_definition() => Kind::Function,
            CXCursor_VarDecl => Kind::Variable,
            CXCursor_StaticAssert => Kind::Assertion,
            CXCursor_DeclRefExpr => Kind::DeclRef,
            CXCursor_MemberRefExpr => Kind::Member,
            CXCursor_CallExpr => Kind::Call,
            CXCursor_CStyleCastExpr
            | CXCursor_CXXStaticCastExpr
            | CXCursor_CXXReinterpretCastExpr
            | CXCursor_CXXConstCastExpr
            | CXCursor_CXXDynamicCastExpr
            | CXCursor_CXXFunctionalCastExpr => Kind::Cast,
            CXCursor_ParenExpr | CXCursor_StmtExpr => Kind::Wrap,
            CXCursor_UnexposedExpr => unexposed(children),
            CXCursor_UnaryOperator => Kind::Step,
            CXCursor_BinaryOperator => Kind::Binary,
            CXCursor_CompoundAssignOperator => Kind::CompoundAssign,
            CXCursor_ConditionalOperator => Kind::Conditional,
            CXCursor_ArraySubscriptExpr => Kind::Subscript,
            CXCursor_InitListExpr => Kind::InitList,
            CXCursor_CompoundLiteralExpr => Kind::CompoundLiteral,
            CXCursor_UnaryExpr => Kind::SizeOf,
            CXCursor_IntegerLiteral => Kind::Integer,
            CXCursor_CXXNewExpr => Kind::New,
            CXCursor_CXXThisExpr => Kind::This,
            CXCursor_AsmStmt | CXCursor_MSAsmStmt => Kind::Assembly,
            CXCursor_ReturnStmt => Kind::Return,
            CXCursor_SwitchStmt => Kind::Switch,
            CXCursor_CaseStmt => Kind::Case,
            CXCursor_TypeRef | CXCursor_TemplateRef | CXCursor_NamespaceRef => Kind::TypeRef,
            CXCursor_MemberRef => Kind::MemberRef,
            _ => Kind::Other,
        }
    }

    /// libclang does not report the unary operator; the types imply it. True for an operator of one operand that only
    /// gives its value, as far as the text shows it.
    pub(super) fn changes_nothing(&mut self, site: Site) -> bool {
        let is = |reader: &mut Self, text| reader.is_written(site, text);
        is(self, "!")
            || is(self, "~")
            || (is(self, "-") && !is(self, "--"))
            || (is(self, "+") && !is(self, "++"))
    }

    /// `--p`, `p--`.
    fn counts_down(&mut self, cursor: Cursor<'u>, site: Site) -> bool {
        if self.known.is_some() {
            return false;
        }
        let [_, end] = cursor.extent();
        let operand = cursor.children().first().map(|operand| operand.extent()[1]);
        let behind = operand.and_then(|from| self.texts.between(&self.tree, site.file, from, end));
        behind.is_some_and(|text| text.trim_ascii() == b"--") || self.is_written(site, "--")
    }

    fn settle_unary(&mut self, id: NodeId) {
        let node = &self.tree.nodes[id];
        if node.kind != Kind::Step {
            return;
        }
        let Some(&child) = node.children.first() else { return };
        let (own, inner, site) = (node.ty, self.tree.nodes[child].ty, node.site);
        let same = |a: TypeId, b: TypeId| self.tree.types[a].spelling == self.tree.types[b].spelling;
        let kind = match (self.tree.types[own].kind, self.tree.types[inner].kind) {
            (TypeKind::Pointer(to), _) if same(to, inner) => Kind::AddressOf,
            (_, TypeKind::Pointer(to)) if same(to, own) => Kind::Deref,
            (TypeKind::Pointer(_), TypeKind::Pointer(_)) => Kind::Step,
            (TypeKind::Dependent, TypeKind::Pointer(_)) if !self.is_written(site, "*") => Kind::Step,
            (TypeKind::Dependent, _) if self.is_written(site, "&") => Kind::AddressOf,
            (TypeKind::Dependent, _) if self.is_written(site, "*") => Kind::Deref,
            _ if self.changes_nothing(self.tree.nodes[id].site) => Kind::Other,
            _ => Kind::Count,
        };
        self.tree.nodes[id].kind = kind;
    }

    /// `(size_t)&((T *)0)->member` is `offsetof(T, member)`.
    fn settle_offset(&mut self, id: NodeId, cursor: Cursor<'u>) {
        let node = &self.tree.nodes[id];
        let is_number = matches!(self.tree.types[node.ty].kind, TypeKind::Scalar);
        if node.kind != Kind::Cast || !is_number || self.generic > 0 {
            return;
        }
        let address = &self.tree.nodes[self.tree.uncast(id)];
        let Some(&place) = address.children.first().filter(|_| address.kind == Kind::AddressOf) else {
            return;
        };
        let mut place = self.tree.bare(place);
        loop {
            let node = &self.tree.nodes[place];
            let Some(&base) = node.children.first() else { return };
            let inner = self.tree.bare(base);
            match (&node.kind, &self.tree.nodes[inner].kind) {
                (Kind::Member | Kind::Subscript, Kind::Member | Kind::Subscript) => place = inner,
                (Kind::Member, _) => break,
                _ => return,
            }
        }
        let base = self.tree.nodes[place].children[0];
        let base = &self.tree.nodes[self.tree.uncast(base)];
        if base.kind == Kind::Integer && base.value == Some(0) {
            self.tree.nodes[place].kind = Kind::MemberRef;
            self.tree.nodes[place].children.clear();
            let node = &mut self.tree.nodes[id];
            (node.kind, node.children, node.value) = (Kind::OffsetOf, vec![place], cursor.evaluate());
        }
    }

    pub(super) fn type_of(&mut self, ty: ClangType<'u>) -> TypeId {
        let ty = ty.canonical();
        let key = (ty.identity(), ty.kind());
        if let Some(&known) = self.types.get(&key) {
            return known;
        }
        let id = self.tree.types.len();
        let spelling: Name = unqualified(&ty.spelling()).into();
        let is_volatile = ty.is_volatile();
        let size_bytes = ty.size_bytes();
        self.tree.types.push(Type { kind: TypeKind::Other, size_bytes, spelling, is_volatile });
        self.types.insert(key, id);
        let kind = self.type_kind(ty, size_bytes);
        self.tree.types[id].kind = kind;
        if kind == TypeKind::Function {
            self.note_function_type(id, ty);
        }
        id
    }

    fn type_kind(&mut self, ty: ClangType<'u>, size_bytes: Option<u64>) -> TypeKind {
        match ty.kind() {
            CXType_Void => TypeKind::Void,
            CXType_Pointer | CXType_LValueReference | CXType_RValueReference => match ty.pointee() {
                Some(to) => TypeKind::Pointer(self.type_of(to)),
                None => TypeKind::Other,
            },
            CXType_ConstantArray | CXType_IncompleteArray | CXType_VariableArray => match ty.element() {
                Some(of) => TypeKind::Array(self.type_of(of), ty.count()),
                None => TypeKind::Other,
            },
            CXType_Record => match ty.declaration() {
                Some(decl) => TypeKind::Record(self.record(decl)),
                None => TypeKind::Other,
            },
            CXType_FunctionProto | CXType_FunctionNoProto => TypeKind::Function,
            CXType_Dependent | CXType_Unexposed | CXType_Auto => TypeKind::Dependent,
            CXType_Invalid => TypeKind::Other,
            _ if ty.is_atomic() => TypeKind::Other,
            _ if size_bytes == Some(1) => TypeKind::Byte,
            _ if size_bytes.is_some() => TypeKind::Scalar,
            _ => TypeKind::Other,
        }
    }
}

/// True for a node that stands for many functions or classes: templates, methods of class templates, lambdas.
fn is_generic(cursor: Cursor<'_>) -> bool {
    match cursor.kind() {
        CXCursor_FunctionTemplate
        | CXCursor_ClassTemplate
        | CXCursor_ClassTemplatePartialSpecialization
        | CXCursor_LambdaExpr => true,
        CXCursor_CXXMethod | CXCursor_Constructor | CXCursor_Destructor | CXCursor_ConversionFunction => {
            let kind = cursor.parent().map(Cursor::kind);
            matches!(kind, Some(CXCursor_ClassTemplate | CXCursor_ClassTemplatePartialSpecialization))
        }
        _ => false,
    }
}

/// The name of a template, or of the class template that a method belongs to.
fn template_named(cursor: Cursor<'_>) -> Option<Name> {
    match cursor.kind() {
        CXCursor_LambdaExpr => None,
        CXCursor_FunctionTemplate | CXCursor_ClassTemplate | CXCursor_ClassTemplatePartialSpecialization => {
            Some(cursor.usr().into())
        }
        _ => cursor.parent().map(|class| class.usr().into()),
    }
}

/// `a - b` in `a - b + c`, without parentheses around it.
fn begins_with_operator(mut left: Cursor<'_>) -> bool {
    while left.kind() == CXCursor_UnexposedExpr {
        let Some(inner) = left.children().first().copied() else { return false };
        left = inner;
    }
    left.kind() == CXCursor_BinaryOperator
}

/// The kinds that libclang lacks: implicit conversions, `offsetof`, designators.
pub(super) fn unexposed(children: &[Cursor<'_>]) -> Kind {
    let is_member = |cursor: &Cursor<'_>| cursor.kind() == CXCursor_MemberRef;
    if !children.iter().any(is_member) {
        return Kind::Wrap;
    }
    let starts_with_type = children.first().is_some_and(|first| first.kind() == CXCursor_TypeRef);
    match starts_with_type || children.last().is_some_and(is_member) {
        true => Kind::OffsetOf,
        false => Kind::Designated,
    }
}

/// The alignment that a pointer's target asks for, from that of vectors on.
fn asked_alignment(pointer: ClangType<'_>) -> Option<u64> {
    const VECTOR_BYTES: u64 = 16;
    let is_pointer = pointer.canonical().kind() == CXType_Pointer;
    let to = pointer.pointee().filter(|_| is_pointer).or_else(|| pointer.canonical().pointee())?;
    to.align_bytes().filter(|&bytes| is_pointer && bytes >= VECTOR_BYTES)
}

/// The name of a constant: an enumerator, or a variable that keeps its first value.
fn is_constant(name: Cursor<'_>) -> bool {
    let is_variable = |decl: Cursor<'_>| decl.kind() == CXCursor_VarDecl && name.ty().is_const();
    let is_one = |decl: Cursor<'_>| decl.kind() == CXCursor_EnumConstantDecl || is_variable(decl);
    name.referenced().is_some_and(is_one)
}

/// A type's text without qualifiers.
pub(super) fn unqualified(spelling: &str) -> String {
    let words = spelling.replace('*', " * ");
    let kept = words.split_whitespace().filter(|word| !matches!(*word, "const" | "volatile" | "restrict"));
    kept.collect::<Vec<_>>().join(" ")
}

/// True for what declares or defines a function.
pub(super) fn is_function(kind: CXCursorKind) -> bool {
    matches!(
        kind,
        CXCursor_FunctionDecl
            | CXCursor_CXXMethod
            | CXCursor_Constructor
            | CXCursor_Destructor
            | CXCursor_ConversionFunction
            | CXCursor_FunctionTemplate
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_detours() {
        assert_eq!(normal(Path::new("/a/./b/../c.h")), Path::new("/a/c.h"));
    }

    #[test]
    fn qualifiers_do_not_make_another_type() {
        assert_eq!(unqualified("const struct a *const"), unqualified("struct a *"));
        assert_ne!(unqualified("struct a *"), unqualified("struct a **"));
    }
}
