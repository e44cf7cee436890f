//! Serves a forge with one repository until it is interrupted, for other clients to be tried against.
//!
//! `cargo run -p conductor-forge --example serve -- DATA_DIR SOURCE_DIR` prints one line of JSON: where it
//! listens, the App's id, where its key lies, and a personal token of `alice`, who may write.

#![allow(clippy::print_stdout, reason = "what it prints is its output")]

use std::path::PathBuf;

use conductor_forge::state::Role;
use conductor_forge::{Forge, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(data), Some(source)) = (arguments.next(), arguments.next()) else {
        return Err("give a data directory and a source directory".into());
    };
    let forge = Forge::start(Options::in_dir(&data)).await?;
    if forge.repository("acme/widgets").is_err() {
        forge.import_repository("acme", "widgets", &source).await?;
    }
    forge.create_user("alice")?;
    forge.grant("acme/widgets", "alice", Role::Write)?;
    let described = serde_json::json!({
        "url": forge.base_url(),
        "app_id": forge.app_id(),
        "key": data.join("app.pem"),
        "repository": "acme/widgets",
        "alice": forge.personal_token("alice")?,
    });
    println!("{described}");
    tokio::signal::ctrl_c().await?;
    forge.shutdown().await;
    Ok(())
}
