//! Whatever passes, a stream shows what the whole text shows, no live secret is left, and nothing panics (SEC-3).

use std::sync::LazyLock;

use conductor_policy::redact::Redactor;
use conductor_policy::secret::live::LiveSecrets;
use conductor_policy::secret::scan;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    Redactor::new(LiveSecrets::new([
        "hunter2-hunter2",
        "p\u{e4}$$/w\u{f6}rd \"quoted\"",
    ]))
});

/// The first byte says how the rest is cut.
pub(crate) fn check(input: &[u8]) {
    let Some((step, text)) = input.split_first() else {
        return;
    };
    let whole = REDACTOR.redact_bytes(text);
    let mut stream = REDACTOR.stream();
    let mut shown = Vec::new();
    for chunk in text.chunks(usize::from(*step) + 1) {
        shown.extend(stream.push(chunk));
    }
    shown.extend(stream.finish());
    assert!(shown == whole, "a stream shows something else");
    assert!(!REDACTOR.has_live_secret(&whole), "a live secret is left");
    for sighting in scan(text) {
        assert!(sighting.range.end <= text.len() && !sighting.range.is_empty());
    }
}
