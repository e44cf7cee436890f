//! Tells what runs took, in one statement and as one value: a row of sqlx costs far more than a run.
//!
//! It does not know what is counted.

use async_trait::async_trait;
use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::tally::{Span, Tally, Took};

use super::conn::Arg::{Int, OptInt, OptText};
use super::rows::{self, number};
use super::{Database, fault::fault};

#[async_trait]
impl Tally for Database {
    async fn took(&self, span: &Span) -> Result<Vec<Took>, Fault> {
        let attempted = "count runs";
        let repo = span.repo.map(|RepoId(id)| number(id)).transpose();
        let (Timestamp(from), Timestamp(until)) = (span.from, span.until);
        let args = [
            Int(from),
            Int(until),
            OptText(span.project.as_deref()),
            OptInt(repo.map_err(|error| fault(attempted, &error))?),
        ];
        let page = self
            .look(attempted, self.db.runs_took(), &args, rows::took)
            .await?;
        Ok(page.into_iter().flatten().collect())
    }
}
