import { markName } from "../../processes/end-group.ts";

/**
 * Runs a command in a process group of its own, and ends with it all that it started: what left the group is found
 * by a mark in its environment. Should nobody be there any more to end it, its time limit does.
 *
 * $1: root, $2: folder, $3: id, $4: seconds, $5: 1 when there is standard input, $6: how files can be kept,
 * $7: a word that the command does not know, $8: how many paths are kept, which follow; then the words of the command.
 * A folder that is not there is told on standard error by that word and an exit code.
 */
export const execScript: string = `root=$1 p=$2 id=$3 limit=$4 input=$5 wall=$6 word=$7 kept=$8
shift 8
path= IFS=:
for folder in $PATH; do
  case "$folder/" in "$root"/*) ;; /*) path=$path\${path:+:}$folder ;; esac
done
unset IFS
PATH=\${path:-/usr/local/bin:/usr/bin:/bin}
export PATH
no() { printf %s "$word:$1" >&2; exit "$1"; }
real=$(realpath -m -- "$root/$p" 2>/dev/null && echo .) || no 71
real=\${real%??}
[ -L "$real" ] && no 71
case "$real" in "$root"|"$root"/*) ;; *) no 71 ;; esac
[ -e "$real" ] || no 70
[ -d "$real" ] || no 72
cd -- "$real" || no 71
pid=\${TMPDIR:-/tmp}/.kit-$id
if [ "$input" = 1 ]; then exec 3<&0; else exec 3</dev/null; fi
if [ "$kept" != 0 ]; then
  set -- $wall -- sh -c 'kept=$1 at=$2; shift 2
while [ "$kept" -gt 0 ]; do
  if [ -e "$1" ]; then mount --bind -- "$1" "$1" && mount -o remount,ro,bind -- "$1" || { echo "The files could not be kept from the command." >&2; exit 126; }; fi
  shift; kept=$((kept - 1))
done
cd -- "$at" || exit 126
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"' kit "$kept" "$real" "$@"
fi
${markName}=$id setsid -- "$@" <&3 3<&- &
w=$!
echo $w >"$pid"
# The shell's own remarks on how it ended are not the command's.
exec 2>/dev/null
setsid -- sh -c 'sleep "$1"; kill -s KILL -- "-$2"' kit "$limit" $w </dev/null >/dev/null 2>&1 &
d=$!
wait $w
c=$?
kill -s KILL -- -$w -$d 2>/dev/null
for round in 1 2 3; do
  left=$(grep -lszFx "${markName}=$id" /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  for e in $left; do e=\${e#/proc/}; kill -s KILL "\${e%/environ}"; done 2>/dev/null
done
rm -f -- "$pid"
exit $c`;

/** Ends a command: asks, and a second later makes sure. $2: its id. */
export const endScript: string = `pid=\${TMPDIR:-/tmp}/.kit-$2
tries=0
while [ ! -s "$pid" ]; do [ $tries -lt 100 ] || exit 0; tries=$((tries + 1)); sleep 0.1; done
w=$(cat "$pid") || exit 0
kill -s TERM -- "-$w" 2>/dev/null || exit 0
tries=0
while kill -s 0 -- "-$w" 2>/dev/null && [ $tries -lt 10 ]; do tries=$((tries + 1)); sleep 0.05; done
kill -s KILL -- "-$w" 2>/dev/null
exit 0`;
