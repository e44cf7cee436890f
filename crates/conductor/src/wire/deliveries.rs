//! Reads deliveries for the door as GitHub words and signs them.
//!
//! It does not know what follows from a hint.

use std::sync::Arc;

use conductor_github::webhook as github;
use conductor_web::{Delivery, Hint, ReadDelivery, Rejected};
use secrecy::SecretString;

/// Lets the door read deliveries as GitHub words and signs them.
pub(crate) fn deliveries(secret: SecretString) -> ReadDelivery {
    Arc::new(move |delivery: Delivery<'_>| {
        let headers = github::Headers {
            event: delivery.event,
            delivery: delivery.id,
            signature: delivery.signature,
        };
        match github::receive(&secret, headers, delivery.body) {
            Ok(hint) => Ok(hint.map(|hint| Hint {
                delivery: hint.delivery,
                event: hint.event,
                body_hash: hint.body_digest,
                repo: hint.repo,
                subjects: hint.subjects,
                pushed_branch: hint.pushed_branch,
            })),
            Err(github::Rejected::Incomplete) => Err(Rejected::Incomplete),
            Err(github::Rejected::TooLarge | github::Rejected::Unsigned | github::Rejected::Forged) => {
                Err(Rejected::NotSigned)
            }
        }
    })
}
