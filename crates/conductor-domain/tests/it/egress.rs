//! What may be reached, as people write it, and who may say so.

use conductor_domain::egress::grant::{BadGrant, check};
use conductor_domain::egress::{EgressDenial, EgressReason, EgressWay, Grant, HostName};
use conductor_domain::id::ProjectId;
use conductor_domain::instance::{
    Instance, InstanceEvent, InstanceInput, InstanceRefusal, decide_instance, evolve_instance,
};

use crate::world::operator;

fn grant(text: &str) -> Grant {
    Grant::parse(text).expect("a grant")
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).expect("a slug")
}

/// EXEC-3, S-35, S-37: a grant is written as a host name, and read back as it is written.
#[test]
fn a_grant_is_written_as_a_host_name() {
    for (text, written) in [
        ("files.example", "files.example"),
        ("FILES.example", "files.example"),
        ("https://files.example", "files.example"),
        ("files.example:443", "files.example"),
        ("*.files.example", "*.files.example"),
        ("files.example:8443", "files.example:8443"),
        ("http://files.example", "http://files.example"),
        ("http://files.example:80", "http://files.example"),
        ("http://files.example:443", "http://files.example:443"),
    ] {
        assert_eq!(grant(text).written(), [written], "{text}");
        assert_eq!(grant(written), grant(text), "{text}");
    }
    for bad in [
        "",
        "*",
        "*.example",
        "localhost",
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "::1",
        "files.example/path",
        "user@files.example",
        "files.example?x",
        "files.example ",
        "ftp://files.example",
        "*.*.files.example",
        "http://",
        "b\u{fc}cher.example",
        "files.example\n",
    ] {
        assert!(Grant::parse(bad).is_err(), "{bad:?}");
    }
    for bad in [
        "files.example:",
        "files.example:0",
        "files.example:65536",
        "files.example:+443",
        "files.example:a",
    ] {
        assert_eq!(Grant::parse(bad), Err(BadGrant::Port(bad.to_owned())), "{bad:?}");
    }
}

/// BEY-6: what a denial asks for is exactly what would have let it pass, and nothing that could not.
#[test]
fn a_denial_asks_for_the_smallest_grant() {
    use EgressReason::{AddressNotPublic, BadHostName, HostNotGranted, PortNotGranted, WrongToken};
    use EgressWay::{Plain, Tunnel};

    let denial = |host: &str, port, way, reason| EgressDenial {
        host: host.to_owned(),
        port,
        way,
        reason,
        command: None,
    };
    for (host, port, way, reason, wanted) in [
        (
            "files.example",
            443,
            Tunnel,
            HostNotGranted,
            Some("files.example"),
        ),
        (
            "files.example",
            80,
            Plain,
            HostNotGranted,
            Some("http://files.example"),
        ),
        (
            "files.example",
            8443,
            Tunnel,
            PortNotGranted,
            Some("files.example:8443"),
        ),
        ("127.0.0.1", 443, Tunnel, BadHostName, None),
        ("files.example", 443, Tunnel, AddressNotPublic, None),
        ("", 0, Tunnel, WrongToken, None),
        ("$(reboot)", 443, Tunnel, HostNotGranted, None),
    ] {
        let denial = denial(host, port, way, reason);
        let asked = denial.wanted();
        assert_eq!(
            asked.clone().map(|grant| grant.written().concat()).as_deref(),
            wanted
        );
        if let Some(asked) = asked {
            let host = HostName::parse(host).expect("a host");
            assert_eq!(check(&[asked], way, &host, port), Ok(()));
        }
    }
}

/// BEY-6, RUN-3: a grant is an operator's, to one project that exists, once; and so is its end.
#[test]
fn grants_are_given_to_projects_and_taken_back() {
    let give = |name: &str, text: &str| InstanceInput::GrantEgress {
        by: operator("ann"),
        project: project(name),
        grant: grant(text),
    };
    let take = |name: &str, text: &str| InstanceInput::RevokeEgress {
        by: operator("ann"),
        project: project(name),
        grant: grant(text),
    };
    let mut instance = Instance::default();
    assert_eq!(
        decide_instance(&instance, &give("p", "files.example")),
        Err(InstanceRefusal::NoSuchProject(project("p")))
    );
    instance.projects = vec![project("p"), project("q")];
    let before = instance.clone();
    let given = decide_instance(&instance, &give("p", "files.example")).expect("allowed");
    assert_eq!(
        given,
        [InstanceEvent::EgressGranted {
            by: operator("ann"),
            project: project("p"),
            grant: grant("files.example"),
        }]
    );
    instance = given.iter().fold(instance, evolve_instance);
    assert_eq!(instance.egress_of(&project("p")), [grant("files.example")]);
    assert_eq!(instance.egress_of(&project("q")), []);
    assert_eq!(
        decide_instance(&instance, &give("p", "files.example")),
        Ok(vec![])
    );
    for (name, text) in [
        ("q", "files.example"),
        ("p", "http://files.example"),
        ("p", "*.files.example"),
    ] {
        let refusal = decide_instance(&instance, &take(name, text)).expect_err("not granted");
        assert_eq!(refusal.code(), "CDR0207");
    }
    let taken = decide_instance(&instance, &take("p", "files.example")).expect("granted before");
    instance = taken.iter().fold(instance, evolve_instance);
    assert_eq!(instance, before);
}
