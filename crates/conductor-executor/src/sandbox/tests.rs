//! A sandbox whose guest is a thread at the other end of real pipes.

use std::io::{PipeReader, Write as _};

use conductor_guest::frame::{Frame, RequestId};
use conductor_guest::response::{self, Exited, Usage};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::net::unix::pipe;

use super::*;

/// A command meets the limit of memory as soon as it is asked for.
#[derive(Debug)]
struct AtOnce(PipeReader);

#[async_trait]
impl Outside for AtOnce {
    fn counters(&self) -> Counters {
        let asked = rustix::io::ioctl_fionread(&self.0).expect("a pipe is asked");
        Counters {
            memory: u64::from(asked > 0),
            processes: 0,
        }
    }

    fn said(&self) -> String {
        String::new()
    }

    fn guest_lost(&self) {}

    fn kill(&self) {}

    async fn end(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// EXEC-6, S-42: on a busy machine a command may be over before anybody looks at it.
#[tokio::test]
async fn a_limit_that_is_met_at_once_is_named() {
    let (orders, sender) = std::io::pipe().expect("a pipe");
    let (receiver, mut responses) = std::io::pipe().expect("a pipe");
    let heard = orders.try_clone().expect("a second end");
    let guest = std::thread::spawn(move || {
        poll(&mut [PollFd::new(&heard, PollFlags::IN)], None).expect("an order");
        let body = Response::Exited(Exited {
            ending: response::Ending::Code(0),
            usage: Usage::default(),
            dropped: 0,
        });
        let mut bytes = Vec::new();
        let id = RequestId(1);
        Frame { id, body }.encode(&mut bytes).expect("a frame");
        responses.write_all(&bytes).expect("an answer");
        // Whoever hangs up is lost.
        responses
    });
    let sender = pipe::Sender::from_owned_fd(sender.into()).expect("a sender");
    let receiver = pipe::Receiver::from_owned_fd(receiver.into()).expect("a receiver");
    // So that the order goes out at once, as it does wherever something was asked before.
    sender.writable().await.expect("a sender");
    let sandbox = GuestSandbox {
        channel: Channel::open(sender, receiver),
        outside: Arc::new(AtOnce(orders)),
        environment: Vec::new(),
    };
    let command = Command {
        argv: vec!["true".to_owned()],
        environment: Vec::new(),
        time: Millis::seconds(60),
        output: 100,
        listener: None,
    };
    let limit = "memory".to_owned();
    let result = sandbox.bash(command).await.expect("an answer");
    assert_eq!(result.ending, Ending::LimitExceeded { limit });
    drop(guest.join());
}
