//! JSON as people write it by hand for rt-app: with comments, repeated keys whose order counts,
//! trailing commas, and keys without a value. Keeps the position of each value, for errors.

use super::{ImportError, excerpt};

/// A value and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub at: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A key without a value, such as `"suspend",`.
    Omitted,
    Null,
    Bool(bool),
    Whole(i64),
    /// A number that is not an `i64`, as it is written.
    Number(String),
    Text(String),
    List(Vec<Value>),
    Map(Vec<Member>),
}

/// One member of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// Where the key begins.
    pub at: usize,
    pub key: String,
    pub value: Value,
}

impl Value {
    /// What kind of value this is, for errors.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Omitted => "nothing".into(),
            Kind::Null => "null".into(),
            Kind::Bool(truth) => truth.to_string(),
            Kind::Whole(number) => number.to_string(),
            Kind::Number(number) => excerpt(number),
            Kind::Text(text) => format!("\"{}\"", excerpt(text)),
            Kind::List(_) => "a list".into(),
            Kind::Map(_) => "an object".into(),
        }
    }
}

/// Maps and lists nested deeper than this are refused.
const MAX_DEPTH: usize = 64;

/// An error about what stands at byte `at` of `text`. Columns count characters.
pub(super) fn error_at(text: &str, at: usize, what: impl Into<String>) -> ImportError {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    // Bytes 10xxxxxx continue a character.
    let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
    ImportError::at(line as u64, column as u64, what)
}

/// Reads a whole text. Errors: it is not JSON even in this wide sense, with line and column.
pub(super) fn parse(text: &str) -> Result<Value, ImportError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space()?;
    let value = parser.value()?;
    parser.space()?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.expected("the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, at: usize, what: impl Into<String>) -> ImportError {
        error_at(self.text, at, what)
    }

    fn expected(&self, what: &str) -> ImportError {
        let found = match self.text[self.at..].chars().next() {
            None => "the end".into(),
            Some(character) => format!("`{}`", excerpt(character.encode_utf8(&mut [0; 4]))),
        };
        self.error(self.at, format!("expected {what}, found {found}"))
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Result<(), ImportError> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
            self.at += rest.len() - trimmed.len();
            self.at += if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                let end = comment.find("*/");
                let open = || self.error(self.at, "this comment does not end");
                end.ok_or_else(open)? + "/**/".len()
            } else {
                return Ok(());
            };
        }
    }

    fn value(&mut self) -> Result<Value, ImportError> {
        let at = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Parser::map)?,
            Some(b'[') => self.nested(Parser::list)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => {
                let words = [("true", Kind::Bool(true)), ("false", Kind::Bool(false))];
                let mut words = words.into_iter().chain([("null", Kind::Null)]);
                let word = words.find(|(word, _)| self.text[at..].starts_with(word));
                let Some((word, kind)) = word else { return Err(self.expected("a value")) };
                self.at += word.len();
                kind
            }
        };
        Ok(Value { at, kind })
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Kind, ImportError>,
    ) -> Result<Kind, ImportError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(self.at, format!("more than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.at += 1;
        let kind = inner(self);
        self.depth -= 1;
        kind
    }

    fn map(&mut self) -> Result<Kind, ImportError> {
        let mut members = Vec::new();
        loop {
            self.space()?;
            let at = self.at;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.expected("a key in quotes or `}`")),
            }
            let key = self.string()?;
            self.space()?;
            let value = if self.peek() == Some(b':') {
                self.at += 1;
                self.space()?;
                self.value()?
            } else {
                Value { at: self.at, kind: Kind::Omitted }
            };
            members.push(Member { at, key, value });
            self.space()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
        self.at += 1;
        Ok(Kind::Map(members))
    }

    fn list(&mut self) -> Result<Kind, ImportError> {
        let mut items = Vec::new();
        loop {
            self.space()?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.value()?);
            self.space()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
        self.at += 1;
        Ok(Kind::List(items))
    }

    fn number(&mut self) -> Result<Kind, ImportError> {
        let rest = &self.text[self.at..];
        let part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let number = &rest[..length];
        let kind = match number.parse::<i64>() {
            Ok(whole) => Kind::Whole(whole),
            Err(_) if number.parse::<f64>().is_ok() => Kind::Number(number.into()),
            Err(_) => {
                return Err(self.error(self.at, format!("`{}` is no number", excerpt(number))));
            }
        };
        self.at += length;
        Ok(kind)
    }

    fn string(&mut self) -> Result<String, ImportError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = rest.find(['"', '\\', '\n']) else {
                return Err(self.error(start, "this string does not end"));
            };
            text.push_str(&rest[..length]);
            self.at += length + 1;
            match rest.as_bytes()[length] {
                b'"' => return Ok(text),
                b'\\' => text.push(self.escaped()?),
                _ => return Err(self.error(start, "this string does not end on its line")),
            }
        }
    }

    /// The character that an escape after a backslash stands for.
    fn escaped(&mut self) -> Result<char, ImportError> {
        let backslash = self.at - 1;
        let wrong = |parser: &Self| parser.error(backslash, "no such escape in JSON");
        let letter = self.peek().ok_or_else(|| wrong(self))?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.four_digits().ok_or_else(|| wrong(self))?;
                // Two halves make one character beyond the first 65 536.
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let low = self.four_digits().filter(|low| (0xdc00..0xe000).contains(low));
                    code = low
                        .map_or(0xd800, |low| 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
                }
                char::from_u32(code).ok_or_else(|| wrong(self))?
            }
            _ => {
                self.at = backslash + 1;
                return Err(wrong(self));
            }
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        self.at += 4;
        u32::from_str_radix(digits, 16).ok().filter(|_| all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value in a short form without positions.
    fn short(value: &Value) -> String {
        match &value.kind {
            Kind::Omitted => "-".into(),
            Kind::Null => "null".into(),
            Kind::Bool(truth) => truth.to_string(),
            Kind::Whole(number) => number.to_string(),
            Kind::Number(number) => number.clone(),
            Kind::Text(text) => format!("{text:?}"),
            Kind::List(items) => {
                format!("[{}]", items.iter().map(short).collect::<Vec<_>>().join(","))
            }
            Kind::Map(members) => {
                let member = |member: &Member| format!("{}:{}", member.key, short(&member.value));
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn json_and_what_people_write() {
        for (text, is) in [
            ("{}", "{}"),
            (" [1, -2, 3.5, 1e3, 99999999999999999999] ", "[1,-2,3.5,1e3,99999999999999999999]"),
            ("[true,false,null,\"\"]", "[true,false,null,\"\"]"),
            (r#"{"run":1,"sleep":2,"run":3}"#, "{run:1,sleep:2,run:3}"),
            ("{\"a\" : 1, // one }\n\"b\" /* two , */ : [2,],}", "{a:1,b:[2]}"),
            ("/*/ still a comment */ 1 //", "1"),
            ("/**/1", "1"),
            (r#"{"suspend", "run" : 5, "yield"}"#, "{suspend:-,run:5,yield:-}"),
            (r#""\u00e9 \ud83d\ude00 \n\t\"\\\/""#, "\"é 😀 \\n\\t\\\"\\\\/\""),
        ] {
            assert_eq!(short(&parse(text).unwrap()), is, "{text}");
        }
    }

    #[test]
    fn positions_are_those_of_keys_and_values() {
        let text = "{\n  \"é\" : [ 7 ] }";
        let Kind::Map(members) = parse(text).unwrap().kind else { panic!() };
        assert_eq!(error_at(text, members[0].at, "").to_string(), "line 2, column 3: ");
        let Kind::List(items) = &members[0].value.kind else { panic!() };
        assert_eq!(error_at(text, items[0].at, "").to_string(), "line 2, column 11: ");
    }

    #[test]
    fn malformed_texts() {
        let deep = "[".repeat(65);
        for (text, error) in [
            ("", "line 1, column 1: expected a value, found the end"),
            ("{\n\"a\": }", "line 2, column 6: expected a value, found `}`"),
            ("{\"a\": 1 \"b\": 2}", "line 1, column 9: expected `,` or `}`, found `\"`"),
            ("[1 2]", "line 1, column 4: expected `,` or `]`, found `2`"),
            ("{a: 1}", "line 1, column 2: expected a key in quotes or `}`, found `a`"),
            ("{\"a\": 1", "line 1, column 8: expected `,` or `}`, found the end"),
            ("1 /* no", "line 1, column 3: this comment does not end"),
            ("/*/", "line 1, column 1: this comment does not end"),
            ("{\"a", "line 1, column 2: this string does not end"),
            ("\"a\nb\"", "line 1, column 1: this string does not end on its line"),
            ("\"\\x\"", "line 1, column 2: no such escape in JSON"),
            ("\"\\ud800\"", "line 1, column 2: no such escape in JSON"),
            ("\"\\ud800\\u0041\"", "line 1, column 2: no such escape in JSON"),
            ("1-2", "line 1, column 1: `1-2` is no number"),
            ("{} x", "line 1, column 4: expected the end, found `x`"),
            (&deep, "line 1, column 65: more than 64 levels"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }
}
