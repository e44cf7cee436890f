//! Labels a skill before it is installed: what in it could run, and whether its license lets one use it freely.
//!
//! A label is a warning for people, found by name and first bytes; it proves nothing about what has none. This module
//! does not know what people decide.

use serde::{Deserialize, Serialize};

use crate::tree::{File, Tree};

/// Something in a skill that could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// A script for a Unix shell.
    ShellScript,
    /// A Python program.
    PythonScript,
    /// A program for another interpreter.
    OtherScript,
    /// A file that may be executed.
    Executable,
    /// Machine code, or bytes that nobody can read.
    Binary,
}

/// How freely a skill may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum License {
    /// A known license that asks for little.
    Permissive,
    /// A known license that asks for more, or forbids.
    NonPermissive,
    /// Nothing that we recognise.
    Unknown,
}

/// What is said about a skill before it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// How freely it may be used.
    pub license: License,
    /// What the license says it is, as found.
    pub license_hint: Option<String>,
    /// What could run, each with the files.
    pub risks: Vec<Labelled>,
}

/// One label and the files that earned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Labelled {
    /// The label.
    pub risk: Risk,
    /// The files.
    pub files: Vec<String>,
}

impl Risk {
    /// The word on screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::ShellScript => "shell script",
            Self::PythonScript => "Python program",
            Self::OtherScript => "program for an interpreter",
            Self::Executable => "executable file",
            Self::Binary => "binary file",
        }
    }

    const ALL: [Self; 5] = [
        Self::ShellScript,
        Self::PythonScript,
        Self::OtherScript,
        Self::Executable,
        Self::Binary,
    ];
}

/// Labels a tree; `said` is the license that its manifest names.
pub fn labels(tree: &Tree, said: Option<&str>) -> Labels {
    let risks = Risk::ALL
        .into_iter()
        .filter_map(|risk| {
            let files: Vec<String> = tree
                .files()
                .iter()
                .filter(|(path, file)| risks(path, file).contains(&risk))
                .map(|(path, _)| path.clone())
                .collect();
            (!files.is_empty()).then_some(Labelled { risk, files })
        })
        .collect();
    let (license, license_hint) = license(tree, said);
    Labels {
        license,
        license_hint,
        risks,
    }
}

/// Tells what of a file could run.
pub fn risks(path: &str, file: &File) -> Vec<Risk> {
    let mut risks = Vec::new();
    let extension = path
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension)
        .to_ascii_lowercase();
    let script = match extension.as_str() {
        "sh" | "bash" | "zsh" | "fish" | "ksh" => Some(Risk::ShellScript),
        "py" | "pyw" => Some(Risk::PythonScript),
        "js" | "mjs" | "cjs" | "ts" | "rb" | "pl" | "php" | "lua" | "ps1" | "bat" | "cmd" | "vbs"
        | "applescript" | "scpt" => Some(Risk::OtherScript),
        _ => interpreter(&file.content),
    };
    risks.extend(script);
    if file.executable {
        risks.push(Risk::Executable);
    }
    if is_binary(&extension, &file.content) {
        risks.push(Risk::Binary);
    }
    risks
}

/// Reads the interpreter from a first line such as `#!/usr/bin/env python3`.
fn interpreter(content: &[u8]) -> Option<Risk> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut programs = line
        .split_whitespace()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = programs.find(|program| *program != "env" && !program.starts_with('-'))?;
    Some(if program.starts_with("python") {
        Risk::PythonScript
    } else if matches!(program, "sh" | "bash" | "dash" | "zsh" | "fish" | "ksh") {
        Risk::ShellScript
    } else {
        Risk::OtherScript
    })
}

/// Pictures, fonts and documents hold any byte and run nowhere.
fn is_binary(extension: &str, content: &[u8]) -> bool {
    const HARMLESS: &[&str] = &[
        "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "tiff", "pdf", "ttf", "otf", "woff", "woff2",
        "docx", "xlsx", "pptx", "mp3", "mp4", "wav",
    ];
    const CODE: &[&[u8]] = &[
        b"\x7fELF",
        b"MZ",
        b"\xfe\xed\xfa",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"\0asm",
    ];
    const LOOKED_AT: usize = 8 * 1024;
    let is_code = CODE.iter().any(|magic| content.starts_with(magic));
    let is_text = !content[..content.len().min(LOOKED_AT)].contains(&0);
    is_code || (!is_text && !HARMLESS.contains(&extension))
}

/// Judges what the manifest names first, then the text of a license file.
fn license(tree: &Tree, said: Option<&str>) -> (License, Option<String>) {
    if let Some(said) = said {
        let known = judge_name(said);
        if known != License::Unknown {
            return (known, Some(said.to_owned()));
        }
    }
    let text = tree
        .files()
        .iter()
        .filter(|(path, _)| !path.contains('/'))
        .find(|(path, _)| {
            let path = path.to_ascii_lowercase();
            ["license", "licence", "copying", "unlicense"]
                .iter()
                .any(|name| path.starts_with(name))
        })
        .map(|(_, file)| String::from_utf8_lossy(&file.content).into_owned());
    match text {
        Some(text) => {
            let first = text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty())
                .map(str::to_owned);
            (judge_text(&text), said.map(str::to_owned).or(first))
        }
        None => (License::Unknown, said.map(str::to_owned)),
    }
}

fn judge_name(said: &str) -> License {
    const PERMISSIVE: &[&str] = &[
        "mit",
        "mit-0",
        "apache-2.0",
        "bsd-2-clause",
        "bsd-3-clause",
        "isc",
        "0bsd",
        "unlicense",
        "cc0-1.0",
        "zlib",
        "bsl-1.0",
        "cc-by-4.0",
    ];
    const OTHER: &[&str] = &[
        "gpl",
        "agpl",
        "lgpl",
        "mpl",
        "sspl",
        "busl",
        "proprietary",
        "cc-by-nc",
        "cc-by-sa",
        "eupl",
    ];
    let said = said.to_ascii_lowercase();
    let words: Vec<&str> = said
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';'))
        .filter(|word| !word.is_empty())
        .collect();
    if words
        .iter()
        .any(|word| OTHER.iter().any(|other| word.starts_with(other)))
    {
        // `MIT OR GPL-3.0` leaves the choice.
        let is_choice = words.contains(&"or") && words.iter().any(|word| PERMISSIVE.contains(word));
        return if is_choice {
            License::Permissive
        } else {
            License::NonPermissive
        };
    }
    if words.iter().any(|word| PERMISSIVE.contains(word)) || said.starts_with("apache license") {
        return License::Permissive;
    }
    License::Unknown
}

fn judge_text(text: &str) -> License {
    let text = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&[
        "gnu general public license",
        "gnu affero general public",
        "gnu lesser general public",
        "mozilla public license",
        "server side public license",
        "business source license",
        "all rights reserved. proprietary",
        "noncommercial",
    ]) {
        License::NonPermissive
    } else if has(&[
        "permission is hereby granted, free of charge",
        "apache license version 2.0",
        "redistribution and use in source and binary forms",
        "permission to use, copy, modify, and/or distribute",
        "this is free and unencumbered software",
        "cc0 1.0 universal",
    ]) {
        License::Permissive
    } else {
        License::Unknown
    }
}
