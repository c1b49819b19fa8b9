//! The conditions that fail a review.

use crate::finding::{Finding, Rule};
use std::fmt;
use std::str::FromStr;

/// A project's condition for failing a review: a kind of finding, for ratios above a bound.
///
/// ```
/// use lineup_review::FailIf;
/// assert!("guard".parse::<FailIf>().is_ok());
/// assert!("lines > +2%".parse::<FailIf>().is_ok());
/// assert!("growth > +2%".parse::<FailIf>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FailIf {
    rule: Rule,
    /// Ratios above it fail; a rule without a ratio always does.
    above: f64,
}

/// A text that is not such a condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotARule(String);

impl fmt::Display for NotARule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        write!(
            f,
            "{:?} is nothing to fail on; write one of {}, and behind lines, code-lines and instructions a bound if \
             you like: 'lines > +2%'",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for NotARule {}

impl FromStr for FailIf {
    type Err = NotARule;

    fn from_str(text: &str) -> Result<Self, NotARule> {
        let complaint = || NotARule(text.to_owned());
        let (name, bound) = match text.split_once('>') {
            Some((name, bound)) => (name, Some(bound)),
            None => (text, None),
        };
        let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name.trim()).ok_or_else(complaint)?;
        let above = match bound {
            None => 1.0,
            Some(_) if !has_ratio(rule) => return Err(complaint()),
            Some(bound) => {
                let number = bound.trim().strip_suffix('%').ok_or_else(complaint)?;
                let percent: f64 = number.trim().parse().map_err(|_| complaint())?;
                if !percent.is_finite() || percent < 0.0 {
                    return Err(complaint());
                }
                1.0 + percent / 100.0
            }
        };
        Ok(FailIf { rule, above })
    }
}

fn has_ratio(rule: Rule) -> bool {
    matches!(rule, Rule::Lines | Rule::CodeLines | Rule::Instructions)
}

impl FailIf {
    /// Any finding of this kind.
    pub const fn any(rule: Rule) -> FailIf {
        FailIf { rule, above: 1.0 }
    }

    /// True when a finding meets the condition: the whole interval of a ratio lies above the bound.
    pub fn applies_to(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && finding.ratio.is_none_or(|ratio| ratio.low > self.above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Ratio;

    fn finding(rule: Rule, low: Option<f64>) -> Finding {
        let ratio = low.map(|low| Ratio { value: low + 0.01, low, high: low + 0.02 });
        Finding { rule, subject: String::new(), message: String::new(), place: None, ratio, fails: false }
    }

    #[test]
    fn a_bound_lets_smaller_changes_pass() {
        let rule: FailIf = "lines > +2%".parse().unwrap();
        assert!(rule.applies_to(&finding(Rule::Lines, Some(1.03))));
        assert!(!rule.applies_to(&finding(Rule::Lines, Some(1.01))));
        assert!(!rule.applies_to(&finding(Rule::CodeLines, Some(1.03))));
        let any: FailIf = "code-lines".parse().unwrap();
        assert!(any.applies_to(&finding(Rule::CodeLines, Some(1.001))));
        assert!(FailIf::any(Rule::Guard).applies_to(&finding(Rule::Guard, None)));
    }

    #[test]
    fn what_is_nothing_to_fail_on_is_refused_with_what_there_is() {
        for text in ["", "time", "guard > +1%", "lines > 1", "lines > x%", "lines > -1%", "lines > nan%"] {
            let error = text.parse::<FailIf>().unwrap_err().to_string();
            assert!(error.contains("code-lines"), "{text}: {error}");
        }
    }
}
