//! The modules of a crate as its source files declare them, and which file uses a name of which.

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A chain of re-exports longer than this is a circle of its own.
const MOST_EXPORTS: usize = 16;

/// The modules of one crate; the first is its root.
pub(super) struct ModuleTree {
    modules: Vec<Module>,
    files: Vec<PathBuf>,
}

/// One module, without those that are compiled for tests alone.
struct Module {
    /// Index of the file that holds it.
    file: usize,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    /// Paths of `use` by the name that they give.
    imports: HashMap<String, Vec<String>>,
    /// Paths of `use` that end in `*`.
    globs: Vec<Vec<String>>,
    /// Paths that the module's own code uses. A re-export is not a use.
    uses: HashSet<Vec<String>>,
}

#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    File(usize),
}

impl ModuleTree {
    /// Reads the crate whose root module is in the file `root`.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is not Rust.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = ModuleTree { modules: Vec::new(), files: Vec::new() };
        let folder = root.parent().context("a crate's root has a folder")?.to_owned();
        tree.file(root.to_owned(), &folder, None)?;
        Ok(tree)
    }

    /// The files, each with the indices of the other files that it uses names of.
    pub(super) fn uses(&self) -> Vec<(&Path, BTreeSet<usize>)> {
        let mut uses: Vec<_> = self.files.iter().map(|file| (file.as_path(), BTreeSet::new())).collect();
        for (number, module) in self.modules.iter().enumerate() {
            for path in &module.uses {
                match self.resolve(number, path, 0) {
                    Some(Target::File(used)) if used != module.file => drop(uses[module.file].1.insert(used)),
                    _ => {}
                }
            }
        }
        uses
    }

    /// Reads a file whose children lie in `folder`.
    fn file(&mut self, file: PathBuf, folder: &Path, parent: Option<usize>) -> Result<usize> {
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("parsing {}", file.display()))?;
        self.files.push(file);
        let number = self.files.len() - 1;
        self.module(parsed.items, number, folder, parent)
    }

    fn module(
        &mut self,
        items: Vec<syn::Item>,
        file: usize,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize> {
        let number = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: HashMap::new(),
            items: HashSet::new(),
            imports: HashMap::new(),
            globs: Vec::new(),
            uses: HashSet::new(),
        });
        for item in items {
            match item {
                syn::Item::Mod(child) if is_for_tests(&child.attrs) => {}
                syn::Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let inside = folder.join(&name);
                    let module = match child.content {
                        Some((_, items)) => self.module(items, file, &inside, Some(number))?,
                        None => {
                            let path = path_attribute(&child.attrs).map_or_else(
                                || {
                                    [folder.join(format!("{name}.rs")), inside.join("mod.rs")]
                                        .into_iter()
                                        .find(|path| path.exists())
                                },
                                |path| Some(self.files[file].with_file_name(path)),
                            );
                            let Some(path) = path else { continue };
                            self.file(path, &inside, Some(number))?
                        }
                    };
                    self.modules[number].children.insert(name, module);
                }
                syn::Item::Use(import) => self.modules[number].import(&import),
                item => self.modules[number].item(&item),
            }
        }
        Ok(number)
    }

    /// The file or module that a path names in a module; nothing for names of other crates.
    fn resolve(&self, module: usize, path: &[String], exports: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.inside(module, name, exports)?,
        };
        for name in rest {
            target = match target {
                Target::Module(module) if name == "super" => Target::Module(self.modules[module].parent?),
                Target::Module(module) => {
                    self.inside(module, name, exports).unwrap_or(Target::File(self.modules[module].file))
                }
                file @ Target::File(_) => return Some(file),
            };
        }
        Some(target)
    }

    fn inside(&self, module: usize, name: &str, exports: usize) -> Option<Target> {
        let held = &self.modules[module];
        if let Some(&child) = held.children.get(name) {
            return Some(Target::Module(child));
        }
        if held.items.contains(name) {
            return Some(Target::File(held.file));
        }
        if exports == MOST_EXPORTS {
            return None;
        }
        if let Some(path) =
            held.imports.get(name).filter(|path| path.first().is_some_and(|first| first != name))
        {
            return self.resolve(module, path, exports + 1);
        }
        held.globs.iter().find_map(|path| match self.resolve(module, path, exports + 1)? {
            Target::Module(other) if other != module => self.inside(other, name, exports + 1),
            _ => None,
        })
    }
}

impl Module {
    fn import(&mut self, import: &syn::ItemUse) {
        let is_export = !matches!(import.vis, syn::Visibility::Inherited);
        let mut paths = Vec::new();
        flatten(&import.tree, &mut Vec::new(), &mut paths);
        for (name, path) in paths {
            if !is_export {
                self.uses.insert(path.clone());
            }
            match name {
                Some(name) => drop(self.imports.insert(name, path)),
                None => self.globs.push(path),
            }
        }
    }

    fn item(&mut self, item: &syn::Item) {
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.items.extend(name.map(ToString::to_string));
        Paths(&mut self.uses).visit_item(item);
    }
}

/// Adds all paths of a piece of code.
struct Paths<'a>(&'a mut HashSet<Vec<String>>);

impl<'a> Visit<'a> for Paths<'_> {
    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        tokens(call.tokens.clone(), self.0);
        visit::visit_macro(self, call);
    }
}

/// Adds the paths in what a macro is given, which may be no Rust.
fn tokens(stream: TokenStream, paths: &mut HashSet<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in stream {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 {
                    paths.insert(std::mem::take(&mut path));
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                tokens(group.stream(), paths);
                colons = 0;
            }
            _ => colons = 0,
        }
    }
    paths.insert(path);
}

/// Adds each name of a `use` with its path; nothing for a name is `*`.
fn flatten(tree: &syn::UseTree, front: &mut Vec<String>, paths: &mut Vec<(Option<String>, Vec<String>)>) {
    match tree {
        syn::UseTree::Path(path) => {
            front.push(path.ident.to_string());
            flatten(&path.tree, front, paths);
            front.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, front, paths)),
        syn::UseTree::Glob(_) => paths.push((None, front.clone())),
        syn::UseTree::Name(name) if name.ident == "self" => {
            paths.push((front.last().cloned(), front.clone()))
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            paths.push((Some(name.clone()), [front.as_slice(), &[name]].concat()));
        }
        syn::UseTree::Rename(rename) => {
            let path = [front.as_slice(), &[rename.ident.to_string()]].concat();
            paths.push((Some(rename.rename.to_string()), path));
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(syn::MetaNameValue {
            path,
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }),
            ..
        }) if path.is_ident("path") => Some(text.value()),
        _ => None,
    })
}
