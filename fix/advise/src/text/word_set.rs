//! The words of a text, in few bytes. Most of a large tree's files are dismissed by this first check.

/// The distinct words of a text, as sorted hashes: four bytes each.
#[derive(Debug)]
pub(crate) struct Words(Box<[u32]>);

impl Words {
    /// The words of a text: runs of ASCII letters, digits and `_`.
    pub(crate) fn of(text: &str) -> Words {
        let words = text.as_bytes().split(|&byte| !is_part(byte)).filter(|word| !word.is_empty());
        let mut hashes: Vec<u32> = words.map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Words(hashes.into())
    }

    /// False when the text has no such word for certain.
    pub(crate) fn may_have(&self, word: &str) -> bool {
        self.0.binary_search(&hash(word.as_bytes())).is_ok()
    }

    /// False when the text has none of these words for certain.
    pub(crate) fn may_have_one_of(&self, words: &Words) -> bool {
        let (few, many) = if self.0.len() < words.0.len() { (self, words) } else { (words, self) };
        if few.0.len() * 16 < many.0.len() {
            return few.0.iter().any(|hash| many.0.binary_search(hash).is_ok());
        }
        let (mut a, mut b) = (few.0.iter().peekable(), many.0.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.cmp(y) {
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Less => a.next(),
                std::cmp::Ordering::Greater => b.next(),
            };
        }
        false
    }
}

/// True for bytes that words consist of.
pub(crate) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// True for a name that is one word.
pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_part)
}

/// FNV-1a.
fn hash(word: &[u8]) -> u32 {
    word.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Whether a text has a name as a word of its own.
pub fn has_word(text: &str, name: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(at, _)| {
        !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_part(bytes.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        let words = Words::of("struct task_struct *p; a->task\u{e9}x");
        for word in ["struct", "task_struct", "p", "a", "task", "x"] {
            assert!(words.may_have(word), "{word}");
        }
        assert!(!words.may_have("task_") && !words.may_have("truct"));
    }

    #[test]
    fn sets_that_meet_are_told_from_those_that_do_not_however_large() {
        let many: String = (0..1000).map(|n| format!("w{n} ")).collect();
        let many = Words::of(&many);
        assert!(many.may_have_one_of(&Words::of("x w999")) && Words::of("x w999").may_have_one_of(&many));
        assert!(!many.may_have_one_of(&Words::of("x y z")) && !many.may_have_one_of(&Words::of("")));
        let other: String = (900..1900).map(|n| format!("w{n} ")).collect();
        assert!(many.may_have_one_of(&Words::of(&other)));
    }
}
