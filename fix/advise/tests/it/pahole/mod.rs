//! Compiles texts and reads layouts back through `pahole`, so that predictions meet the compiler.

#![allow(dead_code)]

use lineup_advise::judge::{CompileError, Compiled, Judge};
use lineup_model::abi::Abi;
use lineup_model::types::*;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a tool; a missing one fails the test with the package to install.
pub(crate) fn run(
    program: &str,
    package: &str,
    directory: &Path,
    arguments: &[&str],
) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; install it with: apt-get install {package}"));
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn compiler(abi: Abi, file: &str) -> (&'static str, &'static str) {
    let is_cpp = file.ends_with(".cc");
    match (abi == Abi::ARM, is_cpp) {
        (true, _) => ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
        (false, true) => ("g++", "g++"),
        (false, false) => ("gcc", "gcc"),
    }
}

/// A source folder in a temporary directory.
pub(crate) struct Folder {
    directory: tempfile::TempDir,
    pub(crate) files: BTreeMap<String, String>,
    /// The file to compile.
    pub(crate) main: String,
    /// Types to read back.
    pub(crate) wanted: Vec<String>,
    pub(crate) abis: Vec<Abi>,
    pub(crate) flags: Vec<String>,
}

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)], main: &str, wanted: &[&str]) -> Self {
        Folder {
            directory: tempfile::tempdir().expect("a temporary directory"),
            files: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect(),
            main: main.to_string(),
            wanted: wanted.iter().map(|name| name.to_string()).collect(),
            abis: vec![Abi::X86_64],
            flags: vec!["-Wall".into(), "-Wextra".into(), "-Werror".into(), "-Wno-unused".into()],
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, edited: &BTreeMap<String, String>) {
        for (path, text) in self.files.iter().chain(edited) {
            let path = self.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
            std::fs::write(path, text).expect("writes");
        }
    }

    pub(crate) fn object(&self, abi: Abi) -> Result<PathBuf, String> {
        let (program, package) = compiler(abi, &self.main);
        let mut arguments = vec!["-g", "-c", "-O0", "-o", "out.o", self.main.as_str()];
        arguments.extend(self.flags.iter().map(String::as_str));
        run(program, package, self.path(), &arguments)?;
        Ok(self.path().join("out.o"))
    }

    /// The types wanted, as compiled for `abi`.
    pub(crate) fn types(&self, abi: Abi) -> Result<Types, String> {
        let object = self.object(abi)?;
        let mut types = Types::new();
        let object = object.to_str().expect("UTF-8");
        let all = run("pahole", "dwarves", self.path(), &[object])?;
        for name in &self.wanted {
            let keyword =
                ["struct", "class"].iter().find_map(|word| all.find(&format!("{word} {name} {{\n")));
            let text = match keyword {
                Some(start) => all[start..].split("\n}").next().expect("a block").to_string(),
                None => run("pahole", "dwarves", self.path(), &["-C", name, object])?,
            };
            read(&mut types, &text, name, abi);
        }
        Ok(types)
    }
}

impl Judge for Folder {
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        self.write(edited);
        let compiled = |abi| match self.types(abi) {
            Ok(types) => Ok(Compiled { abi, types }),
            Err(words) => Err(CompileError::Rejected { words }),
        };
        let result = self.abis.clone().into_iter().map(compiled).collect();
        self.write(&BTreeMap::new());
        result
    }
}

/// A type known to a table, by a name of the test's own.
pub(crate) fn push(types: &mut Types, name: &str, size_bytes: Option<u64>, kind: TypeKind) -> TypeId {
    types.push(Type {
        name: (!name.is_empty()).then(|| name.into()),
        size_bytes,
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::C,
        kind,
    })
}

pub(crate) fn integer(types: &mut Types, name: &str, size_bytes: u64) -> TypeId {
    push(types, name, Some(size_bytes), TypeKind::Scalar(ScalarKind::Integer { signed: false }))
}

pub(crate) fn pointer(types: &mut Types, abi: Abi) -> TypeId {
    push(types, "", Some(u64::from(abi.pointer_bytes)), TypeKind::Pointer(None))
}

/// Typedefs of 64-bit integers go through `long`, as glibc's do.
pub(crate) fn typedef(types: &mut Types, name: &str, target: TypeId) -> TypeId {
    push(types, name, None, TypeKind::Typedef(Some(target)))
}

pub(crate) fn member(name: &str, ty: TypeId, offset_bits: u64) -> Member {
    Member {
        name: Some(name.into()),
        ty,
        offset_bits: Some(offset_bits),
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    }
}

pub(crate) fn structure(types: &mut Types, name: &str, size_bytes: u64, members: Vec<Member>) -> TypeId {
    let aggregate =
        Aggregate { kind: AggregateKind::Struct, members, static_members: Vec::new(), is_declaration: false };
    push(types, name, Some(size_bytes), TypeKind::Aggregate(aggregate))
}

/// Reads the output of `pahole -C name`.
pub(crate) fn read(types: &mut Types, text: &str, name: &str, abi: Abi) -> TypeId {
    let mut known: HashMap<String, TypeId> = HashMap::new();
    let mut members = Vec::new();
    let mut depth = 0usize;
    for line in text.lines() {
        let is_nested = depth > 1 && !(depth == 2 && line.trim_start().starts_with('}'));
        depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
        if is_nested || line.trim_start().starts_with("/*") {
            continue;
        }
        let Some((declaration, place)) = line.rsplit_once("/*").filter(|(left, _)| left.contains(';')) else {
            continue;
        };
        let numbers: Vec<u64> =
            place.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        let is_bits = place.contains(':');
        let (offset_bits, size) = match numbers.as_slice() {
            [bytes, bits, size] if is_bits => (bytes * 8 + bits, *size),
            [bytes, size, ..] => (bytes * 8, *size),
            _ => continue,
        };
        let declaration = declaration.trim().trim_end_matches(';');
        let (declarator, width) = match declaration.rsplit_once(':').filter(|_| is_bits) {
            Some((left, width)) => (left, width.trim().parse().ok()),
            None => (declaration, None),
        };
        let declared = declared_name(declarator);
        let ty = member_type(types, &mut known, declarator, &declared, size, abi);
        let mut new = member(&declared, ty, offset_bits);
        new.name = (!declared.is_empty() && declared != "}").then(|| declared.into());
        new.bit_size = width;
        members.push(new);
    }
    let size = text.lines().filter_map(|line| line.trim().strip_prefix("/* size: ")).next_back();
    let size = size.and_then(|rest| rest.split(',').next()).and_then(|number| number.parse().ok());
    let size = size.unwrap_or_else(|| panic!("pahole gives no size of {name}: {text}"));
    structure(types, name, size, members)
}

fn declared_name(declarator: &str) -> String {
    let text = declarator.split("__attribute__").next().unwrap_or(declarator).trim();
    if let Some((_, rest)) = text.split_once("(*") {
        return rest.split([')', '[']).next().unwrap_or("").to_string();
    }
    let text = text.split('[').next().unwrap_or(text).trim();
    text.rsplit([' ', '*']).next().unwrap_or("").to_string()
}

fn member_type(
    types: &mut Types,
    known: &mut HashMap<String, TypeId>,
    declarator: &str,
    name: &str,
    size: u64,
    abi: Abi,
) -> TypeId {
    if declarator.contains('*') {
        return pointer(types, abi);
    }
    let text = declarator.split("__attribute__").next().unwrap_or(declarator);
    let count: Option<u64> = text.split('[').nth(1).and_then(|rest| rest.split(']').next()?.parse().ok());
    let spelled = text.split('[').next().unwrap_or(text).trim();
    let spelled = spelled.strip_suffix(name).unwrap_or(spelled).trim().to_string();
    let element_size = if spelled == "char" { 1 } else { size / count.unwrap_or(1).max(1) };
    let element = *known.entry(spelled.clone()).or_insert_with(|| match spelled.as_str() {
        "struct list_head" => {
            let word = pointer(types, abi);
            let bits = u64::from(abi.pointer_bytes) * 8;
            structure(types, "list_head", bits / 4, vec![member("next", word, 0), member("prev", word, bits)])
        }
        "ktime_t" | "u64" | "int64_t" | "uint64_t" => {
            let long = integer(types, "long int", element_size);
            typedef(types, &spelled, long)
        }
        _ if element_size > 8 => {
            let long = integer(types, "long int", 8);
            let members = (0..element_size / 8).map(|at| member(&format!("m{at}"), long, at * 64)).collect();
            structure(types, spelled.trim_start_matches("struct "), element_size, members)
        }
        _ => integer(types, &spelled, element_size),
    });
    match text.contains('[') {
        true => push(types, "", Some(size), TypeKind::Array { element, counts: vec![count] }),
        false => element,
    }
}
