//! Who holds a UDP port, for the error that says so (proc(5)).

use std::fs;

/// The process that holds the UDP port, as `NAME (process PID)`. None when it cannot be seen, as is
/// the case for other users' processes.
pub(super) fn of_udp_port(port: u16) -> Option<String> {
    let table = fs::read_to_string("/proc/net/udp").ok()?;
    let inode = table.lines().skip(1).find_map(|line| inode_if_bound(line, port))?;
    let wanted = format!("socket:[{inode}]");
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let holds = |link: fs::DirEntry| {
            fs::read_link(link.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())
        };
        if descriptors.flatten().any(holds) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid}) holds it", name.trim()));
        }
    }
    None
}

/// The inode in a line of `/proc/net/udp` whose local port is `port`.
fn inode_if_bound(line: &str, port: u16) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let (_, hex) = local.split_once(':')?;
    (u16::from_str_radix(hex, 16).ok()? == port).then_some(())?;
    fields.nth(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_is_the_tenth_field() {
        let line = "  12: 0100007F:C180 00000000:0000 07 00000000:00000000 00:00000000 00000000 \
                    0 0 4711 2 0000000000000000 0";
        assert_eq!(inode_if_bound(line, 49536), Some("4711"));
        assert_eq!(inode_if_bound(line, 49537), None);
        assert_eq!(inode_if_bound("", 1), None);
    }
}
