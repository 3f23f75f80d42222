//! The `millstream` command; see the library.

fn main() -> std::process::ExitCode {
    millstream_cli::main()
}
