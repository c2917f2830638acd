# Shared by ./run and ./test: make this machine able to run Cloche. Sourced, not executed.
#
# Everything here is done only where it is missing, so a second call does nothing and is quick.
# shellcheck shell=bash

# Functions return 1 explicitly: inside `stage …` of ./test bash does not honour `set -e`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
uv_version=0.13.9

say() { printf '\033[2mcloche set-up:\033[0m %s\n' "$*" >&2; }
fail() { printf 'cloche set-up: %s\n' "$*" >&2; exit 5; }

# What Cloche needs, and the Debian and Ubuntu package that brings it.
runtime_needs='qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mksquashfs:squashfs-tools
mmdebstrap:mmdebstrap lz4:lz4 zstd:zstd musl-gcc:musl-tools mkfs.ext4:e2fsprogs bwrap:bubblewrap git:git python3:python3'
test_needs='tmux:tmux cpio:cpio vim:vim less:less'

missing_packages() {
    local pair found=''
    for pair in $1; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || found+=" ${pair##*:}"
    done
    # A system Python without ensurepip cannot make the environment that uv is installed in.
    if ! command -v uv >/dev/null && ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
        found+=' python3-venv'
    fi
    [ -r /etc/ssl/certs/ca-certificates.crt ] || found+=' ca-certificates'
    echo "$found"
}

supported_system() {
    [ -r /etc/os-release ] || return 1
    # shellcheck disable=SC1091
    (. /etc/os-release
     case "${ID:-}" in
        debian) [ "${VERSION_ID%%.*}" -ge 12 ] 2>/dev/null || [ -z "${VERSION_ID:-}" ] ;;
        ubuntu) [ "${VERSION_ID%%.*}" -ge 24 ] 2>/dev/null ;;
        *) return 1 ;;
     esac)
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "root is needed once, and sudo is not installed. As root, run: $*"
    fi
}

install_packages() {
    local packages
    packages=$(missing_packages "$1")
    [ -n "$packages" ] || return 0
    if ! supported_system; then
        fail "this script installs packages on Debian 12+ and Ubuntu 24.04+ only. Install what these Debian packages hold, then call it again:$packages"
    fi
    say "installing$packages"
    as_root apt-get update -qq >&2 || return 1
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2
}

# uv keeps its own list of certificate authorities; companies put theirs into the system's.
export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never UV_PYTHON_PREFERENCE=only-system UV_NO_PROGRESS=1
export UV_PROJECT_ENVIRONMENT="$here/.venv"

find_uv() {
    if command -v uv >/dev/null; then uv=uv; return; fi
    uv=$here/.tools/bin/uv
    [ -x "$uv" ] && return
    say "installing uv $uv_version into .tools"
    /usr/bin/python3 -m venv "$here/.tools" >&2 || return 1
    "$here/.tools/bin/pip" install -q --disable-pip-version-check "uv==$uv_version" >&2
}

# The lock names one index; who has another in pip's configuration (a mirror) gets the same files by hash.
pip_index() {
    local pip=$here/.tools/bin/pip
    [ -x "$pip" ] || pip='/usr/bin/python3 -m pip'
    $pip config get global.index-url 2>/dev/null || $pip config get site.index-url 2>/dev/null || true
}

make_environment() {
    local stamp=$here/.venv/.cloche-lock wanted index
    wanted=$(cat "$here/uv.lock" "$here/pyproject.toml" | sha256sum)
    [ -x "$here/.venv/bin/cloche" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
    find_uv || return 1
    say 'making the Python environment from uv.lock'
    index=${UV_DEFAULT_INDEX:-$(pip_index)}
    if [ -n "$index" ]; then
        local list
        list=$(mktemp)
        (cd "$here" && "$uv" venv -q --allow-existing -p /usr/bin/python3 .venv \
            && "$uv" export -q --frozen --no-emit-project -o "$list" >/dev/null \
            && "$uv" pip sync -q -p .venv/bin/python --require-hashes --default-index "$index" "$list" \
            && "$uv" pip install -q -p .venv/bin/python --default-index "$index" --no-deps -e .) >&2 || return 1
        rm -f "$list"
    else
        (cd "$here" && "$uv" sync -q --frozen -p /usr/bin/python3) >&2 || return 1
    fi
    echo "$wanted" >"$stamp"
}

build_image() {
    "$here/.venv/bin/cloche" image build base >&2
}
