//! The `conductor` program with crash points, for stories that kill it.

fn main() -> std::process::ExitCode {
    conductor::main()
}
