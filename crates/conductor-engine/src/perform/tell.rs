//! Tells a notice to whoever listens outside.
//!
//! This module does not know what happened, nor what is told next.

use conductor_domain::fault::Fault;
use conductor_port::herald::{Herald, Notice};

/// Tells a notice. If repeated: the listener gets it again under the same id, by which it knows it.
pub(crate) async fn tell(herald: &dyn Herald, notice: &Notice) -> Result<(), Fault> {
    herald.tell(notice).await
}
