//! The `conductor` program with crash points, for stories that kill it, before a world outside that a story sets.
//!
//! `CONDUCTOR_STAGE` names hosts and the loopback ports that play them: `files.example=4000,other.example=4001`. Each name
//! resolves to a public address, so everything that the gateway checks is checked; only the last step, the connection, is
//! led to loopback. The program that is shipped knows neither the variable nor any of this.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::egress::HostName;
use conductor_gateway::egress::Outside;
use tokio::net::TcpStream;

fn main() -> std::process::ExitCode {
    #[allow(clippy::disallowed_methods, reason = "how a story sets its stage")]
    let stage = std::env::var("CONDUCTOR_STAGE").unwrap_or_default();
    conductor::main_before(Arc::new(Stage::set(&stage)))
}

/// Hosts that a story plays; there are no others.
#[derive(Debug, Default)]
struct Stage {
    names: HashMap<String, IpAddr>,
    servers: HashMap<IpAddr, SocketAddr>,
}

impl Stage {
    fn set(told: &str) -> Self {
        let mut stage = Self::default();
        let hosts = told.split(',').filter_map(|host| host.split_once('='));
        for (place, (name, port)) in (1..=u8::MAX).zip(hosts) {
            // A public range, of which nobody is asked.
            let address = IpAddr::V4(Ipv4Addr::new(93, 184, 216, place));
            let Ok(port) = port.parse::<u16>() else { continue };
            stage.names.insert(name.to_owned(), address);
            stage
                .servers
                .insert(address, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        }
        stage
    }
}

#[async_trait]
impl Outside for Stage {
    async fn resolve(&self, host: &HostName) -> io::Result<Vec<IpAddr>> {
        let address = self.names.get(host.as_str()).ok_or(io::ErrorKind::NotFound)?;
        Ok(vec![*address])
    }

    fn is_own(&self, _address: IpAddr) -> bool {
        false
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let server = self.servers.get(&address.ip());
        let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
        TcpStream::connect(server).await
    }
}
