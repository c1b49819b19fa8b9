//! The programs that lines of shell start, as far as their text shows.

use std::collections::BTreeSet;

/// Words that begin or end a construct; a command may follow.
const BEFORE_COMMANDS: [&str; 12] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "command"];

/// Words that the shell itself knows.
const OWN_WORDS: &[&str] = &[
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "case", "cd", "continue", "declare", "done",
    "echo", "esac", "eval", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash",
    "in", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "select", "set",
    "shift", "source", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias",
    "unset", "wait", "}",
];

/// The names, without a slash, of the programs that lines of shell start. These are each simple command's first word,
/// except for the shell's own words, functions of the text, and words known only at run time.
pub(super) fn programs(text: &str) -> BTreeSet<String> {
    let mut reader = Reader { letters: text.chars().collect(), ..Reader::default() };
    reader.commands(None);
    let Reader { found, functions, .. } = reader;
    found
        .into_iter()
        .filter(|name| !functions.contains(name) && !OWN_WORDS.contains(&name.as_str()))
        .collect()
}

#[derive(Default)]
struct Reader {
    letters: Vec<char>,
    at: usize,
    found: BTreeSet<String>,
    functions: BTreeSet<String>,
    /// The next backtick ends a substitution.
    in_backticks: bool,
    /// The number of open "case"s.
    open_cases: usize,
}

/// Deeper substitutions are not looked into.
const DEEPEST: usize = 50;

impl Reader {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.get(self.at).copied();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    /// Reads commands up to the end, or up to a bracket or quote that ends a substitution.
    fn commands(&mut self, end: Option<char>) {
        self.commands_within(end, 0);
    }

    fn commands_within(&mut self, end: Option<char>, depth: usize) {
        let mut state = State::default();
        let mut heredocs: Vec<String> = Vec::new();
        while let Some(letter) = self.peek() {
            if Some(letter) == end {
                self.at += 1;
                return;
            }
            match letter {
                '\n' => {
                    self.at += 1;
                    state = State { in_pattern: state.in_pattern, ..State::default() };
                    heredocs.drain(..).for_each(|end| self.skip_heredoc(&end));
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '#' => self.skip_line(),
                '|' | '(' if state.in_pattern => self.at += 1,
                ';' | '|' | '&' | '(' | ')' => {
                    self.at += 1;
                    // Two semicolons end a branch of "case"; the next one's pattern follows.
                    let in_pattern = letter == ';' && self.peek() == Some(';') && self.open_cases > 0;
                    self.at += usize::from(in_pattern);
                    state = State { in_pattern, ..State::default() };
                }
                '<' | '>' => {
                    let heredoc = self.redirection();
                    if heredoc {
                        let word = self.word(depth).text.trim_start_matches('-').to_owned();
                        heredocs.push(word);
                    } else {
                        self.skip_blank();
                        self.word(depth);
                    }
                }
                _ => {
                    let word = self.word(depth);
                    self.take(&word, &mut state);
                }
            }
        }
    }

    fn take(&mut self, word: &Word, state: &mut State) {
        let text = word.text.as_str();
        if state.in_pattern {
            if text == "esac" {
                self.open_cases = self.open_cases.saturating_sub(1);
                *state = State { after_first: true, ..State::default() };
            }
            return;
        }
        if state.after_first {
            if state.in_case && text == "in" {
                self.open_cases += 1;
                *state = State { in_pattern: true, ..State::default() };
            }
            return;
        }
        self.skip_blank();
        let follows = self.peek();
        if follows == Some('(') {
            self.functions.insert(text.to_owned());
            return;
        }
        if BEFORE_COMMANDS.contains(&text) || is_assignment(text) {
            return;
        }
        if text == "esac" {
            self.open_cases = self.open_cases.saturating_sub(1);
        }
        state.after_first = true;
        state.in_case = text == "case";
        if word.is_plain && !text.is_empty() && !text.contains('/') && text.parse::<i64>().is_err() {
            self.found.insert(text.to_owned());
        }
    }

    /// A word with its quotes taken off. Substitutions in it are commands of their own.
    fn word(&mut self, depth: usize) -> Word {
        let mut word = Word { text: String::new(), is_plain: true };
        let before = self.at;
        while let Some(letter) = self.peek() {
            match letter {
                '`' if self.in_backticks => break,
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.at += 1;
                    while let Some(letter) = self.next().filter(|letter| *letter != '\'') {
                        word.text.push(letter);
                    }
                }
                '"' => {
                    self.at += 1;
                    self.quoted(&mut word, depth);
                }
                '\\' => {
                    self.at += 1;
                    word.text.extend(self.next().filter(|letter| *letter != '\n'));
                }
                _ => self.letter_or_substitution(&mut word, depth),
            }
        }
        // Always advances, so that the loop ends.
        self.at = self.at.max(before + usize::from(self.at == before && self.peek().is_some()));
        word
    }

    fn quoted(&mut self, word: &mut Word, depth: usize) {
        while let Some(letter) = self.peek() {
            match letter {
                '`' if self.in_backticks => return,
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    word.text.extend(self.next());
                }
                _ => self.letter_or_substitution(word, depth),
            }
        }
    }

    fn letter_or_substitution(&mut self, word: &mut Word, depth: usize) {
        let Some(letter) = self.next() else { return };
        match (letter, self.peek()) {
            ('`', _) if depth < DEEPEST => {
                word.is_plain = false;
                self.in_backticks = true;
                self.commands_within(Some('`'), depth + 1);
                self.in_backticks = false;
            }
            ('$', Some('(')) if depth < DEEPEST => {
                word.is_plain = false;
                self.at += 1;
                match self.peek() {
                    Some('(') => self.arithmetic(),
                    _ => self.commands_within(Some(')'), depth + 1),
                }
            }
            ('$', Some('{')) => {
                word.is_plain = false;
                while self.next().is_some_and(|letter| letter != '}') {}
            }
            ('$' | '*' | '?', _) => {
                word.is_plain = false;
                word.text.push(letter);
            }
            _ => word.text.push(letter),
        }
    }

    /// `$((…))`: numbers, no commands.
    fn arithmetic(&mut self) {
        let mut open = 1;
        while let Some(letter) = self.next() {
            match letter {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Passes over `>`, `>>`, `>&`, `<`; true for `<<` and `<<-`, behind which a mark stands.
    fn redirection(&mut self) -> bool {
        let first = self.next();
        let is_double = first == Some('<') && self.peek() == Some('<');
        while matches!(self.peek(), Some('<' | '>' | '&' | '|' | '-')) {
            self.at += 1;
        }
        self.skip_blank();
        is_double
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.at += 1;
        }
    }

    fn skip_heredoc(&mut self, end: &str) {
        while self.at < self.letters.len() {
            let begin = self.at;
            self.skip_line();
            let line: String = self.letters[begin..self.at].iter().collect();
            self.at = (self.at + 1).min(self.letters.len());
            if line.trim() == end {
                return;
            }
        }
    }
}

struct Word {
    text: String,
    /// Its value does not depend on the script's run.
    is_plain: bool,
}

#[derive(Default)]
struct State {
    /// The command's first word was read.
    after_first: bool,
    /// It was "case", and "in" follows.
    in_case: bool,
    /// A pattern of "case" is read, up to its bracket.
    in_pattern: bool,
}

fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        programs(text).into_iter().collect()
    }

    #[test]
    fn the_first_word_of_each_command_is_a_program() {
        let text =
            "LANG=C sort -n a | uniq -c > b && /bin/gzip x; (tar -c y) & ! wc z\nexec redis-server --port 1";
        assert_eq!(found(text), ["redis-server", "sort", "tar", "uniq", "wc"]);
        assert_eq!(
            found("if grep -q x f; then sed p f; else awk 1; fi\nwhile read l; do cut -c1; done"),
            ["awk", "cut", "grep", "sed"]
        );
    }

    #[test]
    fn substitutions_are_commands_and_quotes_are_none() {
        let text = "a \"$(b 'c; d')\" `e f` '$(g)' $((h + (i)))\n# j\nk \\\n l \"x\ny | z\"";
        assert_eq!(found(text), ["a", "b", "e", "k"]);
        assert_eq!(found("awk '{ print $1 }\nEND { x }' f"), ["awk"]);
        assert_eq!(found("\"quoted\" x; $PROGRAM y; ${Z} z"), ["quoted"]);
    }

    #[test]
    fn functions_patterns_and_texts_for_input_are_no_programs() {
        assert_eq!(found("start() { nginx -g x; }\nstart\nusage () {\n:\n}"), ["nginx"]);
        assert_eq!(found("case $1 in a|b) one x;; *) two y;; esac"), ["one", "two"]);
        assert_eq!(found("cat <<END >f\nnot a command\nEND\nreal\ncat <<-'E'\nno\n\tE\n"), ["cat", "real"]);
        assert_eq!(found("redis-cli 2>/dev/null <input >&2"), ["redis-cli"]);
    }

    #[test]
    fn text_that_ends_anywhere_is_read_to_its_end() {
        let text = "a \"$(b `c 'd' $((1)) ${e} <<F\nF\n` )\" (g) {h} case x in y) z;; esac ; f() { :; }";
        let letters: Vec<char> = text.chars().collect();
        for end in 0..=letters.len() {
            programs(&letters[..end].iter().collect::<String>());
        }
        programs(&"$(".repeat(10_000));
    }
}
