//! What follows when a time has come that the run waited for.
//!
//! This module does not know what time it is but for what the context says.

use crate::deadline::{Deadline, next_deadline};
use crate::decide::draft::Draft;
use crate::decide::{merge, speech};
use crate::event::Event;
use crate::hold::HoldKind;
use crate::refusal::Refusal;

pub(super) fn passed(draft: &mut Draft<'_>, deadline: Deadline) -> Result<(), Refusal> {
    match next_deadline(draft.run()) {
        Some((at, due)) if due == deadline && at <= draft.now() => {}
        Some(_) | None => return Err(Refusal::NotDue),
    }
    match deadline {
        Deadline::ProviderReset => {
            draft.record(Event::HoldReleased {
                kind: HoldKind::ProviderLimit,
            });
            draft.proceed();
        }
        Deadline::Reminder => {
            draft.record(Event::Reminded { at: draft.now() });
            if let Some(message) = speech::reminder(draft.run()) {
                draft.say(message);
            }
        }
        Deadline::Flush => draft.flush(None),
        // Of early logs; no run waits for it any more.
        Deadline::Poll => merge::look_at(draft, None),
    }
    Ok(())
}
