//! The language of claims.
//!
//! ```text
//! expect     = comparison { "and" comparison }
//! comparison = sum ( "<" | "<=" | ">" | ">=" ) sum { … }      a < b < c is a < b and b < c
//! sum        = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = number | time | "-" factor | "(" sum ")" | reference
//! reference  = label [ "{" axis "=" value { "," axis "=" value } "}" ] "." column
//! ```
//!
//! A label consists of letters, digits, `-` and `_`, or stands in backticks. A time such as
//! `10ms` is a number of ns.

use crate::spec::error::Fault;
use anysched_core::Span;
use std::ops::Range;

/// An expression whose value is a number per seed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr<R> {
    Number(f64),
    Reference(R),
    Minus(Box<Expr<R>>),
    Binary(Operator, Box<Expr<R>>, Box<Expr<R>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One comparison, with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison<R> {
    pub(crate) left: Expr<R>,
    pub(crate) order: Order,
    pub(crate) right: Expr<R>,
    pub(crate) text: String,
}

/// A column of a policy as it is written, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) label: String,
    pub(crate) label_at: Range<usize>,
    pub(crate) axes: Vec<(String, String, Range<usize>)>,
    pub(crate) column: String,
    pub(crate) column_at: Range<usize>,
}

impl<R> Expr<R> {
    /// The same with every reference looked up.
    pub(crate) fn resolve<S, E>(
        &self,
        look_up: &mut impl FnMut(&R) -> Result<S, E>,
    ) -> Result<Expr<S>, E> {
        Ok(match self {
            Expr::Number(number) => Expr::Number(*number),
            Expr::Reference(name) => Expr::Reference(look_up(name)?),
            Expr::Minus(inner) => Expr::Minus(Box::new(inner.resolve(look_up)?)),
            Expr::Binary(operator, left, right) => Expr::Binary(
                *operator,
                Box::new(left.resolve(look_up)?),
                Box::new(right.resolve(look_up)?),
            ),
        })
    }

    /// Adds all that it refers to.
    pub(crate) fn references<'a>(&'a self, found: &mut Vec<&'a R>) {
        match self {
            Expr::Number(_) => {}
            Expr::Reference(reference) => found.push(reference),
            Expr::Minus(inner) => inner.references(found),
            Expr::Binary(_, left, right) => {
                left.references(found);
                right.references(found);
            }
        }
    }

    /// Its value where each reference has the value that `value` gives; `None` if one has none.
    pub(crate) fn evaluate(&self, value: &impl Fn(&R) -> Option<f64>) -> Option<f64> {
        Some(match self {
            Expr::Number(number) => *number,
            Expr::Reference(reference) => value(reference)?,
            Expr::Minus(inner) => -inner.evaluate(value)?,
            Expr::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(value)?, right.evaluate(value)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
        })
    }
}

impl Order {
    /// Whether it is one of `<` and `<=`.
    pub(crate) fn is_less(self) -> bool {
        matches!(self, Order::Less | Order::LessOrEqual)
    }

    /// Whether equal numbers satisfy it.
    pub(crate) fn allows_equal(self) -> bool {
        matches!(self, Order::LessOrEqual | Order::GreaterOrEqual)
    }
}

/// Reads what a claim expects. Places of faults are bytes of `text`.
pub(crate) fn parse_expect(text: &str) -> Result<Vec<Comparison<Name>>, Fault> {
    let mut parser = Parser::new(text)?;
    let mut comparisons = Vec::new();
    loop {
        parser.comparison(&mut comparisons)?;
        if !parser.skip(&Token::And) {
            break;
        }
    }
    parser.end("a comparison, `and` or the end")?;
    Ok(comparisons)
}

/// Reads an expression without comparisons. Places of faults are bytes of `text`.
pub(crate) fn parse_measure(text: &str) -> Result<Expr<Name>, Fault> {
    let mut parser = Parser::new(text)?;
    let expr = parser.sum()?;
    parser.end("an operator or the end")?;
    Ok(expr)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(Name),
    Order(Order),
    Plus,
    Minus,
    Times,
    Over,
    Open,
    Close,
    And,
}

/// Deeper nesting and longer texts are refused, so that none exhausts the stack.
const MAX_DEPTH: usize = 64;
const MAX_TOKENS: usize = 1000;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, Fault> {
        Ok(Parser { text, tokens: Lexer { text, at: 0 }.all()?, next: 0, depth: 0 })
    }

    fn skip(&mut self, wanted: &Token) -> bool {
        let found = self.tokens.get(self.next).is_some_and(|(token, _)| token == wanted);
        self.next += usize::from(found);
        found
    }

    /// Where the next token is, or the end of the text.
    fn here(&self) -> Range<usize> {
        let end = self.text.len();
        self.tokens.get(self.next).map_or(end..end, |(_, at)| at.clone())
    }

    fn expected(&self, what: &str) -> Fault {
        let at = self.here();
        let found = match &self.text[at.clone()] {
            "" => "the end".to_string(),
            text => format!("`{text}`"),
        };
        Fault::at(&at, format!("expected {what}, found {found}"))
    }

    fn end(&self, what: &str) -> Result<(), Fault> {
        if self.next == self.tokens.len() { Ok(()) } else { Err(self.expected(what)) }
    }

    fn comparison(&mut self, found: &mut Vec<Comparison<Name>>) -> Result<(), Fault> {
        let mut start = self.here().start;
        let mut left = self.sum()?;
        let mut any = false;
        while let Some((Token::Order(order), _)) = self.tokens.get(self.next) {
            let order = *order;
            self.next += 1;
            let middle = self.here().start;
            let right = self.sum()?;
            let end = self.tokens[self.next - 1].1.end;
            let text = self.text[start..end].to_string();
            let next_left = right.clone();
            found.push(Comparison { left, order, right, text });
            (left, start, any) = (next_left, middle, true);
        }
        if any { Ok(()) } else { Err(self.expected("`<`, `<=`, `>` or `>=`")) }
    }

    fn sum(&mut self) -> Result<Expr<Name>, Fault> {
        let mut left = self.product()?;
        loop {
            let operator = if self.skip(&Token::Plus) {
                Operator::Add
            } else if self.skip(&Token::Minus) {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr<Name>, Fault> {
        let mut left = self.factor()?;
        loop {
            let operator = if self.skip(&Token::Times) {
                Operator::Multiply
            } else if self.skip(&Token::Over) {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = Expr::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expr<Name>, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::at(&self.here(), "nested too deeply"));
        }
        let expr = match self.tokens.get(self.next).map(|(token, _)| token.clone()) {
            Some(Token::Number(number)) => {
                self.next += 1;
                Expr::Number(number)
            }
            Some(Token::Name(name)) => {
                self.next += 1;
                Expr::Reference(name)
            }
            Some(Token::Minus) => {
                self.next += 1;
                Expr::Minus(Box::new(self.factor()?))
            }
            Some(Token::Open) => {
                self.next += 1;
                let inner = self.sum()?;
                if !self.skip(&Token::Close) {
                    return Err(self.expected("`)`"));
                }
                inner
            }
            _ => return Err(self.expected("a number or `policy.metric`")),
        };
        self.depth -= 1;
        Ok(expr)
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn all(mut self) -> Result<Vec<(Token, Range<usize>)>, Fault> {
        let mut tokens = Vec::new();
        loop {
            self.take(char::is_whitespace);
            let start = self.at;
            let Some(first) = self.rest().chars().next() else { return Ok(tokens) };
            if tokens.len() == MAX_TOKENS {
                return Err(Fault::at(&(start..self.text.len()), "too long"));
            }
            let token = self.token(first)?;
            tokens.push((token, start..self.at));
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes characters as long as they are `wanted`.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn token(&mut self, first: char) -> Result<Token, Fault> {
        const SIGNS: [(&str, Token); 10] = [
            ("<=", Token::Order(Order::LessOrEqual)),
            (">=", Token::Order(Order::GreaterOrEqual)),
            ("<", Token::Order(Order::Less)),
            (">", Token::Order(Order::Greater)),
            ("+", Token::Plus),
            ("-", Token::Minus),
            ("*", Token::Times),
            ("/", Token::Over),
            ("(", Token::Open),
            (")", Token::Close),
        ];
        for (sign, token) in SIGNS {
            if self.eat(sign) {
                return Ok(token);
            }
        }
        match first {
            '0'..='9' | '.' => self.number(),
            '`' => {
                let start = self.at;
                self.at += 1;
                let label = self.take(|c| c != '`');
                if !self.eat("`") {
                    return Err(Fault::at(
                        &(start..self.at),
                        "a label without its second backtick",
                    ));
                }
                self.name(label, start..self.at)
            }
            c if c.is_alphabetic() => {
                let start = self.at;
                let label = self.take(|c| c.is_alphanumeric() || c == '-' || c == '_');
                if label == "and" {
                    return Ok(Token::And);
                }
                self.name(label, start..self.at)
            }
            c => {
                let at = self.at..self.at + c.len_utf8();
                Err(Fault::at(&at, format!("`{c}` has no meaning here")).help(
                    "there are numbers, + - * / ( ), < <= > >=, `and` and references such as \
                     `rr.makespan_ns`",
                ))
            }
        }
    }

    /// A number, or a time in ns.
    fn number(&mut self) -> Result<Token, Fault> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let unit = self.take(|c| c.is_alphabetic());
        let at = start..self.at;
        if !unit.is_empty() {
            let text = &self.text[at.clone()];
            return match Span::parse(text) {
                Ok(span) => Ok(Token::Number(span.0 as f64)),
                Err(why) => Err(Fault::at(&at, format!("`{text}`: {why}"))),
            };
        }
        let number = digits.replace('_', "").parse::<f64>();
        let number = number.map_err(|_| Fault::at(&at, format!("`{digits}` is not a number")))?;
        Ok(Token::Number(number))
    }

    fn name(&mut self, label: &str, label_at: Range<usize>) -> Result<Token, Fault> {
        let mut axes = Vec::new();
        if self.eat("{") {
            loop {
                let start = self.at;
                let pair = self.take(|c| c != ',' && c != '}');
                let Some((axis, value)) = pair.split_once('=') else {
                    return Err(Fault::at(&(start..self.at), format!("`{pair}` names no value"))
                        .help("for example `rr{machine.cpus = 4}.makespan_ns`"));
                };
                axes.push((axis.trim().to_string(), value.trim().to_string(), start..self.at));
                if self.eat("}") {
                    break;
                }
                if !self.eat(",") {
                    return Err(Fault::at(&(start..self.at), "a `{` without its `}`"));
                }
            }
        }
        if !self.eat(".") {
            return Err(Fault::at(&label_at, format!("`{label}` names no metric"))
                .help(format!("for example `{label}.makespan_ns`")));
        }
        let start = self.at;
        let column = self.take(|c| c.is_alphanumeric() || c == '_' || c == '.');
        Ok(Token::Name(Name {
            label: label.to_string(),
            label_at,
            axes,
            column: column.to_string(),
            column_at: start..self.at,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `text`, in which `a.x` is 10 and `b-c.y` is 4.
    fn value(text: &str) -> f64 {
        let expr = parse_measure(text).map_err(|fault| message(text, fault)).unwrap();
        let look_up = |name: &Name| match (name.label.as_str(), name.column.as_str()) {
            ("a", "x") => Some(10.0),
            ("b-c", "y") => Some(4.0),
            _ => None,
        };
        expr.evaluate(&look_up).unwrap()
    }

    /// The column from 1 and the message of a fault in `text`, which stands in a file in quotes.
    fn message(text: &str, fault: Fault) -> String {
        let fault = fault.shifted(|at| at.start + 1..at.end + 1);
        let error =
            crate::spec::error::Source::new("x".as_ref(), &format!("'{text}'")).error(fault);
        format!("{}: {error}", error.location().map_or(0, |(_, column)| column - 1))
    }

    #[test]
    fn arithmetic() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("24 / 4 / 2", 3.0),
            ("-2 * -3", 6.0),
            ("a.x - b-c.y", 6.0),
            ("a.x-b-c.y", 6.0),
            ("1 - b-c.y / a.x", 0.6),
            ("`a`.x * 1_000", 10_000.0),
            ("1.5us", 1500.0),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn comparisons_chain_and_join() {
        let found = parse_expect("1 < a.x <= 0.9 * b.y and c.z>2").unwrap();
        let texts: Vec<(&str, Order)> =
            found.iter().map(|found| (found.text.as_str(), found.order)).collect();
        assert_eq!(
            texts,
            [
                ("1 < a.x", Order::Less),
                ("a.x <= 0.9 * b.y", Order::LessOrEqual),
                ("c.z>2", Order::Greater)
            ]
        );
    }

    #[test]
    fn a_reference_may_name_its_row() {
        let expr = parse_measure("rr{machine.cpus = 4, scenario=a b}.makespan_ns").unwrap();
        let Expr::Reference(name) = expr else { panic!("{expr:?}") };
        let axes: Vec<(&str, &str)> =
            name.axes.iter().map(|(axis, value, _)| (axis.as_str(), value.as_str())).collect();
        assert_eq!(axes, [("machine.cpus", "4"), ("scenario", "a b")]);
        assert_eq!((name.label.as_str(), name.column.as_str()), ("rr", "makespan_ns"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let deep = "(".repeat(100);
        for (text, expected) in [
            ("", "1: expected a number or `policy.metric`, found the end"),
            ("a.x", "4: expected `<`, `<=`, `>` or `>=`, found the end"),
            ("a.x < ", "7: expected a number or `policy.metric`, found the end"),
            ("a.x < 1 b.y", "9: expected a comparison, `and` or the end, found `b.y`"),
            ("a < 1", "1: `a` names no metric"),
            ("a.x == 1", "5: `=` has no meaning here"),
            ("(a.x < 1", "6: expected `)`, found `<`"),
            ("`a.x < 1", "1: a label without its second backtick"),
            ("1.2.3 < 1", "1: `1.2.3` is not a number"),
            ("5 parsecs < 1", "3: `parsecs` names no metric"),
            ("5parsecs < 1", "1: `5parsecs`: unknown unit; use ns, us, ms, s, min or h"),
            ("a{b}.x < 1", "3: `b` names no value"),
            ("a{b=1.x < 1", "3: a `{` without its `}`"),
            (&deep, "65: nested too deeply"),
        ] {
            let fault = parse_expect(text).unwrap_err();
            assert_eq!(message(text, fault), expected, "{text}");
        }
    }
}
