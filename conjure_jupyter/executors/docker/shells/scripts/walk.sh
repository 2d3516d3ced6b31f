# Where a path leads, by a walk that stays inside the allowed folders: links are read and walked by us, and
# each step is taken from the folder before it.

_why='' _at=0 _rest='' _left='' _name='' _real='' _guard=''
_roots=() _reals=() _texts=() _locked=() _bars=()

fail() { finish refused "$_why"; }

# The folders of the call, which every file call names first.
take_folders() {
  local number=${_fields[0]} path
  _roots=("${_fields[@]:1:number}")
  _fields=("${_fields[@]:1+number}")
  number=${_fields[0]}
  _locked=("${_fields[@]:1:number}")
  _fields=("${_fields[@]:1+number}")
  for path in "${_roots[@]}"; do
    normal "$path"
    _texts+=("$REPLY")
    real "$path"
    _reals+=("$REPLY")
  done
  for path in "${_locked[@]}"; do
    real "$path"
    _bars+=("$REPLY")
  done
}

# An absolute path without empty parts and dots; without its ".." too unless the second argument says so.
normal() {
  local rest=$1 part
  REPLY=
  while [[ $rest ]]; do
    part=${rest%%/*}
    if [[ $rest == */* ]]; then rest=${rest#*/}; else rest=; fi
    case $part in
    '' | .) ;;
    ..) if [[ ${2-} ]]; then REPLY+=/..; else REPLY=${REPLY%/*}; fi ;;
    *) REPLY+=/$part ;;
    esac
  done
  REPLY=${REPLY:-/}
}

# A path with its links resolved; what does not exist keeps its name.
real() {
  local tail='' path=$1
  until cd -P -- "${path:-/}" 2>/dev/null; do
    tail=/${path##*/}$tail
    path=${path%/*}
  done
  REPLY=${PWD%/}$tail
  REPLY=${REPLY:-/}
}

# The part of a path below a base, both without empty parts.
below() {
  [[ $2/ == "${1%/}"/* ]] || return 1
  REPLY=${2:${#1}}
  REPLY=${REPLY#/}
  REPLY=${REPLY:-.}
}

# The deepest of the folders that an absolute path starts with, and the rest of the path.
pick() {
  local path=$1 kept base i best text
  if [[ $path != /* ]]; then
    _at=0 _rest=$path
    return 0
  fi
  normal "$path" keep
  kept=$REPLY
  normal "$path"
  for text in "$kept" "$REPLY"; do
    best=0
    for i in "${!_roots[@]}"; do
      for base in "${_texts[i]}" "${_reals[i]}"; do
        if ((${#base} > best)) && below "$base" "$text"; then
          best=${#base} _at=$i _rest=$REPLY
        fi
      done
    done
    ((best)) || continue
    [[ $path == */ && $_rest != . ]] && _rest+=/
    return 0
  done
  _why=outside
  return 1
}

# Refuses a folder on the way that may not be written, by what it is and not by its name.
barred() {
  local path
  [[ $_guard ]] || return 1
  for path in "${_locked[@]}"; do
    [[ $1 -ef $path ]] && { _why=readonly; return 0; }
  done
  return 1
}

# Refuses what is about to be changed, if it may not be.
barred_target() {
  local text
  for text in "${_bars[@]}"; do
    [[ $_real == "$text" || $_real == "${text%/}"/* ]] && { _why=readonly; return 0; }
  done
  [[ ! -L ./$_name ]] && barred "./$_name"
}

# Goes into a folder.
enter() {
  if ! cd -P -- "$1" 2>/dev/null; then
    _why="system $(cd -P -- "$1" 2>&1)"
    return 1
  fi
  ! barred .
}

# Sets _name, in the folder that is then the current one, and _real, the same as text.
# Arguments: the path; whether a link at its end is followed; whether folders on the way are made.
walk() {
  local target=$1 hop
  for ((hop = 0; hop < 40; hop++)); do
    pick "$target" || return 1
    one_walk "$2" "$3"
    case $? in
    0) return 0 ;;
    2) target=$_left ;;
    *) return 1 ;;
    esac
  done
  _why=links
  return 1
}

# One walk from one folder; 2 when it left it and would go on at _left.
one_walk() {
  local follow=$1 create=$2 here=${_reals[_at]%/} depth=0 turns=0 pending=$_rest name last text
  enter "${_roots[_at]}" || return 1
  while :; do
    name=${pending%%/*} last=1
    if [[ $pending == */* ]]; then pending=${pending#*/} last=; fi
    case $name in
    '' | .)
      [[ $last ]] && break
      continue
      ;;
    ..)
      if ((depth)); then
        enter .. || return 1
        here=${here%/*} depth=$((depth - 1))
      elif [[ $here ]]; then
        _left=${here%/*}/
        [[ $last ]] || _left+=$pending
        return 2
      fi
      [[ $last ]] && break
      continue
      ;;
    esac
    ((${#name} <= 255)) || { _why=long; return 1; }
    [[ -x . ]] || { _why=denied; return 1; }
    if [[ -L ./$name && ($follow || ! $last) ]]; then
      ((++turns <= 40)) || { _why=links; return 1; }
      text=$(readlink -- "./$name" && echo x)
      text=${text%$'\nx'}
      [[ $last ]] || text+=/$pending
      if [[ $text == /* ]]; then
        _left=$text
        return 2
      fi
      pending=$text
      continue
    fi
    if [[ $last ]]; then
      _name=$name _real=$here/$name
      return 0
    fi
    if [[ ! -e ./$name ]]; then
      [[ $create ]] || { _why=missing; return 1; }
      text=$(mkdir -- "./$name" 2>&1) || [[ -d ./$name ]] || { _why="system $text"; return 1; }
    elif [[ ! -d ./$name ]]; then
      _why=notdir
      return 1
    fi
    enter "./$name" || return 1
    here+=/$name depth=$((depth + 1))
  done
  _name=. _real=${here:-/}
}
