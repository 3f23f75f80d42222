//! The `millstream-lab` command; see the library.

fn main() -> std::process::ExitCode {
    millstream_lab_cli::main()
}
