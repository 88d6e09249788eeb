# Runs sections, records their results and prints the summary. Sourced by scripts/test; needs $work, a
# directory of its own.

readonly exit_skipped=77
report=() total_passed=0 total_failed=0 total_skipped=0

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' yellow=$'\e[33m' plain=$'\e[0m'
else
  bold='' red='' green='' yellow='' plain=''
fi

# Called by a section: one line for the summary.
note() { printf '%s' "$*" >"$work/$section.note"; }

# Called by a section: counts as these numbers of passed, failed and skipped tests instead of one.
count() { printf '%s %s %s\n' "$1" "$2" "$3" >"$work/$section.count"; }

# Called by a section that cannot run, with the reason.
skip() {
  note "$*"
  echo "skipped: $*"
  exit "$exit_skipped"
}

# Starts a section beside those before it, in a process group of its own. `run_section` waits for it.
begin_section() {
  set -m
  (
    section=$1
    set +e
    (set -e; "section_$1") >"$work/$1.log" 2>&1 </dev/null
    echo "$?" >"$work/$1.status.new"
    mv "$work/$1.status.new" "$work/$1.status"
  ) &
  echo "$!" >"$work/$1.pid"
  set +m
}

stop_background() {
  local job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
}

# Waits for a section in the background, prints its output and returns its status. A subshell cannot `wait` for it.
collect() {
  while [[ ! -e $work/$1.status ]]; do
    if ! kill -0 "$(<"$work/$1.pid")" 2>/dev/null && [[ ! -e $work/$1.status ]]; then
      cat "$work/$1.log"
      echo "it ended without a result"
      return 1
    fi
    sleep 0.2
  done
  cat "$work/$1.log"
  return "$(<"$work/$1.status")"
}

# Sets `processor` to the seconds of processor time that finished child processes took. A subshell would report its own.
processor=0
read_processor() {
  LC_ALL=C times >"$work/times"
  processor=$(LC_ALL=C awk 'NR == 2 { split($1 $2, t, /[ms]/); printf "%.0f", t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$work/times")
}

# Runs `section_$1` in a shell of its own that stops at the first failing command, or waits for it if it began before.
run_section() {
  local name=$1 section=$1 status=0 started=$SECONDS before result colour counted
  printf '\n%s== %s ==%s\n' "$bold" "$name" "$plain"
  read_processor
  before=$processor
  set +e
  (
    set -e
    if [[ -e $work/$name.pid ]]; then collect "$name"; else "section_$name"; fi
  )
  status=$?
  set -e
  read_processor
  case $status in
    0) result=passed colour=$green counted="1 0 0" ;;
    "$exit_skipped") result=skipped colour=$yellow counted="0 0 1" ;;
    *) result=FAILED colour=$red counted="0 1 0" ;;
  esac
  [[ ! -e $work/$name.count ]] || counted=$(<"$work/$name.count")
  add_counts $counted
  report+=("$name|$result|$((SECONDS - started))|$((processor - before))|$(cat "$work/$name.note" 2>/dev/null || true)")
  printf '%s-- %s %s in %d s%s\n' "$colour" "$name" "$result" "$((SECONDS - started))" "$plain"
}

add_counts() {
  total_passed=$((total_passed + $1)) total_failed=$((total_failed + $2)) total_skipped=$((total_skipped + $3))
}

# Prints the table and the totals, and exits with the result. $1: `yes` when a skip is a failure.
finish() {
  local row name result seconds cpu remark
  printf '\n%s%-12s %-8s %7s %7s  %s%s\n' "$bold" section result seconds cpu note "$plain"
  for row in "${report[@]}"; do
    IFS='|' read -r name result seconds cpu remark <<<"$row"
    printf '%-12s %-8s %7s %7s  %s\n' "$name" "$result" "$seconds" "$cpu" "$remark"
  done
  printf '%-12s %-8s %7s %7s\n\n' total '' "$SECONDS" "$processor"
  local verdict=0
  if ((total_failed > 0)); then verdict=1; fi
  if [[ $1 == yes ]] && ((total_skipped > 0)); then
    echo "skipping is not allowed here (--strict)"
    verdict=1
  fi
  printf '%d passed, %d failed, %d skipped\n' "$total_passed" "$total_failed" "$total_skipped"
  exit "$verdict"
}
