//! Makes room in a database for the records of a demo: a schema of their own, which goes with it.
//!
//! It does not know what is kept there.

use conductor_store::Scratch;

use super::cannot_open;
use crate::clock::mint_secret;
use crate::exit::Failure;
use crate::settings::DatabaseUrl;

/// Makes room in a database for records that go with a demo.
pub(crate) async fn scratch(url: &DatabaseUrl) -> Result<Scratch, Failure> {
    let name = format!("conductor_demo_{}", &mint_secret()[..12]);
    Scratch::make(url.expose(), &name).await.map_err(cannot_open)
}

/// The address of such room.
pub(crate) fn address(scratch: &Scratch) -> DatabaseUrl {
    DatabaseUrl::new(scratch.address())
}
