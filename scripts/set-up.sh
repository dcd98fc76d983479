# Installs the build tools on a fresh machine. Sourced, not run, because it may extend PATH.
# The sourcing script sets $name, the prefix of messages.

fail() {
  echo "$name: $*" >&2
  exit 1
}

# Installs Debian packages if permitted; otherwise prints which ones to install.
install_packages() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    # -n: never prompt for a password.
    sudo -n true 2>/dev/null || fail "please install: $* (for example: sudo apt-get install $*)"
    as_root=(sudo -n)
  fi
  command -v apt-get >/dev/null || fail "please install: $*"
  echo "$name: installing $*"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Minimal toolchains usually lack these components.
need_component() {
  cargo "$1" --version >/dev/null 2>&1 && return
  command -v rustup >/dev/null || fail "cargo $1 is missing, and rustup is not installed to add it"
  echo "$name: adding $2"
  rustup component add "$2"
}

# schemathesis is a Python program, installed in a separate virtual environment.
need_python() {
  command -v python3 >/dev/null || install_packages python3 python3-venv
  # Debian packages venv separately.
  python3 -c 'import venv, ensurepip' 2>/dev/null || install_packages python3-venv
}

# Tests complete command lines in the real shells; bash is there, because this is a script of it.
need_shells() {
  local missing=()
  local shell
  for shell in zsh fish; do
    command -v "$shell" >/dev/null || missing+=("$shell")
  done
  [ "${#missing[@]}" -eq 0 ] || install_packages "${missing[@]}"
}

# The hub's tests run on a real Postgres, which scripts/postgres starts for each of them. Debian would also start one at boot.
need_postgres() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
  command -v initdb >/dev/null && return
  if [ "$(id -u)" -eq 0 ] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  fi
  install_packages postgresql
}

# A campaign kills one of several hubs behind it.
need_haproxy() {
  command -v haproxy >/dev/null || PATH="$PATH:/usr/sbin" command -v haproxy >/dev/null || install_packages haproxy
}

# The studio's tests need a real browser. Browser and driver must be of the same release.
need_browser() {
  command -v chromium >/dev/null && command -v chromedriver >/dev/null && return
  install_packages chromium chromium-driver
}

# The types of the studio's modules are checked by TypeScript's compiler, which runs on Node.js.
need_node() {
  command -v node >/dev/null || install_packages nodejs
}

set_up() {
  # rustup adds its PATH line to shell profiles, which this shell may not have read.
  if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-${HOME:-/root}/.cargo}/bin/cargo" ]; then
    PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
    export PATH
  fi
  command -v cargo >/dev/null || fail "cargo is missing; install Rust from https://rustup.rs, then try again"
  # The bundled SQLite and zstd are compiled from C, and Rust needs the compiler's linker.
  if ! command -v cc >/dev/null && ! command -v gcc >/dev/null; then
    install_packages gcc libc6-dev
  fi
  # The power-cut campaign needs a separate file system, which only root can mount.
  if [ "$(id -u)" -eq 0 ] && ! PATH="$PATH:/usr/sbin:/sbin" command -v mkfs.ext4 >/dev/null; then
    install_packages e2fsprogs
  fi
  # A test runs the examples of docs/api.md, which use curl.
  command -v curl >/dev/null || install_packages curl
}
