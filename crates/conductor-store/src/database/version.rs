//! Keeps processes of different versions from working on one database at the same time (DEP-3).
//!
//! Every session that may write holds a shared lock that bears the schema and the rules of its process. Whoever comes takes
//! its own first and then looks for others, so that of two at least one sees the other. Whoever migrates looks under the
//! schema's lock, which every session passes through. It does not know what the versions differ in.

use conductor_domain::digest::Digest;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::error::{OpenError, Place};
use super::migrate::MIGRATIONS;
use super::sql;

/// What a session demands of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// Nothing yet: it may be about to make them.
    MayDiffer,
    /// That they are those of this version.
    MustBeOurs,
}

/// The number under which a version locks.
pub(super) fn number(rules: u32) -> i32 {
    let schema = MIGRATIONS.len();
    i32::try_from(schema * 10_000).unwrap_or(i32::MAX) + i32::try_from(rules % 10_000).unwrap_or(0)
}

/// Takes the lock of this version for the rest of the session, and refuses to stay beside another version.
pub(super) async fn settle_in(
    session: &mut PgConnection,
    place: &Place,
    rules: u32,
    schema: Schema,
) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("look into", place, error);
    let ours = number(rules);
    sqlx::query(sql::LOCK_VERSION)
        .bind(ours)
        .execute(&mut *session)
        .await
        .map_err(failed)?;
    // Whoever migrates at this moment has not seen our lock, and we must not look before it is done.
    sqlx::query(sql::PASS_SCHEMA_LOCK)
        .execute(&mut *session)
        .await
        .map_err(failed)?;
    let others = sqlx::query(sql::OTHER_VERSIONS)
        .bind(ours)
        .fetch_all(&mut *session)
        .await
        .map_err(failed)?;
    if let Some(row) = others.first() {
        return Err(other_version(place, ours, row.try_get(0).map_err(failed)?));
    }
    if schema == Schema::MustBeOurs {
        let newest = sqlx::query(sql::NEWEST_MIGRATION)
            .fetch_one(&mut *session)
            .await
            .map_err(failed)?;
        let (found, checksum): (i64, String) = (
            newest.try_get(0).map_err(failed)?,
            newest.try_get(1).map_err(failed)?,
        );
        let known = MIGRATIONS.last();
        let needed = known.map_or(0, |step| step.version);
        if found > needed {
            let (place, known) = (place.clone(), needed);
            return Err(OpenError::NewerSchema { place, found, known });
        }
        let is_ours = known.is_some_and(|step| Digest::of(step.postgres.as_bytes()).as_str() == checksum);
        if found < needed || !is_ours {
            let place = place.clone();
            return Err(OpenError::OlderSchema { place, found, needed });
        }
    }
    Ok(())
}

/// Names the versions that are at odds.
pub(super) fn other_version(place: &Place, ours: i32, theirs: i32) -> OpenError {
    let words = |number: i32| format!("schema {}, rules {}", number / 10_000, number % 10_000);
    OpenError::OtherVersion {
        place: place.clone(),
        theirs: words(theirs),
        ours: words(ours),
    }
}
