//! Writes the manual pages and the completions of both commands: `pages FOLDER`.
//!
//! Both come from the definition of the command line, so that they say what `--help` says. Those of
//! `millstream` lie in `FOLDER/millstream/man` and `FOLDER/millstream/completions`.

use clap_complete::Shell;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("pages: name the folder for manual pages and completions: pages FOLDER");
        std::process::exit(2);
    };
    for mut command in [millstream_cli::command(), millstream_lab_cli::command()] {
        let name = command.get_name().to_owned();
        let (manual, completions) =
            (folder.join(&name).join("man"), folder.join(&name).join("completions"));
        std::fs::create_dir_all(&manual)?;
        std::fs::create_dir_all(&completions)?;
        clap_mangen::generate_to(command.clone(), &manual)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command, &name, &completions)?;
        }
    }
    Ok(())
}
