# Debian packages of any suite and architecture, unpacked in a folder: for programs that run from there, by a chroot or an
# emulator. A script sources this file. Nothing is installed or configured, and no root is needed: apt has lists of its own.

# unpacked FOLDER SUITE ARCHITECTURE PACKAGE...: unpacks them, with what they need, in FOLDER/root. What is there from the same
# words stays for a week, and longer where no newer can be had. Fails with the reason in the first line of FOLDER/log.
unpacked() {
  local folder=$1 suite=$2 asked="${*:2}" mirror keyring signed= package
  mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(ORIGIN) $(SITE)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" { print $2; exit }')}
  for keyring in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    [ ! -e "$keyring" ] || signed="[signed-by=$keyring] "
  done
  mkdir -p "$folder"
  (
    # Two scripts may ask for the same folder.
    flock 9
    if [ "$(cat "$folder/asked" 2>/dev/null)" = "$asked" ]; then
      [ -z "$(find "$folder/asked" -mtime -7)" ] || exit 0
    else
      rm -f "$folder/asked"
    fi
    rm -rf "$folder/new" "$folder/apt"
    mkdir -p "$folder"/{new,apt/parts,apt/lists/partial,apt/archives/partial}
    : >"$folder/apt/status"
    echo "deb $signed${mirror:-http://deb.debian.org/debian} $suite main" >"$folder/apt/sources.list"
    cat >"$folder/apt/apt.conf" <<END
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt";
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "$folder/apt/parts";
APT::Architecture "$3";
APT::Architectures { "$3"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::http::Timeout "20";
END
    export APT_CONFIG=$folder/apt/apt.conf
    { apt-get update -qq && apt-get install -y -qq --download-only "${@:4}" &&
      for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder/new" || exit; done; } \
      >"$folder/log" 2>&1 9>&- || { [ -e "$folder/asked" ]; exit; }
    # Programs may run from the old one.
    rm -rf "$folder/old"
    [ ! -e "$folder/root" ] || mv "$folder/root" "$folder/old"
    mv "$folder/new" "$folder/root"
    rm -rf "$folder/apt" "$folder/old"
    echo "$asked" >"$folder/asked"
  ) 9>"$folder/lock"
}
