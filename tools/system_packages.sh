#!/usr/bin/env bash
# Install the Debian packages the tests need, each only if missing: PostgreSQL 15 (oldest supported
# major), PgBouncer, Spin, and the crates of tokio-postgres.
# As an ordinary user, or elsewhere than Debian, only say what is missing: the tests that need it are then
# skipped with a reason, except under CI=true, where they fail.
set -euo pipefail

missing=()
[ -x /usr/lib/postgresql/15/bin/postgres ] || missing+=(postgresql-15)
command -v spin >/dev/null || missing+=(spin)
command -v gcc >/dev/null || missing+=(gcc)
[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
command -v cargo >/dev/null || missing+=(cargo)
[ -d /usr/share/cargo/registry/tokio-postgres-0.7.7 ] || missing+=(librust-tokio-postgres-dev)

[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "setup: MISSING ${missing[*]}; tests that need them will be skipped (and fail under CI=true)." >&2
  echo "setup: on Debian 12: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 0
fi

# Only the server's programs are wanted: the tests start their own clusters, so no default one is created.
if [[ " ${missing[*]} " == *" postgresql-15 "* ]] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
  mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq -o Acquire::Retries=3
apt-get install -y -qq -o Acquire::Retries=3 --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}" >/dev/null </dev/null
