//! Looks into a container with one constant script: what lies at some paths, by content hash.
//!
//! Paths are arguments of the script and never part of its text, so nothing in them is ever run. The answer is hostile
//! input: whatever cannot be understood counts as changed. This module does not know what the paths are for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::tree::{Listing, MARKER, Mark};

/// The script found no program that it needs.
pub(super) const NO_TOOLS: i32 = 87;
/// The script could not make the directory.
pub(super) const NO_DIRECTORY: i32 = 73;

/// Arguments: the marker's name, a directory to make and a left-over to remove (or nothing), and the paths to look at.
pub(super) const LOOK: &str = r#"
marker=$1 make=$2 stale=$3
shift 3
command -v sha256sum >/dev/null && command -v find >/dev/null && command -v readlink >/dev/null || exit 87
if [ -n "$make" ]; then mkdir -p -- "$make" || exit 73; fi
if [ -n "$stale" ]; then rm -rf -- "$stale" || exit 73; fi
echo "@me $(id -u) $(id -g)"
echo "@home $HOME"
for path do
  if [ -L "$path" ]; then echo "@link $(readlink -- "$path")"
  elif [ -d "$path" ]; then echo "@directory"
  elif [ -e "$path" ]; then echo "@other"
  else echo "@absent"
  fi
  if [ -d "$path" ] && [ -f "$path/$marker" ] && cd -- "$path"; then
    echo "@marker $(cat -- "$marker")"
    echo "@files"
    find . -type f -exec sha256sum {} +
    echo "@executable"
    find . -type f -perm -100
    echo "@strange"
    find . ! -type f ! -type d
    cd /
  fi
done
echo "@end"
"#;

/// Arguments: what is new, its place, and where the old version stands meanwhile.
pub(super) const SWAP: &str = r#"
new=$1 place=$2 old=$3
rm -rf -- "$old" || exit
if [ -e "$place" ] || [ -L "$place" ]; then mv -- "$place" "$old" || exit; fi
if ! mv -- "$new" "$place"; then
  [ ! -e "$old" ] || mv -- "$old" "$place"
  exit 1
fi
rm -rf -- "$old"
"#;

/// Arguments: the place, and where it stands until it is gone.
pub(super) const TAKE: &str = r#"
place=$1 old=$2
rm -rf -- "$old" && mv -- "$place" "$old" && rm -rf -- "$old"
"#;

/// What the script says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Who works there.
    pub(super) user: Option<(u64, u64)>,
    /// The home directory there.
    pub(super) home: Option<PathBuf>,
    /// What lies at the paths, in their order.
    pub(super) paths: Vec<Seen>,
}

/// What lies at one path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) marker: Option<String>,
    pub(super) listing: Listing,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Absent,
    Directory,
    Link(String),
    Other,
}

/// Reads the script's answer; an answer that does not end is none.
pub(super) fn parse(answer: &str, paths: usize) -> Option<Survey> {
    let mut survey = Survey::default();
    let mut section = "";
    let mut has_ended = false;
    for line in answer.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let kind = match word {
            "@absent" => Some(Kind::Absent),
            "@directory" => Some(Kind::Directory),
            "@other" => Some(Kind::Other),
            "@link" => Some(Kind::Link(rest.to_owned())),
            _ => None,
        };
        if let Some(kind) = kind {
            survey.paths.push(Seen {
                kind,
                ..Seen::default()
            });
            continue;
        }
        match (word, survey.paths.last_mut()) {
            ("@me", _) => {
                let numbers = rest.split_once(' ');
                survey.user =
                    numbers.and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
            }
            ("@home", _) => survey.home = Some(PathBuf::from(rest)).filter(|home| home.is_absolute()),
            ("@end", _) => has_ended = true,
            ("@marker", Some(seen)) => seen.marker = Some(rest.to_owned()),
            ("@files" | "@executable" | "@strange", Some(_)) => {
                section = match word {
                    "@files" => "files",
                    "@executable" => "executable",
                    _ => "strange",
                };
            }
            (_, Some(seen)) => note(&mut seen.listing.0, section, line),
            (_, None) => {}
        }
    }
    (has_ended && survey.paths.len() == paths).then_some(survey)
}

fn note(listing: &mut BTreeMap<String, Mark>, section: &str, line: &str) {
    let inner = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
    match section {
        "files" => {
            // Coreutils begin a line whose name they had to escape with a backslash; no skill has such a name.
            let hash = line
                .get(..64)
                .and_then(|hash| <[u8; 32]>::try_from(hex::decode(hash).ok()?).ok());
            let path = line.get(64..).map(|rest| rest.trim_start_matches([' ', '*']));
            match (hash, path) {
                (Some(_), Some(path)) if inner(path) == MARKER => {}
                (Some(sha256), Some(path)) => {
                    let executable = false;
                    listing.insert(inner(path), Mark::File { executable, sha256 });
                }
                (None, _) | (_, None) => {
                    listing.insert(line.to_owned(), Mark::Other);
                }
            }
        }
        "executable" => {
            if let Some(Mark::File { executable, .. }) = listing.get_mut(&inner(line)) {
                *executable = true;
            }
        }
        _ => {
            listing.insert(inner(line), Mark::Other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container can answer what it likes; the worst is that a skill counts as changed.
    #[test]
    fn a_hostile_answer_is_no_answer_or_a_changed_skill() {
        assert_eq!(parse("", 0), None);
        assert_eq!(parse("@absent\n", 1), None, "it does not end");
        assert_eq!(parse("@absent\n@end\n", 2), None, "one is missing");
        let survey = parse(
            "@me 0 x\n@home ../..\n@directory\n@marker {}\n@files\nnonsense\n\\00\n@end\n",
            1,
        );
        let survey = survey.expect("an answer");
        assert_eq!((survey.user, survey.home.as_deref()), (None, None));
        assert_eq!(survey.paths[0].listing.0.len(), 2, "{survey:?}");
        assert!(
            survey.paths[0]
                .listing
                .0
                .values()
                .all(|mark| *mark == Mark::Other)
        );
    }
}
