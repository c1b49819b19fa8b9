//! A function's statements and expressions as plain data: libclang's nodes, with the bytes of the file that they cover.

use crate::libclang::{Cursor, Type as ClangType};
use crate::read::Macros;
use clang_sys::*;
use lineup_model::chase::{Chase, Form};
use std::collections::HashMap;
use std::ops::Range;

/// Index of a [`Piece`] in [`Function::pieces`].
pub(super) type PieceId = usize;
/// A declaration's identity inside libclang.
pub(super) type DeclId = usize;

/// A node.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) kind: CXCursorKind,
    /// The bytes of the file; a macro's name and arguments for nodes of its body. Empty for nodes of other files.
    pub(super) span: Range<usize>,
    pub(super) parent: Option<PieceId>,
    pub(super) children: Vec<PieceId>,
    /// The declaration that it names, calls or makes.
    pub(super) decl: Option<DeclId>,
    /// The name of that declaration.
    pub(super) name: String,
    pub(super) ty: Ty,
    /// The arguments of a call.
    pub(super) arguments: Vec<PieceId>,
    /// A number, or an operation of numbers alone.
    pub(super) is_constant: bool,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) struct Ty {
    pub(super) shape: Shape,
    /// Canonical, without qualifiers.
    pub(super) spelling: String,
    /// `volatile` or atomic: each access counts.
    pub(super) is_guarded: bool,
    /// The type that a pointer or an array leads to.
    pub(super) to: Option<Box<Ty>>,
}

/// The kinds of types that matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Pointer,
    Array,
    /// A struct, class or union with members.
    Record,
    Integer {
        is_unsigned: bool,
    },
    Other,
}

impl Ty {
    fn of(ty: ClangType<'_>, depth: u8) -> Ty {
        let ty = ty.canonical();
        let shape = match ty.kind() {
            CXType_Pointer => Shape::Pointer,
            CXType_ConstantArray | CXType_IncompleteArray | CXType_VariableArray => Shape::Array,
            CXType_Record if ty.size_bytes().is_some() => Shape::Record,
            CXType_UShort | CXType_UInt | CXType_ULong | CXType_ULongLong => {
                Shape::Integer { is_unsigned: true }
            }
            CXType_Short | CXType_Int | CXType_Long | CXType_LongLong => {
                Shape::Integer { is_unsigned: false }
            }
            _ => Shape::Other,
        };
        let to = match shape {
            Shape::Pointer => ty.pointee(),
            Shape::Array => ty.element(),
            _ => None,
        };
        let to = to.filter(|_| depth > 0).map(|to| Box::new(Ty::of(to, depth - 1)));
        Ty {
            shape,
            spelling: unqualified(&ty.spelling()),
            is_guarded: ty.is_volatile() || ty.is_atomic(),
            to,
        }
    }

    /// The name of the struct or class that a pointer leads to, or that this is.
    pub(super) fn record(&self) -> Option<&str> {
        let record = match self.shape {
            Shape::Pointer | Shape::Array => self.to.as_deref()?,
            _ => self,
        };
        (record.shape == Shape::Record).then(|| bare_name(&record.spelling))
    }

    pub(super) fn is_pointer(&self) -> bool {
        self.shape == Shape::Pointer
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.shape, Shape::Integer { .. })
    }
}

fn unqualified(spelling: &str) -> String {
    let words = ["const ", "volatile ", "struct ", "class ", "union "];
    let bare = words.iter().fold(spelling.to_owned(), |text, word| text.replace(word, ""));
    let bare = match bare.strip_prefix("_Atomic(").and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None => bare,
    };
    bare.replace("*volatile", "*")
        .replace("*const", "*")
        .replace("*restrict", "*")
        .replace("*__restrict", "*")
}

fn bare_name(spelling: &str) -> &str {
    spelling.split('<').next().unwrap_or(spelling)
}

/// A declaration that pieces name.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) kind: DeclaredKind,
    pub(super) ty: Ty,
    /// The offset of a member in its object, in bytes.
    pub(super) offset: Option<u64>,
    /// The class of a method, where the standard library declares it.
    pub(super) library_class: Option<String>,
}

/// The kinds of declarations that matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeclaredKind {
    /// A variable of this function or its parameter, on the stack.
    Local,
    /// A variable that outlives the function.
    Global,
    Member,
    Function,
    /// A constant of an `enum`.
    Constant,
    Other,
}

/// A function's body.
pub(super) struct Function<'u> {
    pub(super) name: String,
    pub(super) is_cpp: bool,
    /// The file's text.
    pub(super) text: &'u str,
    pub(super) pieces: Vec<Piece>,
    pub(super) decls: HashMap<DeclId, Declared>,
    /// The functions that it calls, for those that the unit defines.
    pub(super) callees: HashMap<DeclId, Cursor<'u>>,
    /// The unit's macros.
    pub(super) macros: &'u Macros,
    lines: Vec<usize>,
    file: String,
}

impl<'u> Function<'u> {
    /// Reads a definition in a file with this text.
    pub(super) fn read(
        definition: Cursor<'u>,
        text: &'u str,
        (is_cpp, macros): (bool, &'u Macros),
    ) -> Function<'u> {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let mut function = Function {
            name: definition.spelling(),
            is_cpp,
            text,
            macros,
            pieces: Vec::new(),
            decls: HashMap::new(),
            callees: HashMap::new(),
            lines: std::iter::once(0).chain(starts).collect(),
            file: definition.location().file,
        };
        function.piece(definition, None);
        function
    }

    fn piece(&mut self, cursor: Cursor<'u>, parent: Option<PieceId>) -> PieceId {
        let id = self.pieces.len();
        let decl = self.declared(cursor);
        let piece = Piece {
            kind: cursor.kind(),
            span: self.span(cursor),
            parent,
            children: Vec::new(),
            decl: decl.map(|decl| self.note(decl)),
            name: decl.map(Cursor::spelling).unwrap_or_default(),
            ty: Ty::of(cursor.ty(), 2),
            arguments: Vec::new(),
            is_constant: cursor.kind() == CXCursor_IntegerLiteral,
        };
        self.pieces.push(piece);
        let children = cursor.children();
        let ids: Vec<PieceId> = children.iter().map(|child| self.piece(*child, Some(id))).collect();
        if cursor.kind() == CXCursor_CallExpr {
            let place = |argument: Cursor<'u>| {
                let is_it =
                    |child: &Cursor<'u>| child.expression_identity() == argument.expression_identity();
                children.iter().position(is_it).map(|at| ids[at])
            };
            self.pieces[id].arguments = cursor.arguments().into_iter().filter_map(place).collect();
        }
        let is_operation =
            matches!(cursor.kind(), CXCursor_BinaryOperator | CXCursor_ParenExpr | CXCursor_UnexposedExpr);
        let is_constant = !ids.is_empty() && ids.iter().all(|child| self.pieces[*child].is_constant);
        self.pieces[id].is_constant |= is_operation && is_constant;
        self.pieces[id].children = ids;
        id
    }

    fn declared(&self, cursor: Cursor<'u>) -> Option<Cursor<'u>> {
        match cursor.kind() {
            CXCursor_VarDecl | CXCursor_ParmDecl => Some(cursor),
            CXCursor_DeclRefExpr | CXCursor_MemberRefExpr | CXCursor_CallExpr | CXCursor_VariableRef => {
                cursor.referenced()
            }
            _ => None,
        }
    }

    fn note(&mut self, decl: Cursor<'u>) -> DeclId {
        let id = decl.identity();
        if self.decls.contains_key(&id) {
            return id;
        }
        let kind = match decl.kind() {
            CXCursor_ParmDecl => DeclaredKind::Local,
            CXCursor_VarDecl if decl.is_static() || decl.is_thread_local() => DeclaredKind::Global,
            CXCursor_VarDecl => {
                let above = decl.parent().map(Cursor::kind);
                let is_outside = decl.is_of_namespace()
                    || matches!(above, None | Some(CXCursor_StructDecl | CXCursor_ClassDecl));
                if is_outside { DeclaredKind::Global } else { DeclaredKind::Local }
            }
            CXCursor_FieldDecl => DeclaredKind::Member,
            CXCursor_EnumConstantDecl => DeclaredKind::Constant,
            CXCursor_FunctionDecl
            | CXCursor_CXXMethod
            | CXCursor_Constructor
            | CXCursor_Destructor
            | CXCursor_ConversionFunction => DeclaredKind::Function,
            _ => DeclaredKind::Other,
        };
        if kind == DeclaredKind::Function {
            self.callees.insert(id, decl);
        }
        let class = decl.parent().filter(|_| kind == DeclaredKind::Function);
        let class = class.filter(|class| class.parent().is_some_and(|above| above.spelling() == "std"));
        self.decls.insert(
            id,
            Declared {
                kind,
                ty: Ty::of(decl.ty(), 2),
                offset: decl.offset_bits().filter(|_| kind == DeclaredKind::Member).map(|bits| bits / 8),
                library_class: class.map(Cursor::spelling),
            },
        );
        id
    }

    fn span(&self, cursor: Cursor<'u>) -> Range<usize> {
        if cursor.location().file != self.file {
            return 0..0;
        }
        let [from, to] = cursor.extent();
        let offset = |(line, column): (u32, u32)| {
            let start = self.lines.get((line as usize).checked_sub(1)?)?;
            let at = start + (column as usize).checked_sub(1)?;
            self.text.is_char_boundary(at).then_some(at)
        };
        match (offset(from), offset(to)) {
            (Some(from), Some(to)) if from <= to => from..to,
            _ => 0..0,
        }
    }

    pub(super) fn at(&self, id: PieceId) -> &Piece {
        &self.pieces[id]
    }

    /// The bytes of the file that a node covers.
    pub(super) fn slice(&self, id: PieceId) -> &'u str {
        self.text.get(self.at(id).span.clone()).unwrap_or_default()
    }

    /// The declaration that a node names.
    pub(super) fn declaration(&self, id: PieceId) -> Option<&Declared> {
        self.decls.get(&self.at(id).decl?)
    }

    /// A chase at a place of the function, with nothing known of it.
    pub(super) fn unknown_chase(&self, at: usize) -> Chase {
        Chase {
            path: String::new(),
            line: self.line(at),
            function: self.name.clone(),
            asked: String::new(),
            form: Form::List,
            object: None,
            ahead: Err("it is not understood".into()),
        }
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= at)).unwrap_or(0)
    }

    /// A node and all below it.
    pub(super) fn below(&self, id: PieceId) -> Vec<PieceId> {
        let mut all = vec![id];
        let mut at = 0;
        while at < all.len() {
            all.extend(self.at(all[at]).children.iter().copied());
            at += 1;
        }
        all
    }

    /// The nodes above, nearest first.
    pub(super) fn above(&self, id: PieceId) -> impl Iterator<Item = PieceId> + '_ {
        std::iter::successors(self.at(id).parent, |above| self.at(*above).parent)
    }

    pub(super) fn is_below(&self, id: PieceId, above: PieceId) -> bool {
        id == above || self.above(id).any(|one| one == above)
    }

    /// A node without parentheses and implicit conversions.
    pub(super) fn bare(&self, mut id: PieceId) -> PieceId {
        while matches!(self.at(id).kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr)
            && let [inner] = self.at(id).children[..]
        {
            id = inner;
        }
        id
    }

    /// The nearest node above that is no parenthesis.
    fn outside_parentheses(&self, id: PieceId) -> Option<PieceId> {
        self.above(id).find(|above| self.at(*above).kind != CXCursor_ParenExpr)
    }

    /// True where the value of a place in memory is read, and nothing else happens to it.
    pub(super) fn is_read(&self, id: PieceId) -> bool {
        let is_value = !matches!(self.at(id).ty.shape, Shape::Array);
        let above = self.outside_parentheses(id);
        is_value && above.is_some_and(|above| self.at(above).kind == CXCursor_UnexposedExpr)
    }

    /// The operator of a node with two operands, as far as the file shows it.
    pub(super) fn operator(&self, id: PieceId) -> Option<&'u str> {
        let [left, right] = self.at(id).children[..] else { return None };
        let between = self.text.get(self.at(left).span.end..self.at(right).span.start)?;
        let word = between.trim();
        const KNOWN: [&str; 22] = [
            "=", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "+", "-", "*", ",", "+=", "-=", "&", "|", "/",
            "^", "%", ">>", "<<",
        ];
        KNOWN.contains(&word).then_some(word)
    }

    /// The operator of a node with one operand, as far as the file shows it; `p++` and `++p` alike.
    pub(super) fn prefix(&self, id: PieceId) -> Option<&'static str> {
        let text = self.slice(id);
        let [operand] = self.at(id).children[..] else { return None };
        let (own, inner) = (&self.at(id).span, &self.at(operand).span);
        let before = self.text.get(own.start..inner.start.max(own.start))?.trim();
        let after = self.text.get(inner.end.min(own.end)..own.end)?.trim();
        const KNOWN: [&str; 7] = ["++", "--", "*", "&", "!", "-", "~"];
        let known = |word: &str| KNOWN.into_iter().find(|known| *known == word);
        if text.is_empty() {
            return None;
        }
        match (before, after) {
            ("", word) | (word, "") => known(word),
            _ => None,
        }
    }
}
