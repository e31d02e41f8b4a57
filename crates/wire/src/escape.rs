//! Text in a line of other text.
//!
//! | written | is |
//! |---|---|
//! | `\\` | a backslash |
//! | `\s` | a space, where the text must be one word |
//! | `\n`, `\r`, `\t` | a line feed, a carriage return, a tab |
//! | `\u{HEX}` | any other control character or white space |
//! | `\-` | the empty text |
//!
//! Everything else stands for itself.

use alloc::string::String;
use core::fmt::{self, Write};

/// Text as it is written; what its `Display` writes has no line break and no control character.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a> {
    text: &'a str,
    /// Spaces stand for themselves.
    keeps_blanks: bool,
}

/// `text` as one word.
pub fn word(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_blanks: false }
}

/// `text` as the rest of a line.
pub fn rest(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_blanks: true }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            return f.write_str("\\-");
        }
        for char in self.text.chars() {
            match char {
                ' ' if self.keeps_blanks => f.write_char(' ')?,
                ' ' => f.write_str("\\s")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if char.is_control() || char.is_whitespace() => {
                    write!(f, "\\u{{{:x}}}", u32::from(char))?;
                }
                _ => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// The text that was written as `escaped`. `None`: it is empty, or has a meaningless backslash.
pub fn unescape(escaped: &str) -> Option<String> {
    match escaped {
        "" => return None,
        "\\-" => return Some(String::new()),
        _ => {}
    }
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut chars = after.chars();
        text.push(match chars.next()? {
            '\\' => '\\',
            's' => ' ',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (hex, behind) = after.strip_prefix("u{")?.split_once('}')?;
                let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
                chars = behind.chars();
                char::from_u32(u32::from_str_radix(hex, 16).ok().filter(|_| is_hex)?)?
            }
            _ => return None,
        });
        rest = chars.as_str();
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn by_hand() {
        for (text, as_word, as_rest) in [
            ("", "\\-", "\\-"),
            ("-", "-", "-"),
            ("a b", "a\\sb", "a b"),
            ("a\\sb", "a\\\\sb", "a\\\\sb"),
            ("1\n2\r\n\t", "1\\n2\\r\\n\\t", "1\\n2\\r\\n\\t"),
            ("\u{1b}[m\u{a0}", "\\u{1b}[m\\u{a0}", "\\u{1b}[m\\u{a0}"),
            ("größer", "größer", "größer"),
        ] {
            assert_eq!(
                (word(text).to_string(), rest(text).to_string()),
                (as_word.into(), as_rest.into())
            );
            assert_eq!(unescape(as_word).as_deref(), Some(text));
            assert_eq!(unescape(as_rest).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_backslash_must_mean_something() {
        for wrong in ["", "\\", "\\x", "a\\-", "\\u", "\\u{}", "\\u{+1}", "\\u{d800}", "\\u{1"] {
            assert_eq!(unescape(wrong), None, "{wrong}");
        }
    }
}
