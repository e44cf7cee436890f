//! Whatever git is made to say of two trees, it is refused or read as changes with a path and a side, and shown without
//! a control character (S-10).

use conductor_git::read_raw_diff;

/// The input is what `diff-tree --raw -z` says, then after `NUL NUL` what `ls-tree -z --name-only` says.
pub(crate) fn check(input: &[u8]) {
    let cut = input.windows(2).position(|pair| pair == [0, 0]);
    let (raw, names) = input.split_at(cut.map_or(input.len(), |at| at + 2));
    let Ok((changes, shown)) = read_raw_diff(raw, names) else {
        return;
    };
    for change in &changes {
        assert!(!change.path.is_empty() && !change.path.contains(&0));
    }
    assert!(
        shown
            .chars()
            .all(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')),
        "{shown:?}"
    );
}
