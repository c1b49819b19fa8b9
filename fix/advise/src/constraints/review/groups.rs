//! Members below a comment that none of them has alone.

use crate::constraints::comment_rules::binding;
use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::paragraphs::paragraphs;
use crate::text::body::Body;
use std::ops::Range;

/// A comment above the first of several members may concern all of them or that one. If the next ones have none above
/// them, up to a blank line or a comment, the members neither leave the group nor enter it, and the first stays on top.
/// A comment in the middle of a paragraph that begins without one is its member's own.
pub(super) fn commented(body: &Body<'_>, ranges: &[Range<usize>]) -> Vec<(Range<usize>, Binding)> {
    let has_comment = |unit: usize| !body.leading_comments(&body.units[unit]).is_empty();
    let mut groups: Vec<Range<usize>> = Vec::new();
    for paragraph in paragraphs(body, ranges).into_iter().filter(|paragraph| has_comment(paragraph.start)) {
        for unit in paragraph {
            match groups.last_mut() {
                Some(group) if group.end == unit && !has_comment(unit) => group.end += 1,
                _ => groups.push(unit..unit + 1),
            }
        }
    }
    groups.retain(|group| group.len() > 1);
    let bound = |group: Range<usize>| {
        let first = &body.units[group.start];
        let comment = body.leading_comments(first).start;
        let binding = binding(body, comment, first.names.clone());
        (group, Binding { constraint: Constraint::Heading, ..binding })
    };
    groups.into_iter().map(bound).collect()
}
