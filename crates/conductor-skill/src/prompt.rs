//! The listing of skills for an agent's prompt, in the public XML form.
//!
//! Its words are the domain's, because an agent of a run reads the same. This module does not know which agent reads it.

use conductor_domain::skill::{Told, listing};

use crate::manifest::Manifest;

/// Lists skills.
pub fn prompt(skills: &[Manifest]) -> String {
    let told: Vec<Told<'_>> = skills
        .iter()
        .map(|skill| Told {
            name: &skill.name,
            description: &skill.description,
            location: skill.file.display().to_string(),
        })
        .collect();
    listing(&told)
}
