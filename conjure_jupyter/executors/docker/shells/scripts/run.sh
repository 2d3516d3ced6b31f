# Running one command.

# The value of a count in the first of these files that has it.
count() {
  local name=$1 file key value
  REPLY=0
  for file in "${@:2}"; do
    while read -r key value; do
      [[ $key == "$name" && $value == +([0-9]) ]] && { REPLY=$value; return; }
    done <"/sys/fs/cgroup/$file"
  done
} 2>/dev/null

# Processes ended for want of memory, the limit of memory, processes refused for want of room, their limit.
counts() {
  count oom_kill memory.events memory/memory.oom_control
  _counts=("$REPLY")
  limit memory.max memory/memory.limit_in_bytes
  _counts+=("$REPLY")
  count max pids.events pids/pids.events
  _counts+=("$REPLY")
  limit pids.max pids/pids.max
  _counts+=("$REPLY")
}

# The number in the first of these files; 0 where there is none, or no limit.
limit() {
  local file
  REPLY=0
  for file; do
    IFS= read -r REPLY <"/sys/fs/cgroup/$file" && break
  done
  [[ $REPLY == +([0-9]) ]] || REPLY=0
} 2>/dev/null

# Stands beside the command: at the time limit, at a word from outside or when nobody is there any more, it
# ends all of it, and says which of these it was by its exit code.
watch() {
  local word how=4
  read -r -t "$1" word
  (($? > 128)) && how=3
  trap '' USR1
  terminate 25
  exit "$how"
}

call_run() {
  local timeout=${_fields[1]} folder=${_fields[2]} code how reason leftovers=0 reason text
  _marker=${_fields[0]} _spared=${_fields[3]}
  local command=${_fields[4]}
  local -a start=("${_fields[@]:5}")
  if ! cd -P -- "$folder" 2>/dev/null; then
    text=$(cd -P -- "$folder" 2>&1)
    finish refused "${text##*: }"
  fi
  start=("$_env" ${_locale:+"$_locale"} "${start[@]}" bash --noprofile --norc -c)
  if [[ $_setsid ]]; then start=("$_setsid" "${start[@]}"); else set -m; fi
  counts
  tell begun "${_counts[@]}"
  if ((${#command} > 100000)); then # the system takes 128 KiB for one argument
    "${start[@]}" '. /dev/fd/3' 3< <(printf %s "$command") </dev/null 2>&1 {_never}<&- &
  else
    "${start[@]}" "$command" </dev/null 2>&1 {_never}<&- &
  fi
  _shell=$!
  set +m
  [[ $_setsid ]] && _session=$_shell
  watch "$timeout" <&0 >/dev/null &
  _watch=$!
  wait "$_shell"
  code=$?
  kill -USR1 "$_watch" 2>/dev/null
  wait "$_watch"
  how=$?
  _watch=0
  case $how in
  3) reason=timeout ;;
  4) reason=ended ;;
  *) reason=exited ;;
  esac
  look
  if ((${#_kin[@]})); then
    # Some of them, such as a tee with its last lines, end by themselves at once.
    if [[ $reason != exited ]]; then
      destroy
    elif ! settle 5; then
      leftovers=${#_kin[@]}
      terminate 10
    fi
  fi
  counts
  finish done "$reason" "$code" "$leftovers" "${#_kin[@]}" "${#_strays[@]}" "${_counts[@]}"
}

# How much room the file systems of some folders have: free blocks, their size, all blocks, files, free files.
call_room() {
  local folder
  for folder in "${_fields[@]}"; do
    stat -f -c '%a %S %b %c %d' -- "$folder" 2>/dev/null || echo
  done
  finish done
}
