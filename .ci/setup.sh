# Shared by ./run and ./test: make this machine able to run Cloche. Sourced, not executed.
#
# Everything here is done only where it is missing, so a second call does nothing and is quick.
# shellcheck shell=bash

# Functions say `|| return` or `|| fail`: inside `stage …` of ./test bash does not honour `set -e`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
uv_version=0.13.9
uv_oldest=0.9.0 # of those on the search path; older ones do not know all that is asked of them here

say() { printf '\033[2mcloche set-up:\033[0m %s\n' "$*" >&2; }
fail() { printf 'cloche set-up: %s\n' "$*" >&2; exit 5; }

# What Cloche needs: a program or a file, and the Debian and Ubuntu package that brings it. `as` is
# named because musl-tools of Debian 13 only recommends a compiler that is complete.
runtime_needs='qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mksquashfs:squashfs-tools
mmdebstrap:mmdebstrap lz4:lz4 zstd:zstd musl-gcc:musl-tools as:binutils mkfs.ext4:e2fsprogs bwrap:bubblewrap
git:git /usr/bin/python3:python3
/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring'
test_needs='cc:gcc /usr/include/stdio.h:libc6-dev ps:procps tmux:tmux cpio:cpio vim:vim less:less shellcheck:shellcheck ssh:openssh-client
skopeo:skopeo umoci:umoci busybox:busybox-static'

missing_packages() {
    local pair found=''
    for pair in $1; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || [ -r "${pair%%:*}" ] || found+=" ${pair##*:}"
    done
    [ -n "$(ls -A /etc/ssl/certs 2>/dev/null)" ] || found+=' ca-certificates'
    # Debian's own Python lacks what makes the environment that uv is installed in.
    usable_uv || /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || found+=' python3-venv'
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

# Run commands (one string, for sh) as root. What they say is shown only when they fail; sudo asks for
# a password on the terminal itself.
as_root() {
    local log name
    name=$(mktemp) || fail "no file can be made in ${TMPDIR:-/tmp}. As root, run: $1"
    exec {log}<>"$name"
    rm -f "$name"
    if [ "$(id -u)" -eq 0 ]; then sh -c "$1" >&"$log" 2>&1
    elif command -v sudo >/dev/null; then sudo sh -c "$1" >&"$log" 2>&1
    else fail "root is needed once, and sudo is not installed. As root, run: $1"
    fi || { cat "/dev/fd/$log" >&2; fail "that did not work. As root, run it until it does: $1"; }
    exec {log}>&-
}

# $1: run or test.
install_packages() {
    local needs=$runtime_needs packages
    if [ "$1" = test ]; then needs+=" $test_needs"; fi
    if [ "$(id -u)" -ne 0 ]; then needs+=' newuidmap:uidmap'; fi
    packages=$(missing_packages "$needs")
    if [ -n "$packages" ]; then
        supported_system || fail "this script installs packages on Debian 12+ and Ubuntu 24.04+ only. Install what these Debian packages hold, then call it again:$packages"
        say "installing$packages"
        as_root "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends$packages"
    fi
    if [ "$(id -u)" -ne 0 ]; then give_id_range; fi
    if [ "$1" = test ]; then fetch_registry; fi
}

# A registry for the tests, unpacked and not installed: its package would start a system service.
# apt's own user could not write here: it is told whose download it is, or it warns.
fetch_registry() {
    local folder=$here/.tools/registry scratch
    if command -v docker-registry >/dev/null || [ -x "$folder/usr/bin/docker-registry" ]; then return; fi
    say 'fetching a container registry for the tests into .tools'
    scratch=$(mktemp -d) || return
    (
        cd "$scratch" || exit
        download() { apt-get download -qq -o APT::Sandbox::User="$(id -un)" docker-registry >&2; }
        download || { as_root 'apt-get update -qq'; download; } || exit
        mkdir -p "$folder" && dpkg-deb -x docker-registry_*.deb "$folder"
    ) || { rm -rf "$scratch"; fail 'the package docker-registry could not be fetched; the tests need it.'; }
    rm -rf "$scratch"
}

# Without root, images are built in a user namespace, and that takes a range of ids of one's own.
give_id_range() {
    local user first range option options=''
    user=$(id -un)
    first=$(cat /etc/subuid /etc/subgid 2>/dev/null | awk -F: '$2 + $3 > n { n = $2 + $3 } END { print (n > 100000 ? n : 100000) }')
    range=$first-$((first + 65535))
    for option in uid gid; do
        grep -qsE "^($user|$(id -u)):" "/etc/sub$option" || options+=" --add-sub${option}s $range"
    done
    [ -n "$options" ] || return 0
    say "giving $user a range of user and group ids, to build images with"
    as_root "usermod$options $user"
}

# uv keeps its own list of certificate authorities; companies put theirs into the system's.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1
export UV_PYTHON_DOWNLOADS=never UV_PYTHON_PREFERENCE=only-system UV_NO_PROGRESS=1

# Set `uv` to one that will do: of the search path, or the one installed here before.
usable_uv() {
    local version
    uv=$here/.tools/uv-$uv_version/bin/uv
    [ ! -x "$uv" ] || return 0
    uv=$(command -v uv) && version=$(uv --version 2>/dev/null) || return 1
    version=${version#uv }
    [ "$(printf '%s\n' "$uv_oldest" "${version%% *}" | sort -V | head -n 1)" = "$uv_oldest" ]
}

# pip says what failed and nothing else: what it warns of is this host's own configuration.
find_uv() {
    usable_uv && return
    local folder=$here/.tools/uv-$uv_version
    say "installing uv $uv_version into .tools"
    /usr/bin/python3 -m venv "$folder" >&2 \
        && "$folder/bin/pip" install -qq --disable-pip-version-check "uv==$uv_version" >&2 || return 1
    uv=$folder/bin/uv
}

# What an environment is made of, and where: when this changes, it is made anew.
environment_key() {
    { cat "$here/uv.lock" "$here/pyproject.toml"; readlink -f /usr/bin/python3; echo "$here"; } | sha256sum | cut -c 1-64
}

# $1: run (what Cloche needs) or test (all that its checks need, too).
make_environment() {
    local stamp=$here/.venv/.cloche key level=$1
    key=$(environment_key)
    environment_ready() { case $(cat "$stamp" 2>/dev/null) in "$key $level" | "$key test") [ -x "$here/.venv/bin/cloche" ] ;; *) false ;; esac; }
    if environment_ready; then return; fi
    mkdir -p "$here/.tools"
    (
        flock 9
        if environment_ready; then exit; fi
        # ./run leaves ./test its tools
        case $(cat "$stamp" 2>/dev/null) in *" test") level='test' ;; esac
        find_uv && fill_environment "$level" && echo "$key $level" >"$stamp"
    ) 9>"$here/.tools/lock" || return 1
}

# Everything comes from uv.lock by hash, be it from the index named there or from a mirror of it.
fill_environment() {
    local list=$here/.tools/requirements-$1.txt index groups=()
    if [ "$1" = run ]; then groups=(--no-dev --group build); fi
    say "making the Python environment from uv.lock (for ./$1)"
    index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-$(/usr/bin/python3 "$here/.ci/pip_index.py")}} || return 1
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX=$index; fi
    (
        cd "$here" && unset VIRTUAL_ENV
        "$uv" venv -q --allow-existing -p /usr/bin/python3 .venv \
            && "$uv" export -q --frozen --no-emit-project "${groups[@]}" -o "$list" >/dev/null \
            && "$uv" pip sync -q -p .venv/bin/python --require-hashes "$list" \
            && "$uv" pip install -q -p .venv/bin/python --no-deps --no-build-isolation -e .
    ) >&2
}

# Quiet when there is nothing to do; a progress bar on a terminal, a line a step elsewhere.
build_image() {
    "$here/.venv/bin/cloche" image build base >/dev/null
}

# $1: run or test.
set_up() {
    install_packages "$1"
    make_environment "$1" || fail 'the Python environment could not be made; the lines above say why.'
    build_image
}
