//! Lists the system calls that are refused, each with when and how.
//!
//! How: `EPERM` where a program expects to be told no, `ENOSYS` where it has an older way to do the same, `EACCES` for
//! sockets, as `socket(2)` says, and where the kernel's own answer could be either of the two, so that a test can tell
//! who refused. All rules of one call share their answer, because libseccomp wants it so.
//! When: compared are the low 32 bits only, as the kernel does with `int` arguments; comparing all 64 let callers pass
//! with a forbidden value and garbage above it. This module does not know how a rule is compiled.

use libc::{EACCES, ENOSYS, EPERM};

/// A call with a number above this one does not exist (Linux 6.18).
pub const NEWEST: u32 = 469;

/// A system call that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Its number here.
    pub number: u32,
    /// All of these must hold; none: always.
    pub when: &'static [Test],
    /// The error that the caller sees.
    pub errno: u16,
}

/// A test of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It is this.
    Is(u8, u32),
    /// It is anything but this.
    IsNot(u8, u32),
    /// It is greater than this.
    Above(u8, u32),
    /// Of these bits, it has exactly those.
    Bits {
        /// Which argument.
        argument: u8,
        /// The bits that count.
        mask: u32,
        /// How they stand.
        value: u32,
    },
}

const fn rule(name: &'static str, number: libc::c_long, errno: i32, when: &'static [Test]) -> Rule {
    assert!(number >= 0 && number <= NEWEST as libc::c_long && errno > 0 && errno < 4096);
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "checked in the line above, at compile time"
    )]
    Rule {
        name,
        number: number as u32,
        when,
        errno: errno as u16,
    }
}

macro_rules! rules {
    ($( $name:ident = $number:expr => $errno:ident $( when [ $($test:expr),+ ] )? ; )*) => {
        &[ $( rule(stringify!($name), $number, $errno, &[ $( $($test),+ )? ]) ),* ]
    };
}

/// Every rule. Several for one call are alternatives.
#[cfg(target_arch = "x86_64")]
pub const TABLE: &[Rule] = &joined::<{ EVERYWHERE.len() + X86_64.len() }>(EVERYWHERE, X86_64);

/// Every rule. Several for one call are alternatives.
#[cfg(not(target_arch = "x86_64"))]
pub const TABLE: &[Rule] = EVERYWHERE;

#[cfg(target_arch = "x86_64")]
const fn joined<const N: usize>(first: &[Rule], second: &[Rule]) -> [Rule; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    all
}

/// The argument has this one bit.
const fn bit(argument: u8, bit: i32) -> Test {
    #[allow(clippy::cast_sign_loss, reason = "a bit is a bit")]
    Test::Bits {
        argument,
        mask: bit as u32,
        value: bit as u32,
    }
}

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;

/// The type without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
const fn socket_type(value: u32) -> Test {
    Test::Bits {
        argument: 1,
        mask: 0xf,
        value,
    }
}

const RAW: u32 = 3;
const RDM: u32 = 4;
const SEQPACKET: u32 = 5;
const DCCP: u32 = 6;
const PACKET: u32 = 10;
const UDP_PROTOCOL: u32 = 17;

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;

const EVERYWHERE: &[Rule] = rules![
    // New namespaces: the way to a larger kernel surface. `clone3` hides its flags behind a pointer; libc falls back.
    unshare = libc::SYS_unshare => EPERM;
    setns = libc::SYS_setns => EPERM;
    clone3 = libc::SYS_clone3 => ENOSYS;
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWNS)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWCGROUP)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWUTS)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWIPC)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWUSER)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWPID)];
    clone = libc::SYS_clone => EPERM when [bit(0, libc::CLONE_NEWNET)];

    // Mounts, old and new.
    mount = libc::SYS_mount => EPERM;
    umount2 = libc::SYS_umount2 => EPERM;
    pivot_root = libc::SYS_pivot_root => ENOSYS;
    open_tree = libc::SYS_open_tree => ENOSYS;
    move_mount = libc::SYS_move_mount => ENOSYS;
    fsopen = libc::SYS_fsopen => ENOSYS;
    fsconfig = libc::SYS_fsconfig => ENOSYS;
    fsmount = libc::SYS_fsmount => ENOSYS;
    fspick = libc::SYS_fspick => ENOSYS;
    mount_setattr = libc::SYS_mount_setattr => ENOSYS;
    open_tree_attr = 467 => ENOSYS;

    // Submission queues act without passing this filter.
    io_uring_setup = libc::SYS_io_uring_setup => ENOSYS;
    io_uring_enter = libc::SYS_io_uring_enter => ENOSYS;
    io_uring_register = libc::SYS_io_uring_register => ENOSYS;

    // Other processes' memory and descriptors.
    ptrace = libc::SYS_ptrace => EPERM;
    process_vm_readv = libc::SYS_process_vm_readv => EPERM;
    process_vm_writev = libc::SYS_process_vm_writev => EPERM;
    pidfd_getfd = libc::SYS_pidfd_getfd => EPERM;
    kcmp = libc::SYS_kcmp => ENOSYS;

    // Parts of the kernel that no build needs and that have often been broken.
    bpf = libc::SYS_bpf => ENOSYS;
    perf_event_open = libc::SYS_perf_event_open => ENOSYS;
    userfaultfd = libc::SYS_userfaultfd => ENOSYS;
    keyctl = libc::SYS_keyctl => ENOSYS;
    add_key = libc::SYS_add_key => ENOSYS;
    request_key = libc::SYS_request_key => ENOSYS;
    name_to_handle_at = libc::SYS_name_to_handle_at => ENOSYS;
    open_by_handle_at = libc::SYS_open_by_handle_at => ENOSYS;
    memfd_secret = 447 => EPERM;
    personality = libc::SYS_personality => EPERM when [Test::IsNot(0, 0)];

    // Typing into a terminal that somebody else reads.
    ioctl = libc::SYS_ioctl => EPERM when [Test::Is(1, TIOCSTI)];
    ioctl = libc::SYS_ioctl => EPERM when [Test::Is(1, TIOCLINUX)];

    // Sockets: unix, TCP, UDP, and the netlink family that lists addresses.
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 0)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 3)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 4)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 5)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 6)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 7)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 8)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 9)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 11)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 12)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 13)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 14)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, 15)];
    socket = libc::SYS_socket => EACCES when [Test::Above(0, NETLINK)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, NETLINK), Test::IsNot(2, NETLINK_ROUTE)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), socket_type(RAW)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), socket_type(RDM)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), socket_type(SEQPACKET)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), socket_type(DCCP)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), socket_type(PACKET)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET), Test::Above(2, UDP_PROTOCOL)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), socket_type(RAW)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), socket_type(RDM)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), socket_type(SEQPACKET)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), socket_type(DCCP)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), socket_type(PACKET)];
    socket = libc::SYS_socket => EACCES when [Test::Is(0, INET6), Test::Above(2, UDP_PROTOCOL)];
    socketpair = libc::SYS_socketpair => EACCES when [Test::IsNot(0, UNIX)];

    // What needs a capability that nobody in a sandbox has, once more.
    init_module = libc::SYS_init_module => EACCES;
    finit_module = libc::SYS_finit_module => EACCES;
    delete_module = libc::SYS_delete_module => EACCES;
    kexec_load = libc::SYS_kexec_load => EACCES;
    reboot = libc::SYS_reboot => EACCES;
    swapon = libc::SYS_swapon => EACCES;
    swapoff = libc::SYS_swapoff => EACCES;
    acct = libc::SYS_acct => EACCES;
    quotactl = libc::SYS_quotactl => EACCES;
    settimeofday = libc::SYS_settimeofday => EACCES;
    clock_settime = libc::SYS_clock_settime => EACCES;
];

#[cfg(target_arch = "x86_64")]
const X86_64: &[Rule] = rules![
    modify_ldt = libc::SYS_modify_ldt => EPERM;
    iopl = libc::SYS_iopl => EACCES;
    ioperm = libc::SYS_ioperm => EACCES;
];
