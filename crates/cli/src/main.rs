//! The `millstream` command; see the library beside it.

fn main() -> std::process::ExitCode {
    millstream_cli::main()
}
