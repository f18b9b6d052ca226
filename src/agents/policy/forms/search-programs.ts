import { type Form, form, knownWords, mentionOf, type PathMention } from "./form.ts";

const contexts =
  "-A=number -B=number -C=number --after-context=number --before-context=number --context=number";

const grepOptions = `${contexts} -# -E -F -G -P -e=message -f=read -i -y -w -x -z -s -v -m=number -b -n -H -h -o -q -a -I -r -L -l -c -T -Z -U -d=read|recurse|skip -D=read|skip --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp=message --file=read --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --max-count=number --byte-offset --line-number --line-buffered --with-filename --no-filename --label=text --only-matching --quiet --silent --binary-files=text --text --recursive --include=text --exclude=text --exclude-from=read --exclude-dir=text --files-without-match --files-with-matches --count --initial-tab --null --group-separator=text --no-group-separator --color[=always|never|auto] --colour[=always|never|auto] --binary --help --version`;

/** The first operand is a pattern unless an option gives one; the others are what is searched. */
export function searches(options: string, instead: readonly string[]): Form {
  return form({
    options,
    operands: (operands, given) =>
      operands
        .slice(given.some(({ name }) => instead.includes(name)) ? 0 : 1)
        .flatMap((operand) => mentionOf(operand, "read")),
  });
}

const patterns = ["-e", "-f", "--regexp", "--file"];

const rgOptions = `${contexts} -# --auto-hybrid-regex --binary -b --byte-offset -s --case-sensitive --color=always|never|auto|ansi --colors=text --column --context-separator=text --no-context-separator -c --count --count-matches --crlf -E=text --encoding=text --engine=default|pcre2|auto --field-context-separator=text --field-match-separator=text -f=read --file=read --files -l --files-with-matches --files-without-match -F --fixed-strings -g=text --glob=text --glob-case-insensitive --heading -. --hidden --iglob=text -i --ignore-case --ignore-file=read --include-zero -v --invert-match --json --line-buffered -n --line-number -x --line-regexp -M=number --max-columns=number --max-columns-preview -m=number --max-count=number -d=number --max-depth=number --max-filesize=text -U --multiline --multiline-dotall --no-config -I --no-filename --no-heading --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages --no-ignore-parent --no-ignore-vcs -N --no-line-number --no-messages --no-require-git --no-unicode -0 --null --null-data --one-file-system -o --only-matching --passthru -P --pcre2 -p --pretty -q --quiet -e=message --regexp=message -r=text --replace=text -S --smart-case --sort=none|path|modified|accessed|created --sortr=none|path|modified|accessed|created --stats -a --text -j=number --threads=number --trim -t=text --type=text --type-add=text --type-clear=text --type-list -T=text --type-not=text -u --unrestricted --vimgrep -H --with-filename -w --word-regexp -V --version --help`;

const fdOptions =
  "-H --hidden -I --no-ignore --no-ignore-vcs -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex -F --fixed-strings -a --absolute-path -p --full-path -d=number --max-depth=number --min-depth=number --exact-depth=number -E=text --exclude=text --prune -t=text --type=text -e=text --extension=text -S=text --size=text --changed-within=text --changed-before=text -o=text --owner=text --format=text --max-results=number -1 -q --quiet --show-errors -0 --print0 -c=never|auto|always --color=never|auto|always -j=number --threads=number --path-separator=text --search-path=read --strip-cwd-prefix --one-file-system -h --help -V --version";

/** How many words follow a word of find's expression, and what they are. */
const findTests: Readonly<Record<string, "text" | "read" | "none">> = {
  ...words(
    "none",
    "( ) ! , -a -and -o -or -not -print -print0 -prune -quit -ls -empty -true -false -depth -d -mount -xdev -noleaf -daystart -ignore_readdir_race -noignore_readdir_race -executable -readable -writable -nouser -nogroup -warn -nowarn --help -help -version --version",
  ),
  ...words(
    "text",
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -used -perm -user -group -uid -gid -links -inum -fstype -printf -newermt -newerat -newerct",
  ),
  ...words("read", "-newer -anewer -cnewer -newermm -newerma -newermc -newerac -newercc -samefile"),
};

function words<Kind extends string>(kind: Kind, list: string): Record<string, Kind> {
  return Object.fromEntries(list.split(" ").map((word) => [word, kind]));
}

/** find: where to look, then an expression of tests, and of actions that print. */
const find: Form = (args) => {
  const paths: PathMention[] = [];
  let at = 0;
  while (/^-([HP]|O[0-3])$/.test(args[at] ?? "")) at += 1;
  for (let word = args[at]; word !== undefined && !/^([-(!,]|\)$)/.test(word); word = args[at]) {
    paths.push({ path: word, use: "read" });
    at += 1;
  }
  // Without the links that it meets: they may lead out of the workspace.
  for (; at < args.length; at += 1) {
    const word = args[at] ?? "";
    const kind = Object.hasOwn(findTests, word) ? findTests[word] : undefined;
    if (kind === undefined) {
      return word.startsWith("-")
        ? `"${word}" is no test that kit knows${knownWords(word, Object.keys(findTests).slice(4))}`
        : `"${word}" stands behind the expression; name folders first`;
    }
    if (kind === "none") continue;
    at += 1;
    const value = args[at];
    if (value === undefined) return `"${word}" needs a value`;
    if (kind === "read") paths.push({ path: value, use: "read" });
  }
  return { paths };
};

/** Programs that search files and folders. */
export const searchPrograms: Readonly<Record<string, Form>> = {
  grep: searches(grepOptions, patterns),
  egrep: searches(grepOptions, patterns),
  fgrep: searches(grepOptions, patterns),
  rg: searches(rgOptions, [...patterns, "--files", "--type-list"]),
  fd: searches(fdOptions, []),
  fdfind: searches(fdOptions, []),
  find,
};
