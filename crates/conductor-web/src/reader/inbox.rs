//! Reads what waits for a person: every gate, question and hold, and every clean-up that failed, however many, in the order
//! in which they were asked.
//!
//! A run that is touched keeps its place; one that is asked about anew goes to the end. This module does not know who
//! answers.

use conductor_domain::fault::FaultKind;
use conductor_domain::id::ProjectId;
use conductor_port::views::RunFilter;

use super::{MAX_RUNS, Reader, damaged};
use crate::api::Approvals;
use crate::error::Error;

impl Reader {
    /// Lists the runs that wait for a person, of one project or of all, oldest question first, with what they wait for.
    pub async fn approvals(&self, project: Option<&ProjectId>) -> Result<Approvals, Error> {
        let mut filter = RunFilter {
            project: project.map(ToString::to_string),
            needs_human: true,
            limit: MAX_RUNS,
            ..RunFilter::default()
        };
        let mut approvals = Approvals {
            waiting: vec![],
            damaged: vec![],
        };
        loop {
            let rows = self.next_rows(&mut filter).await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let detail = match row.parse() {
                    Ok(run) => self.detail(&row, &run).await,
                    Err(fault) => Err(fault.into()),
                };
                match detail {
                    Ok(detail) => approvals.waiting.push(detail),
                    Err(Error::Fault(fault)) if fault.kind == FaultKind::Permanent => {
                        approvals.damaged.push(damaged(&row, fault));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        // Of what was asked at one instant, the run that is older stands first, so that the order is always the same.
        approvals.waiting.sort_by_cached_key(|detail| {
            let run = &detail.run;
            let asked_at = detail.asked_at.unwrap_or(run.updated_at);
            (asked_at, run.created_at, run.id.clone())
        });
        // When these were asked is in what cannot be read.
        approvals
            .damaged
            .sort_by_cached_key(|run| (run.updated_at, run.created_at, run.id.clone()));
        Ok(approvals)
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::event::Event;
    use conductor_domain::hold::Hold;
    use conductor_domain::id::{OperatorName, RunId};
    use conductor_domain::input::{Action, Input};
    use conductor_domain::run::Run;
    use conductor_domain::spec::Priority;
    use conductor_domain::time::Timestamp;
    use conductor_port::ledger::{Record, RunRow, StreamId};

    use super::*;
    use crate::fake::played::Played;
    use crate::fake::{Fake, request, row};

    /// BEY-4: everything that waits for a person is in one place.
    #[tokio::test]
    async fn approvals_list_only_what_waits_for_a_person() {
        let fake = Fake::with_repo();
        let played = Played::start(&fake);
        let waiting = async || fake.reader().approvals(None).await.expect("read").waiting.len();
        assert_eq!(waiting().await, 0);
        let _played = played.until_plan_gate("the plan");
        assert_eq!(waiting().await, 1);
    }

    /// BEY-4, ENV-3: a run that is over and could not be cleaned up waits for a person as any other, who is told what to do.
    #[tokio::test]
    async fn a_clean_up_that_failed_waits_for_a_person() {
        let fake = Fake::with_repo();
        Played::start(&fake)
            .until_plan_gate("the plan")
            .until_left_behind("the disk is gone");
        let waiting = fake.reader().approvals(None).await.expect("read").waiting;
        let told: Vec<_> = waiting
            .iter()
            .map(|detail| {
                (
                    detail.run.ended,
                    detail.waits_for.as_str(),
                    detail.next.as_slice(),
                )
            })
            .collect();
        let again = crate::api::NextStep {
            what: "clean up again".to_owned(),
            command: "conductor run retry r-1".to_owned(),
        };
        let why = "a person: its clean-up failed (the disk is gone); `retry` asks for it again";
        assert_eq!(told, [(true, why, [again].as_slice())]);
    }

    /// Places a run that failed at one time, and whose records went on until another.
    fn fail(fake: &Fake, id: &str, at: Timestamp, until: Timestamp) {
        let born = row(id, 3, None);
        let run: Run = serde_json::from_str(&born.state).expect("a run");
        let started = Event::RunStarted {
            spec: Box::new(run.spec),
        };
        let held = Event::HoldPlaced {
            hold: Hold::Failure {
                reason: "push".into(),
            },
        };
        let moved = Event::Reprioritized {
            priority: Priority::new(9).expect("from 1 to 10"),
        };
        let told = [
            (started, Timestamp(1)),
            (held.clone(), at),
            (held, until),
            (moved, until),
        ];
        let mut world = fake.world();
        let mut state = None;
        for (seq, (event, at)) in (1..).zip(&told) {
            state = conductor_domain::evolve(state, event);
            let record = Record {
                stream: StreamId::Run(born.run.clone()).as_key(),
                seq,
                kind: event.name().to_owned(),
                class: "decision".to_owned(),
                payload: serde_json::to_string(event).expect("plain data"),
                at: *at,
                ..world.records[0].clone()
            };
            world.records.push(record);
        }
        world.rows.push(RunRow {
            held: true,
            needs_human: true,
            state: serde_json::to_string(&state).expect("plain data"),
            updated_at: until,
            ..born
        });
    }

    /// UI-3, BEY-4: who was asked first is first, over the wire, too; a touch moves nobody, and what is said twice is no
    /// younger for it.
    #[tokio::test]
    async fn what_was_asked_first_stands_first_whatever_was_touched_since() {
        let fake = Fake::with_repo();
        let mut played = Played::start(&fake).until_plan_gate("the plan");
        let opened = {
            let state = fake.world().rows[0].state.clone();
            let run: Run = serde_json::from_str(&state).expect("a run");
            run.gate().expect("a gate is open").opened_at
        };
        let (later, last) = (Timestamp(opened.0 + 1), Timestamp(opened.0 + 1_000_000_000));
        played.feed(&Input::Operate {
            by: OperatorName::parse("ann").expect("a name"),
            action: Action::Reprioritize {
                priority: Priority::new(9).expect("from 1 to 10"),
            },
        });
        {
            let mut world = fake.world();
            let touched = world.rows[0].clone();
            assert!(touched.updated_at > later, "it was touched: {touched:?}");
            let opened_at = |at: Timestamp| format!("\"opened_at\":{}", at.0);
            assert!(touched.state.contains(&opened_at(opened)), "{touched:?}");
            world.rows.push(RunRow {
                run: RunId::parse("r-2").expect("a slug"),
                state: touched.state.replace(&opened_at(opened), &opened_at(later)),
                updated_at: later,
                ..touched
            });
        }
        let before = Timestamp(opened.0 - 1);
        fail(&fake, "r-3", before, last);
        // Nothing tells when this one was asked, so that its last change must.
        fake.world().rows.push(RunRow {
            needs_human: true,
            updated_at: last,
            ..row("r-4", 4, None)
        });
        let waiting = fake.reader().approvals(None).await.expect("read").waiting;
        let order: Vec<_> = waiting
            .iter()
            .map(|detail| (detail.run.id.as_str(), detail.asked_at))
            .collect();
        assert_eq!(
            order,
            [
                ("r-3", Some(before)),
                ("r-1", Some(opened)),
                ("r-2", Some(later)),
                ("r-4", None)
            ]
        );
        let (_, wire) = fake.ask(request("GET", "/api/v1/approvals", "")).await;
        let wire: Vec<_> = wire["waiting"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|detail| detail["run"]["id"].clone())
            .collect();
        assert_eq!(wire, ["r-3", "r-1", "r-2", "r-4"]);
    }

    /// BEY-4: however many wait, none is left out, least of all the one that waits longest.
    #[tokio::test]
    async fn more_than_a_page_of_them_are_all_there() {
        let fake = Fake::with_repo();
        let many = u64::from(MAX_RUNS) + 1;
        for n in 0..many {
            fake.world().rows.push(RunRow {
                needs_human: true,
                updated_at: Timestamp(if n == many - 1 { 1 } else { 2 }),
                ..row(&format!("r-{n}"), n, None)
            });
        }
        let waiting = fake.reader().approvals(None).await.expect("read").waiting;
        let first = waiting.first().map(|detail| detail.run.issue);
        assert_eq!((u64::try_from(waiting.len()), first), (Ok(many), Some(many - 1)));
    }
}
