# shellcheck shell=bash disable=SC2034  # its variables are used by those who source it
# Shared by the bash scripts in ci/. Source it: it sets ROOT and CACHE and defines the functions below.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${LOCKSTEP_CACHE:-~/.cache/lockstep}
TORCH_VERSION=2.11.0

# Seconds since the script began.
elapsed() { echo "$SECONDS"; }

# Progress goes to stderr, so that a script's result on stdout can be captured.
say() { printf '[%4ds] %s\n' "$(elapsed)" "$*" >&2; }

# say the reason and stop; exit code 2 is "bad input or set-up, nothing was run".
die() {
  say "error: $*"
  exit 2
}

# retry TIMES COMMAND...: waits 5, 10, 15 ... seconds between attempts, for networks that drop out.
retry() {
  local times=$1 attempt
  shift
  for ((attempt = 1; attempt <= times; attempt++)); do
    if "$@"; then return 0; fi
    if ((attempt < times)); then
      say "attempt $attempt of $times failed: $*; again in $((5 * attempt)) s"
      sleep $((5 * attempt))
    fi
  done
  return 1
}

# need_disk MEGABYTES FOLDER: a full disk found after ten minutes is worse than one found now.
need_disk() {
  local free
  free=$(df -Pm "$2" | awk 'NR == 2 { print $4 }')
  ((free >= $1)) || die "$2 has $free MB free, $1 MB are needed; free some space or set LOCKSTEP_CACHE"
}

# The folder (with include/ and lib/) that we compile against: LOCKSTEP_TORCH_ROOT, else what ci/setup unpacked.
torch_root() {
  if [[ -n ${LOCKSTEP_TORCH_ROOT:-} ]]; then
    echo "$LOCKSTEP_TORCH_ROOT"
  elif [[ ${LOCKSTEP_GPU:-OFF} == ON ]]; then
    echo "$CACHE/libtorch-$TORCH_VERSION-gpu/torch"
  else
    echo "$CACHE/libtorch-$TORCH_VERSION/torch"
  fi
}

# Debian's own Python, whose pip is among our packages; a python3 earlier in PATH may have none.
PYTHON=/usr/bin/python3
