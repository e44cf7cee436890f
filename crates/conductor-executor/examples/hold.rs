//! Holds a local sandbox open until it is killed, for the test that shows what becomes of the sandbox then.
//!
//! `hold BASE [without]`: the sandbox works in `BASE/work`; says `open` when it is. It does not know who kills it.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for a test: it reads its arguments and says one word"
)]

use std::path::PathBuf;

use conductor_domain::id::{EffectId, RunId};
use conductor_executor::local::{Limits, MayMiss, Protection, Settings};
use conductor_executor::{Local, Toolchain};
use conductor_port::executor::{Executor as _, Profile, SandboxSpec};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let base = PathBuf::from(arguments.next().ok_or("BASE is needed")?);
    let local = Local::new(Settings {
        root: base.join("executor"),
        guest: None,
        toolchain: Toolchain::system(),
        limits: Limits::default(),
        may_miss: MayMiss::these(Protection::ALL),
    })?;
    #[cfg(debug_assertions)]
    let local = if arguments.next().is_some() {
        local.without(conductor_executor::local::Switch::DieWithParent)
    } else {
        local
    };
    let (effect, run) = (EffectId::parse("r1.1.0")?, RunId::parse("r1")?);
    let sandbox = local
        .open(SandboxSpec::new(effect, run, Profile::Tool, base.join("work")))
        .await?;
    println!("open");
    std::future::pending::<()>().await;
    Ok(sandbox.close().await?)
}
