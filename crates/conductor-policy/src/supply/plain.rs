//! Tells a version that the usual registry is asked for from everything else that stands where a version is expected.
//!
//! This module does not know which registry is the usual one, nor whether a version exists.

/// Words that stand for a version and name no place.
const WORDS: [&str; 4] = ["any", "*", "latest", "workspace"];

/// Tells whether what a manifest or a lock file says of a dependency is a version, or a range of them, and nothing else. What
/// names a place (a repository, a path, an address, another registry), another package, or anything unknown is not plain.
pub fn is_plain(version: &str) -> bool {
    let mut parts = version
        .split([' ', ',', '|'])
        .filter(|part| !part.is_empty())
        .peekable();
    WORDS.contains(&version) || (parts.peek().is_some() && parts.all(is_number) && has_number(version))
}

fn has_number(version: &str) -> bool {
    version.contains(|letter: char| letter.is_ascii_digit() || letter == '*')
}

/// Tells whether a part is a number of a version, with what says how it is compared, or only the latter.
fn is_number(part: &str) -> bool {
    let number = part.trim_start_matches(['^', '~', '<', '>', '=', '!']);
    if number.is_empty() || part == "-" {
        return true;
    }
    let bare = number.strip_prefix('v').unwrap_or(number);
    let is_begun = bare.starts_with(|letter: char| letter.is_ascii_digit() || letter == '*');
    let is_made_of_numbers = number
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '+' | '*' | '_' | '!'));
    // A name of an archive is a file beside the manifest.
    let lower = number.to_ascii_lowercase();
    let is_archive = [".tgz", ".tar", ".gz", ".zip", ".whl"]
        .iter()
        .any(|end| lower.ends_with(end));
    is_begun && is_made_of_numbers && !is_archive
}
