#!/bin/sh
# Builds the page into web/dist/: static files with relative addresses. Called by `./x web`.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
# A folder of its own, since it is another compiler and other flags than the rest of the workspace.
export CARGO_TARGET_DIR="$PWD/target/web"
say() { printf '== %s\n' "$*"; }

# rustup's toolchain where it has the target, else Debian's, which brings the standard library as source.
std=""
if rustc --print target-libdir --target $target 2>/dev/null | xargs test -d 2>/dev/null ||
    { command -v rustup >/dev/null && rustup target add $target >/dev/null 2>&1; }; then
    cargo=cargo
elif command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    if ! [ -x /usr/bin/cargo ] || ! dpkg-query -W rustc-web cargo-web rust-web-src >/dev/null 2>&1; then
        say "installing rustc-web, cargo-web, rust-web-src"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustc-web cargo-web rust-web-src >/dev/null
    fi
    # rustup's linker knows WebAssembly; Debian's own would be another large package.
    linker=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker"
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    cargo=/usr/bin/cargo
    std="-Zbuild-std=std,panic_abort"
else
    echo "The page needs Rust's target $target: rustup target add $target"
    exit 1
fi

# The generator of the glue must have exactly the version of the crate.
version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p;}' Cargo.lock)
tools="$PWD/target/tools/wasm-bindgen-$version"
if ! [ -x "$tools/bin/wasm-bindgen" ]; then
    say "building wasm-bindgen-cli $version"
    # Without its lock file, which may name releases that a registry does not serve yet.
    env -u RUSTC -u RUSTC_BOOTSTRAP CARGO_TARGET_DIR="$PWD/target/tools/build" \
        cargo install --quiet wasm-bindgen-cli --version "=$version" --root "$tools"
fi

say "compiling"
# Vectors of 128 bits: the CPU executor is several times faster with them.
export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+simd128"
# shellcheck disable=SC2086  # nothing or one option
$cargo build --locked --profile web --target $target $std --package braid-web --bins

say "packing"
dist=web/dist
rm -rf "$dist"
work="$dist/work"
mkdir -p "$work"
for part in page worker; do
    "$tools/bin/wasm-bindgen" --target web --no-typescript --remove-name-section --remove-producers-section --out-dir "$work" --out-name $part \
        "$CARGO_TARGET_DIR/$target/web/braid-$part.wasm"
    # Old versions, such as Debian's 108, mix up the two tables of a module. It takes minutes, so what it has made is kept.
    optimizer=$(command -v wasm-opt || true)
    if [ -n "$optimizer" ] && [ "$($optimizer --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -ge 118 ]; then
        small="$CARGO_TARGET_DIR/$(sha256sum <"$work/${part}_bg.wasm" | cut -c1-16).wasm"
        if ! [ -s "$small" ]; then
            say "optimising $part"
            "$optimizer" -O2 --all-features -o "$small" "$work/${part}_bg.wasm"
        fi
        cp "$small" "$work/${part}_bg.wasm"
    fi
done
for file in boot.js drop.js worker-start.js storage.js style.css icon.svg; do cp "web/static/$file" "$work/"; done
bytes() { wc -c <"$work/$1_bg.wasm" | tr -d ' '; }
sed -i "s/@PAGE_BYTES@/$(bytes page)/; s/@WORKER_BYTES@/$(bytes worker)/" "$work/boot.js"
# The folder is named after what is in it: whatever changes has a new address.
build=$(cd "$work" && cat ./* | sha256sum | cut -c1-12)
mv "$work" "$dist/$build"
files=$(cd "$dist" && for file in "$build"/*; do printf "'./%s', " "$file"; done)
sed "s/@BUILD@/$build/g" web/static/index.html >"$dist/index.html"
sed "s|@BUILD@|$build|; s|@FILES@|${files%, }|" web/static/service-worker.js >"$dist/service-worker.js"
# GitHub's pages would leave out what they take for files of Jekyll.
: >"$dist/.nojekyll"
say "built $dist"
