//! Keeps the beginning and the end of an output of any length, in bounded memory, and marks what is missing (EXEC-7).
//!
//! This module does not know what printed it.

use std::collections::VecDeque;

/// The beginning and the end of an output.
#[derive(Debug)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_room: usize,
    tail_room: usize,
    left_out: u64,
}

impl Kept {
    /// Keeps at most `limit` bytes, half of them from the end; the mark comes on top.
    pub(crate) fn new(limit: usize) -> Self {
        let head_room = limit / 2;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_room,
            tail_room: limit - head_room,
            left_out: 0,
        }
    }

    /// Takes what was printed next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_room - self.head.len()));
        self.head.extend_from_slice(first);
        let (lost, newest) = rest.split_at(rest.len().saturating_sub(self.tail_room));
        let overflow = (self.tail.len() + newest.len()).saturating_sub(self.tail_room);
        self.tail.drain(..overflow);
        self.tail.extend(newest);
        self.left_out += (lost.len() + overflow) as u64;
    }

    /// Returns what was kept, and whether anything was left out.
    pub(crate) fn finish(self) -> (Vec<u8>, bool) {
        let mut output = self.head;
        if self.left_out > 0 {
            output.extend_from_slice(
                format!("\n[… {} bytes of output left out …]\n", self.left_out).as_bytes(),
            );
        }
        output.extend(self.tail);
        (output, self.left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, pushes: &[&str], expected: &str, truncated: bool) {
        let mut kept = Kept::new(limit);
        for push in pushes {
            kept.push(push.as_bytes());
            assert!(kept.head.len() + kept.tail.len() <= limit);
        }
        let (output, cut) = kept.finish();
        assert_eq!(
            (String::from_utf8(output).unwrap().as_str(), cut),
            (expected, truncated),
            "{limit} {pushes:?}"
        );
    }

    /// EXEC-7: never lost in part silently.
    #[test]
    fn the_ends_are_kept_and_the_gap_is_marked() {
        check(8, &[], "", false);
        check(8, &["abcdefgh"], "abcdefgh", false);
        check(8, &["abc", "def", "gh"], "abcdefgh", false);
        check(
            8,
            &["abcdefghi"],
            "abcd\n[… 1 bytes of output left out …]\nfghi",
            true,
        );
        check(
            8,
            &["abcd", "e", "f", "g", "h", "i", "j"],
            "abcd\n[… 2 bytes of output left out …]\nghij",
            true,
        );
        check(
            8,
            &["ab", &"x".repeat(1000), "yz"],
            "abxx\n[… 996 bytes of output left out …]\nxxyz",
            true,
        );
        check(1, &["ab"], "\n[… 1 bytes of output left out …]\nb", true);
        check(0, &["ab"], "\n[… 2 bytes of output left out …]\n", true);
    }
}
