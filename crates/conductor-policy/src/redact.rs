//! Takes secrets out of text, whole or as it streams by, and leaves a mark where each stood (SEC-3).
//!
//! A stream gives the same bytes as the whole text, wherever its chunks are cut; what it holds back is bounded. Our own
//! digests, commit ids and content addresses stay. This module does not know where a text goes.

use crate::secret::live::LiveSecrets;
use crate::secret::{self, CONTEXT, REACH, Sighting, armour};

/// What stands where a secret stood; itself never taken for one.
pub const MARK: &str = "[redacted]";

/// Takes secrets out of text. If repeated: nothing more changes.
#[derive(Debug, Clone)]
pub struct Redactor {
    live: LiveSecrets,
}

impl Redactor {
    /// Makes a redactor that knows these secrets word for word, besides every form.
    pub fn new(live: LiveSecrets) -> Self {
        Self { live }
    }

    /// Returns the text without its secrets.
    pub fn redact(&self, text: &str) -> String {
        let bytes = self.redact_bytes(text.as_bytes());
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Returns the bytes without their secrets.
    pub fn redact_bytes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for Sighting { range, .. } in self.sight(text) {
            out.extend_from_slice(&text[done..range.start]);
            out.extend_from_slice(MARK.as_bytes());
            done = range.end;
        }
        out.extend_from_slice(&text[done..]);
        out
    }

    /// Tells whether a secret of this instance itself stands in the text (S-31).
    pub fn has_live_secret(&self, text: &[u8]) -> bool {
        self.live.sight(text).next().is_some()
    }

    /// Begins a stream.
    pub fn stream(&self) -> Stream<'_> {
        Stream {
            redactor: self,
            held: Vec::new(),
            done: 0,
            is_marked: false,
            key_left: None,
        }
    }

    pub(crate) fn sight(&self, text: &[u8]) -> Vec<Sighting> {
        let mut found: Vec<Sighting> = self.live.sight(text).collect();
        found.extend(secret::sight(text));
        secret::merge(found)
    }

    /// Finds what stands in text as if nothing in it were a private key.
    pub(crate) fn sight_in_keys(&self, text: &[u8]) -> Vec<Sighting> {
        let mut found: Vec<Sighting> = self.live.sight(text).collect();
        found.extend(secret::sight_in_keys(text));
        secret::merge(found)
    }
}

/// A text that passes in chunks. It holds back an unfinished line, at most some 12 KiB of it, or the longest live secret.
#[derive(Debug)]
pub struct Stream<'a> {
    redactor: &'a Redactor,
    /// What stood before the undecided part, as context, then that part.
    held: Vec<u8>,
    /// Where the undecided part begins.
    done: usize,
    /// Whether a mark that has been given out stands for what is right before it; what overlaps that adds none.
    is_marked: bool,
    /// Inside a private key whose mark has been given out: how much longer it can be, but for the rest of its last line.
    key_left: Option<usize>,
}

/// What is not followed by so much, or by the end of its line, may still turn out to be a secret.
const HOLD: usize = REACH + 64;
/// How much that has been given out is kept as context for what follows.
const KEEP: usize = 4 * CONTEXT;
/// A line without end is looked at in steps of this size, not at every byte.
const STEP: usize = 4 * 1024;

impl Stream<'_> {
    /// Takes a chunk and returns what can be shown by now.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let mut out = Vec::new();
        self.advance(&mut out, Ending::More);
        out
    }

    /// Gives out what is held back, though more may come: what has waited long enough is shown. A secret whose mark has
    /// been given out goes on to be one; one that was not known yet may be shown in parts.
    pub fn flush(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.advance(&mut out, Ending::Pause);
        out
    }

    /// Ends the stream and returns the rest.
    pub fn finish(mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.advance(&mut out, Ending::Last);
        out
    }

    fn advance(&mut self, out: &mut Vec<u8>, ending: Ending) {
        while self.skip_key(ending) && self.give(out, ending) {}
        let is_line = self.done.checked_sub(1).and_then(|at| self.held.get(at)) == Some(&b'\n');
        let kept = match (self.key_left.is_none() && is_line, self.is_marked) {
            // What is found in a line rests on that line only.
            (true, _) => 0,
            (false, true) => REACH + KEEP,
            (false, false) => KEEP,
        };
        let forgotten = self.done.saturating_sub(kept);
        self.held.drain(..forgotten);
        self.done -= forgotten;
    }

    /// Skips the rest of a key; tells whether its end has been reached.
    fn skip_key(&mut self, ending: Ending) -> bool {
        let Some(left) = self.key_left else { return true };
        let body = &self.held[self.done..];
        let (within, beyond) = body.split_at(left.min(body.len()));
        let reached = armour::foot(within)
            .or_else(|| memchr::memchr(b'\n', beyond).map(|length| within.len() + length))
            .or_else(|| (ending == Ending::Last).then_some(body.len()));
        let skipped = reached.unwrap_or(body.len().saturating_sub(armour::LONGEST_FOOT));
        self.done += skipped;
        self.key_left = reached.is_none().then_some(left.saturating_sub(skipped));
        if reached.is_some() {
            // As behind every key.
            self.held.drain(..self.done);
            self.done = 0;
            self.is_marked = false;
        }
        reached.is_some()
    }

    /// Gives out what is decided; tells whether a key has begun that must be skipped.
    fn give(&mut self, out: &mut Vec<u8>, ending: Ending) -> bool {
        let end = self.decided(ending);
        if end <= self.done {
            return false;
        }
        let mut behind_keys = 0;
        for Sighting { range, kind, .. } in self.redactor.sight(&self.held) {
            let key = Some(kind).filter(|kind| *kind == armour::KIND);
            // The head of a key may have been given out before anybody could know it; its body has not.
            let body = key
                .and_then(|_| armour::body_of(&self.held, range.start))
                .filter(|body| *body >= self.done);
            let goes_on = range.start < self.done;
            if range.end <= self.done || (goes_on && !self.is_marked && body.is_none()) {
                continue;
            }
            if range.start >= end {
                break;
            }
            if !goes_on {
                out.extend_from_slice(&self.held[self.done..range.start]);
            }
            if !(goes_on && self.is_marked) {
                out.extend_from_slice(MARK.as_bytes());
            }
            self.is_marked = true;
            let Some(body) = body else {
                self.done = range.end.min(end);
                continue;
            };
            let limit = range.start + armour::LONGEST;
            if armour::foot(&self.held[body..range.end.min(limit)]).is_none() {
                self.done = body;
                self.key_left = Some(limit - body);
                break;
            }
            // A key whose foot is there is decided, however many lines it takes.
            self.done = range.end;
            behind_keys = range.end;
            self.is_marked = false;
        }
        if self.key_left.is_none() && self.done < end {
            out.extend_from_slice(&self.held[self.done..end]);
            self.done = end;
            self.is_marked = false;
        }
        // What stood in a key must not be taken for the beginning of something else.
        self.held.drain(..behind_keys);
        self.done -= behind_keys;
        self.key_left.is_some()
    }

    /// Returns up to where nothing that may still come can change what is found.
    fn decided(&self, ending: Ending) -> usize {
        if ending != Ending::More {
            return self.held.len();
        }
        let line = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        let far = self
            .held
            .len()
            .saturating_sub(HOLD.max(self.redactor.live.longest()));
        if far >= self.done + STEP {
            line.max(far)
        } else {
            line
        }
    }
}

/// Whether a stream has more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    More,
    /// It may have, but what is there has waited long enough. The rest of a key is no word that waits.
    Pause,
    Last,
}
