//! Arithmetic over named quantities, with the derivative after each of them.

use std::collections::BTreeMap;

/// A parsed expression such as `2*(mem-hit)/path`.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    root: Node,
}

/// The error in an expression, and its position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at character {at}: {what}")]
pub struct ExpressionError {
    /// Position in characters, from 1.
    pub at: usize,
    /// The error.
    pub what: String,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Number(f64),
    Name(String),
    Negative(Box<Node>),
    Call(Function, Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Function {
    Sqrt,
    Ln,
    Exp,
    Abs,
}

/// A value with its derivative after every name.
#[derive(Clone, PartialEq, Debug)]
pub struct Derivatives {
    /// The value.
    pub value: f64,
    /// For each name used, the derivative.
    pub slopes: BTreeMap<String, f64>,
}

/// Nesting deeper than this is refused.
const MAX_DEPTH: usize = 100;

impl Expression {
    /// Parses numbers, names (letters, digits, `_`; or anything between backquotes), `+ - * / ^`,
    /// parentheses and `sqrt ln exp abs`.
    ///
    /// # Errors
    /// With the position of the text that does not parse.
    ///
    /// ```
    /// use lineup_stats::expression::Expression;
    /// let expression = Expression::parse("2*(mem-hit)/path")?;
    /// assert_eq!(expression.names(), ["hit", "mem", "path"]);
    /// # Ok::<(), lineup_stats::expression::ExpressionError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser { letters: text.chars().collect(), at: 0, depth: 0 };
        let root = parser.sum()?;
        parser.skip_space();
        match parser.peek() {
            None => Ok(Self { root }),
            Some(letter) => Err(parser.complain(&format!("{letter:?} is not expected here"))),
        }
    }

    /// The names used, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.root.collect(&mut names);
        names.sort();
        names.dedup();
        names
    }

    /// The value; `None` when a name has none.
    pub fn value(&self, values: &BTreeMap<String, f64>) -> Option<f64> {
        self.derivatives(values).map(|result| result.value)
    }

    /// The value and its derivatives after every name used; `None` when a name has no value.
    pub fn derivatives(&self, values: &BTreeMap<String, f64>) -> Option<Derivatives> {
        self.root.evaluate(values)
    }
}

impl Node {
    fn collect(&self, names: &mut Vec<String>) {
        match self {
            Node::Number(_) => {}
            Node::Name(name) => names.push(name.clone()),
            Node::Negative(inner) | Node::Call(_, inner) => inner.collect(names),
            Node::Binary(_, left, right) => {
                left.collect(names);
                right.collect(names);
            }
        }
    }

    fn evaluate(&self, values: &BTreeMap<String, f64>) -> Option<Derivatives> {
        Some(match self {
            Node::Number(value) => Derivatives { value: *value, slopes: BTreeMap::new() },
            Node::Name(name) => {
                let slopes = BTreeMap::from([(name.clone(), 1.0)]);
                Derivatives { value: *values.get(name)?, slopes }
            }
            Node::Negative(inner) => inner.evaluate(values)?.through(|x| -x, |_| -1.0),
            Node::Call(function, inner) => {
                let inner = inner.evaluate(values)?;
                match function {
                    Function::Sqrt => inner.through(f64::sqrt, |x| 0.5 / x.sqrt()),
                    Function::Ln => inner.through(f64::ln, |x| 1.0 / x),
                    Function::Exp => inner.through(f64::exp, f64::exp),
                    Function::Abs => inner.through(f64::abs, f64::signum),
                }
            }
            Node::Binary(operator, left, right) => {
                combine(*operator, left.evaluate(values)?, right.evaluate(values)?)
            }
        })
    }
}

impl Derivatives {
    /// The chain rule for a function of one value.
    fn through(self, f: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> Self {
        let factor = slope(self.value);
        let slopes = self.slopes.into_iter().map(|(name, inner)| (name, inner * factor)).collect();
        Self { value: f(self.value), slopes }
    }
}

/// The rules for two values: the slopes after either side weigh in with the partial derivatives.
fn combine(operator: Operator, left: Derivatives, right: Derivatives) -> Derivatives {
    let (a, b) = (left.value, right.value);
    let (value, after_left, after_right) = match operator {
        Operator::Plus => (a + b, 1.0, 1.0),
        Operator::Minus => (a - b, 1.0, -1.0),
        Operator::Times => (a * b, b, a),
        Operator::Over => (a / b, 1.0 / b, -a / (b * b)),
        Operator::Power => {
            let after_right = if right.slopes.is_empty() { 0.0 } else { a.powf(b) * a.ln() };
            (a.powf(b), b * a.powf(b - 1.0), after_right)
        }
    };
    let mut slopes = BTreeMap::new();
    for (side, factor) in [(left.slopes, after_left), (right.slopes, after_right)] {
        for (name, slope) in side {
            *slopes.entry(name).or_insert(0.0) += slope * factor;
        }
    }
    Derivatives { value, slopes }
}

struct Parser {
    letters: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn complain(&self, what: &str) -> ExpressionError {
        ExpressionError { at: self.at + 1, what: what.into() }
    }

    /// Takes one of the operators, if it comes next.
    fn operator(&mut self, of: &[(char, Operator)]) -> Option<Operator> {
        self.skip_space();
        let letter = self.peek()?;
        let (_, operator) = of.iter().find(|(sign, _)| *sign == letter)?;
        self.at += 1;
        Some(*operator)
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[('+', Operator::Plus), ('-', Operator::Minus)]) {
            left = Node::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.signed()?;
        while let Some(operator) = self.operator(&[('*', Operator::Times), ('/', Operator::Over)]) {
            left = Node::Binary(operator, Box::new(left), Box::new(self.signed()?));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Node, ExpressionError> {
        if self.operator(&[('-', Operator::Minus)]).is_some() {
            self.deeper()?;
            let inner = self.signed()?;
            self.depth -= 1;
            return Ok(Node::Negative(Box::new(inner)));
        }
        let base = self.atom()?;
        if self.operator(&[('^', Operator::Power)]).is_none() {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.signed()?;
        self.depth -= 1;
        Ok(Node::Binary(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    fn deeper(&mut self) -> Result<(), ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.complain("nested too deeply")) } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        self.skip_space();
        match self.peek() {
            Some('(') => self.parenthesis(),
            Some('`') => self.quoted(),
            Some(letter) if letter.is_ascii_digit() || letter == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(),
            Some(letter) => Err(self.complain(&format!("{letter:?} is not expected here"))),
            None => Err(self.complain("something is missing at the end")),
        }
    }

    fn parenthesis(&mut self) -> Result<Node, ExpressionError> {
        self.at += 1;
        self.deeper()?;
        let inner = self.sum()?;
        self.depth -= 1;
        self.skip_space();
        if self.peek() != Some(')') {
            return Err(self.complain("a closing parenthesis is missing"));
        }
        self.at += 1;
        Ok(inner)
    }

    fn quoted(&mut self) -> Result<Node, ExpressionError> {
        let rest = self.letters.get(self.at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().position(|letter| *letter == '`') else {
            return Err(self.complain("a closing backquote is missing"));
        };
        let name = rest.iter().take(length).collect();
        self.at += length + 2;
        Ok(Node::Name(name))
    }

    fn number(&mut self) -> Result<Node, ExpressionError> {
        let start = self.at;
        let mut text = String::new();
        while let Some(letter) = self.peek() {
            let is_sign = matches!(letter, '+' | '-') && text.ends_with(['e', 'E']);
            if !(letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E') || is_sign) {
                break;
            }
            text.push(letter);
            self.at += 1;
        }
        text.parse()
            .map(Node::Number)
            .map_err(|_| ExpressionError { at: start + 1, what: format!("{text:?} is not a number") })
    }

    fn name(&mut self) -> Result<Node, ExpressionError> {
        let mut name = String::new();
        while let Some(letter) = self.peek().filter(|letter| letter.is_alphanumeric() || *letter == '_') {
            name.push(letter);
            self.at += 1;
        }
        self.skip_space();
        if self.peek() != Some('(') {
            return Ok(Node::Name(name));
        }
        let function = match name.as_str() {
            "sqrt" => Function::Sqrt,
            "ln" => Function::Ln,
            "exp" => Function::Exp,
            "abs" => Function::Abs,
            _ => return Err(self.complain(&format!("{name} is not a function; there are sqrt ln exp abs"))),
        };
        Ok(Node::Call(function, Box::new(self.parenthesis()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(text: &str) -> Derivatives {
        let values = BTreeMap::from([("x".to_owned(), 3.0), ("y".to_owned(), 2.0), ("a-b".to_owned(), 5.0)]);
        Expression::parse(text).unwrap().derivatives(&values).unwrap()
    }

    #[test]
    fn precedence_and_functions() {
        assert_eq!(evaluate("1+2*3^2").value, 19.0);
        assert_eq!(evaluate("-x^2").value, -9.0);
        assert_eq!(evaluate("2^3^2").value, 512.0);
        assert_eq!(evaluate("(x-y)/2 - 1e-1").value, 0.4);
        assert_eq!(evaluate("sqrt(x*x) + ln(exp(y)) + abs(-1)").value, 6.0);
        assert_eq!(evaluate("`a-b` - x").value, 2.0);
    }

    #[test]
    fn derivatives_count_a_name_used_twice_once() {
        let square = evaluate("x*x/y");
        assert_eq!(square.slopes["x"], 3.0);
        assert_eq!(square.slopes["y"], -9.0 / 4.0);
        assert_eq!(evaluate("x-x").slopes["x"], 0.0);
        assert!((evaluate("x^y").slopes["y"] - 9.0 * 3f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn every_function_has_its_derivative() {
        let close = |text: &str, expected: f64| {
            let slope = evaluate(text).slopes["x"];
            assert!((slope - expected).abs() < 1e-12, "{text}: {slope}");
        };
        close("ln(x)", 1.0 / 3.0);
        close("sqrt(x)", 0.5 / 3f64.sqrt());
        close("exp(x)", 3f64.exp());
        close("abs(-x)", 1.0);
        close("-x", -1.0);
        close("ln(x*x)", 2.0 / 3.0);
        close("y/x", -2.0 / 9.0);
        close("x^3", 27.0);
    }

    #[test]
    fn parentheses_one_after_another_are_not_deep_and_names_end_where_they_end() {
        let many = vec!["(1)"; 3000].join("+");
        assert_eq!(evaluate(&many).value, 3000.0);
        assert_eq!(evaluate("1 + `a-b`*2").value, 11.0);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (text, at) in [("2*", 3), ("(x", 3), ("x)", 2), ("1.2.3", 1), ("foo(x)", 4), ("", 1), ("`x", 1)] {
            assert_eq!(Expression::parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(Expression::parse(&"(".repeat(5000)).is_err());
        assert!(Expression::parse(&"-".repeat(5000)).is_err());
    }

    #[test]
    fn a_name_without_a_value_gives_nothing() {
        assert_eq!(Expression::parse("z").unwrap().value(&BTreeMap::new()), None);
    }

    #[test]
    fn only_what_stands_inside_each_other_is_deep() {
        let long = "2^1 + ".repeat(2 * MAX_DEPTH) + "1";
        assert_eq!(evaluate(&long).value, 4.0 * MAX_DEPTH as f64 + 1.0);
        assert_eq!(evaluate(&("-1 * ".repeat(2 * MAX_DEPTH) + "1")).value, 1.0);
        assert!(Expression::parse(&("2^".repeat(2 * MAX_DEPTH) + "1")).is_err());
    }
}
