# Finding and ending the processes of a call, by builtins alone: when a command has used up all processes
# there may be, nothing can be started to end it.

_marker='' _shell='' _session='' _keepers='' _everything=''
_watch=0
_spared=' '
declare -A _kin=() _strays=() _group=()

pause() { local _; read -r -t "$1" -u "$_never" _; }

# Whether a process has the call's marker in its environment.
marked() {
  [[ $_marker ]] || return 1
  local -a entries=()
  local entry
  mapfile -d '' -t entries <"/proc/$1/environ"
  for entry in "${entries[@]}"; do
    [[ $entry == "CONJURE_CALL=$_marker" ]] && return 0
  done
  return 1
}

# Whether a process belongs to the user that this shell runs as; its owner in /proc may be another.
ours() {
  local key user
  while read -r key user _; do
    [[ $key == Uid: ]] && { [[ $user == "$UID" ]]; return; }
  done <"/proc/$1/status"
  return 1
}

# Looks at every process. _kin: those of the call, by session, ancestry and marker. _strays: other orphans of
# this user that were not there when the link was opened; they hide their descent and may be anyone's.
look() {
  local folder pid stat top more
  local -a rest tasks
  local -A parent=() session=() began=()
  _kin=() _strays=() _group=()
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/} stat=
    IFS= read -r -d '' stat <"$folder/stat"
    [[ $stat ]] || continue
    rest=(${stat##*) })
    if [[ ${rest[0]} == [ZX] ]]; then
      tasks=("$folder"/task/*) # a program goes on when its first thread has ended
      ((${#tasks[@]} > 1)) || continue
    fi
    parent[$pid]=${rest[1]} _group[$pid]=${rest[2]} session[$pid]=${rest[3]} began[$pid]=${rest[19]}
  done
  for pid in "${!parent[@]}"; do
    [[ $pid == 1 || $pid == "$$" || $pid == "$BASHPID" || $pid == "$_watch" ]] && continue
    if [[ ${parent[$pid]} == 0 ]]; then
      [[ $_keepers == *" $pid "* ]] && _kin[$pid]=1 # what the engine started carries no marker
    elif [[ $pid == "$_shell" || ${parent[$pid]} == "$$" ]]; then
      _kin[$pid]=1
    elif [[ $_session && ${session[$pid]} == "$_session" ]] || marked "$pid"; then
      _kin[$pid]=1
    fi
  done
  more=${#_kin[@]}
  while ((more)); do
    more=0
    for pid in "${!parent[@]}"; do
      [[ ${_kin[$pid]-} || ! ${_kin[${parent[$pid]}]-} || $pid == "$BASHPID" ]] && continue
      _kin[$pid]=1 more=1
    done
  done
  for pid in "${!parent[@]}"; do
    [[ ${_kin[$pid]-} || $pid == 1 || ${parent[$pid]} == 0 ]] && continue
    top=$pid
    while [[ ${parent[$top]-1} != [01] ]]; do top=${parent[$top]}; done
    [[ ${parent[$top]-1} == 0 || $_spared == *" $pid:${began[$pid]} "* ]] && continue
    ours "$pid" || continue
    _strays[$pid]=${began[$pid]}
    [[ $_everything ]] && _kin[$pid]=1
  done
} 2>/dev/null

# Signals processes, by whole groups where it can: the system does that in one step, which no fork escapes.
signal() {
  local name=$1 pid group
  local -A groups=()
  shift
  for pid; do
    group=${_group[$pid]-0}
    if ((group > 1)) && [[ $group != "${_group[$$]-}" ]]; then groups[-$group]=1; else kill -s "$name" -- "$pid"; fi
  done
  for group in "${!groups[@]}"; do kill -s "$name" -- "$group"; done
} 2>/dev/null

# Waits until nothing of the call is left, at most so many fiftieths of a second.
settle() {
  local turn from=${EPOCHREALTIME/[.,]/}
  for ((turn = 0; ; turn++)); do
    look
    ((${#_kin[@]} == 0)) && return 0
    # By the clock where bash has one (since 5.0): a look at many processes takes long.
    ((turn < $1 && ${EPOCHREALTIME/[.,]/} - from < $1 * 20000)) || return 1
    pause 0.02
  done
}

# SIGTERM for all, so many fiftieths of a second, then no mercy.
terminate() {
  look
  signal TERM "${!_kin[@]}"
  signal CONT "${!_kin[@]}" # what is stopped hears nothing else
  settle "$1" || destroy
}

# Stops all before killing any: what is stopped forks no more, and a parent cannot react.
destroy() {
  local turn empty=0 pid
  local -A stopped fresh
  for ((turn = 0; turn < 20 && empty < 3; turn++)); do
    stopped=()
    while :; do
      look
      fresh=()
      for pid in "${!_kin[@]}"; do [[ ${stopped[$pid]-} ]] || fresh[$pid]=1; done
      ((${#fresh[@]})) || break
      signal STOP "${!fresh[@]}"
      for pid in "${!fresh[@]}"; do stopped[$pid]=1; done
    done
    if ((${#stopped[@]} == 0)); then
      empty=$((empty + 1)) # one that forks and exits can slip past one look
      continue
    fi
    empty=0
    signal KILL "${!stopped[@]}"
    pause 0.01
  done
}

# Ends what others could not: the processes with a marker, shells like this one, and every stray.
call_sweep() {
  _marker=${_fields[0]} _keepers=${_fields[1]} _everything=${_fields[2]} _spared=${_fields[3]}
  look
  local count=${#_kin[@]}
  ((count)) && destroy
  counts
  finish done "$count" "${#_kin[@]}" "${_counts[@]}"
}

# What was there before any call.
call_survey() {
  local pid
  local -a found=()
  look
  for pid in "${!_strays[@]}"; do found+=("$pid:${_strays[$pid]}"); done
  finish done "${found[@]}"
}
