/**
 * Scripts that run on a machine. Each is POSIX shell with GNU tools, gets the root of the workspace as its first
 * argument and a path below it as the second, and answers with one of `outcomes` when it fails. What comes in is
 * `input`, which `withInput` defines.
 */

/** Exit codes by which a script says what is wrong with its path. */
export const outcomes: Readonly<
  Record<"missing" | "outside" | "wrongKind" | "tooLarge" | "noSpace" | "changed" | "cut", number>
> = {
  missing: 70,
  outside: 71,
  wrongKind: 72,
  tooLarge: 73,
  noSpace: 75,
  changed: 76,
  cut: 77,
};

/** Sets `real` to where the path leads, which lies in the workspace. A name may end with a line feed. */
const find = `root=$1 p=$2
real=$(realpath -m -- "$root/$p" 2>/dev/null && echo .) || exit 71
real=\${real%??}
[ -L "$real" ] && exit 71
case "$real" in "$root"|"$root"/*) ;; *) exit 71 ;; esac
`;

/** The same for the entry itself: a link at the end is not followed. */
const findEntry = `root=$1 p=$2
case "$p" in */*) up=\${p%/*} ;; *) up= ;; esac
above=$(realpath -m -- "$root/$up" 2>/dev/null && echo .) || exit 71
above=\${above%??}
case "$above" in "$root"|"$root"/*) ;; *) exit 71 ;; esac
real=$above/\${p##*/}
`;

const isPlain = `[ -e "$real" ] || exit 70
[ -f "$real" ] || { [ -d "$real" ] && exit 72; exit 71; }
`;

const below = `[ "$real" = "$root" ] || printf %s "\${real#"$root"/}"`;

/** Makes the folder `dir`, or says what stands in its way. */
const makeFolder = `[ -d "$dir" ] || mkdir -p -- "$dir" 2>/dev/null || {
  while [ ! -e "$dir" ]; do dir=\${dir%/*}; done
  [ -d "$dir" ] || exit 72
  exit 75
}
`;

/** Names that a listing leaves out, whatever the ignore files say: `isSkippedName`. */
const skipped = "\\( -name node_modules -o -name .git -o -name .kit -o -name .hg -o -name .svn \\) -prune -o";

const pack = "gzip -cn | base64 -w0; echo";

const toArchive = "tar -c --format=gnu --null --no-recursion --ignore-failed-read -T - 2>/dev/null";
const archive = `${toArchive} | ${pack}`;

/** Bytes that one search fetches at a time, since kit holds them in memory. */
export const mostFetched: number = 64 * 1024 * 1024;

/** Prints the names from standard input that are regular files. */
const onlyFiles = `xargs -0r sh -c 'for f; do [ -f "$f" ] && [ ! -L "$f" ] && printf "%s\\0" "$f"; done' kit`;

/** Prints the names from standard input that are regular files or links. */
const onlyEntries = `xargs -0r sh -c 'for f; do { [ -f "$f" ] || [ -L "$f" ]; } && printf "%s\\0" "$f"; done' kit`;

/** Prints, with \`find\`, state that a checksum lacks: executable files ("x" and the path), and links with their targets ("l"). */
const kinds = `\\( -type f -perm -100 -printf "x%p\\0" -o -type l -printf "l%p\\0%l\\0" \\)`;

/** Programs that the scripts need beside a POSIX shell; each is checked once, when a machine is opened. */
const tools: Readonly<Record<string, string>> = {
  "realpath -m": `realpath -m -- "$t/none/x"`,
  "find -printf": `find "$t" -printf '%y%P\\0'`,
  "stat -c": `stat -L -c '%F|%s|%.3Y' -- "$t"`,
  "base64 -w0": "base64 -w0 </dev/null",
  "mv -T": `{ : >"$t/a"; mv -fT -- "$t/a" "$t/b"; }`,
  "chmod --reference": `chmod --reference="$t/b" "$t/b"`,
  setsid: "setsid -- true",
  "grep -z": `{ printf 'a\\0' | grep -zFx a; }`,
  sha256sum: "sha256sum </dev/null",
  "tar --null": `{ printf 'b\\0' | tar -c -C "$t" --null --no-recursion -T -; }`,
  gzip: "gzip -cn </dev/null",
};

const tries = Object.entries(tools)
  .map(([name, trial]) => `${trial} >/dev/null 2>&1 || lacks="$lacks, ${name}"`)
  .join("\n");

type ScriptName =
  | "open"
  | "seed"
  | "sums"
  | "both"
  | "ready"
  | "resolve"
  | "resolveEntry"
  | "stat"
  | "exists"
  | "list"
  | "read"
  | "write"
  | "mkdir"
  | "remove"
  | "walk"
  | "fetch";

export const scripts: Readonly<Record<ScriptName, string>> = {
  /**
   * $1: the folder. Answers lines: what is missing of the tools, how files can be kept from commands, the folder
   * with links resolved, and "ready" when it has all that it starts with.
   */
  open: `lacks=
t=$(mktemp -d "\${TMPDIR:-/tmp}/.kit-XXXXXX") || { echo ", mktemp -d"; exit 0; }
${tries}
wall=
for w in "unshare -rm" "unshare -m"; do
  $w -- sh -c 'mount --bind -- "$1" "$1" && mount -o remount,ro,bind -- "$1" && cd -- "$1" && setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- sh -c "! true >x"' kit "$t" >/dev/null 2>&1 && { wall=$w; break; }
done
rm -rf -- "$t"
mkdir -p -- "$1" 2>/dev/null || { echo "$lacks"; echo "$wall"; exit 75; }
echo "$lacks"
echo "$wall"
cd -- "$1" && root=$(pwd -P) && echo "$root" && [ -e "$root.kit/ready" ] && echo ready
exit 0`,

  /**
   * Fills the workspace with an archive, of which $3 says how many bytes come. With $2, it is kept beside the
   * workspace with the checksums of its files: what has changed since is told by them.
   */
  seed: `cd -- "$1" && mkdir -p -- "$1.kit" || exit 75
file="$1.kit/seed.tgz"
input | base64 -d >"$file" || exit 75
[ "$(stat -c %s -- "$file")" = "$3" ] || exit 77
tar -xzf "$file" --no-same-owner || exit 75
if [ "$2" = 1 ]; then
  mv -fT -- "$file" "$1.kit/base.tgz"
  find . -type f -print0 | xargs -0r sha256sum -z -- >"$1.kit/base.sums"
else rm -f -- "$file"; fi`,

  /**
   * Four lines, packed: the checksums that the workspace started with, and those of the files that come in now; then what
   * `kinds` tells of both.
   */
  sums: `cd -- "$1" && [ -e "$1.kit/base.sums" ] || exit 70
t=$(mktemp -d "\${TMPDIR:-/tmp}/.kit-XXXXXX") || exit 75
trap 'rm -rf -- "$t"' EXIT
input | base64 -d >"$t/names"
mkdir "$t/base" && tar -xzf "$1.kit/base.tgz" --no-same-owner -C "$t/base" || exit 75
cat "$1.kit/base.sums" | ${pack}
${onlyFiles} <"$t/names" | xargs -0r sha256sum -z -- 2>/dev/null | ${pack}
(cd -- "$t/base" && find . ${kinds}) | ${pack}
xargs -0r sh -c 'find "$@" -maxdepth 0 ${kinds} 2>/dev/null' kit <"$t/names" | ${pack}`,

  /** Two archives, packed: the files that come in as they were at the start, and as they are. */
  both: `t=$(mktemp -d "\${TMPDIR:-/tmp}/.kit-XXXXXX") || exit 75
trap 'rm -rf -- "$t"' EXIT
input | base64 -d >"$t/names"
mkdir "$t/base" && cd -- "$t/base" || exit 75
tar -xzf "$1.kit/base.tgz" --no-same-owner || exit 75
${onlyEntries} <"$t/names" | ${archive}
cd -- "$1" || exit 71
${onlyEntries} <"$t/names" | ${archive}`,

  /** Notes that the workspace has all that it starts with. What kit keeps of it lies beside it. */
  ready: 'mkdir -p -- "$1.kit" && : >"$1.kit/ready"',

  resolve: `${find}${below}`,
  resolveEntry: `${findEntry}${below}`,
  stat: `${find}[ -e "$real" ] || exit 70
LC_ALL=C stat -L -c '%F|%s|%.3Y' -- "$real"`,
  exists: `${find}[ -e "$real" ] && echo 1 || echo 0`,
  list: `${find}[ -e "$real" ] || exit 70
[ -d "$real" ] || exit 72
cd -- "$real" && find . -mindepth 1 -maxdepth 1 -printf '%y%P\\0' | base64 -w0`,

  /** $3: the most bytes. */
  read: `${find}${isPlain}[ "$(stat -c %s -- "$real")" -le "$3" ] || exit 73
base64 -w0 <"$real"`,

  /** $3: the checksum of what is replaced, or nothing; $4: how many bytes come. */
  write: `${find}case "$p" in */) exit 72 ;; esac
[ "$real" = "$root" ] && exit 72
if [ -e "$real" ]; then
  [ -d "$real" ] && exit 72
  [ -f "$real" ] || exit 71
fi
name=$real dir=\${real%/*}
${makeFolder}tmp=$(mktemp "$dir/.kit-XXXXXX") || exit 75
trap 'rm -f -- "$tmp"' EXIT
input | base64 -d >"$tmp" || exit 75
[ "$(stat -c %s -- "$tmp")" = "$4" ] || exit 77
if [ -n "$3" ]; then
  [ -f "$name" ] || exit 76
  sum=$(sha256sum <"$name")
  [ "\${sum%% *}" = "$3" ] || exit 76
fi
if [ -e "$name" ]; then chmod --reference="$name" -- "$tmp"; else chmod 644 -- "$tmp"; fi
mv -fT -- "$tmp" "$name" || exit 75`,

  mkdir: `${find}if [ -e "$real" ]; then [ -d "$real" ] || exit 72; exit 0; fi
dir=$real
${makeFolder}`,

  /** $3: 1 for a folder with all that it holds. */
  remove: `${findEntry}[ "$real" = "$root" ] && exit 71
if [ ! -L "$real" ]; then
  [ -e "$real" ] || exit 70
  [ -d "$real" ] && [ "$3" != 1 ] && exit 72
fi
rm -rf -- "$real" || exit 75`,

  /**
   * Four lines, packed: where the path leads, with "F" or "D" before it; the files below; links below to files of
   * the workspace; an archive of the ignore files that count. $3: 1 leaves nothing out; $4: 1 tells all links.
   */
  walk: `${find}free=$3
[ -e "$real" ] || exit 70
rel=\${real#"$root"} rel=\${rel#/}
if [ -f "$real" ]; then printf 'F%s' "$rel" | ${pack}; exit 0; fi
[ -d "$real" ] || exit 71
look() {
  at=$1; shift
  if [ "$free" = 1 ]; then find "$at" -mindepth 1 "$@"
  else find "$at" -mindepth 1 ${skipped} "$@"; fi 2>/dev/null
}
printf 'D%s' "$rel" | ${pack}
cd -- "$real" || exit 71
look . -type f -printf '%P\\0' | ${pack}
if [ "$4" = 1 ]; then look . -type l -printf '%P\\0' | ${pack}
else look . -type l -printf '%Y%P\\0' | grep -z '^f' | xargs -0r sh -c 'root=$1; shift
for l; do
  l=\${l#f}
  to=$(realpath -e -- "$l" 2>/dev/null) || continue
  case "$to" in "$root"/*) printf "%s\\0" "$l" ;; esac
done' kit "$root" | ${pack}; fi
cd -- "$root" || exit 71
{
  at=. rest=$rel
  while [ -n "$rest" ]; do
    [ -f "$at/.gitignore" ] && printf '%s\\0' "$at/.gitignore"
    at=$at/\${rest%%/*}
    case "$rest" in */*) rest=\${rest#*/} ;; *) rest= ;; esac
  done
  look "$at" -type f -name .gitignore -size -1025k -print0
} | ${archive}`,

  /**
   * An archive of the files of the workspace that come in, packed, up to `mostFetched` bytes of it. $3: the most bytes of one; $4: what
   * one of its lines has to hold, one possibility a line, and $5 an option of grep.
   */
  fetch: `cd -- "$1" || exit 71
few() { xargs -0r sh -c 'most=$1; shift; find "$@" -maxdepth 0 -type f -size "-$most"c -print0' kit "$1" 2>/dev/null; }
keep() { if [ -z "$1" ]; then cat; else LC_ALL=C xargs -0r grep -laFZ $2 -e "$1" -- 2>/dev/null; fi; }
input | base64 -d | few "$3" | keep "$4" "$5" | ${toArchive} | head -c ${mostFetched} | ${pack}`,
};

/** One argument of a program holds at most 128 KiB; longer input goes through standard input. */
const maxInline = 96 * 1024;

/** A script with its input: within the script itself where it fits, which saves the round trips of standard input. */
export function withInput(
  script: string,
  input: Buffer,
): { readonly script: string; readonly stdin?: string } {
  const text = input.toString("base64");
  if (text.length <= maxInline) return { script: `input() { printf %s '${text}'; }\n${script}` };
  return { script: `input() { cat; }\n${script}`, stdin: text };
}
