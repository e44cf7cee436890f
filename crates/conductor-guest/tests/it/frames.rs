//! Frames made of anything: no byte sequence makes the decoder panic, hang, or hold more than it was sent.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use conductor_guest::frame::{Decoder, Frame, HEADER, Message, RequestId, Violation};
use conductor_guest::order::{Order, Pattern, Range, Request, Run, Streams, Walk};
use conductor_guest::response::{
    BATCH, CHUNK, Ending, Entry, Exited, Kind, Limit, MAX_PLACES, Match, Refusal, Response, Stream, Usage,
    Walked,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Counts what each thread holds, so that a claimed length that is believed shows.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(change: isize) {
    // A thread that is being torn down is not counted.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

#[allow(unsafe_code, reason = "an allocator cannot be had without")]
// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most bytes that this thread held while `work` ran, beyond what it held before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

/// Decodes what is sent in pieces of this size.
fn decode<M: Message>(bytes: &[u8], piece: usize) -> (Vec<Frame<M>>, Result<(), Violation>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        let mut piece = piece;
        while !piece.is_empty() {
            let room = decoder.room();
            let count = piece.len().min(room.len());
            room[..count].copy_from_slice(&piece[..count]);
            decoder.filled(count);
            piece = &piece[count..];
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(violation) => return (frames, Err(violation)),
                }
            }
        }
    }
    (frames, Ok(()))
}

fn words() -> impl Strategy<Value = Vec<OsString>> {
    vec(vec(any::<u8>(), 0..20).prop_map(OsString::from_vec), 0..8)
}

fn path() -> impl Strategy<Value = PathBuf> {
    vec(any::<u8>(), 0..40).prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn run() -> impl Strategy<Value = Request> {
    let streams = prop_oneof![Just(Streams::Together), Just(Streams::Apart)];
    let limits = (any::<u64>(), any::<u64>(), any::<u32>(), streams);
    (words(), words(), path(), limits).prop_map(
        |(argv, names, directory, (time_ms, output, credit, streams))| {
            Request::Run(Run {
                argv,
                environment: names.into_iter().map(|name| (name.clone(), name)).collect(),
                directory,
                time_ms,
                output,
                credit,
                streams,
            })
        },
    )
}

fn walk() -> impl Strategy<Value = Walk> {
    (path(), any::<u16>(), any::<u32>(), any::<u32>(), words()).prop_map(
        |(path, depth, findings, time_ms, skip)| Walk {
            path,
            depth,
            findings,
            time_ms,
            skip,
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    let range = prop_oneof![
        Just(Range::Whole),
        (any::<u32>(), any::<u32>()).prop_map(|(first, last)| Range::Lines { first, last }),
    ];
    let pattern = prop_oneof![
        bytes().prop_map(Pattern::Literal),
        any::<String>().prop_map(Pattern::Regex)
    ];
    let request = prop_oneof![
        run(),
        (path(), range).prop_map(|(path, range)| Request::View { path, range }),
        (path(), bytes()).prop_map(|(path, content)| Request::CreateFile { path, content }),
        (path(), bytes(), bytes()).prop_map(|(path, old, new)| Request::StrReplace { path, old, new }),
        walk().prop_map(Request::List),
        (walk(), pattern).prop_map(|(walk, pattern)| Request::Search { walk, pattern }),
        (any::<u16>(), path()).prop_map(|(port, socket)| Request::Forward { port, socket }),
        Just(Request::Ping),
        Just(Request::Shutdown),
    ];
    prop_oneof![
        8 => request.prop_map(Order::Ask),
        1 => Just(Order::Kill),
        1 => any::<u32>().prop_map(|bytes| Order::Credit { bytes }),
    ]
}

fn refusal() -> impl Strategy<Value = Refusal> {
    let most = usize::try_from(MAX_PLACES).unwrap();
    prop_oneof![
        Just(Refusal::Outside),
        Just(Refusal::NotFound),
        Just(Refusal::NotAFile),
        Just(Refusal::NotADirectory),
        Just(Refusal::Link),
        Just(Refusal::Exists),
        any::<u64>().prop_map(|limit| Refusal::TooLarge { limit }),
        Just(Refusal::NoMatch),
        (vec(any::<u32>(), 0..=most), any::<bool>())
            .prop_map(|(lines, has_more)| Refusal::Ambiguous { lines, has_more }),
        Just(Refusal::Denied),
        Just(Refusal::Full),
        Just(Refusal::Busy),
        any::<String>().prop_map(Refusal::CannotStart),
        any::<String>().prop_map(Refusal::Invalid),
    ]
}

fn exited() -> impl Strategy<Value = Exited> {
    let ending = prop_oneof![
        any::<i32>().prop_map(Ending::Code),
        any::<i32>().prop_map(Ending::Signal),
        Just(Ending::TimedOut),
        Just(Ending::Killed),
        Just(Ending::Limit(Limit::Processes)),
        Just(Ending::Limit(Limit::Memory)),
    ];
    (ending, any::<[u64; 5]>()).prop_map(
        |(ending, [elapsed_us, user_us, system_us, max_rss_kib, dropped])| Exited {
            ending,
            usage: Usage {
                elapsed_us,
                user_us,
                system_us,
                max_rss_kib,
            },
            dropped,
        },
    )
}

fn response() -> impl Strategy<Value = Response> {
    let stream = prop_oneof![Just(Stream::Merged), Just(Stream::Out), Just(Stream::Error)];
    let kind = prop_oneof![
        Just(Kind::File),
        Just(Kind::Directory),
        Just(Kind::Symlink),
        Just(Kind::Other)
    ];
    let entry = (path(), kind, any::<u64>()).prop_map(|(path, kind, size)| Entry { path, kind, size });
    let found = (path(), any::<u32>(), bytes()).prop_map(|(path, line, text)| Match { path, line, text });
    prop_oneof![
        (stream, bytes()).prop_map(|(stream, bytes)| Response::Output { stream, bytes }),
        bytes().prop_map(Response::FileBytes),
        vec(entry, 0..=BATCH).prop_map(Response::Entries),
        vec(found, 0..=BATCH).prop_map(Response::Matches),
        exited().prop_map(Response::Exited),
        Just(Response::Done),
        (any::<bool>(), any::<u32>())
            .prop_map(|(is_complete, skipped)| Response::Walked(Walked { is_complete, skipped })),
        any::<u16>().prop_map(|port| Response::Listening { port }),
        (any::<u16>(), any::<u32>()).prop_map(|(protocol, pid)| Response::Ready { protocol, pid }),
        refusal().prop_map(Response::Refused),
        any::<String>().prop_map(Response::Fault),
    ]
}

fn frames<M: std::fmt::Debug + Clone>(
    message: impl Strategy<Value = M>,
) -> impl Strategy<Value = Vec<Frame<M>>> {
    let frame = (any::<u32>(), message).prop_map(|(id, body)| Frame {
        id: RequestId(id),
        body,
    });
    vec(frame, 1..6)
}

fn encoded<M: Message>(frames: &[Frame<M>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        frame.encode(&mut bytes).unwrap();
    }
    bytes
}

/// What one side may hold for frames of this size: its buffer twice while it grows, and the message itself, whose
/// smallest items are four bytes on the wire and a few words here.
fn bound(bytes: usize) -> usize {
    4 * 64 * 1024 + 2 * CHUNK + 16 * bytes
}

/// S-15.
fn never_panics_nor_believes<M: Message + std::fmt::Debug>(bytes: &[u8], piece: usize) {
    let (_, held) = peak_of(|| decode::<M>(bytes, piece));
    assert!(
        held <= bound(bytes.len()),
        "{held} bytes held for {} sent",
        bytes.len()
    );
}

proptest! {
    /// S-15: hostile input.
    #[test]
    fn any_bytes_are_frames_or_a_violation_within_bounds(
        bytes in vec(any::<u8>(), 0..4000), piece in 1..700_usize,
    ) {
        never_panics_nor_believes::<Order>(&bytes, piece);
        never_panics_nor_believes::<Response>(&bytes, piece);
    }

    /// S-15: hostile payloads behind a header that is in order.
    #[test]
    fn any_payload_is_a_message_or_a_violation_within_bounds(
        kind in 0_u8..150, payload in vec(any::<u8>(), 0..3000), piece in 1..700_usize,
    ) {
        let length = u32::try_from(payload.len() + 5).unwrap();
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend([7, 0, 0, 0]);
        bytes.extend(&payload);
        never_panics_nor_believes::<Order>(&bytes, piece);
        never_panics_nor_believes::<Response>(&bytes, piece);
    }

    /// S-15: frames in order with one byte changed.
    #[test]
    fn a_changed_byte_never_panics(
        frames in frames(response()), at in any::<prop::sample::Index>(), byte in any::<u8>(), piece in 1..700_usize,
    ) {
        let mut bytes = encoded(&frames);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        never_panics_nor_believes::<Response>(&bytes, piece);
    }

    #[test]
    fn what_is_sent_is_what_arrives(
        orders in frames(order()), responses in frames(response()), piece in 1..700_usize,
    ) {
        prop_assert_eq!(decode(&encoded(&orders), piece), (orders, Ok(())));
        prop_assert_eq!(decode(&encoded(&responses), piece), (responses, Ok(())));
    }

    /// S-15: no message can be read in two ways.
    #[test]
    fn a_longer_or_shorter_payload_is_a_violation(frame in frames(response())) {
        let has_open_end = matches!(frame[0].body, Response::Output { .. } | Response::FileBytes(_));
        prop_assume!(!has_open_end);
        let whole = encoded(&frame[..1]);
        let mut longer = whole.clone();
        longer.push(0);
        let resized = |mut bytes: Vec<u8>| {
            let length = u32::try_from(bytes.len() - 4).unwrap();
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            decode::<Response>(&bytes, 999).1
        };
        prop_assert!(resized(longer).is_err());
        prop_assume!(whole.len() > HEADER);
        prop_assert!(resized(whole[..whole.len() - 1].to_vec()).is_err());
    }
}

/// S-15: a length that nobody may claim is refused before anything is waited for or reserved.
#[test]
fn a_claimed_length_reserves_nothing() {
    for claimed in [0_u32, 4, 2 * 128 * 1024 + 6, u32::MAX] {
        let mut bytes = claimed.to_le_bytes().to_vec();
        bytes.extend([134, 1, 0, 0, 0]);
        let ((frames, end), held) = peak_of(|| decode::<Response>(&bytes, 999));
        assert_eq!(frames, []);
        assert!(
            matches!(end, Err(Violation::Length { length, .. }) if length == claimed),
            "{end:?}"
        );
        assert!(held <= bound(0), "{held}");
    }
    let mut longest = (2 * 128 * 1024 + 5_u32).to_le_bytes().to_vec();
    longest.extend([134, 1, 0, 0, 0]);
    let (result, held) = peak_of(|| decode::<Response>(&longest, 999));
    assert_eq!(result, (Vec::new(), Ok(())), "the rest may still come");
    assert!(held <= bound(0), "{held}");
}

/// S-15.
#[test]
fn unknown_kinds_and_the_other_directions_kinds_are_refused() {
    for kind in 0..=u8::MAX {
        let mut bytes = 5_u32.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend([1, 0, 0, 0]);
        let is_order = (1..=11).contains(&kind);
        let is_response = (129..=139).contains(&kind);
        let is_unknown = |end: &Result<(), Violation>| matches!(end, Err(violation) if violation.to_string().ends_with("the kind is unknown"));
        assert_eq!(is_unknown(&decode::<Order>(&bytes, 99).1), !is_order, "{kind}");
        assert_eq!(
            is_unknown(&decode::<Response>(&bytes, 99).1),
            !is_response,
            "{kind}"
        );
    }
}

#[test]
fn a_message_that_does_not_fit_is_not_sent_in_part() {
    let frame = Frame {
        id: RequestId(1),
        body: Response::Fault("x".repeat(5 * CHUNK)),
    };
    let mut bytes = vec![1, 2, 3];
    assert!(frame.encode(&mut bytes).is_err());
    assert_eq!(bytes, [1, 2, 3]);
}
