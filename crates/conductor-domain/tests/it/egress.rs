//! What may be reached, as people write it, and who may say so.

use conductor_domain::egress::grant::{BadGrant, check};
use conductor_domain::egress::host::BadHostName;
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

/// EXEC-3, S-35, S-37: only what is granted passes: this host or what is below it, this way, this port; the answer names what
/// is missing.
#[test]
fn a_grant_opens_its_host_its_way_and_its_port() {
    use EgressReason::{HostNotGranted, PortNotGranted};
    use EgressWay::{Plain, Tunnel};

    let grants = [
        grant("files.example"),
        grant("*.wide.example"),
        grant("ports.example:8443"),
        grant("http://plain.example"),
    ];
    for (way, host, port, answer) in [
        (Tunnel, "files.example", 443, Ok(())),
        (Tunnel, "files.example", 80, Err(PortNotGranted)),
        (Plain, "files.example", 443, Err(HostNotGranted)),
        (Plain, "files.example", 80, Err(HostNotGranted)),
        (Tunnel, "sub.files.example", 443, Err(HostNotGranted)),
        (Tunnel, "other.example", 443, Err(HostNotGranted)),
        (Tunnel, "a.wide.example", 443, Ok(())),
        (Tunnel, "a.b.wide.example", 443, Ok(())),
        (Tunnel, "wide.example", 443, Err(HostNotGranted)),
        (Tunnel, "notwide.example", 443, Err(HostNotGranted)),
        (Tunnel, "ports.example", 8443, Ok(())),
        (Tunnel, "ports.example", 443, Err(PortNotGranted)),
        (Plain, "plain.example", 80, Ok(())),
        (Plain, "plain.example", 443, Err(PortNotGranted)),
        (Tunnel, "plain.example", 443, Err(HostNotGranted)),
    ] {
        let name = HostName::parse(host).expect("a host");
        assert_eq!(name.as_str(), host);
        assert_eq!(check(&grants, way, &name, port), answer, "{way:?} {host}:{port}");
    }
    let name = HostName::parse("files.example").expect("a host");
    assert_eq!(check(&[], Tunnel, &name, 443), Err(HostNotGranted));
}

/// S-35: a name has an end; the longest there is passes, one character more does not.
#[test]
fn a_host_name_is_not_too_long() {
    let long = |last: usize| format!("{}{}.example", "a.".repeat(122), "b".repeat(last));
    assert_eq!(long(1).len(), 253);
    assert!(HostName::parse(&long(1)).is_ok());
    assert_eq!(HostName::parse(&long(2)), Err(BadHostName::Length));
    assert_eq!(HostName::parse(&long(9)), Err(BadHostName::Length));
    assert_eq!(HostName::parse(""), Err(BadHostName::Length));
}

/// S-34: an operator reads what a grant opens, and what it risks; a record holds it as it is written.
#[test]
fn a_grant_reads_with_its_risk() {
    let risk = EgressWay::RISK;
    for (text, read) in [
        ("files.example", format!("tunnel to files.example ({risk})")),
        (
            "http://*.files.example:8080",
            format!("plain requests to *.files.example on port 8080 ({risk})"),
        ),
    ] {
        assert_eq!(grant(text).to_string(), read);
    }
    let kept = serde_json::to_value(grant("*.files.example")).expect("plain");
    assert_eq!(kept["host"], "*.files.example");
}
