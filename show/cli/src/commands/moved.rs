//! Commands of the previous version, as the words that do the same now.

use std::ffi::OsString;

/// Old name, and the words that replace it.
const MOVED: &[(&str, &[&str])] = &[
    ("import", &["explain"]),
    ("code", &["explain"]),
    ("replay", &["find"]),
    ("sweep", &["record"]),
    ("derive", &["measure", "--derive"]),
];

/// The words of a command line with an old name replaced, and the hint for the user.
pub(crate) fn now(typed: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let old = typed.get(1).and_then(|name| MOVED.iter().find(|(old, _)| name == old));
    let Some((old, new)) = old else { return (typed, None) };
    let hint = format!(
        "lineup: `lineup {old}` is `lineup {}` now; the old name ends with the next version",
        new.join(" ")
    );
    let rest = typed[2..].to_vec();
    let rest = if *old == "derive" { expression_first(rest) } else { rest };
    let words = typed[..1].iter().cloned().chain(new.iter().map(OsString::from)).chain(rest);
    (words.collect(), Some(hint))
}

/// The options of a former `lineup derive` before its inputs, and the expression before both.
fn expression_first(words: Vec<OsString>) -> Vec<OsString> {
    let (mut options, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let is_option = word.to_string_lossy().starts_with("--");
        let takes_value = word == "--from";
        if is_option {
            options.push(word)
        } else {
            others.push(word)
        }
        if takes_value {
            options.extend(words.next());
        }
    }
    let inputs = others.split_off(others.len().min(1));
    others.into_iter().chain(options).chain(inputs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Vec<OsString> {
        typed.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn an_old_name_does_what_it_did_and_says_its_new_one() {
        let (now_typed, hint) = now(words("lineup derive --json --from m.json a+b b=1±1"));
        assert_eq!(now_typed, words("lineup measure --derive a+b --json --from m.json b=1±1"));
        assert!(hint.is_some_and(|hint| hint.contains("`lineup measure --derive`")));
        let (now_typed, _) = now(words("lineup code run.rec --bolt f"));
        assert_eq!(now_typed, words("lineup explain run.rec --bolt f"));
        assert_eq!(now(words("lineup find -- code")), (words("lineup find -- code"), None));
    }
}
