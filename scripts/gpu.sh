#!/usr/bin/env bash
# What a GPU has to show, in eight minutes: its tests, five suites, their reports and a summary.
#
#   bash scripts/gpu.sh                                  on a machine with a CUDA device
#   GRAPE_DEVICE=cpu bash scripts/gpu.sh --rehearse      the same steps at tiny sizes, without one
#
# The machine needs Python 3.11 or newer with CUDA torch 2.11 or newer, and no network. What else it lacks comes from
# wheels in the folder `wheels` of the checkout. A machine with torch, numpy, scipy, pyyaml, tabulate, matplotlib, rich,
# psutil, filelock, safetensors, nvidia-ml-py and pytest lacks pydantic alone, and what pydantic needs: pydantic-core,
# annotated-types, typing-inspection, typing-extensions. On another machine, this one command fetches them:
#
#   python3 -m pip download --only-binary=:all: --python-version 3.12 --platform manylinux_2_17_x86_64 -d wheels pydantic
#
# Environment:
#   OUT            folder for records, reports (one archive), logs (another) and the summary; the checkout's own results/
#                  and reports/ without it, or a folder that is told at the end of a rehearsal
#   PYTHON         the interpreter; python3 without it
#   GRAPE_DEVICE   cuda, or cpu for a rehearsal
#   GRAPE_SECONDS  for all steps together; 480 without it, and 330 in a rehearsal
#
# Each step gets its share of the time that is left, so what one does not need falls to those behind it. A step that fails
# or is stopped is told in the summary, and the others go on. Exit code: 0 where every step ended with 0, else 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

rehearse=no
if [[ "${1:-}" == --rehearse ]]; then
  rehearse=yes
elif (($#)); then
  echo "scripts/gpu.sh: there is no option $1; it takes --rehearse or nothing" >&2
  exit 2
fi

python="${PYTHON:-python3}"
device="${GRAPE_DEVICE:-cuda}"
total="${GRAPE_SECONDS:-$([[ "$rehearse" == yes ]] && echo 330 || echo 480)}"
kept_s=15       # for the reports and the summary
shares_left=100 # of all steps to come
failures=0

work="$(mktemp -d)"
out="${OUT:-}"
[[ -z "$out" && "$rehearse" == yes ]] && out="$work/out"
results="${out:-.}/results"
reports="$work/reports"
[[ -z "$out" ]] && reports=reports
suites=suites
logs="$work/logs"
steps="$work/steps.tsv"
mkdir -p "$logs" "$results" "$reports"
: >"$steps"

export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=4

# Install the wheels beside the machine's packages, if one of those that we import is missing.
packages() {
  local needed=(torch numpy scipy yaml pydantic tabulate matplotlib rich psutil filelock safetensors pynvml pytest)
  local check='import sys; from importlib.util import find_spec; print(*(n for n in sys.argv[1:] if not find_spec(n)))'
  local missing
  missing="$("$python" -c "$check" "${needed[@]}")" || return 1
  [[ -z "$missing" ]] && return 0
  "$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$work/site" wheels/*.whl || return 1
  export PYTHONPATH="$work/site:$PYTHONPATH"
  missing="$("$python" -c "$check" "${needed[@]}")" || return 1
  [[ -z "$missing" ]] && return 0
  echo "scripts/gpu.sh: there is no package $missing here, nor a wheel of it in wheels/; see the head of this script" >&2
  return 1
}

# run NAME SHARE COMMAND...: one step within its share of the time that is left. LIMIT in a word becomes its minutes.
run() {
  local name="$1" share="$2" begun=$SECONDS limit minutes code
  shift 2
  limit=$(((total - kept_s - SECONDS) * share / shares_left))
  shares_left=$((shares_left - share))
  if ((limit < 10)); then
    code=124 # no time is left for it
    echo "$name: not begun, no time is left" | tee "$logs/$name.log"
  else
    minutes="$(awk -v s="$limit" 'BEGIN { printf "%.2f", 0.85 * s / 60 }')" # then it writes its report
    timeout --kill-after=5 "$limit" "${@//LIMIT/$minutes}" >"$logs/$name.log" 2>&1
    code=$?
  fi
  ((code)) && failures=$((failures + 1))
  printf '%s\t%d\t%d\n' "$name" $((SECONDS - begun)) "$code" >>"$steps"
  printf '%-14s %4d s of %4d s, exit code %d\n' "$name" $((SECONDS - begun)) "$limit" "$code"
  ((code)) && tail -n 5 "$logs/$name.log" | sed 's/^/    /'
  return 0
}

# suite NAME SHARE [FILTER...]: measure a suite, or those of its cells that pass the filters.
suite() {
  local name="$1" share="$2" only=() filter
  shift 2
  for filter in "$@"; do only+=(--only "$filter"); done
  run "$name" "$share" "$python" -m grape_bench run "$suites/$name.yaml" --device "$device" --results "$results" \
    --reports "$reports" --limit-minutes LIMIT "${only[@]}"
}

# tests NAME SHARE WORDS...: the tests that need a GPU, those of the files that have any.
tests() {
  local name="$1" share="$2" files
  shift 2
  mapfile -t files < <(grep -rlE 'mark\.gpu' tests --include='*.py')
  run "$name" "$share" "$python" -m pytest -q -m gpu -p no:cacheprovider "$@" "${files[@]}"
}

packages || exit 1
parallel=()
memory_lengths=(length=512 length=2048 length=8192)
if [[ "$rehearse" == yes ]]; then
  suites="$work/suites"
  memory_lengths=()
  "$python" scripts/tiny_suites.py "$suites" suites/{gpu-cost,fused,memory,long,gpu-accuracy}.yaml || exit 1
elif "$python" -c 'import xdist' 2>/dev/null; then
  parallel=(-n 8) # compiling takes most of their time
fi

tests tests-oracle 16 -k oracle "${parallel[@]}"
tests tests-device 8 -k "not oracle"
suite fused 20
suite gpu-cost 18
suite gpu-accuracy 8
suite long 17 metric=decode_ms
suite memory 13 encoding=none "encoding=rope + t5" "${memory_lengths[@]}"

summary="${out:-$reports}/gpu-summary.md"
"$python" scripts/gpu_summary.py "$steps" "$results" "$suites" >"$summary" || failures=$((failures + 1))
if [[ -n "$out" ]]; then
  tar -czf "$out/reports.tar.gz" -C "$reports" .
  tar -czf "$out/logs.tar.gz" -C "$logs" .
  find "$results" -name '*.lock' -delete
  find "$results" -type d -empty -delete
fi
cat "$summary"
echo "records: $results, summary: $summary; $SECONDS s in all"
exit $((failures > 0))
