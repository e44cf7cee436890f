//! Markdown of an agent as HTML of ours: a handful of tags without attributes, and links that show where they lead.
//!
//! The parser reads, this module writes: it knows no tag but its own, escapes every word, shows raw HTML and comments as
//! text, loads no image (S-48). This module does not know who wrote the text.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::visible::{self, Word};

/// A text as markdown means it, in HTML that is all ours.
pub(crate) struct Prose(String);

impl Prose {
    /// Renders markdown; everything in it that is not ours is text.
    pub(crate) fn of(markdown: &str) -> Self {
        let mut page = Page::default();
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            page.take(event);
        }
        page.word.end(&mut page.html);
        Self(page.html)
    }
}

impl std::fmt::Display for Prose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

// Every byte of it was written or escaped here, so a template may take it as it is.
impl askama::filters::HtmlSafe for Prose {}

#[derive(Default)]
struct Page {
    html: String,
    /// Where the open links and images lead, innermost last.
    targets: Vec<String>,
    /// The word that is being written; an entity or an emphasis within it parts the text, but not the word.
    word: Word,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        if !is_within_word(&event) {
            self.word.end(&mut self.html);
        }
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
            Event::Code(text) => {
                self.html.push_str("<code>");
                self.text(&text);
                self.html.push_str("</code>");
            }
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what has no name of ours is shown as its text"
    )]
    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Link { dest_url, .. } => {
                if let Some(url) = web(&dest_url) {
                    self.html
                        .push_str("<a rel=\"noreferrer noopener nofollow\" href=\"");
                    url.chars().for_each(|c| escape(&mut self.html, c));
                    self.html.push_str("\">");
                }
                self.targets.push(dest_url.into_string());
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image: ");
                self.targets.push(dest_url.into_string());
            }
            Tag::CodeBlock(kind) => {
                self.html.push_str("<pre tabindex=\"0\">");
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.html.push_str("<span class=\"dim\">");
                    self.text(&language);
                    self.word.end(&mut self.html);
                    self.html.push_str("</span>\n");
                }
            }
            Tag::TableHead => self.html.push_str("<thead><tr>"),
            tag => {
                if let Some((name, _)) = name(tag.to_end()) {
                    self.html.push_str(&format!("<{name}>"));
                }
            }
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what has no name of ours is shown as its text"
    )]
    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Link => {
                let target = self.targets.pop().unwrap_or_default();
                if web(&target).is_some() {
                    self.html.push_str("</a>");
                }
                self.html.push_str(" <span class=\"dim\">(");
                self.text(&target);
                self.word.end(&mut self.html);
                self.html.push_str(")</span>");
            }
            TagEnd::Image => {
                let target = self.targets.pop().unwrap_or_default();
                self.text(&format!(" → {target}]"));
            }
            TagEnd::CodeBlock => self.html.push_str("</pre>\n"),
            TagEnd::TableHead => self.html.push_str("</tr></thead>\n"),
            tag => {
                if let Some((name, end)) = name(tag) {
                    self.html.push_str(&format!("</{name}>{end}"));
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        // Here and not before parsing, because an entity becomes its character only then.
        for c in text.chars() {
            self.word.write(&mut self.html, c, escape);
        }
    }
}

fn escape(html: &mut String, c: char) {
    match c {
        '&' => html.push_str("&amp;"),
        '<' => html.push_str("&lt;"),
        '>' => html.push_str("&gt;"),
        '"' => html.push_str("&quot;"),
        '\'' => html.push_str("&#39;"),
        c => html.push(c),
    }
}

/// Tells whether what is before and after can be one word to a reader.
fn is_within_word(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Text(_)
            | Event::InlineHtml(_)
            | Event::Code(_)
            | Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. })
            | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough)
    )
}

/// An address that may stand in a link: a page of the web, none that runs here, and none that is shown as another.
fn web(url: &str) -> Option<String> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let is_plain = !url.contains(char::is_whitespace) && visible::text(url).text == url;
    (is_web && is_plain).then(|| url.to_owned())
}

/// Our name for a part of a text, and what stands after it; what has none is its content alone.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "what the parser learns tomorrow is shown as its text"
)]
fn name(tag: TagEnd) -> Option<(&'static str, &'static str)> {
    Some(match tag {
        TagEnd::Paragraph => ("p", "\n"),
        // A page has its own first and second headings.
        TagEnd::Heading(HeadingLevel::H1 | HeadingLevel::H2) => ("h3", "\n"),
        TagEnd::Heading(HeadingLevel::H3) => ("h4", "\n"),
        TagEnd::Heading(_) => ("h5", "\n"),
        TagEnd::BlockQuote(_) => ("blockquote", "\n"),
        TagEnd::List(true) => ("ol", "\n"),
        TagEnd::List(false) => ("ul", "\n"),
        TagEnd::Item => ("li", "\n"),
        TagEnd::Emphasis => ("em", ""),
        TagEnd::Strong => ("strong", ""),
        TagEnd::Strikethrough => ("s", ""),
        TagEnd::Table => ("table", "\n"),
        TagEnd::TableRow => ("tr", "\n"),
        TagEnd::TableCell => ("td", ""),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        Prose::of(markdown).to_string()
    }

    #[test]
    fn what_people_write_in_plans_is_rendered() {
        assert_eq!(
            html("# A\n\nb **c** `d<e`\n"),
            "<h3>A</h3>\n<p>b <strong>c</strong> <code>d&lt;e</code></p>\n"
        );
        assert_eq!(html("1. a\n2. b\n"), "<ol><li>a</li>\n<li>b</li>\n</ol>\n");
        assert_eq!(
            html("```rs\nlet a;\n```"),
            "<pre tabindex=\"0\"><span class=\"dim\">rs</span>\nlet a;\n</pre>\n"
        );
        assert_eq!(
            html("[a](https://b.example)"),
            "<p><a rel=\"noreferrer noopener nofollow\" href=\"https://b.example\">a</a> <span class=\"dim\">(https://b.example)</span></p>\n"
        );
    }

    /// S-48: a letter that passes for another is shown however the word is put together, and leads nowhere.
    #[test]
    fn a_look_alike_letter_hides_in_no_markup() {
        for (markdown, shown) in [
            ("p\u{430}y", "<p>p⟨U+0430⟩y</p>\n"),
            ("p&#x430;y", "<p>p⟨U+0430⟩y</p>\n"),
            ("p*\u{430}*y", "<p>p<em>⟨U+0430⟩</em>y</p>\n"),
            ("`p\u{430}y` мир", "<p><code>p⟨U+0430⟩y</code> мир</p>\n"),
            (
                "[a](https://p\u{430}y.example)",
                "<p>a <span class=\"dim\">(https://p⟨U+0430⟩y.example)</span></p>\n",
            ),
            (
                "a\n\nмир\n\n- b\n- мир",
                "<p>a</p>\n<p>мир</p>\n<ul><li>b</li>\n<li>мир</li>\n</ul>\n",
            ),
            ("a\nмир", "<p>a\nмир</p>\n"),
        ] {
            assert_eq!(html(markdown), shown);
        }
    }

    /// UI-5, S-48: no tag, no attribute and no address that the text brings becomes one of the page's.
    #[test]
    fn nothing_of_the_text_becomes_markup() {
        const OURS: [&str; 18] = [
            "p",
            "h3",
            "h4",
            "h5",
            "blockquote",
            "ol",
            "ul",
            "li",
            "em",
            "strong",
            "s",
            "table",
            "thead",
            "tr",
            "td",
            "pre",
            "code",
            "br",
        ];
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<!-- hidden -->",
            "[a](javascript:alert(1))",
            "[a](JaVaScRiPt:alert(1))",
            "[a](data:text/html,<script>alert(1)</script>)",
            "[a](https://x.example/\"onmouseover=\"alert(1))",
            "![a](https://x.example/pixel.png)",
            "![a](javascript:alert(1) \"onerror=alert(1)\")",
            "```\"><script>alert(1)</script>\nx\n```",
            "<a href=\"javascript:alert(1)\">x</a>",
            "`<svg/onload=alert(1)>`",
            "<https://x.example/><script>",
            "<javascript:alert(1)>",
            "[a]: javascript:alert(1)\n\n[a]",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "\u{202e}<b>\u{200b}",
            "&#x202e;&#8203;",
            "[a](https://x.example/&#x202e;)",
        ] {
            let html = html(hostile);
            for tag in html.split('<').skip(1) {
                let bare = tag.strip_prefix('/').unwrap_or(tag);
                let is_bare = OURS.iter().any(|name| bare.starts_with(&format!("{name}>")));
                let is_dressed = ["a>", "span class=\"dim\">", "span>", "pre tabindex=\"0\">"];
                let is_dressed = is_dressed.iter().any(|start| bare.starts_with(start));
                // A link has its address and nothing after it.
                let link = bare.strip_prefix("a rel=\"noreferrer noopener nofollow\" href=\"http");
                let is_link = link.is_some_and(|rest| {
                    let address = rest.split_once('"');
                    address.is_some_and(|(_, after)| after.starts_with('>'))
                });
                assert!(is_bare || is_dressed || is_link, "{hostile}: <{tag} in {html}");
            }
            assert!(!html.contains('\u{202e}') && !html.contains('\u{200b}'), "{html}");
        }
    }
}
