//! The module as SoapySDR loads it. It is skipped where SoapySDR's headers or program are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

// The library is what is linked; without a use of it nothing would be built.
use millstream_soapy as _;

/// Returns what a program printed, if it is there and succeeds.
fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let error = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(text) } else { Err(format!("{program}: {text}{error}")) }
}

/// Returns the newest static library of this build.
fn library() -> Option<PathBuf> {
    let deps = std::env::current_exe().ok()?.parent()?.to_owned();
    let places = [deps.clone(), deps.parent()?.to_owned()];
    let files = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let ours = files.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.starts_with("libmillstream_soapy") && name.ends_with(".a")
    });
    ours.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}

fn compile(library: &Path, module: &Path) -> Result<String, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/module.cpp");
    let (library, module) = (library.to_str().unwrap(), module.to_str().unwrap());
    let flags = "-std=c++14 -O1 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden";
    let link = "-Wl,-z,nodelete -Wl,-z,defs -Wl,--exclude-libs,ALL -lSoapySDR -lpthread -ldl -lm";
    let mut arguments: Vec<&str> = flags.split(' ').collect();
    arguments.extend(["-o", module, source, library]);
    arguments.extend(link.split(' '));
    output("c++", &arguments)
}

/// Returns a folder with the module, or `None` where that cannot be made.
fn module() -> Option<tempfile::TempDir> {
    for (program, argument) in [("pkg-config", "--exists"), ("SoapySDRUtil", "--info")] {
        let argument =
            if program == "pkg-config" { vec![argument, "SoapySDR"] } else { vec![argument] };
        if let Err(reason) = output(program, &argument) {
            eprintln!("skipped: no SoapySDR here (libsoapysdr-dev, soapysdr-tools): {reason}");
            return None;
        }
    }
    if let Err(reason) = output("c++", &["--version"]) {
        eprintln!("skipped: {reason}");
        return None;
    }
    let library = library().expect("the build makes the static library");
    let folder = tempfile::tempdir().unwrap();
    compile(&library, &folder.path().join("libmillstreamSupport.so")).unwrap();
    Some(folder)
}

/// Runs a program that finds the module, and returns what it printed.
fn with_module(folder: &Path, command: &mut Command) -> String {
    let done = command.env("SOAPY_SDR_PLUGIN_PATH", folder).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[test]
fn soapysdr_loads_the_module_and_opens_a_radio() {
    let Some(folder) = module() else { return };
    let mut probe = Command::new("SoapySDRUtil");
    probe.arg("--probe=driver=millstream,radio=emulated");
    let text = with_module(folder.path(), &mut probe);
    for part in ["hardware=e320", "Channels: 2 Rx, 2 Tx", "Native format: CS16"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

/// `make sanitize-soapy` runs the same program for longer, under sanitizers.
#[test]
fn careless_programs_get_errors_and_exact_gaps() {
    let Some(folder) = module() else { return };
    let program = folder.path().join("stress");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stress.cpp");
    let flags = "-std=c++14 -O1 -Wall -Wextra -Werror -o";
    let mut arguments: Vec<&str> = flags.split(' ').collect();
    arguments.extend([program.to_str().unwrap(), source, "-lSoapySDR", "-lpthread"]);
    output("c++", &arguments).unwrap();
    let text = with_module(folder.path(), Command::new(&program).arg("2"));
    assert!(text.contains("gaps are exact") && text.contains("unloading"), "{text}");
}
