//! What an operator hears of what was denied, and how a grant reads.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conductor_domain::egress::{EgressDenial, EgressReason, EgressWay, Grant};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::Input;
use conductor_domain::instance::InstanceInput;
use conductor_gateway::egress::denial::MOST_TOLD;
use conductor_gateway::egress::{Denials as _, ToInbox};
use conductor_port::inbox::{Accepted, Inbox, Seen, Submission, SubmitError};

use crate::kit::{House, Stage, grant, request};

#[derive(Default)]
struct Kept(Mutex<Vec<Submission>>);

#[async_trait]
impl Inbox for Kept {
    async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError> {
        self.0.lock().expect("not poisoned").push(submission);
        Ok(Accepted {
            seq: 1,
            duplicate: false,
        })
    }

    async fn submit_to_instance(&self, _: InstanceInput, _: &str) -> Result<Accepted, SubmitError> {
        unreachable!("a denial concerns one run")
    }
}

/// BEY-6.
#[tokio::test]
async fn a_denial_becomes_an_input_of_its_run() {
    let inbox = Arc::new(Kept::default());
    let denial = EgressDenial {
        host: "files.example".into(),
        port: 443,
        way: EgressWay::Tunnel,
        reason: EgressReason::HostNotGranted,
        command: Some("call-1".into()),
    };
    let (run, effect) = (
        RunId::parse("r1").expect("a run"),
        EffectId::parse("r1.7.0").expect("an effect"),
    );
    ToInbox(Arc::clone(&inbox) as _)
        .denied(&run, &effect, denial.clone())
        .await;
    let submitted = inbox.0.lock().expect("not poisoned").clone();
    assert_eq!(
        submitted,
        [Submission {
            run,
            input: Input::EgressDenied {
                effect,
                denial: Box::new(denial),
            },
            dedupe: Some("egress:r1.7.0:Tunnel:HostNotGranted:443:files.example".into()),
            cause: "the egress proxy".into(),
            seen: Seen::Anything,
        }]
    );
}

/// BEY-6: told before the client hears of it, once, and no more than can be read.
#[tokio::test]
async fn denials_are_told_once_and_not_without_end() {
    let house = House::new(Stage::default());
    for _ in 0..3 {
        house.say(request("CONNECT again.example:443", "")).await;
    }
    assert_eq!(house.denials().len(), 1);
    for number in 0..100 {
        house
            .say(request(&format!("CONNECT h{number}.example:443"), ""))
            .await;
    }
    let denials = house.denials();
    assert_eq!(denials.len(), MOST_TOLD);
    let last = denials.last().expect("the last one");
    assert_eq!(
        (last.host.as_str(), last.reason),
        ("", EgressReason::LimitReached)
    );
}

/// S-34.
#[test]
fn a_grant_says_what_it_risks_and_reads_from_configuration() {
    let tunnel = grant("*.files.example", EgressWay::Tunnel, &[443, 8443]);
    assert_eq!(
        tunnel.to_string(),
        "tunnel to *.files.example on port 443, 8443 (can exfiltrate)"
    );
    let plain = grant("files.example", EgressWay::Plain, &[]);
    assert_eq!(
        plain.to_string(),
        "plain requests to files.example (can exfiltrate)"
    );
    for host in ["127.0.0.1", "*", "*.example", "localhost", "*.*.files.example"] {
        let text = serde_json::json!({ "host": host, "way": "tunnel" });
        assert!(serde_json::from_value::<Grant>(text).is_err(), "{host}");
    }
    let text = serde_json::json!({ "host": "Files.Example", "way": "plain" });
    assert_eq!(serde_json::from_value::<Grant>(text).expect("a grant"), plain);
}
