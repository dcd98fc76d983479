# Sets up what building needs on a fresh machine. Sourced, not run: it may have to extend PATH.
# Whoever sources it says who they are in $name.

fail() {
  echo "$name: $*" >&2
  exit 1
}

# Installs Debian packages where we may; says what to install where we may not.
install_packages() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    # -n: a check never stops to ask for a password.
    sudo -n true 2>/dev/null || fail "please install: $* (for example: sudo apt-get install $*)"
    as_root=(sudo -n)
  fi
  command -v apt-get >/dev/null || fail "please install: $*"
  echo "$name: installing $*"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# A component is missing more often than not on minimal toolchains.
need_component() {
  cargo "$1" --version >/dev/null 2>&1 && return
  command -v rustup >/dev/null || fail "cargo $1 is missing, and there is no rustup to add it with"
  echo "$name: adding $2"
  rustup component add "$2"
}

# schemathesis is a Python program, and lives in an environment of its own.
need_python() {
  command -v python3 >/dev/null || install_packages python3 python3-venv
  # Debian splits the part that makes environments off.
  python3 -c 'import venv, ensurepip' 2>/dev/null || install_packages python3-venv
}

# The studio is tested in a real browser, and fails without one. A driver understands the browser of its own release.
need_browser() {
  command -v chromium >/dev/null && command -v chromedriver >/dev/null && return
  install_packages chromium chromium-driver
}

# The types of the studio's modules are checked by TypeScript's compiler, which runs on Node.js.
need_node() {
  command -v node >/dev/null || install_packages nodejs
}

set_up() {
  # rustup writes its PATH line into shell profiles, which a bare machine may not have read yet.
  if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-${HOME:-/root}/.cargo}/bin/cargo" ]; then
    PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
    export PATH
  fi
  command -v cargo >/dev/null || fail "cargo is missing; install Rust from https://rustup.rs, then try again"
  # The bundled SQLite and zstd are compiled from C, and the linker comes with the compiler.
  if ! command -v cc >/dev/null && ! command -v gcc >/dev/null; then
    install_packages gcc libc6-dev
  fi
  # The power cuts of the proof need a file system of their own, which only root can mount.
  if [ "$(id -u)" -eq 0 ] && ! PATH="$PATH:/usr/sbin:/sbin" command -v mkfs.ext4 >/dev/null; then
    install_packages e2fsprogs
  fi
  # The walk-through in docs/api.md is run as it stands there.
  command -v curl >/dev/null || install_packages curl
}
