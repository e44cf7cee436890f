//! The `conductor` program; all of it stands in the library of the same name.

fn main() -> std::process::ExitCode {
    conductor::main()
}
