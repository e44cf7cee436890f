//! Finds where one of many short words stands, at a few instructions a byte.
//!
//! The first three bytes of a place are hashed, and only where a word has the same hash are words compared. An automaton
//! must have taken one byte before it can look at the next; here nothing waits, which makes it several times as fast on
//! ordinary text, and as linear, because words are short. This module does not know what a word stands for.

/// How a word is compared with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Letter by letter.
    Exact,
    /// Small letters stand for large ones, too.
    Any,
}

/// So many places are looked at in one go.
const STRIDE: usize = 8;
/// What is read behind the last place: four bytes are hashed, of which the last has no say.
const AHEAD: usize = 3;
/// The table fits into the nearest cache, and some hundred words leave it nearly empty.
const BITS: u32 = 14;

/// Many words, ready to be looked for.
pub(super) struct Sieve {
    /// For each hash, one more than the place in `buckets` of the words that have it; zero for most.
    table: Box<[u8; 1 << BITS]>,
    buckets: Vec<Vec<Word>>,
}

struct Word {
    number: usize,
    bytes: &'static [u8],
    case: Case,
}

impl Word {
    fn begins(&self, text: &[u8]) -> bool {
        let there = text.get(..self.bytes.len());
        there.is_some_and(|there| match self.case {
            Case::Exact => there == self.bytes,
            Case::Any => there.eq_ignore_ascii_case(self.bytes),
        })
    }
}

impl Sieve {
    /// Makes a sieve of words of at least three bytes each, which are called by their number in this order.
    pub(super) fn new(words: impl IntoIterator<Item = (&'static str, Case)>) -> Self {
        let mut table = Box::new([0_u8; 1 << BITS]);
        let mut buckets = Vec::<Vec<Word>>::new();
        for (number, (word, case)) in words.into_iter().enumerate() {
            let bytes = word.as_bytes();
            let [a, b, c] = *bytes.first_chunk().expect("no word is shorter; a test looks");
            let entry = &mut table[hash([a, b, c, 0])];
            if *entry == 0 {
                buckets.push(Vec::new());
                *entry =
                    u8::try_from(buckets.len()).expect("fewer beginnings than that; every test relies on it");
            }
            buckets[usize::from(*entry) - 1].push(Word { number, bytes, case });
        }
        Self { table, buckets }
    }

    /// Calls `each` with the number of a word and the place where it begins, for all that stand in the text, in the
    /// order of their places.
    pub(super) fn find(&self, text: &[u8], mut each: impl FnMut(usize, usize)) {
        let mut done = 0;
        while let Some(block) = text[done..].first_chunk() {
            self.sift(block, |place, bucket| {
                compare(bucket, text, done + place, &mut each);
            });
            done += STRIDE;
        }
        // What is left is shorter than a block: behind its places there is no room for a word.
        let rest = &text[done..];
        let mut block = [0; STRIDE + AHEAD];
        block[..rest.len()].copy_from_slice(rest);
        self.sift(&block, |place, bucket| {
            compare(bucket, text, done + place, &mut each);
        });
    }

    /// Calls `each` with every place of a block where a word of a bucket may begin.
    fn sift(&self, block: &[u8; STRIDE + AHEAD], mut each: impl FnMut(usize, &[Word])) {
        // A byte for each place; nearly always all of them are zero.
        let mut entries = (0..STRIDE).fold(0, |entries, place| {
            // Taken as a whole: byte by byte, the compiler makes four loads of it.
            let head = block[place..].first_chunk().copied().unwrap_or_default();
            entries | u64::from(self.table[hash(head)]) << (8 * place)
        });
        while entries != 0 {
            let place = entries.trailing_zeros() / 8;
            let entry = entries >> (8 * place) & 0xFF;
            entries ^= entry << (8 * place);
            each(place as usize, &self.buckets[entry as usize - 1]);
        }
    }
}

/// Stands apart, so that what is done for every byte stays small.
#[inline(never)]
fn compare(bucket: &[Word], text: &[u8], place: usize, each: &mut impl FnMut(usize, usize)) {
    let rest = text.get(place..).unwrap_or_default();
    for word in bucket {
        if word.begins(rest) {
            each(word.number, place);
        }
    }
}

/// Mixes the first three bytes of a place, with small letters for large ones, into a place of the table.
fn hash(head: [u8; 4]) -> usize {
    // The last byte stands highest, where the product's lower eight zeros push it out.
    const SPREAD: u32 = 0x9E_37_79_00;
    ((u32::from_le_bytes(head) | 0x20_20_20_20).wrapping_mul(SPREAD) >> (u32::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [(&str, Case); 5] = [
        ("key", Case::Any),
        ("Token", Case::Exact),
        ("tok", Case::Any),
        ("://", Case::Exact),
        ("keyring", Case::Any),
    ];

    /// The same by comparing every word at every place.
    fn slowly(text: &[u8]) -> Vec<(usize, usize)> {
        let mut found = vec![];
        for place in 0..text.len() {
            for (number, (word, case)) in WORDS.iter().enumerate() {
                let is_there = match (text.get(place..place + word.len()), case) {
                    (Some(there), Case::Exact) => there == word.as_bytes(),
                    (Some(there), Case::Any) => there.eq_ignore_ascii_case(word.as_bytes()),
                    (None, _) => false,
                };
                if is_there {
                    found.push((number, place));
                }
            }
        }
        found
    }

    #[test]
    fn every_word_is_found_wherever_a_block_or_the_text_ends() {
        let sieve = Sieve::new(WORDS.to_vec());
        for length in 0..3 * STRIDE {
            for (number, (word, _)) in WORDS.iter().enumerate() {
                let text = ["-".repeat(length), (*word).to_owned(), "-".repeat(length % 7)].concat();
                let mut found = vec![];
                sieve.find(text.as_bytes(), |word, place| found.push((word, place)));
                found.sort_by_key(|(word, place)| (*place, *word));
                assert_eq!(found, slowly(text.as_bytes()), "{text}");
                assert!(found.contains(&(number, length)), "{text}");
            }
        }
    }

    #[test]
    fn case_counts_only_where_it_was_said() {
        let sieve = Sieve::new(WORDS.to_vec());
        let text = b"KEY keY TOKEN token Token tOk :// kez KEYRING ke";
        let mut found = vec![];
        sieve.find(text, |word, place| found.push((word, place)));
        found.sort_by_key(|(word, place)| (*place, *word));
        assert_eq!(found, slowly(text));
        assert_eq!(found.len(), 10);
    }
}
