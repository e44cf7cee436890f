//! The listing of skills for an agent's prompt, in the public XML form.
//!
//! This module does not know which agent reads it.

use crate::manifest::Manifest;

/// Lists skills; what they say about themselves is text there, never markup.
pub fn prompt(skills: &[Manifest]) -> String {
    let mut text = "<available_skills>\n".to_owned();
    for skill in skills {
        text.push_str(&format!(
            "<skill>\n<name>\n{}\n</name>\n<description>\n{}\n</description>\n<location>\n{}\n</location>\n</skill>\n",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.file.display().to_string())
        ));
    }
    text.push_str("</available_skills>");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#x27;")
}
