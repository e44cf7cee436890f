//! The strict part of YAML that skills are written in: block style only, every scalar is text, no key twice.
//!
//! Flow style, tags, anchors and aliases are refused, as the public rules do; so nothing in a manifest can grow or
//! change its type. This module does not know what the keys mean.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// Deeper is nobody's manifest.
const DEEPEST: usize = 32;

/// A value of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, whatever it looks like.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Keys and values.
    Map(BTreeMap<String, Value>),
}

/// Reads the first document of a text; nothing at all is empty text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    if let Some(bad) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(format!("character U+{:04X} is not allowed", u32::from(bad)));
    }
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
    };
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Text(String::new())),
            first @ (Event::Alias(_)
            | Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd) => {
                let value = reader.value(first, span, 0)?;
                return reader.end().map(|()| value);
            }
        }
    }
}

/// YAML's printable characters.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, Span::default())),
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line() + 1, error.info())),
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        let refuse = |what: &str| Err(format!("line {}: {what} not allowed", span.start.line() + 1));
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => refuse("tags are"),
            Event::Alias(_) => refuse("aliases are"),
            Event::Scalar(_, _, anchor, None)
            | Event::SequenceStart(anchor, None)
            | Event::MappingStart(anchor, None)
                if anchor != 0 =>
            {
                refuse("anchors are")
            }
            // The parser tells no text from `~` by its place only.
            Event::Scalar(_, ScalarStyle::Plain, _, None) if span.is_empty() => {
                Ok(Value::Text(String::new()))
            }
            // Older YAML has it so, and the public rules stand on that: a tab ends unquoted text, NEL is a line end.
            Event::Scalar(text, ScalarStyle::Plain, ..) if text.contains('\t') => {
                refuse("tabs in unquoted text are")
            }
            Event::Scalar(text, ScalarStyle::Plain, ..) => Ok(Value::Text(text.replace('\u{85}', " "))),
            Event::Scalar(text, ..) => Ok(Value::Text(text.into_owned())),
            Event::SequenceStart(..) | Event::MappingStart(..) if self.is_flow(span) => {
                refuse("values in brackets or braces are")
            }
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Value::List(list)),
                        (event, span) => list.push(self.value(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.map(depth),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => Err("it ends too early".to_owned()),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = BTreeMap::new();
        // Maps that are values of one map stand at one column.
        let mut column = None;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Map(map));
            }
            let line = span.start.line() + 1;
            let Value::Text(key) = self.value(event, span, depth + 1)? else {
                return Err(format!("line {line}: a key must be text"));
            };
            if key == "<<" {
                return Err(format!("line {line}: maps are not merged"));
            }
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingStart(..))
                && *column.get_or_insert(span.start.col()) != span.start.col()
            {
                return Err(format!(
                    "line {}: it is indented unlike the one before",
                    span.start.line() + 1
                ));
            }
            let value = self.value(event, span, depth + 1)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(format!("line {line}: `{key}` is there twice"));
            }
        }
    }

    fn is_flow(&self, span: Span) -> bool {
        let first = self.text.chars().nth(span.start.index());
        matches!(first, Some('[' | '{'))
    }

    /// Whatever follows must at least be well-formed, and no second document.
    fn end(&mut self) -> Result<(), String> {
        loop {
            match self.next()?.0 {
                Event::StreamEnd => return Ok(()),
                Event::DocumentEnd | Event::Nothing => {}
                Event::DocumentStart(_) => return Err("there is a second document".to_owned()),
                Event::StreamStart
                | Event::Alias(_)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => return Err("something follows its end".to_owned()),
            }
        }
    }
}
