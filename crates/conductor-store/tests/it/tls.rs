//! What is said to a server on the network is said to the right one, or not at all: real certificates, a real server.

use std::path::Path;

use conductor_port::ledger::Ledger;
use conductor_store::{Database, OpenError, Settings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::given::{batch, count};
use crate::postgres::own_server::OwnServer;
use crate::postgres::{column, raw};

/// An authority that vouches for servers.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut about = CertificateParams::new(Vec::new()).unwrap();
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = about.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(about, key),
            pem,
        }
    }

    /// The certificate of a server of this name, and its key.
    fn vouch_for(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let about = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = about.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn keep(&self, path: &Path) -> String {
        std::fs::write(path, &self.pem).unwrap();
        path.display().to_string()
    }
}

async fn refused(address: &str) -> OpenError {
    Database::connect(address, &Settings::default())
        .await
        .expect_err("nothing is said to this server")
}

/// SEC-2, DEP-1: with the right authority and the right name work goes on, encrypted; with another authority, with none
/// that is known, or with another name nothing is said.
#[tokio::test]
async fn a_server_is_believed_by_its_certificate_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (Authority::new(), Authority::new());
    let roots = ours.keep(&dir.path().join("ours.pem"));
    let wrong = other.keep(&dir.path().join("other.pem"));
    let (certificate, key) = ours.vouch_for("localhost");
    let server = OwnServer::with_tls(&certificate, &key);
    let at = |host: &str, more: &str| {
        format!(
            "postgres://postgres@{host}:{}/postgres?sslmode={more}",
            server.port()
        )
    };

    let store = Database::connect(
        &at("localhost", &format!("verify-full&sslrootcert={roots}")),
        &Settings::default(),
    )
    .await
    .unwrap();
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    assert_eq!(count(&store, "r-1").await, 1);
    let mut eye = raw(&server.address("postgres")).await;
    let encrypted = "SELECT CAST(bool_and(s.ssl) AS TEXT) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
        WHERE a.application_name = 'conductor'";
    assert_eq!(column(&mut eye, encrypted).await, ["true"]);
    store.close().await;

    for (what, address) in [
        (
            "another authority",
            at("localhost", &format!("verify-full&sslrootcert={wrong}")),
        ),
        ("the authorities of this machine", at("localhost", "verify-full")),
        (
            "another name",
            at("127.0.0.1", &format!("verify-full&sslrootcert={roots}")),
        ),
        (
            "no such file",
            at("localhost", "verify-full&sslrootcert=/nowhere/ca.pem"),
        ),
    ] {
        let error = refused(&address).await;
        assert_eq!(error.code(), "CDR0610", "{what}: {error:?}");
        assert!(error.hint().contains("certificate"), "{}", error.hint());
    }
    // The certificate may be for another name where the operator says so: the authority must still be right.
    let by_authority = at("127.0.0.1", &format!("verify-ca&sslrootcert={roots}"));
    let store = Database::connect(&by_authority, &Settings::default())
        .await
        .unwrap();
    store.close().await;
    let error = refused(&at("127.0.0.1", &format!("verify-ca&sslrootcert={wrong}"))).await;
    assert_eq!(error.code(), "CDR0610", "{error:?}");
}

/// SEC-2: a doctor sees whether what is said is encrypted.
#[tokio::test]
async fn an_examination_tells_whether_it_was_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let roots = authority.keep(&dir.path().join("ca.pem"));
    let (certificate, key) = authority.vouch_for("localhost");
    let server = OwnServer::with_tls(&certificate, &key);
    for (mode, encrypted) in [
        (format!("verify-full&sslrootcert={roots}"), true),
        ("disable".to_owned(), false),
    ] {
        let address = format!(
            "postgres://postgres@localhost:{}/postgres?sslmode={mode}",
            server.port()
        );
        let seen = Database::examine(
            &address,
            &Settings::default(),
            || conductor_domain::time::Timestamp(0),
            || std::time::Duration::ZERO,
        )
        .await
        .unwrap();
        assert_eq!(seen.encrypted, encrypted, "{mode}");
    }
}
