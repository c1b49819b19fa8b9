//! The language of a source file.

/// The language a file is parsed as.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SourceLanguage {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Assembly: searched for names of types, never edited.
    Assembly,
}

pub(crate) fn language_by_extension(path: &str) -> Option<SourceLanguage> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "c" => Some(SourceLanguage::C),
        "cc" | "cpp" | "cxx" | "C" | "hh" | "hpp" | "hxx" | "inl" | "ipp" => Some(SourceLanguage::Cpp),
        "S" | "s" | "asm" => Some(SourceLanguage::Assembly),
        _ => None,
    }
}
