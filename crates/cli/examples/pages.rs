//! Writes the manual pages and the completions of the `millstream` command: `pages FOLDER`.
//!
//! Both come from the definition of the command line, so that they say what `--help` says.

use clap_complete::Shell;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("pages: name the folder for manual pages and completions: pages FOLDER");
        std::process::exit(2);
    };
    let (manual, completions) = (folder.join("man"), folder.join("completions"));
    std::fs::create_dir_all(&manual)?;
    std::fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(millstream_cli::command(), &manual)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut command = millstream_cli::command();
        clap_complete::generate_to(shell, &mut command, "millstream", &completions)?;
    }
    Ok(())
}
