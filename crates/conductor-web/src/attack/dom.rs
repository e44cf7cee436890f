//! Reads a page as a browser does, and says what on it is not ours.
//!
//! The parser is a browser's own, so that whatever a browser would make of a text is made of it here, too. This module
//! does not know which text was hostile.

use std::collections::BTreeMap;

use conductor_domain::message::is_hidden;
use html5ever::tendril::TendrilSink as _;
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::page::asset;

const HTML: &str = "http://www.w3.org/1999/xhtml";

/// Elements that make a page what it is: as many of each as without a hostile text.
const COUNTED: [&str; 34] = [
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "body",
    "header",
    "nav",
    "main",
    "footer",
    "section",
    "article",
    "kbd",
    "h1",
    "h2",
    "form",
    "label",
    "input",
    "button",
    "select",
    "option",
    "textarea",
    "details",
    "summary",
    "time",
    "svg",
    "path",
    "dialog",
    "figure",
    "figcaption",
    "dl",
    "dt",
    "dd",
];
const SVG: &str = "http://www.w3.org/2000/svg";
/// What charts are drawn with: as many of each as without a hostile text, too.
const DRAWN: [&str; 5] = ["svg", "g", "title", "rect", "path"];
/// Where charts are drawn; all of it is numbers.
const PLACES: [&str; 7] = ["viewBox", "preserveAspectRatio", "x", "y", "width", "height", "d"];
/// Elements that only show text; rendered markdown and colours make more or fewer of them.
const TEXT: [&str; 24] = [
    "a",
    "p",
    "div",
    "span",
    "b",
    "i",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "h3",
    "h4",
    "h5",
    "em",
    "strong",
    "s",
    "blockquote",
];
const EMPTY: [&str; 2] = ["br", "hr"];
const ATTRIBUTES: [&str; 41] = [
    "lang",
    "charset",
    "name",
    "content",
    "rel",
    "href",
    "src",
    "defer",
    "class",
    "id",
    "tabindex",
    "title",
    "scope",
    "method",
    "action",
    "type",
    "value",
    "required",
    "autocomplete",
    "autocapitalize",
    "rows",
    "size",
    "min",
    "max",
    "minlength",
    "maxlength",
    "inputmode",
    "placeholder",
    "selected",
    "checked",
    "hidden",
    "open",
    "colspan",
    "for",
    "role",
    "data-live",
    "data-part",
    "data-row",
    "data-key",
    "autofocus",
    "datetime",
];

/// How many of the elements that make a page a page has.
pub(crate) type Shape = BTreeMap<String, usize>;

/// What was found on a page.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) shape: Shape,
    pub(crate) foreign: Vec<String>,
}

/// Reads a page.
pub(crate) fn read(html: &str) -> Found {
    let dom = html5ever::parse_document(RcDom::default(), html5ever::ParseOpts::default())
        .from_utf8()
        .one(html.as_bytes());
    let mut found = Found::default();
    let errors = dom.errors.borrow();
    found
        .foreign
        .extend(errors.iter().map(|error| format!("malformed: {error}")));
    if let Some(hidden) = html.chars().find(|c| is_hidden(*c)) {
        found
            .foreign
            .push(format!("U+{:04X} as it is", u32::from(hidden)));
    }
    walk(&dom.document, &mut found);
    found
}

fn is_place(name: &str, value: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || " Mh".contains(c);
    PLACES.contains(&name) && (value == "none" || value.chars().all(is_number))
}

fn walk(node: &Handle, found: &mut Found) {
    match &node.data {
        NodeData::Element { name, attrs, .. } => {
            let element = &*name.local;
            let is_drawn = &*name.ns == SVG && DRAWN.contains(&element);
            if &*name.ns != HTML && !is_drawn {
                found.foreign.push(format!("<{element}> of {}", &*name.ns));
            }
            let is_text = TEXT.contains(&element) || EMPTY.contains(&element);
            if COUNTED.contains(&element) || is_drawn {
                *found.shape.entry(element.to_owned()).or_default() += 1;
            } else if !is_text {
                found.foreign.push(format!("<{element}>"));
            }
            for attribute in attrs.borrow().iter() {
                if is_drawn && is_place(&attribute.name.local, &attribute.value) {
                    continue;
                }
                if let Some(foreign) = foreign(element, &attribute.name.local, &attribute.value) {
                    found.foreign.push(foreign);
                }
            }
        }
        NodeData::Comment { contents } => found.foreign.push(format!("a comment: {contents}")),
        NodeData::ProcessingInstruction { .. } => found.foreign.push("an instruction".to_owned()),
        NodeData::Document | NodeData::Doctype { .. } | NodeData::Text { .. } => {}
    }
    for child in node.children.borrow().iter() {
        walk(child, found);
    }
}

/// Says what is wrong with an attribute, if anything is.
fn foreign(element: &str, name: &str, value: &str) -> Option<String> {
    let is_ours = |path: &str| path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    let is_right = match (element, name) {
        ("script", "src") => value == asset::SCRIPT.path,
        ("link", "href") => value == asset::STYLE.path,
        // A link leads to a page of ours, or visibly away.
        ("a", "href") => {
            is_ours(value)
                || value == "#main"
                || ["https://", "http://"].iter().any(|web| value.starts_with(web))
        }
        ("form", "action") => is_ours(value),
        ("meta", "name" | "content" | "charset") => true,
        (_, "src" | "action" | "href" | "content") => false,
        (_, name) => ATTRIBUTES.contains(&name) || name.starts_with("aria-"),
    };
    (!is_right).then(|| format!("<{element} {name}={value:?}>"))
}
