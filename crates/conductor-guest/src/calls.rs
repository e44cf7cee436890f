//! Decides, on the host, which of a guest's frames count (S-15).
//!
//! Ids are issued here, each once. A frame for an id that is not open, an answer that does not fit its request, more
//! bytes than were granted, or a second result is a violation: the guest is lost, and with it the sandbox (S-16).
//! This module does not know how frames travel, nor who waits for the answers.

use std::collections::BTreeMap;

use crate::file::MAX_FILE;
use crate::frame::{Frame, RequestId};
use crate::order::{Order, Request};
use crate::response::{MAX_REPORTED, Response};
use crate::switch::switches;

/// The most requests under way at once; the guest refuses more by itself.
pub const MAX_OPEN: usize = 256;

/// The requests under way in one sandbox.
#[derive(Debug, Default)]
pub struct Calls {
    issued: u32,
    open: BTreeMap<RequestId, Expected>,
    /// Refusals that a test left out.
    without: Vec<Switch>,
}

switches! {
    /// An answer to a request that was never made (S-15).
    IssuedIds,
    /// A second result of one request (S-15).
    OneResult,
    /// An answer that does not fit its request (S-15).
    FittingAnswers,
    /// More than was granted or asked for (S-15).
    GrantedAmounts,
}

/// What may still come for a request.
#[derive(Debug)]
enum Expected {
    Command {
        /// Bytes that were granted and have not come.
        credit: u64,
        /// Bytes that may come in all.
        output: u64,
    },
    FileBytes {
        left: usize,
    },
    Entries {
        left: usize,
    },
    Matches {
        left: usize,
    },
    Done,
    Listening,
    Ready,
}

/// Where a frame leaves its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// More will come.
    Open,
    /// This was the result.
    Over,
}

/// No further request can be begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Too many are under way.
    #[error("{MAX_OPEN} requests are under way already")]
    TooMany,
    /// Every id was issued.
    #[error("every request id of this sandbox was issued")]
    Exhausted,
}

/// The guest said what it had no right to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// The id was not issued, or its result has come already.
    #[error("an answer to request {}, which is not under way", .0.0)]
    NotOpen(RequestId),
    /// The answer does not fit the request.
    #[error("an answer to request {} that does not fit it", .0.0)]
    Unfitting(RequestId),
    /// More came than was granted or asked for.
    #[error("more than was granted came for request {}", .0.0)]
    TooMuch(RequestId),
}

impl Calls {
    /// Leaves a refusal out, so that a test can show what it is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn without(mut self, switch: Switch) -> Self {
        self.without.push(switch);
        self
    }

    fn has(&self, switch: Switch) -> bool {
        !self.without.contains(&switch)
    }

    /// Issues an id for a request; the frame is to be sent as it is.
    pub fn begin(&mut self, request: Request) -> Result<Frame<Order>, Unavailable> {
        if self.open.len() >= MAX_OPEN {
            return Err(Unavailable::TooMany);
        }
        self.issued = self.issued.checked_add(1).ok_or(Unavailable::Exhausted)?;
        let id = RequestId(self.issued);
        self.open.insert(id, expected(&request));
        Ok(Frame {
            id,
            body: Order::Ask(request),
        })
    }

    /// Forgets a request whose frame was never sent.
    pub fn withdraw(&mut self, id: RequestId) {
        self.open.remove(&id);
    }

    /// Lets a command print further bytes, or `None` when it is over.
    pub fn grant(&mut self, id: RequestId, bytes: u32) -> Option<Frame<Order>> {
        let Some(Expected::Command { credit, .. }) = self.open.get_mut(&id) else {
            return None;
        };
        *credit += u64::from(bytes);
        Some(Frame {
            id,
            body: Order::Credit { bytes },
        })
    }

    /// Has a command killed, or `None` when it is over.
    pub fn kill(&self, id: RequestId) -> Option<Frame<Order>> {
        let is_running = matches!(self.open.get(&id), Some(Expected::Command { .. }));
        is_running.then_some(Frame {
            id,
            body: Order::Kill,
        })
    }

    /// Checks a frame of the guest.
    pub fn admit(&mut self, frame: &Frame<Response>) -> Result<Standing, Forged> {
        let id = frame.id;
        let refusal_of_strangers = if (1..=self.issued).contains(&id.0) {
            Switch::OneResult
        } else {
            Switch::IssuedIds
        };
        let Some(expected) = self.open.get_mut(&id) else {
            return if self.has(refusal_of_strangers) {
                Err(Forged::NotOpen(id))
            } else {
                Ok(Standing::Open)
            };
        };
        match expected.take(id, &frame.body) {
            Err(Forged::Unfitting(_)) if !self.has(Switch::FittingAnswers) => {}
            Err(Forged::TooMuch(_)) if !self.has(Switch::GrantedAmounts) => {}
            taken => taken?,
        }
        if frame.body.is_result() {
            self.open.remove(&id);
            return Ok(Standing::Over);
        }
        Ok(Standing::Open)
    }

    /// Lists the requests whose result has not come: lost, when the channel ends.
    pub fn open(&self) -> impl Iterator<Item = RequestId> {
        self.open.keys().copied()
    }
}

fn expected(request: &Request) -> Expected {
    match request {
        Request::Run(run) => Expected::Command {
            credit: u64::from(run.credit),
            output: run.output,
        },
        Request::View { .. } => Expected::FileBytes { left: MAX_FILE },
        Request::List(walk) => Expected::Entries {
            left: usize::try_from(walk.findings).unwrap_or(usize::MAX),
        },
        Request::Search { walk, .. } => Expected::Matches {
            left: usize::try_from(walk.findings).unwrap_or(usize::MAX),
        },
        Request::CreateFile { .. } | Request::StrReplace { .. } | Request::Shutdown => Expected::Done,
        Request::Forward { .. } => Expected::Listening,
        Request::Ping => Expected::Ready,
    }
}

impl Expected {
    fn take(&mut self, id: RequestId, body: &Response) -> Result<(), Forged> {
        match (self, body) {
            (Self::Command { credit, output }, Response::Output { bytes, .. }) => {
                let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                *credit = credit.checked_sub(bytes).ok_or(Forged::TooMuch(id))?;
                *output = output.checked_sub(bytes).ok_or(Forged::TooMuch(id))?;
                Ok(())
            }
            (Self::FileBytes { left }, Response::FileBytes(bytes)) => spend(left, bytes.len(), id),
            (Self::Entries { left }, Response::Entries(entries)) => {
                let is_short = |path: &std::path::Path| path.as_os_str().len() <= MAX_REPORTED;
                if !entries.iter().all(|entry| is_short(&entry.path)) {
                    return Err(Forged::TooMuch(id));
                }
                spend(left, entries.len(), id)
            }
            (Self::Matches { left }, Response::Matches(matches)) => spend(left, matches.len(), id),
            (_, Response::Refused(_) | Response::Fault(_))
            | (Self::Command { .. }, Response::Exited(_))
            | (Self::FileBytes { .. } | Self::Done, Response::Done)
            | (Self::Entries { .. } | Self::Matches { .. }, Response::Walked(_))
            | (Self::Listening, Response::Listening { .. })
            | (Self::Ready, Response::Ready { .. }) => Ok(()),
            (
                Self::Command { .. }
                | Self::FileBytes { .. }
                | Self::Entries { .. }
                | Self::Matches { .. }
                | Self::Done
                | Self::Listening
                | Self::Ready,
                _,
            ) => Err(Forged::Unfitting(id)),
        }
    }
}

fn spend(left: &mut usize, count: usize, id: RequestId) -> Result<(), Forged> {
    *left = left.checked_sub(count).ok_or(Forged::TooMuch(id))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Range, Run, Streams};
    use crate::response::{Ending, Exited, Stream, Usage};

    fn run() -> Request {
        Request::Run(Run {
            argv: vec!["true".into()],
            environment: Vec::new(),
            directory: "".into(),
            time_ms: 1,
            output: 6,
            credit: 4,
            streams: Streams::Together,
        })
    }

    fn output(text: &str) -> Response {
        Response::Output {
            stream: Stream::Merged,
            bytes: text.into(),
        }
    }

    fn exited(code: i32) -> Response {
        Response::Exited(Exited {
            ending: Ending::Code(code),
            usage: Usage::default(),
            dropped: 0,
        })
    }

    /// Answers the one request with these frames; the last must be judged so.
    fn check(request: Request, answers: &[Response], last: fn(RequestId) -> Result<Standing, Forged>) {
        let mut calls = Calls::default();
        let id = calls.begin(request).unwrap().id;
        let mut judged = Ok(Standing::Open);
        for answer in answers {
            assert_eq!(judged, Ok(Standing::Open), "{answers:?}");
            judged = calls.admit(&Frame {
                id,
                body: answer.clone(),
            });
        }
        assert_eq!(judged, last(id), "{answers:?}");
    }

    /// S-15: ids that the host issued, one result per id.
    #[test]
    fn an_answer_to_nothing_and_a_second_result_are_forged() {
        let mut calls = Calls::default();
        let id = calls.begin(run()).unwrap().id;
        for other in [0, id.0 + 1, u32::MAX] {
            let frame = Frame {
                id: RequestId(other),
                body: exited(0),
            };
            assert_eq!(calls.admit(&frame), Err(Forged::NotOpen(RequestId(other))));
        }
        let result = Frame { id, body: exited(1) };
        assert_eq!(calls.admit(&result), Ok(Standing::Over));
        let forged = Frame { id, body: exited(0) };
        assert_eq!(calls.admit(&forged), Err(Forged::NotOpen(id)));
        assert_ne!(calls.begin(run()).unwrap().id, id, "an id is never issued again");
    }

    /// S-15: nothing but what was asked for.
    #[test]
    fn an_answer_that_does_not_fit_is_forged() {
        check(run(), &[Response::Done], |id| Err(Forged::Unfitting(id)));
        check(run(), &[Response::FileBytes(vec![1])], |id| {
            Err(Forged::Unfitting(id))
        });
        check(Request::Ping, &[exited(0)], |id| Err(Forged::Unfitting(id)));
        let view = || Request::View {
            path: "a".into(),
            range: Range::Whole,
        };
        check(view(), &[output("a")], |id| Err(Forged::Unfitting(id)));
        check(view(), &[Response::FileBytes(vec![1]), Response::Done], |_| {
            Ok(Standing::Over)
        });
        check(run(), &[Response::Fault("a".into())], |_| Ok(Standing::Over));
    }

    /// S-15, EXEC-7: a guest cannot make the host hold more than it granted, nor print more than was asked for.
    #[test]
    fn more_than_was_granted_is_forged() {
        check(run(), &[output("abcd")], |_| Ok(Standing::Open));
        check(run(), &[output("abc"), output("de")], |id| {
            Err(Forged::TooMuch(id))
        });
        let mut calls = Calls::default();
        let id = calls.begin(run()).unwrap().id;
        calls.grant(id, 100).unwrap();
        let frame = Frame {
            id,
            body: output("abcdefg"),
        };
        assert_eq!(
            calls.admit(&frame),
            Err(Forged::TooMuch(id)),
            "six bytes were asked for"
        );
        let view = Request::View {
            path: "a".into(),
            range: Range::Whole,
        };
        let mib = || Response::FileBytes(vec![0; 1024 * 1024]);
        let nine: Vec<Response> = std::iter::repeat_with(mib).take(9).collect();
        check(view, &nine, |id| Err(Forged::TooMuch(id)));
    }

    #[test]
    fn what_is_over_is_neither_killed_nor_granted_anything() {
        let mut calls = Calls::default();
        let id = calls.begin(run()).unwrap().id;
        assert!(calls.kill(id).is_some() && calls.grant(id, 1).is_some());
        calls.admit(&Frame { id, body: exited(0) }).unwrap();
        assert_eq!((calls.kill(id), calls.grant(id, 1)), (None, None));
        assert_eq!(calls.open().count(), 0);
    }

    #[test]
    fn no_more_requests_are_begun_than_can_be_under_way() {
        let mut calls = Calls::default();
        for _ in 0..MAX_OPEN {
            calls.begin(Request::Ping).unwrap();
        }
        assert_eq!(calls.begin(Request::Ping), Err(Unavailable::TooMany));
    }
}
