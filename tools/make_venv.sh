#!/usr/bin/env bash
# Create the virtual environment $1 with the interpreter $2, which must be Python 3.11 or newer.
set -euo pipefail

venv=$1
python=$2

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  exit 0
fi

if "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  "$venv/bin/python" -m ensurepip >/dev/null  # made by a tool that leaves pip out
  exit 0
fi

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup: $python is not Python 3.11 or newer. Name one: make setup PYTHON=/path/to/python3.12" >&2
  exit 1
fi

# Debian ships ensurepip apart from the interpreter.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
  else
    echo "setup: $python has no ensurepip. Install python3-venv, then run this again." >&2
    exit 1
  fi
fi

# --clear: what an interrupted run left half made is no use.
"$python" -m venv --clear "$venv"
