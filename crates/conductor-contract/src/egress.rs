//! What every egress keeps: an outlet per sandbox, a token per outlet, nothing left when it is closed.
//!
//! ```ignore
//! conductor_contract::egress::holds(&my_egress, conductor_contract::egress::Sockets::Real).await;
//! ```
//!
//! It does not know what is granted.

use conductor_domain::id::{EffectId, RunId};
use conductor_port::egress::{Egress, Outlet, OutletSpec};

/// Whether the outlets' sockets are there to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// They are.
    Real,
    /// They are names only.
    Names,
}

async fn open(egress: &dyn Egress, effect: &str) -> Box<dyn Outlet> {
    let spec = OutletSpec {
        effect: EffectId::parse(effect).expect("an effect"),
        run: RunId::parse("r1").expect("a run"),
        grants: vec![],
    };
    egress.open(spec).await.expect("an outlet opens")
}

/// EXEC-3, S-32: panics where an egress does not keep what the port promises.
pub async fn holds(egress: &dyn Egress, sockets: Sockets) {
    let one = open(egress, "r1.7.0").await;
    let two = open(egress, "r1.8.0").await;
    assert_ne!(one.way().socket, two.way().socket, "each has a socket of its own");
    let is_there = |outlet: &dyn Outlet| outlet.way().socket.exists();
    let (first, second) = (one.environment("make test"), one.environment("make test"));
    assert!(!first.is_empty(), "a command is told where the outlet is");
    let names = |environment: &[(String, String)]| -> Vec<String> {
        environment.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&first), names(&second));
    assert_ne!(
        first,
        two.environment("make test"),
        "nothing of one opens another"
    );
    if sockets == Sockets::Real {
        assert!(is_there(one.as_ref()) && is_there(two.as_ref()));
    }
    let (closed, dropped) = (one.way().socket, two.way().socket);
    one.close().await;
    drop(two);
    assert!(!closed.exists() && !dropped.exists(), "nothing is left");
    let again = open(egress, "r1.7.0").await;
    assert_eq!(again.way().socket, closed, "an effect finds its place again");
    again.close().await;
}
