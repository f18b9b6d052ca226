/**
 * Scripts that run on a machine. Each is POSIX shell with GNU tools. $1 is the root of the workspace and $2 a path
 * below it; on failure the exit code is one of `outcomes`. The function `input`, which `withInput` defines, prints
 * the script's input.
 */

/** Exit codes that report what is wrong with a script's path. */
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

/** Sets `real` to the resolved path, which lies in the workspace. The added "." keeps a line feed at the end of a name. */
const find = `root=$1 p=$2
real=$(realpath -m -- "$root/$p" 2>/dev/null && echo .) || exit 71
real=\${real%??}
[ -L "$real" ] && exit 71
case "$real" in "$root"|"$root"/*) ;; *) exit 71 ;; esac
`;

/** Like `find`, but does not follow a link in the last place. */
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

const printBelowRoot = `[ "$real" = "$root" ] || printf %s "\${real#"$root"/}"`;

/** Creates the folder `dir`, or exits with the reason why it cannot. */
const makeFolder = `[ -d "$dir" ] || mkdir -p -- "$dir" 2>/dev/null || {
  while [ ! -e "$dir" ]; do dir=\${dir%/*}; done
  [ -d "$dir" ] || exit 72
  exit 75
}
`;

/** Folders that searches always skip; must match `isSkippedName`. */
const skipped = "\\( -name node_modules -o -name .git -o -name .kit -o -name .hg -o -name .svn \\) -prune -o";

const pack = "gzip -cn | base64 -w0; echo";

const toArchive = "tar -c --format=gnu --null --no-recursion --ignore-failed-read -T - 2>/dev/null";
const archive = `${toArchive} | ${pack}`;

/** The limit of one fetch, because kit holds the bytes in memory. */
export const maxFetchedBytes: number = 64 * 1024 * 1024;

/** Prints the names from standard input that are regular files. */
const onlyFiles = `xargs -0r sh -c 'for f; do [ -f "$f" ] && [ ! -L "$f" ] && printf "%s\\0" "$f"; done' kit`;

/** Prints the names from standard input that are regular files or links. */
const onlyEntries = `xargs -0r sh -c 'for f; do { [ -f "$f" ] || [ -L "$f" ]; } && printf "%s\\0" "$f"; done' kit`;

/** A \`find\` expression for what checksums lack: prints executable files ("x" and the path), and links with targets ("l"). */
const kinds = `\\( -type f -perm -100 -printf "x%p\\0" -o -type l -printf "l%p\\0%l\\0" \\)`;

/** Programs that the scripts need in addition to a POSIX shell; checked when a machine is opened. */
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

const toolChecks = Object.entries(tools)
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
   * $1: the folder. Prints four lines: the missing tools, the program that makes paths read-only, the folder with
   * links resolved, and "ready" if its first files are complete.
   */
  open: `lacks=
t=$(mktemp -d "\${TMPDIR:-/tmp}/.kit-XXXXXX") || { echo ", mktemp -d"; exit 0; }
${toolChecks}
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
   * Unpacks an archive of $3 bytes into the workspace. If $2 is 1, stores the archive and the checksums of its files
   * next to the workspace, so that later changes can be found.
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
   * Prints four packed lines: the checksums of the uploaded files, those of the input's files, and the output of
   * `kinds` for both.
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

  /** Prints two packed archives: the input's files as uploaded, and as they are now. */
  both: `t=$(mktemp -d "\${TMPDIR:-/tmp}/.kit-XXXXXX") || exit 75
trap 'rm -rf -- "$t"' EXIT
input | base64 -d >"$t/names"
mkdir "$t/base" && cd -- "$t/base" || exit 75
tar -xzf "$1.kit/base.tgz" --no-same-owner || exit 75
${onlyEntries} <"$t/names" | ${archive}
cd -- "$1" || exit 71
${onlyEntries} <"$t/names" | ${archive}`,

  /** Records, next to the workspace, that its first files are complete. */
  ready: 'mkdir -p -- "$1.kit" && : >"$1.kit/ready"',

  resolve: `${find}${printBelowRoot}`,
  resolveEntry: `${findEntry}${printBelowRoot}`,
  stat: `${find}[ -e "$real" ] || exit 70
LC_ALL=C stat -L -c '%F|%s|%.3Y' -- "$real"`,
  exists: `${find}[ -e "$real" ] && echo 1 || echo 0`,
  list: `${find}[ -e "$real" ] || exit 70
[ -d "$real" ] || exit 72
cd -- "$real" && find . -mindepth 1 -maxdepth 1 -printf '%y%P\\0' | base64 -w0`,

  /** $3: the size limit in bytes. */
  read: `${find}${isPlain}[ "$(stat -c %s -- "$real")" -le "$3" ] || exit 73
base64 -w0 <"$real"`,

  /** $3: the checksum of the content to replace, or ""; $4: the number of bytes of the input. */
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

  /** $3: 1 to remove a folder with its contents. */
  remove: `${findEntry}[ "$real" = "$root" ] && exit 71
if [ ! -L "$real" ]; then
  [ -e "$real" ] || exit 70
  [ -d "$real" ] && [ "$3" != 1 ] && exit 72
fi
rm -rf -- "$real" || exit 75`,

  /**
   * Prints four packed lines: "F" or "D" and the resolved path; the files below; the links below that lead to files of
   * the workspace; an archive of the relevant ignore files. $3: 1 skips no folders; $4: 1 prints all links.
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
   * Prints a packed archive of the input's files, cut at `maxFetchedBytes`. $3: the size limit of one file; $4: lines
   * of text, one of which a file must contain; $5: an option of grep.
   */
  fetch: `cd -- "$1" || exit 71
few() { xargs -0r sh -c 'most=$1; shift; find "$@" -maxdepth 0 -type f -size "-$most"c -print0' kit "$1" 2>/dev/null; }
keep() { if [ -z "$1" ]; then cat; else LC_ALL=C xargs -0r grep -laFZ $2 -e "$1" -- 2>/dev/null; fi; }
input | base64 -d | few "$3" | keep "$4" "$5" | ${toArchive} | head -c ${maxFetchedBytes} | ${pack}`,
};

/** Longer input goes through standard input, because Linux limits one argument to 128 KiB. */
const maxInline = 96 * 1024;

/** Adds input to a script: short input inside the script, which saves the round trips of standard input. */
export function withInput(
  script: string,
  input: Buffer,
): { readonly script: string; readonly stdin?: string } {
  const text = input.toString("base64");
  if (text.length <= maxInline) return { script: `input() { printf %s '${text}'; }\n${script}` };
  return { script: `input() { cat; }\n${script}`, stdin: text };
}
