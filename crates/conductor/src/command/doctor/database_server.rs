//! Looks at a PostgreSQL server that keeps the records: its version, what its user may do, its clock, its distance.
//!
//! Servers that share a database go by the clock of its server, so that clock must be right: the forge refuses tokens that
//! are dated wrongly. Changes nothing. This module does not know what is kept.

use std::time::Duration;

use conductor_store::{Database, Examined, Reading, Settings};

use super::Check;
use crate::clock::{Stopwatch, machine_now};
use crate::settings::DatabaseUrl;
use crate::wire;

const SERVER: &str = "database server";
const RIGHTS: &str = "database rights";
const CLOCK: &str = "database clock";
const LATENCY: &str = "database latency";

/// The forge takes tokens that are dated up to a minute ahead; half of it is left for the forge's own clock.
const WRONG: Duration = Duration::from_secs(30);
/// Clocks that are kept are closer than this.
const STRANGE: Duration = Duration::from_secs(2);
/// A server of Conductor does not start where the clock cannot be read faster; every step of a run is several answers.
const TOO_FAR: Duration = Duration::from_millis(250);
const FAR: Duration = Duration::from_millis(25);

/// Looks at the server.
pub(super) async fn look(url: &DatabaseUrl) -> Vec<Check> {
    let watch = Stopwatch::start();
    let seen = Database::examine(url.expose(), &Settings::default(), machine_now, || {
        watch.elapsed()
    })
    .await;
    match seen {
        Ok(seen) => checks(&seen),
        Err(error) => vec![Check::because(SERVER, wire::cannot_open(error))],
    }
}

fn checks(seen: &Examined) -> Vec<Check> {
    let way = if seen.encrypted {
        "with TLS"
    } else {
        "on this machine, without TLS"
    };
    let mut checks = vec![
        Check::ok(SERVER, format!("PostgreSQL {}, {way}", seen.version)),
        rights(&seen.missing_rights),
    ];
    // The quickest answer says the most about the clock, the middle one about the distance.
    let mut readings = seen.readings.clone();
    readings.sort_by_key(|reading| reading.took);
    if let (Some(quickest), Some(usual)) = (readings.first(), readings.get(readings.len() / 2)) {
        checks.push(clock(quickest));
        checks.push(latency(usual.took));
    }
    checks
}

fn rights(missing: &[String]) -> Check {
    if missing.is_empty() {
        return Check::ok(RIGHTS, "its user may make, read and write the tables");
    }
    let named = missing
        .iter()
        .take(5)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = match missing.len().saturating_sub(5) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Check::fail(
        RIGHTS,
        format!("its user may not {named}{more}"),
        "let the user make tables in the schema, and own or be granted those that are there",
    )
}

fn clock(reading: &Reading) -> Check {
    let micros = reading.ahead();
    let apart = Duration::from_micros(micros.unsigned_abs());
    let direction = if micros < 0 { "behind" } else { "ahead of" };
    let found = format!("{} ms {direction} this machine's", apart.as_millis());
    if apart >= WRONG {
        let hint = "set both clocks by a time service; servers go by the database server's, and the forge refuses tokens dated wrongly";
        Check::fail(CLOCK, found, hint)
    } else if apart >= STRANGE {
        Check::warn(CLOCK, found, "set both clocks by a time service")
    } else {
        Check::ok(CLOCK, found)
    }
}

fn latency(took: Duration) -> Check {
    let found = format!("{:.1} ms for an answer", took.as_secs_f64() * 1e3);
    if took >= TOO_FAR {
        let hint = "`conductor serve` would refuse to start; run it nearer to the database server";
        Check::fail(LATENCY, found, hint)
    } else if took >= FAR {
        Check::warn(
            LATENCY,
            found,
            "every step takes several answers; nearer is faster",
        )
    } else {
        Check::ok(LATENCY, found)
    }
}
