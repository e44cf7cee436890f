//! A hostile guest on the other end of real pipes.

use conductor_guest::calls::Switch;
use conductor_guest::file::MAX_FILE;
use conductor_guest::order::{Range, Run, Streams, Walk};
use conductor_guest::response::{CHUNK, Ending, Entry, Exited, Kind, PROTOCOL, Stream, Usage, Walked};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use tokio::net::unix::pipe;

use super::*;
use crate::output::Kept;
use matrix::Line;

#[path = "../../tests/it/matrix.rs"]
mod matrix;

/// The other end: what a guest, or whoever speaks for it, can do.
struct Hostile {
    orders: PipeReader,
    responses: Option<PipeWriter>,
}

fn open() -> (Channel, Hostile) {
    open_with(Calls::default(), Decoder::default())
}

fn open_with(calls: Calls, decoder: Decoder<Response>) -> (Channel, Hostile) {
    let (orders, writer) = io::pipe().unwrap();
    let (reader, responses) = io::pipe().unwrap();
    let sender = pipe::Sender::from_owned_fd(writer.into()).unwrap();
    let receiver = pipe::Receiver::from_owned_fd(reader.into()).unwrap();
    let hostile = Hostile {
        orders,
        responses: Some(responses),
    };
    (Channel::begin_with(sender, receiver, calls, decoder), hostile)
}

impl Hostile {
    fn say(&mut self, id: u32, body: Response) {
        let mut bytes = Vec::new();
        let id = RequestId(id);
        Frame { id, body }.encode(&mut bytes).unwrap();
        self.say_bytes(&bytes);
    }

    fn say_bytes(&mut self, bytes: &[u8]) {
        self.responses.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn leave(&mut self) {
        self.responses = None;
    }

    /// Reads this many orders; blocks.
    fn hear(&mut self, count: usize) -> Vec<Frame<Order>> {
        let mut decoder: Decoder<Order> = Decoder::default();
        let mut orders = Vec::new();
        while orders.len() < count {
            let read = self.orders.read(decoder.room()).unwrap();
            decoder.filled(read);
            while let Some(frame) = decoder.next().unwrap() {
                orders.push(frame);
            }
        }
        orders
    }
}

fn command(channel: &Channel) -> Call {
    let run = Run {
        argv: vec!["true".into()],
        environment: Vec::new(),
        directory: "".into(),
        time_ms: 1,
        output: u64::MAX,
        credit: CREDIT,
        streams: Streams::Together,
    };
    let gathered = Gathered::Output {
        kept: Kept::new(100),
        listener: None,
    };
    channel.begin(Request::Run(run), gathered).unwrap()
}

fn ping(channel: &Channel) -> Call {
    channel.begin(Request::Ping, Gathered::Nothing).unwrap()
}

fn exited(code: i32) -> Response {
    Response::Exited(Exited {
        ending: Ending::Code(code),
        usage: Usage::default(),
        dropped: 0,
    })
}

fn output(length: usize) -> Response {
    Response::Output {
        stream: Stream::Merged,
        bytes: vec![b'x'; length],
    }
}

async fn lost(mut call: Call) -> Lost {
    call.answer().await.expect_err("the guest is lost")
}

/// S-15, S-16: a result for a request that was not asked, or a second one, counts for nothing and ends everything.
#[tokio::test]
async fn a_forged_result_loses_the_guest_and_everything_under_way() {
    for forged in [0, 2, 77, u32::MAX] {
        let (channel, mut hostile) = open();
        let call = command(&channel);
        hostile.say(forged, exited(0));
        assert_eq!(lost(call).await, Lost::Forged(Forged::NotOpen(RequestId(forged))));
        assert!(channel.begin(Request::Ping, Gathered::Nothing).is_err());
    }
    let (channel, mut hostile) = open();
    let (mut first, second) = (command(&channel), command(&channel));
    hostile.say(1, exited(1));
    assert_eq!(first.answer().await.unwrap().result, exited(1));
    hostile.say(1, exited(0));
    assert_eq!(lost(second).await, Lost::Forged(Forged::NotOpen(RequestId(1))));
}

/// S-15: lengths are capped before anything is reserved, and nonsense is no frame.
#[tokio::test]
async fn a_frame_that_is_none_loses_the_guest() {
    for bytes in [&[0xff; 9][..], &[0; 9], &[5, 0, 0, 0, 200, 1, 0, 0, 0]] {
        let (channel, mut hostile) = open();
        let call = ping(&channel);
        hostile.say_bytes(bytes);
        assert!(matches!(lost(call).await, Lost::Violation(_)), "{bytes:?}");
    }
}

/// S-16, S-18: a guest that leaves has no result, wherever it stopped.
#[tokio::test]
async fn a_guest_that_leaves_is_lost() {
    let (channel, mut hostile) = open();
    let call = command(&channel);
    hostile.leave();
    assert_eq!(lost(call).await, Lost::Ended);
    assert_eq!(channel.until_lost().await, Lost::Ended);

    let (channel, mut hostile) = open();
    let call = command(&channel);
    hostile.say_bytes(&[9, 0, 0]);
    hostile.leave();
    assert_eq!(lost(call).await, Lost::Torn);
}

/// S-15, S-16: whoever looks for its answer itself believes no more than the task that reads.
#[tokio::test]
async fn whoever_looks_itself_is_not_fooled_either() {
    let (channel, mut hostile) = open();
    let (mut call, bystander) = (ping(&channel), command(&channel));
    hostile.say(77, exited(0));
    let forged = Lost::Forged(Forged::NotOpen(RequestId(77)));
    assert_eq!(call.prompt_answer().await.expect_err("the guest is lost"), forged);
    assert_eq!(lost(bystander).await, forged);

    let (channel, mut hostile) = open();
    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    let (mut answered, mut left) = (ping(&channel), ping(&channel));
    hostile.say(1, ready.clone());
    hostile.leave();
    // What was answered before the end is answered.
    assert_eq!(answered.prompt_answer().await.unwrap().result, ready);
    let ended = left.prompt_answer().await.expect_err("the guest is lost");
    assert_eq!(ended, Lost::Ended);
    assert!(channel.0.inlet().is_none());
}

/// EXEC-7, S-16: a guest that says nothing at such a rate that the pipe is never empty keeps nobody from a time-out, neither
/// where the task reads nor where an asker looks.
#[tokio::test]
async fn a_guest_that_never_stops_talking_takes_up_no_thread() {
    for looks in [false, true] {
        let (channel, mut hostile) = open();
        let view = Request::View {
            path: "a".into(),
            range: Range::Whole,
        };
        let mut call = channel.begin(view, Gathered::Bytes(Vec::new())).unwrap();
        let talking = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let (id, body) = (RequestId(1), Response::FileBytes(Vec::new()));
            Frame { id, body }.encode(&mut bytes).unwrap();
            let much = bytes.repeat(4096);
            let mut responses = hostile.responses.take().unwrap();
            while responses.write_all(&much).is_ok() {}
        });
        let moment = Duration::from_millis(50);
        let answer = if looks {
            tokio::time::timeout(moment, call.prompt_answer()).await
        } else {
            tokio::time::timeout(moment, call.answer()).await
        };
        assert!(answer.is_err(), "the time-out counts");
        // It notices that nobody listens any more, although its channel is still held.
        channel.lose(Lost::Silent);
        tokio::task::yield_now().await;
        let left = tokio::task::spawn_blocking(move || talking.join());
        left.await.unwrap().unwrap();
    }
}

/// EXEC-7, S-16: whoever reads, reads for a bounded time, whatever there is.
#[tokio::test]
async fn a_turn_at_the_pipe_ends_though_there_is_always_more() {
    let (channel, _hostile) = open();
    let view = Request::View {
        path: "a".into(),
        range: Range::Whole,
    };
    let _call = channel.begin(view, Gathered::Bytes(Vec::new())).unwrap();
    let mut frame = Vec::new();
    let (id, body) = (RequestId(1), Response::FileBytes(Vec::new()));
    Frame { id, body }.encode(&mut frame).unwrap();
    let reads = std::cell::Cell::new(0);
    let received = channel.0.receive(&mut channel.0.inlet(), |_, room| {
        reads.set(reads.get() + 1);
        assert!(reads.get() <= READS, "it never ends");
        room[..frame.len()].copy_from_slice(&frame);
        Ok(frame.len())
    });
    assert_eq!((received, reads.get()), (Ok(Pipe::Full), READS));
}

/// What has come is seen without the task that reads, for others too; what has not is waited for, and for a while nobody looks.
#[tokio::test]
async fn an_answer_is_looked_for_a_moment_and_then_waited_for() {
    let (channel, mut hostile) = open();
    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    let (mut first, mut second) = (ping(&channel), ping(&channel));
    hostile.say(2, ready.clone());
    hostile.say(1, ready.clone());
    assert_eq!(first.prompt_answer().await.unwrap().result, ready);
    assert_eq!(second.prompt_answer().await.unwrap().result, ready);
    assert_eq!(channel.0.sleepers.load(Relaxed), 0);

    for left in [SLEEPERS, SLEEPERS - 1, SLEEPERS - 2] {
        let mut late = ping(&channel);
        let id = late.id.0;
        let asked = tokio::spawn(async move { late.prompt_answer().await });
        // The asker is asleep before anything is said.
        tokio::task::yield_now().await;
        assert_eq!(channel.0.sleepers.load(Relaxed), left);
        hostile.say(id, ready.clone());
        assert_eq!(asked.await.unwrap().unwrap().result, ready);
    }
}

/// EXEC-7: whatever is printed, what is held stays within bounds.
#[tokio::test]
async fn output_of_any_length_is_kept_within_bounds() {
    let (channel, mut hostile) = open();
    let mut call = command(&channel);
    let printing = tokio::task::spawn_blocking(move || {
        for _ in 0..100 {
            hostile.say(1, output(200 * 1024));
        }
        hostile.say(1, exited(0));
        hostile
    });
    let answer = call.answer().await.unwrap();
    printing.await.unwrap();
    let Gathered::Output { kept, .. } = answer.gathered else {
        panic!("{answer:?}");
    };
    let (bytes, is_cut) = kept.finish();
    assert!(is_cut && bytes.len() < 200, "{} bytes", bytes.len());
}

/// S-15: a guest cannot make the host hold more of a file than a file may have.
#[tokio::test]
async fn more_of_a_file_than_files_have_loses_the_guest() {
    let (channel, mut hostile) = open();
    let request = Request::View {
        path: "a".into(),
        range: Range::Whole,
    };
    let call = channel.begin(request, Gathered::Bytes(Vec::new())).unwrap();
    let sending = tokio::task::spawn_blocking(move || {
        for _ in 0..=(MAX_FILE / (128 * 1024)) {
            hostile.say(1, Response::FileBytes(vec![0; 128 * 1024]));
        }
        hostile
    });
    assert_eq!(lost(call).await, Lost::Forged(Forged::TooMuch(RequestId(1))));
    sending.await.unwrap();
}

/// EXEC-7: a caller that leaves has its command killed, and neither its frame nor anybody else's is cut.
#[tokio::test]
async fn a_caller_that_leaves_has_its_command_killed() {
    let (channel, mut hostile) = open();
    let call = command(&channel);
    let mut stays = ping(&channel);
    drop(call);
    let (mut hostile, orders) = tokio::task::spawn_blocking(move || {
        let orders = hostile.hear(3);
        (hostile, orders)
    })
    .await
    .unwrap();
    let orders: Vec<_> = orders
        .into_iter()
        .map(|frame| (frame.id.0, matches!(frame.body, Order::Kill)))
        .collect();
    assert_eq!(orders, [(1, false), (2, false), (1, true)]);
    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    hostile.say(2, ready.clone());
    assert_eq!(stays.answer().await.unwrap().result, ready);
}

/// A request larger than the pipe goes out whole although nobody reads at first, and others behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_pipe_does_not_take_at_once_is_sent_later_and_in_order() {
    let (channel, mut hostile) = open();
    let content = vec![7; 3 * 1024 * 1024];
    let request = Request::CreateFile {
        path: "a".into(),
        content: content.clone(),
    };
    let _first = channel.begin(request.clone(), Gathered::Nothing).unwrap();
    let _second = ping(&channel);
    let read = tokio::task::spawn_blocking(move || {
        let orders = hostile.hear(2);
        (hostile, orders)
    });
    let (_hostile, orders) = read.await.unwrap();
    let orders: Vec<Order> = orders.into_iter().map(|frame| frame.body).collect();
    assert_eq!(orders, [Order::Ask(request), Order::Ask(Request::Ping)]);
    let too_long = Request::CreateFile {
        path: "a".into(),
        content: vec![0; 20 * 1024 * 1024],
    };
    let refused = channel.begin(too_long, Gathered::Nothing).unwrap_err();
    assert!(matches!(refused, NotSent::TooLong(_)));
    let _still_there = ping(&channel);
}

/// One refusal, and what a guest says that it stops.
struct Row {
    test: &'static str,
    refusal: Switch,
    /// What is asked, as request 1.
    asked: fn() -> Request,
    /// What the guest says to it, up to an honest end.
    said: fn(&mut Hostile),
}

macro_rules! rows {
    ($( $test:ident: $refusal:ident $asked:expr, $said:expr; )+) => {
        const ROWS: &[Row] = &[ $( Row {
            test: stringify!($test),
            refusal: Switch::$refusal,
            asked: $asked,
            said: $said,
        }, )+ ];

        mod each {
            $(
                /// S-15.
                #[tokio::test]
                async fn $test() {
                    super::check(stringify!($test)).await;
                }
            )+
        }
    };
}

rows! {
    answer_to_nothing: IssuedIds || Request::Ping, |guest| {
        guest.say(77, exited(0));
        guest.say(1, READY);
    };
    second_result: OneResult || Request::Ping, |guest| {
        // Request 2 is under way as well; its end is what is waited for.
        guest.say(2, READY);
        guest.say(2, READY);
        guest.say(1, READY);
    };
    answer_to_something_else: FittingAnswers || Request::Ping, |guest| guest.say(1, exited(0));
    more_than_was_asked_for: GrantedAmounts list_of_one, |guest| {
        let entry = Entry { path: "a".into(), kind: Kind::File, size: 0 };
        guest.say(1, Response::Entries(vec![entry.clone(), entry]));
        guest.say(1, Response::Walked(Walked { is_complete: true, skipped: 0 }));
    };
}

const READY: Response = Response::Ready {
    protocol: PROTOCOL,
    pid: 1,
};

fn list_of_one() -> Request {
    Request::List(Walk {
        findings: 1,
        ..crate::walk::order("")
    })
}

/// Tells whether what a guest says is believed to its end.
async fn is_believed(row: &Row, calls: Calls) -> bool {
    let (channel, mut hostile) = open_with(calls, Decoder::default());
    let mut call = channel
        .begin((row.asked)(), Gathered::Entries(Vec::new()))
        .unwrap();
    let _second = ping(&channel);
    (row.said)(&mut hostile);
    call.answer().await.is_ok()
}

async fn check(test: &str) {
    let row = ROWS.iter().find(|row| row.test == test).unwrap();
    assert!(!is_believed(row, Calls::default()).await, "{test} in force");
    let without = Calls::default().without(row.refusal);
    assert!(is_believed(row, without).await, "{test} left out");
}

/// S-15: with any length a frame may have, a guest would make the host hold what it likes.
#[tokio::test]
async fn frames_of_any_length() {
    for (decoder, is_taken) in [(Decoder::default(), false), (Decoder::of_any_length(), true)] {
        let (channel, mut hostile) = open_with(Calls::default(), decoder);
        let request = Request::View {
            path: "a".into(),
            range: Range::Whole,
        };
        let mut call = channel.begin(request, Gathered::Bytes(Vec::new())).unwrap();
        let saying = tokio::task::spawn_blocking(move || {
            let length = 6 * CHUNK;
            let mut bytes = Vec::new();
            let body = Response::FileBytes(Vec::new());
            let id = RequestId(1);
            Frame { id, body }.encode(&mut bytes).unwrap();
            bytes[..4].copy_from_slice(&u32::try_from(length + 5).unwrap().to_le_bytes());
            bytes.resize(9 + length, 0);
            // Whoever is not believed is not listened to either.
            let said = hostile.responses.as_mut().unwrap().write_all(&bytes);
            if said.is_ok() {
                hostile.say(1, Response::Done);
            }
            hostile
        });
        assert_eq!(call.answer().await.is_ok(), is_taken);
        drop(saying);
    }
}

/// S-15: every refusal of the code has a row, and every row stands in the matrix.
#[test]
fn the_matrix_has_every_refusal() {
    let line = |protection: String, test: String| Line {
        protection: format!("frames: {protection}"),
        requirement: "S-15".to_owned(),
        tests: [format!("conductor-executor channel::tests::{test}")].into(),
    };
    let mut lines: Vec<Line> = Vec::new();
    for switch in Switch::ALL {
        let rows = ROWS.iter().filter(|row| row.refusal == *switch);
        lines.extend(rows.map(|row| line(format!("{switch:?}"), format!("each::{}", row.test))));
        assert!(ROWS.iter().any(|row| row.refusal == *switch), "{switch:?}");
    }
    lines.push(line("Length".to_owned(), "frames_of_any_length".to_owned()));
    matrix::check("frames", &lines);
}
