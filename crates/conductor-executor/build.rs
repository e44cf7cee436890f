//! Builds the guest and hands its bytes to the crate; cheap when the guest did not change.

#[path = "../conductor-guest/embed.rs"]
mod embed;

#[allow(
    clippy::disallowed_methods,
    reason = "a build script is told everything by the environment"
)]
fn main() -> Result<(), String> {
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let guest = embed::build(std::path::Path::new(&out))?;
    println!("cargo::rustc-env=GUEST={}", guest.display());
    for source in embed::sources() {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    Ok(())
}
