# The shell that serves one call. Bash 4.4 or later; coreutils or busybox. Our own words go to standard error,
# each line with a secret that no command knows; standard output carries what a command prints or a file holds.

IFS=$' \t\n'
unset -v CDPATH GLOBIGNORE SHLVL OLDPWD
shopt -s nullglob dotglob # after GLOBIGNORE, which takes dotglob along
umask 022

# What commands get of the environment besides the image's own.
export PATH TERM="${TERM:-dumb}"
if [[ -z ${HOME-} || $HOME == / || ! -w $HOME || ! -x $HOME ]] && [[ -w /home/sandbox && -x /home/sandbox ]]; then
  export HOME=/home/sandbox
fi
[[ -v LANG || -v LC_CTYPE || $_locale ]] || export LANG=C.UTF-8

_setsid=$(type -P setsid) _env=$(type -P env)
# A pipe into which nobody writes: to wait on it with a time limit is a sleep without a process.
exec {_never}<> <(:)

tell() { printf '\n%s %s\n' "$_secret" "${*//$'\n'/ }" >&2; }

# Says how the call ended, marks the end of the output, and ends this shell.
finish() {
  tell "$@"
  printf '\036%s' "$_end"
  exit 0
}

# The request: one line with the secret, the mark of the end and the length of each field; then the fields.
receive() {
  local line field length
  IFS= read -r line || exit 0
  local -a words=($line)
  _secret=${words[0]} _end=${words[1]} _fields=()
  for length in "${words[@]:2}"; do
    field=
    if ((length > 0)); then
      IFS= read -r -N "$length" field || exit 0
    fi
    _fields+=("$field")
  done
}

serve() {
  receive
  local call=${_fields[0]}
  _fields=("${_fields[@]:1}")
  case $call in
  run | sweep | survey | room) "call_$call" ;;
  read | write | list | stat | delete)
    take_folders
    "call_$call"
    ;;
  esac
}
