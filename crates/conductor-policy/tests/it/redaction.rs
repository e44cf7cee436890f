//! Redaction of live secrets in every shape, in streams however they are cut, and of hostile text in bounded time.

use conductor_policy::redact::{MARK, Redactor};
use conductor_policy::secret::live::LiveSecrets;
use proptest::prelude::*;

use crate::corpus::{decoys, planted};

const LIVE: [&str; 5] = [
    "hunter2-hunter2",
    "hunter2-hunter2-long",
    "pä$$/wörd \"quoted\"",
    "-----BEGIN OTHER THING-----\nfirst-line-of-it-0123\nsecond-line-of-it-4567\n",
    "short",
];

fn redactor() -> Redactor {
    Redactor::new(LiveSecrets::new(LIVE))
}

fn streamed(redactor: &Redactor, text: &[u8], cuts: &[usize]) -> (Vec<u8>, usize) {
    let mut stream = redactor.stream();
    let (mut out, mut given, mut most_held) = (Vec::new(), 0, 0);
    let mut at = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        let chunk = &text[at.min(text.len())..cut.clamp(at, text.len())];
        at = at.max(cut.min(text.len()));
        let shown = stream.push(chunk);
        given += shown.len();
        out.extend(shown);
        most_held = most_held.max(at.saturating_sub(given));
    }
    out.extend(stream.finish());
    (out, most_held)
}

/// SEC-3.
#[test]
fn a_live_secret_is_found_in_every_shape_that_it_can_take() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let redactor = redactor();
    let secret = LIVE[2];
    let json = serde_json::to_string(secret).expect("a string");
    let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    for shape in [
        secret.to_owned(),
        json[1..json.len() - 1].to_owned(),
        secret
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect(),
        STANDARD.encode(secret),
        URL_SAFE.encode(secret),
        STANDARD.encode(format!("u:{secret}")),
        STANDARD.encode(format!("us:{secret}")),
        STANDARD.encode(format!("use:{secret}:and more")),
        hex.clone(),
        hex.to_uppercase(),
    ] {
        let shown = redactor.redact(&format!("a {shape} z"));
        assert!(shown.contains(MARK), "{shape} became {shown}");
        assert!(shown.len() < MARK.len() + 24, "{shape} left {shown}");
    }
    assert_eq!(redactor.redact("x hunter2-hunter2-long y"), format!("x {MARK} y"));
    assert_eq!(
        redactor.redact("at first-line-of-it-0123."),
        format!("at {MARK}.")
    );
    assert_eq!(redactor.redact("a short word stays"), "a short word stays");
    assert!(redactor.has_live_secret(b"xhunter2-hunter2x") && !redactor.has_live_secret(b"hunter2"));
}

/// SEC-3: as writers of other languages escape it; every form was written down by hand, or by that language.
#[test]
fn a_live_secret_is_found_as_any_writer_escapes_it() {
    let redactor = Redactor::new(LiveSecrets::new(["<it's & (so)!*>/ä😀+k"]));
    for shape in [
        "<it's & (so)!*>/ä😀+k",
        "%3Cit%27s%20%26%20%28so%29%21%2A%3E%2F%C3%A4%F0%9F%98%80%2Bk",
        "%3cit%27s%20%26%20%28so%29%21%2a%3e%2f%c3%a4%f0%9f%98%80%2bk",
        "%3Cit%27s%20%26%20%28so%29%21%2A%3E/%C3%A4%F0%9F%98%80%2Bk",
        "%3cit%27s%20%26%20%28so%29%21%2a%3e/%c3%a4%f0%9f%98%80%2bk",
        "%3Cit%27s+%26+%28so%29%21%2A%3E%2F%C3%A4%F0%9F%98%80%2Bk",
        "%3Cit's%20%26%20(so)!*%3E%2F%C3%A4%F0%9F%98%80%2Bk",
        "%3Cit's%20&%20(so)!*%3E/%C3%A4%F0%9F%98%80+k",
        r"<it's & (so)!*>\/ä😀+k",
        r"<it's & (so)!*>/\u00e4\ud83d\ude00+k",
        r"<it's & (so)!*>\/\u00e4\ud83d\ude00+k",
        r"\u003cit's \u0026 (so)!*\u003e/ä😀+k",
        r"\u003cit\u0027s \u0026 (so)!*\u003e/\u00e4\ud83d\ude00+k",
        r"\u003Cit\u0027s \u0026 (so)!*\u003E/\u00E4\uD83D\uDE00\u002Bk",
    ] {
        assert_eq!(
            redactor.redact(&format!("a {shape} z")),
            format!("a {MARK} z"),
            "{shape}"
        );
    }
}

/// SEC-3: base64 that lines wrap at 76 or 64 columns, at each alignment; of `correct-horse/battery+staple~0123456789`
/// between other bytes, encoded elsewhere. What is left beside a break is too short to be of use.
#[test]
fn a_live_secret_is_found_in_wrapped_base64() {
    let redactor = Redactor::new(LiveSecrets::new(["correct-horse/battery+staple~0123456789"]));
    for (encoded, wrapped) in [
        (
            "GNvcnJlY3QtaG9yc2UvYmF0dGVyeStzdGFwbGV+MDEyMzQ1Njc4O",
            "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eGNvcnJlY3QtaG9yc2UvYmF0\n\
             dGVyeStzdGFwbGV+MDEyMzQ1Njc4OXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eQ==\n",
        ),
        (
            "jb3JyZWN0LWhvcnNlL2JhdHRlcnkrc3RhcGxlfjAxMjM0NTY3ODl",
            "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHhjb3JyZWN0LWhvcnNlL2Jh\n\
             dHRlcnkrc3RhcGxlfjAxMjM0NTY3ODl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXk=\n",
        ),
        (
            "Y29ycmVjdC1ob3JzZS9iYXR0ZXJ5K3N0YXBsZX4wMTIzNDU2Nzg5",
            "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4Y29ycmVjdC1ob3JzZS9i\n\
             YXR0ZXJ5K3N0YXBsZX4wMTIzNDU2Nzg5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5\n",
        ),
        (
            "Y29ycmVjdC1ob3JzZS9iYXR0ZXJ5K3N0YXBsZX4wMTIzNDU2Nzg5",
            "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4Y29ycmVjdC1ob3JzZS9iYXR0\n\
             ZXJ5K3N0YXBsZX4wMTIzNDU2Nzg5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5\neXl5\n",
        ),
    ] {
        let shown = redactor.redact(wrapped);
        assert_eq!(shown.matches(MARK).count(), 2, "{shown}");
        for left in encoded.as_bytes().windows(8) {
            let left = String::from_utf8_lossy(left);
            assert!(wrapped.replace('\n', "").contains(&*left), "{left}");
            assert!(!shown.contains(&*left), "{left} of {shown}");
        }
    }
}

/// SEC-3: a key is known by each of its lines, and what every key begins and ends with is no secret.
#[test]
fn the_head_of_a_live_key_is_not_a_secret_by_itself() {
    let body = "c29tZXRoaW5nIHRoYXQgaXMgbm8ga2V5IGF0IGFsbA+/";
    let key = format!("-----BEGIN OTHER THING-----\n{body}\n-----END OTHER THING-----\n");
    let redactor = Redactor::new(LiveSecrets::new([key.as_str()]));
    assert!(redactor.has_live_secret(body.as_bytes()));
    assert!(redactor.has_live_secret(key.as_bytes()));
    assert!(!redactor.has_live_secret(b"it begins with -----BEGIN OTHER THING-----"));
    assert!(!redactor.has_live_secret(b"and ends with -----END OTHER THING-----"));
    // Half of such a line is no such line: it may be all there is to a secret.
    let lines = ["a-password-with-a-tail-----", "-----BEGIN a-password-with-a-head"];
    let redactor = Redactor::new(LiveSecrets::new([lines.join("\n").as_str()]));
    for line in lines {
        assert!(redactor.has_live_secret(line.as_bytes()), "{line}");
    }
}

/// SEC-3: content addresses, commit ids and run ids are ours and stay, whatever stands before them.
#[test]
fn our_own_digests_and_ids_stay() {
    let hex = "0123456789abcdef".repeat(4);
    for text in [
        format!("sha256:{hex}"),
        format!("approved digest={hex} token: sha256:{hex}"),
        format!("secret:sha256:{hex} run r-secret-token:"),
        format!(
            "{{\"payload_hash\":\"sha256:{hex}\",\"commit\":\"{}\"}}",
            &hex[..40]
        ),
        "conductor/run-0199aa00-7d5e-7000-8000-000000000001".to_owned(),
        "effect 0199aa00-7d5e-7000-8000-000000000001/12/0 done".to_owned(),
    ] {
        assert_eq!(redactor().redact(&text), text);
    }
}

/// SEC-3: a token that somebody typed by counting is taken out, although a scan accuses nobody of it.
#[test]
fn a_token_that_counts_up_is_redacted_and_not_accused() {
    let token = ["gh", "p_0123456789abcdefghijABCDEFGHIJ012345"].concat();
    assert_eq!(
        redactor().redact(&format!("use {token} now")),
        format!("use {MARK} now")
    );
    assert_eq!(conductor_policy::secret::scan(token.as_bytes()), []);
}

/// SEC-3: redacting twice changes nothing more, on everything that the corpus has.
#[test]
fn redaction_is_stable_on_the_corpus() {
    let redactor = redactor();
    for item in planted().iter().chain(&decoys()) {
        let once = redactor.redact(&item.text);
        assert_eq!(redactor.redact(&once), once, "{}", item.path);
    }
}

/// SEC-3: a stream shows what the whole text shows, wherever it is cut, byte by byte too.
#[test]
fn a_stream_cut_anywhere_shows_what_the_whole_text_shows() {
    let redactor = redactor();
    let all: String = planted()
        .iter()
        .chain(&decoys())
        .map(|item| item.text.clone())
        .collect();
    let whole = redactor.redact_bytes(all.as_bytes());
    for step in [1, 7, 64, 1000, 4096] {
        let cuts: Vec<usize> = (0..all.len()).step_by(step).collect();
        // Byte by byte is slow on everything; a part that holds keys will do.
        let (text, expected) = if step == 1 {
            let part = all.as_bytes().get(..6000).expect("the corpus is larger");
            (part, redactor.redact_bytes(part))
        } else {
            (all.as_bytes(), whole.clone())
        };
        let (shown, _) = streamed(&redactor, text, &cuts);
        assert!(shown == expected, "cut every {step} bytes");
    }
}

/// SEC-3: what a stream holds back is bounded, and hostile text takes linear time.
#[test]
fn hostile_text_neither_fills_memory_nor_takes_for_ever() {
    let redactor = redactor();
    for hostile in [
        "ghp_",
        "eyJ",
        "token=\"",
        "password=",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN ",
        "://a:",
        "a:b@",
        "AAAA",
        "x",
        "[redacted]",
        "\u{202e}",
        "key key key ",
        " -u a:",
        "-----END ",
        "sk-",
        "MTA",
        "ghs_",
        "-eyJ",
        concat!("-----BEGIN PRIVATE ", "KEY-----\n-----END PRIVATE ", "KEY-----\n"),
        ":5432:",
    ] {
        let text = hostile.repeat(20_000 / hostile.len());
        let cuts: Vec<usize> = (0..text.len()).step_by(4096).collect();
        let (shown, most_held) = streamed(&redactor, text.as_bytes(), &cuts);
        assert!(shown == redactor.redact_bytes(text.as_bytes()), "{hostile}");
        let swallowed = text.len().saturating_sub(shown.len());
        assert!(
            most_held <= 32 * 1024 + swallowed,
            "{hostile}: {most_held} bytes held"
        );
    }
}

/// SEC-3: on a line without end, too, a stream shows what the whole text shows: names, values and marks that are given out
/// are remembered as long as what follows rests on them.
#[test]
fn a_line_without_end_is_redacted_as_a_whole_wherever_it_is_cut() {
    let redactor = redactor();
    let long = |length: usize| "k3Qz9xW7".repeat(length / 8);
    for (secret, chunk) in [
        ("password=correcthorse".to_owned(), 61),
        (format!("authorization{}bearer oneword8", " ".repeat(200)), 251),
        (format!("Authorization: Bearer {}", long(7900)), 509),
        (format!("Authorization: Bearer {}", long(30_000)), 509),
    ] {
        for before in (0..chunk).step_by(13) {
            let text = format!(
                "{}{} {secret} {}",
                "a ".repeat(2200),
                "b".repeat(before),
                "c ".repeat(6000)
            );
            let cuts: Vec<usize> = (0..text.len()).step_by(chunk).collect();
            let (shown, _) = streamed(&redactor, text.as_bytes(), &cuts);
            assert!(
                shown == redactor.redact_bytes(text.as_bytes()),
                "{before} before {secret:.40}"
            );
        }
    }
}

/// SEC-3: a key that never ends, ends late or ends with the text is redacted as a whole, too, and nothing that follows it.
#[test]
fn a_key_that_streams_by_is_redacted_as_a_whole() {
    let redactor = redactor();
    let head = "-----BEGIN PRIVATE KEY-----\n";
    let foot = "-----END PRIVATE KEY-----";
    let line = "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\\n";
    let body = |lines: usize| "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n".repeat(lines);
    for text in [
        format!("a {head}{}", body(3)),
        format!("a {head}{}{foot} b\nc\n", body(3)),
        format!("a {head}{}{foot} b\nc {head}{}{foot} d", body(100), body(2)),
        format!("a {head}{}b\npassword=correcthorse\n", body(1000)),
        format!("{head}{}{foot} b\npassword=correcthorse", body(790)),
        format!(
            "password=correcthorse{head}{}{foot}{head}{}{foot}\nz",
            body(3),
            body(3)
        ),
        // What stands in a key, and before it, says nothing of what stands behind it on its line.
        format!("a {line} authorization {foot} bearer oneword8\n"),
        format!("a {line} docker login {foot} -p Tr0ub4dor&3\n"),
        format!("docker login {line} {foot} -p Tr0ub4dor&3\n"),
        format!("a {line} 123456789{foot}:AAHk3Qz9xW7yLm2Np4Rs6Tv8Bc0Df1Gh3Jk\n"),
        format!("a {line} login {foot}password correcthorse9\n"),
    ] {
        for chunk in [1, 97, 4096] {
            if chunk == 1 && text.len() > 1000 {
                continue;
            }
            let cuts: Vec<usize> = (0..text.len()).step_by(chunk).collect();
            let (shown, _) = streamed(&redactor, text.as_bytes(), &cuts);
            assert_eq!(
                String::from_utf8_lossy(&shown),
                redactor.redact(&text),
                "cut every {chunk} bytes"
            );
        }
    }
}

/// SEC-3: what begins where a key without a foot is taken to end is not shown from its middle on.
#[test]
fn what_stands_across_the_end_of_a_key_without_a_foot_is_not_shown() {
    const LONGEST: usize = 32 * 1024;
    let redactor = redactor();
    let head = ["-----BEGIN PRIVATE ", "KEY-----"].concat();
    for secret in [LIVE[0], "ghp_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"] {
        for (gap, behind) in [(secret.len() / 2, ""), (1, " "), (secret.len() - 1, "words ")] {
            let body = "\n".repeat(LONGEST - head.len() - gap);
            let text = format!("a {head}{body}{secret}{behind}\nand more\n");
            assert_eq!(
                redactor.redact(&text),
                "a [redacted]\nand more\n",
                "{gap} of {secret}"
            );
            for chunk in [97, 4096] {
                let cuts: Vec<usize> = (0..text.len()).step_by(chunk).collect();
                let (shown, _) = streamed(&redactor, text.as_bytes(), &cuts);
                assert_eq!(String::from_utf8_lossy(&shown), "a [redacted]\nand more\n");
            }
        }
    }
}

/// SEC-3: secrets that lie over each other go as a whole, on the first line, the last, and one in between.
#[test]
fn live_secrets_that_overlap_go_together_on_every_line() {
    let redactor = Redactor::new(LiveSecrets::new([
        "alpha-bravo-char",
        "bravo-char-delta-e",
        "char-del",
    ]));
    let line = "x alpha-bravo-char-delta-e y";
    let clean = "nothing to see, alpha-bravo";
    let text = [line, clean, line, "", line].join("\n");
    let shown = format!("x {MARK} y");
    assert_eq!(
        redactor.redact(&text),
        [shown.as_str(), clean, &shown, "", &shown].join("\n")
    );
    assert_eq!(redactor.redact("char-del\nchar-del"), format!("{MARK}\n{MARK}"));
}

/// SEC-3: words that waited are given out though their line has not ended; the rest of a key whose mark was given out is not,
/// and what follows is shown as it would have been.
#[test]
fn what_waited_is_given_out_and_a_key_is_not() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"I look at it"), b"");
    assert_eq!(stream.flush(), b"I look at it");
    assert_eq!(stream.flush(), b"");
    assert_eq!(stream.push(b" now.\n"), b" now.\n");
    let head = ["-----BEGIN ", "RSA PRIVATE KEY-----\n"].concat();
    let shown = [stream.push(head.as_bytes()), stream.flush()].concat();
    assert_eq!(shown, MARK.as_bytes());
    assert_eq!([stream.push(b"MIIEpAIBAAKCAQEA"), stream.flush()].concat(), b"");
    let foot = ["-----END ", "RSA PRIVATE KEY-----\nafter"].concat();
    let shown = [stream.push(foot.as_bytes()), stream.finish()].concat();
    assert_eq!(shown, b"\nafter");
}

/// SEC-3: a head that was given out before anybody could know it still begins a key: nothing of its body is shown, and what
/// stands behind its foot is looked at.
#[test]
fn a_key_whose_head_waited_too_long_is_redacted_from_its_body_on() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    let head = ["x -----BEGIN PRI", "VATE KE"].concat();
    let shown = [stream.push(head.as_bytes()), stream.flush()].concat();
    assert_eq!(shown, head.as_bytes());
    let token = ["ghp_", "k3Qz9xW7yLm2Np4Rs6Tv8Bc0Df1Gh3Jk5Mn7"].concat();
    let rest = format!("Y-----\nMIIEvQIBADANBgkq\n{token}\n");
    let foot = ["-----END PRI", "VATE KEY-----"].concat();
    let shown = [stream.push(rest.as_bytes()), stream.push(foot.as_bytes())].concat();
    assert_eq!(String::from_utf8_lossy(&shown), MARK);
    let shown = [stream.push(format!("\n{token} b\n").as_bytes()), stream.finish()].concat();
    assert_eq!(String::from_utf8_lossy(&shown), format!("\n{MARK} b\n"));
}

/// SEC-3: hostile: many whole keys at once take linear time, not the square of it, which would be minutes here.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
fn a_stream_of_whole_keys_takes_linear_time() {
    let redactor = redactor();
    let key = concat!("-----BEGIN PRIVATE ", "KEY-----\n-----END PRIVATE ", "KEY-----\n");
    let count = 10_000;
    let started = std::time::Instant::now();
    let mut stream = redactor.stream();
    let shown = [stream.push(key.repeat(count).as_bytes()), stream.finish()].concat();
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!(String::from_utf8_lossy(&shown), format!("{MARK}\n").repeat(count));
}

/// SEC-3: a live secret that is longer than any form is redacted whole in a stream, and none is shown for debugging.
#[test]
fn a_long_live_secret_streams_by_unseen() {
    let words: Vec<String> = (0..3_000).map(|n| format!("{n:x}")).collect();
    let long = words.join(".");
    let live = LiveSecrets::new([long.as_str(), "short"]);
    assert_eq!(format!("{live:?}"), "LiveSecrets(1)");
    let redactor = Redactor::new(live);
    let text = format!("{}{long}{}", "a ".repeat(9000), "b ".repeat(9000));
    for chunk in [61, 4096] {
        let cuts: Vec<usize> = (0..text.len()).step_by(chunk).collect();
        let (shown, _) = streamed(&redactor, text.as_bytes(), &cuts);
        assert!(
            shown == redactor.redact_bytes(text.as_bytes()),
            "cut every {chunk} bytes"
        );
    }
    assert_eq!(redactor.redact(&text).matches(MARK).count(), 1);
}

/// SEC-3: a line without end is held back by some kilobytes only, and is looked at in steps, not at every byte.
#[test]
fn a_line_without_end_is_given_out_in_steps() {
    let redactor = redactor();
    let text = vec![b'x'; 60_000];
    let mut stream = redactor.stream();
    let (mut given, mut steps) = (0, 0);
    for (index, chunk) in text.chunks(64).enumerate() {
        let shown = stream.push(chunk).len();
        given += shown;
        steps += usize::from(shown > 0);
        let held = 64 * (index + 1) - given;
        assert!(held < 13 * 1024, "{held} bytes held");
    }
    assert!((10..=15).contains(&steps), "{steps} steps");
    assert_eq!(given + stream.finish().len(), text.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// SEC-3.
    #[test]
    fn any_mix_of_pieces_streams_as_it_stands(
        pieces in proptest::collection::vec(0..PIECES.len(), 1..60),
        cuts in proptest::collection::vec(0_usize..4000, 0..20),
    ) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let redactor = redactor();
        let (shown, _) = streamed(&redactor, text.as_bytes(), &cuts);
        let whole = redactor.redact_bytes(text.as_bytes());
        prop_assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(&whole));
        prop_assert!(!String::from_utf8_lossy(&whole).contains("hunter2-hunter2"));
    }
}

/// Assembled so that this file itself holds no token.
const PIECES: [&str; 22] = [
    "hunter2-hunter2",
    "hunter2-",
    "long",
    "\n",
    " ",
    "password=",
    "token: ",
    "\"",
    "'",
    "ghp_",
    "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj",
    "https://",
    "me:s3same99@",
    "host/x",
    "Bearer ",
    "é",
    "\u{0}",
    "{\\\"token\\\": \\\"",
    "-----",
];
