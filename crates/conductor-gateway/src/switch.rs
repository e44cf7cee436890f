//! The protections of the ways out, each of which a test can leave out.
//!
//! What is an absence has no switch: nothing here reads descriptors that are passed along, and nothing follows a redirect.
//! This module does not know how a protection works.

conductor_port::switches! {
    /// The parent of all socket directories is closed to others (S-32).
    ClosedParent,
    /// Only the token of this very socket counts (S-32).
    OwnToken,
    /// No more visitors at a time than the limit (S-33).
    VisitorLimit,
    /// Only hosts that were granted (S-34).
    GrantedHosts,
    /// The grammar of host names, before anybody is asked about one (S-35).
    HostNames,
    /// Only global unicast addresses (S-36).
    PublicAddresses,
    /// No address of this host (S-36).
    ForeignAddresses,
    /// Every answer is checked, not only the one that is tried first (S-36).
    EveryAnswer,
    /// A name is resolved once, and connected to is what was checked (S-36).
    ResolvedOnce,
    /// Only the usual ports, or those that were granted (S-37).
    GrantedPorts,
    /// Plain requests name their host in the request line (S-38).
    AbsoluteForm,
    /// The `Host` that goes out is the one that was checked (S-38).
    OwnHost,
    /// Every request on a connection is checked, not only the first (S-38).
    CheckedAnew,
    /// A tunnel begins with a TLS hello (S-39).
    TlsOnly,
    /// The hello names the host that was asked for (S-39).
    SameName,
    /// The hello hides no other name (S-39).
    NoHiddenName,
    /// The hello has a size that hellos have (S-39).
    HelloSize,
    /// The hello comes in time (S-39).
    HelloTime,
}

/// The protections that a test left out; none in a release build.
#[derive(Debug, Clone, Default)]
pub(crate) struct Without(Vec<Switch>);

impl Without {
    #[cfg(debug_assertions)]
    pub(crate) fn also(&mut self, switch: Switch) {
        self.0.push(switch);
    }

    pub(crate) fn has(&self, switch: Switch) -> bool {
        !self.0.contains(&switch)
    }
}
