//! The constraints that a safe edit obeys, each with the name it is reported under.

use crate::text::source_place::SourcePlace;
use serde::Serialize;
use std::fmt;

/// The reason why members may not move, or a type or variable may not be edited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// A flexible, zero-length or one-element trailing array stays last.
    FlexibleArrayLast,
    /// Bit-fields move as whole runs, in order.
    BitFieldRun,
    /// Members inside `#if … #endif` move together.
    Conditional,
    /// An anonymous struct or union, or a `struct_group`, moves whole.
    Anonymous,
    /// Rust types: the compiler orders their members, unless they are `repr(C)`, and Rust is not edited.
    CompilersOrder,
    /// Packed types are not reordered.
    Packed,
    /// An initialiser gives values by position.
    PositionalInitialiser,
    /// The first member is used as the object itself.
    FirstMemberIsObject,
    /// The user pinned the member.
    Pinned,
    /// The user asked to keep the type.
    Kept,
    /// Code computes with `offsetof` of the member.
    Offsetof,
    /// An assertion in the source holds a member's offset.
    AssertedOffset,
    /// Objects are used through pointers to another type.
    UsedAsOtherType,
    /// Code reads an object byte by byte.
    ReadAsBytes,
    /// Objects share a union with others.
    SharesUnion,
    /// A test failed with another order.
    FailedTest,
    /// Assembly names the type or variable.
    Assembly,
    /// Code copies, clears or measures a span of members.
    MemorySpan,
    /// A zero-length marker separates groups; members stay on their side.
    GroupMarker,
    /// The layout is randomised by the compiler.
    RandomisedLayout,
    /// Several members declared in one declaration or on one line move together.
    OneDeclaration,
    /// Members that a macro declares stay together; at the start they stay first.
    MacroMembers,
    /// The declaration is not in the source folder.
    OutsideSource,
    /// Objects cross an ABI: files, sockets, system calls.
    CrossesAbi,
    /// C++ constructors initialise members in declaration order.
    ConstructorOrder,
    /// Members keep their access section.
    AccessSection,
    /// A member's type is declared inside the class, before it.
    NestedType,
    /// Members of a union share their place.
    Union,
    /// Base classes precede members.
    BaseClass,
    /// The text could not be understood well enough to edit it.
    UnclearSource,
    /// The source's members are not those of the debug info.
    StaleDebugInfo,
    /// The layout known from debug info could not be reproduced, so no other can be predicted.
    LayoutNotReproduced,
    /// The type's size may not grow.
    NeverLarger,
    /// The compiler did not accept the candidate or gave other offsets.
    CompilerDisagrees,
    /// The variable is used in other units.
    ExternalLinkage,
    /// A macro uses the variable.
    UsedInMacro,
    /// The variable is declared more than once, or in a way that cannot become a member.
    VariableDeclaration,
    /// Constant data stays in read-only memory.
    ConstantData,
    /// A section attribute is dropped by the gathering.
    SectionAttribute,
    /// The variable is too large to be gathered.
    TooLarge,
    /// Threads write it, and so take away the line of any neighbour.
    WrittenByOthers,
    /// A comment or an attribute says how members must lie.
    Comment,
    /// A comment heads a group of members, which stays together under it.
    Heading,
    /// A reader sees neighbours as one thing: by their names, or because one selects the content of the other.
    OneThing,
    /// A member is `volatile`: the type lies over registers, or its layout is known to others.
    Volatile,
    /// Members are `volatile`, but all objects lay in the program's own memory: that moves them with a type that may
    /// move.
    OrdinaryMemory,
    /// Another type begins with the same members, and objects may be used as either.
    SharedBeginning,
    /// A recorded instruction faults where the member does not lie at such a multiple.
    AskedAlignment,
    /// Members lie on lines of their own, apart from those before: an alignment, their sizes or room puts them there.
    KeptApart,
    /// Most waits of threads are predicted to stay with its members apart.
    WaitsStay,
    /// Every CPU has a copy of the variable: it cannot become a member.
    PerCpu,
    /// The change was made and tried, and the program was worse or did something else.
    TrialFailed,
    /// An edit that moves members out of the object could not follow a use of them.
    KeptInObject,
    /// An edit that removes members, or gives them smaller types, could not follow a use of them.
    AsDeclared,
    /// A person looked at a use that would hold the type, and found it harmless.
    Reviewed,
    /// No compiler looked at its uses.
    Unchecked,
    /// A lock stays where it is, and its data near it.
    LockWithData,
    /// A pointer that code reaches without an offset stays first.
    StaysFirst,
    /// Members that calls only read stay apart from counts, locks, lists and what other regions write.
    ReadApart,
    /// A configuration leaves the member out, or decides its size: used members before it stay before it.
    Configuration,
    /// No address of a later turn can be read ahead.
    NotReadAhead,
    /// Objects cannot come from blocks of the program's own.
    NotInBlocks,
    /// A run showed that its bytes are used in another way than by its members' names.
    SeenInRun,
}

impl Constraint {
    /// The constraint as the start of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::FlexibleArrayLast => "a trailing array stays last",
            Self::BitFieldRun => "a run of bit-fields moves whole",
            Self::Conditional => "members inside #if move together",
            Self::Anonymous => "an anonymous struct, union or member group moves whole",
            Self::CompilersOrder => {
                "Rust's compiler orders the members, not the source, unless it is repr(C)"
            }
            Self::Packed => "the type is packed",
            Self::PositionalInitialiser => "an initialiser gives values by position",
            Self::FirstMemberIsObject => "the first member is used as the object itself",
            Self::Pinned => "pinned by --pin",
            Self::Kept => "kept by --keep",
            Self::Offsetof => "code computes with offsetof",
            Self::AssertedOffset => "an assertion holds the offset",
            Self::UsedAsOtherType => "objects are used as another type",
            Self::ReadAsBytes => "code reads its bytes",
            Self::SharesUnion => "objects share a union with others",
            Self::FailedTest => "a test failed with another order",
            Self::Assembly => "assembly uses it",
            Self::MemorySpan => "code treats a span of members as plain memory",
            Self::GroupMarker => "a zero-length marker separates groups of members",
            Self::RandomisedLayout => "the compiler randomises the layout",
            Self::OneDeclaration => "members declared together move together",
            Self::MacroMembers => "a macro declares members",
            Self::OutsideSource => "the declaration is not in the source folder",
            Self::CrossesAbi => "objects cross an ABI",
            Self::ConstructorOrder => "members are initialised in declaration order",
            Self::AccessSection => "members keep their access section",
            Self::NestedType => "a member's type is declared inside the class, before it",
            Self::Union => "members of a union share their place",
            Self::BaseClass => "base classes come before members",
            Self::UnclearSource => "the source text is not understood well enough to edit it",
            Self::StaleDebugInfo => "the source's members are not those of the debug info",
            Self::LayoutNotReproduced => "the compiler's layout could not be reproduced",
            Self::NeverLarger => "the type may not grow",
            Self::CompilerDisagrees => "the compiler did not confirm the candidate",
            Self::ExternalLinkage => "the variable is used in other units",
            Self::UsedInMacro => "a macro uses the variable",
            Self::VariableDeclaration => "the variable's declaration cannot become a member",
            Self::ConstantData => "constant data stays in read-only memory",
            Self::SectionAttribute => "a section attribute does not carry over",
            Self::TooLarge => "the variable is too large to be gathered",
            Self::KeptInObject => "members stay in the object",
            Self::AsDeclared => "members stay as they are declared",
            Self::Reviewed => "judged harmless by hand",
            Self::Unchecked => "its uses were not checked",
            Self::NotReadAhead => "no address of a later turn can be read ahead",
            Self::NotInBlocks => "objects cannot come from blocks",
            Self::SeenInRun => "an audited run showed it",
            Self::LockWithData => "a lock and the data that it protects stay together",
            Self::StaysFirst => "the first member stays first",
            Self::ReadApart => "members that calls only read stay apart from those that change",
            Self::Configuration => "used members stay before one that depends on the configuration",
            Self::TrialFailed => "the changed program was tried and failed",
            Self::Comment => "the declaration says so",
            Self::Heading => "members stay under the comment that heads them",
            Self::OneThing => "neighbours that are one thing to a reader move together",
            Self::Volatile => "a member is volatile",
            Self::OrdinaryMemory => "volatile members may move, since they are no registers",
            Self::SharedBeginning => "another type begins with the same members",
            Self::AskedAlignment => "an instruction asks for its alignment",
            Self::KeptApart => "members lie on lines of their own",
            Self::WaitsStay => "most waits of threads stay with its members apart",
            Self::PerCpu => "every CPU has a copy of the variable",
            Self::WrittenByOthers => "threads write it, and would take away the line of its neighbours",
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// A constraint at work: the members it holds, and its source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Binding {
    /// The constraint.
    pub constraint: Constraint,
    /// The members or variables it concerns; empty when it concerns the whole type.
    pub names: Vec<String>,
    /// The source place it comes from, if it comes from the source.
    pub at: Option<SourcePlace>,
    /// The exact observation, if the constraint's name does not say it all.
    pub detail: Option<String>,
}

impl Binding {
    /// A binding on the whole type or variable.
    pub fn new(constraint: Constraint) -> Self {
        Binding { constraint, names: Vec::new(), at: None, detail: None }
    }

    /// The same, on these members or variables.
    pub fn on(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same, seen at this place.
    pub fn at(mut self, path: &str, line: u32) -> Self {
        self.at = Some(SourcePlace { path: path.to_string(), line });
        self
    }

    /// The same, with the observation.
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.constraint.describe())?;
        if !self.names.is_empty() {
            write!(f, ": {}", self.names.join(", "))?;
        }
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        Ok(())
    }
}
