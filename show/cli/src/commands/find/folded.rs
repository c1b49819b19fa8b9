//! Folded stacks: a line for each stack, with its frames separated by semicolons, and its weight.

use lineup_find::Stack;
use lineup_report::visible::one_line;
use std::fmt::Write;

/// All stacks.
pub(crate) fn text(stacks: &[Stack]) -> String {
    let mut out = String::new();
    for Stack { frames, cycles } in stacks {
        // A semicolon ends a frame.
        let frames: Vec<String> = frames.iter().map(|frame| one_line(frame).replace(';', ":")).collect();
        let _ = writeln!(out, "{} {cycles}", frames.join(";"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_a_frame_or_a_line() {
        let stack =
            |frames: &[&str]| Stack { frames: frames.iter().map(ToString::to_string).collect(), cycles: 7 };
        let all = [stack(&["data", "t<a;b>", "m\n9", "f"]), stack(&["code", "g"])];
        assert_eq!(text(&all), "data;t<a:b>;m\\u{a}9;f 7\ncode;g 7\n");
    }
}
