# The file calls. Each starts with the walk; errors are words, or what a tool said.

refuse() {
  _why=$*
  fail
}

# What lies there, if it is no regular file that may be read.
call_read() {
  local path=${_fields[0]} offset=${_fields[1]} limit=${_fields[2]}
  walk "$path" follow '' || fail
  [[ -d ./$_name ]] && refuse folder
  [[ -e ./$_name ]] || refuse missing
  [[ -f ./$_name ]] || refuse irregular
  [[ -r ./$_name ]] || refuse denied
  if ((limit == 0)); then
    finish done
  elif ((offset == 0)); then
    head -c "$limit" <"./$_name" 2>/dev/null || refuse unreadable
  else
    # tail is cut short by a head that has enough: only its start says anything
    { tail -c "+$((offset + 1))" 2>/dev/null || :; } <"./$_name" | head -c "$limit" || refuse unreadable
  fi
  finish done
}

call_write() {
  local path=${_fields[0]} folder=${_fields[1]} mode=${_fields[2]} size=${_fields[3]} temporary=./${_fields[4]}
  local old='' user='' group='' text written
  _guard=1
  if [[ $folder ]]; then
    walk "$path" '' '' || fail
    refuse names-folder
  fi
  walk "$path" follow create || fail
  barred_target && fail
  local target=./$_name
  if [[ -e $target ]]; then
    [[ -d $target ]] && refuse folder
    [[ -f $target ]] || refuse irregular
    read -r old user group < <(stat -c '%a %u %g' -- "$target")
    # A file without any right to write is refused to root as well: that is how read-only copies are marked.
    (((8#${old:-0} & 8#222) != 0)) && [[ -w $target ]] || refuse denied
  fi
  ((${#_name} <= 255)) || refuse long
  [[ $old || $mode ]] && umask 077
  set -o noclobber
  if ! text=$({ : >"$temporary"; } 2>&1); then
    refuse system "$text"
  fi
  text=$(head -c "$size" | dd "of=$temporary" bs=65536 conv=notrunc,fsync status=none 2>&1)
  written=$(stat -c %s -- "$temporary")
  if [[ $text || $written != "$size" ]]; then
    rm -f -- "$temporary"
    refuse system "$text"
  fi
  if [[ $old ]]; then
    [[ -O $target && -G $target ]] || chown "$user:$group" -- "$temporary" 2>/dev/null
    printf -v old '%o' "$((8#$old & 8#777))"
  fi
  mode=${mode:-$old}
  if ! text=$({ [[ -z $mode ]] || chmod "$mode" -- "$temporary"; } 2>&1 && mv -f -- "$temporary" "$target" 2>&1); then
    rm -f -- "$temporary"
    refuse system "$text"
  fi
  finish done
}

call_delete() {
  local path=${_fields[0]} text
  _guard=1
  walk "$path" '' '' || fail
  [[ $_name == . ]] && refuse in-use
  barred_target && fail
  [[ -e ./$_name || -L ./$_name ]] || refuse missing
  if [[ -d ./$_name && ! -L ./$_name ]]; then
    text=$(rmdir -- "./$_name" 2>&1) || refuse system "$text"
  else
    text=$(rm -f -- "./$_name" 2>&1) || refuse system "$text"
  fi
  finish done
}

# One line of what lies at _name: mode, size, time, and the name to show.
describe() {
  local line folder=$PWD name=$_name
  if [[ -L ./$_name ]] && { ! walk "$_real" follow '' || [[ ! -e ./$_name ]]; }; then
    cd -P -- "$folder" && _name=$name # it leads nowhere, or outside: the link itself
  fi
  line=$(stat -c '%f %s %Y %y' -- "./$_name" 2>/dev/null) || return 1
  printf '%s/./%s/%s\n' "$line" "$1" "$2"
}

call_stat() {
  walk "${_fields[0]}" '' '' || fail
  [[ -e ./$_name || -L ./$_name ]] || refuse missing
  describe '' "${_fields[1]}" || refuse missing
  finish done
}

call_list() {
  local path=${_fields[0]} depth=${_fields[1]} limit=${_fields[2]} mark=${_fields[3]}
  local top base level name folder found=0 i
  local -a folders=('') deeper names plain=() links=()
  walk "$path" follow '' || fail
  [[ -e ./$_name ]] || refuse missing
  [[ -d ./$_name ]] || refuse no-folder
  [[ -r ./$_name ]] || refuse denied
  base=$_real
  enter "./$_name" || fail
  top=$PWD
  for ((level = 0; level < depth; level++)); do
    deeper=()
    for folder in "${folders[@]}"; do
      ((found < limit)) || break
      cd -P -- "$top/$folder" 2>/dev/null && [[ -r . ]] || continue
      names=(*)
      names=("${names[@]:0:limit-found}")
      found=$((found + ${#names[@]}))
      for name in "${names[@]}"; do
        if [[ -L ./$name ]]; then
          links+=("$folder$name")
          continue
        fi
        plain+=("./$folder$name")
        [[ -d ./$name ]] && deeper+=("$folder$name/")
      done
    done
    folders=("${deeper[@]}")
  done
  for ((i = 0; i < ${#plain[@]}; i += 100)); do
    cd -P -- "$top" && stat -c "%f %s %Y %y/%n/$mark" -- "${plain[@]:i:100}" 2>/dev/null
  done
  for name in "${links[@]}"; do
    folder=${name%"${name##*/}"}
    cd -P -- "$top/$folder" 2>/dev/null || continue
    _name=${name##*/} _real=${base%/}/$name
    describe "$name" "$mark"
  done
  finish done
}
