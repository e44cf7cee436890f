//! Holds the App's RSA key pair: generated once and kept in the data directory, or given by the operator.
//!
//! It does not know what is signed with it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::DecodingKey;

use crate::refusal::Refusal;

pub(crate) struct AppKey {
    private_pem: String,
    verifier: DecodingKey,
}

impl AppKey {
    /// Reads the key of the data directory, generating it the first time.
    pub(crate) fn kept_in(dir: &Path) -> Result<Self, Refusal> {
        let path = dir.join("app.pem");
        match fs::read_to_string(&path) {
            Ok(pem) => Self::from_pem(&pem),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let pem = generate()?;
                fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
                    .and_then(|mut file| file.write_all(pem.as_bytes()))
                    .map_err(|error| broken(format!("cannot write {}: {error}", path.display())))?;
                Self::from_pem(&pem)
            }
            Err(error) => Err(broken(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Accepts both forms in circulation: PKCS#1, as GitHub hands out, and PKCS#8.
    pub(crate) fn from_pem(pem: &str) -> Result<Self, Refusal> {
        let body: String = pem
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .map(str::trim)
            .collect();
        let der = STANDARD
            .decode(body)
            .map_err(|error| broken(format!("the App key is not PEM: {error}")))?;
        let pair = KeyPair::from_pkcs8(&der)
            .or_else(|_| KeyPair::from_der(&der))
            .map_err(|error| broken(format!("the App key is not an RSA private key: {error}")))?;
        let public = pair.public_key();
        let verifier = DecodingKey::from_rsa_raw_components(
            public.modulus().big_endian_without_leading_zero(),
            public.exponent().big_endian_without_leading_zero(),
        );
        Ok(Self {
            private_pem: pem.to_owned(),
            verifier,
        })
    }

    pub(crate) fn private_pem(&self) -> &str {
        &self.private_pem
    }

    pub(crate) fn verifier(&self) -> &DecodingKey {
        &self.verifier
    }
}

fn generate() -> Result<String, Refusal> {
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(|_| broken("cannot generate the App key"))?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| broken("cannot encode the App key"))?;
    let encoded = STANDARD.encode(der.as_ref());
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    for line in encoded.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

fn broken(message: impl Into<String>) -> Refusal {
    Refusal::Broken(message.into())
}
