import {
  type Form,
  type FormSpec,
  form,
  knownWords,
  mentionOf,
  type PathMention,
  secretPatterns,
} from "./form.ts";

const contexts =
  "-A=number -B=number -C=number --after-context=number --before-context=number --context=number";

const grepOptions = `${contexts} -# -E -F -G -P -e=message -f=read -i -y -w -x -z -s -v -m=number -b -n -H -h -o -q -a -I -r -L -l -c -T -Z -U -d=read|recurse|skip -D=read|skip --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp=message --file=read --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --max-count=number --byte-offset --line-number --line-buffered --with-filename --no-filename --label=text --only-matching --quiet --silent --binary-files=text --text --recursive --include=text --exclude=text --exclude-from=read --exclude-dir=text --files-without-match --files-with-matches --count --initial-tab --null --group-separator=text --no-group-separator --color[=always|never|auto] --colour[=always|never|auto] --binary --help --version`;

/** The first operand is the pattern unless an option in `instead` has it; the others are the searched paths. */
export function searchForm(options: string, instead: readonly string[], hides?: FormSpec["hides"]): Form {
  return form({
    options,
    ...(hides === undefined ? {} : { hides }),
    operands: (operands, options) =>
      operands
        .slice(options.some(({ name }) => instead.includes(name)) ? 0 : 1)
        .flatMap((operand) => mentionOf(operand, "read")),
  });
}

const patterns = ["-e", "-f", "--regexp", "--file"];

const rgOptions = `${contexts} -# --auto-hybrid-regex --binary -b --byte-offset -s --case-sensitive --color=always|never|auto|ansi --colors=text --column --context-separator=text --no-context-separator -c --count --count-matches --crlf -E=text --encoding=text --engine=default|pcre2|auto --field-context-separator=text --field-match-separator=text -f=read --file=read --files -l --files-with-matches --files-without-match -F --fixed-strings -g=text --glob=text --glob-case-insensitive --heading -. --hidden --iglob=text -i --ignore-case --ignore-file=read --include-zero -v --invert-match --json --line-buffered -n --line-number -x --line-regexp -M=number --max-columns=number --max-columns-preview -m=number --max-count=number -d=number --max-depth=number --max-filesize=text -U --multiline --multiline-dotall --no-config -I --no-filename --no-heading --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages --no-ignore-parent --no-ignore-vcs -N --no-line-number --no-messages --no-require-git --no-unicode -0 --null --null-data --one-file-system -o --only-matching --passthru -P --pcre2 -p --pretty -q --quiet -e=message --regexp=message -r=text --replace=text -S --smart-case --sort=none|path|modified|accessed|created --sortr=none|path|modified|accessed|created --stats -a --text -j=number --threads=number --trim -t=text --type=text --type-add=text --type-clear=text --type-list -T=text --type-not=text -u --unrestricted --vimgrep -H --with-filename -w --word-regexp -V --version --help`;

const fdOptions =
  "-H --hidden -I --no-ignore --no-ignore-vcs -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex -F --fixed-strings -a --absolute-path -p --full-path -d=number --max-depth=number --min-depth=number --exact-depth=number -E=text --exclude=text --prune -t=text --type=text -e=text --extension=text -S=text --size=text --changed-within=text --changed-before=text -o=text --owner=text --format=text --max-results=number -1 -q --quiet --show-errors -0 --print0 -c=never|auto|always --color=never|auto|always -j=number --threads=number --path-separator=text --search-path=read --strip-cwd-prefix --one-file-system -h --help -V --version";

/** The kind of the word that follows each word of find's expression. */
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

/** find: the folders to search, then an expression of tests, and of actions that print. */
const find: Form = (args) => {
  const paths: PathMention[] = [];
  let at = 0;
  while (/^-([HP]|O[0-3])$/.test(args[at] ?? "")) at += 1;
  for (let word = args[at]; word !== undefined && !/^([-(!,]|\)$)/.test(word); word = args[at]) {
    paths.push({ path: word, use: "read" });
    at += 1;
  }
  // `-L` is not a known test: the links that find meets may lead out of the workspace.
  for (; at < args.length; at += 1) {
    const word = args[at] ?? "";
    const kind = Object.hasOwn(findTests, word) ? findTests[word] : undefined;
    if (kind === undefined) {
      return word.startsWith("-")
        ? `"${word}" is not a test that kit knows${knownWords(word, Object.keys(findTests).slice(4))}`
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

const hidesFromGrep: FormSpec["hides"] = ({ options }) =>
  options.some(({ name, value }) => /^(-r|--recursive)$/.test(name) || value === "recurse")
    ? secretPatterns.map((pattern) => `--exclude=${pattern}`)
    : [];

/** Always, because a line of `.ignore` or `.gitignore` can make rg read hidden files. */
const hidesFromRg: FormSpec["hides"] = () => secretPatterns.map((pattern) => `--glob=!${pattern}`);

/** Programs that search files and folders. */
export const searchPrograms: Readonly<Record<string, Form>> = {
  grep: searchForm(grepOptions, patterns, hidesFromGrep),
  egrep: searchForm(grepOptions, patterns, hidesFromGrep),
  fgrep: searchForm(grepOptions, patterns, hidesFromGrep),
  rg: searchForm(rgOptions, [...patterns, "--files", "--type-list"], hidesFromRg),
  fd: searchForm(fdOptions, []),
  fdfind: searchForm(fdOptions, []),
  find,
};

const help = "--help --version";

const none: Form = () => ({ paths: [] });

const jqOptions =
  "-c --compact-output -n --null-input -e --exit-status -s --slurp -r --raw-output -R --raw-input -j --join-output -a --ascii-output -C --color-output -M --monochrome-output -S --sort-keys --tab --args --jsonargs --stream --seq -h --help -V --version";

/** Filters that load modules or read the environment, which may hold granted secrets. */
const jqReaders =
  /(?<![.\w])(import|include|modulemeta)\b(?!\s*:)|(?<![.\w])env\b(?!(?<=[{,]\s*env)\s*:)|\$(ENV|__prog_args)\b/;

/**
 * The word of a filter that kit does not accept. Spaces and comments may follow a dollar sign, so only a name may follow
 * it here; in a text it means nothing. Texts with code in them, and comments, which may contain quotes, stay as they are.
 */
function faultOfFilter(filter: string): string | undefined {
  const isPlain = !filter.includes("#") && !filter.includes("\\(");
  const code = isPlain ? filter.replace(/"(?:[^"\\]|\\.)*"/gs, '""') : filter;
  return jqReaders.exec(code)?.[0] ?? /\$(?![A-Za-z_]).?/s.exec(code)?.[0];
}

const jqForm = form({
  options: jqOptions,
  operands: ([filter = "", ...files]) => {
    const word = faultOfFilter(filter);
    if (word !== undefined) return `"${word}" is nothing in a filter that kit knows`;
    return files.map((path) => ({ path, use: "read" }));
  },
});

/** jq with values for its variables, a filter, and files. */
const jq: Form = (args) => {
  const paths: PathMention[] = [];
  const others: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? "";
    if (word === "--") return '"--" is not an option that kit knows; name files by ./';
    // jq takes the next word as its value, whatever it is.
    if (word === "--indent") {
      if (!/^\d$/.test(args[at + 1] ?? "")) return '"--indent" needs a number of one digit';
      at += 1;
      continue;
    }
    if (!/^--(arg|argjson|slurpfile|rawfile)$/.test(word)) {
      others.push(word);
      continue;
    }
    at += 2;
    const value = args[at];
    if (value === undefined) return `"${word}" needs a name and a value`;
    if (word.endsWith("file")) paths.push({ path: value, use: "read" });
  }
  const parsed = jqForm(others);
  return typeof parsed === "string" ? parsed : { paths: [...parsed.paths, ...paths] };
};

/** xxd has its own option syntax, and writes to its second operand. */
const xxd: Form = (args) => {
  let at = 0;
  for (; args[at]?.startsWith("-") === true && args[at] !== "-"; at += 1) {
    const word = args[at] ?? "";
    if (/^-[clgos]$/.test(word)) {
      at += 1;
      if (!/^[+-]?(0x)?[\da-f]+$/i.test(args[at] ?? "")) return `"${word}" needs a number`;
    } else if (!/^-([abeEipud]|ps|v|h|[clgo]\d+|s[+-]?\d+)$/.test(word)) {
      return `"${word}" is not an option that kit knows; known: -a -b -c -d -e -E -g -i -l -o -p -ps -s -u`;
    }
  }
  const [path, extra] = args.slice(at);
  if (extra !== undefined) return `"${extra}" would be written; at most one file is known`;
  return { paths: path === undefined || path === "-" ? [] : [{ path, use: "read" }] };
};

/** `test` and `[`: the word after a file operator is a path, and so are both words around a comparison of files. */
const test: Form = (args) => ({
  paths: args.flatMap((word, index) =>
    /^-([bcdefghkprsuwxGLNOS]|nt|ot|ef)$/.test(args[index - 1] ?? "") ||
    /^-(nt|ot|ef)$/.test(args[index + 1] ?? "")
      ? [{ path: word, use: "read" as const }]
      : [],
  ),
});

/** tar lists an archive or packs files of the workspace; it does not unpack, because an archive can write anywhere. */
const tarCommon = "-v -f=FILE --file=FILE -z -j -J --gzip --bzip2 --xz --zstd";
const tarList = form({
  options: `-t --list ${tarCommon.replaceAll("FILE", "read")} -O --full-time --numeric-owner --wildcards --exclude=text ${help}`,
  check: ({ options }) => faultOfArchive(options),
});
const tarPack = form({
  writes: true,
  options: `-c --create ${tarCommon.replaceAll("FILE", "write")} --exclude=text --exclude-vcs --numeric-owner --sort=name|none|inode --owner=text --group=text --mtime=text`,
  operands: "read",
  min: 1,
  check: ({ options, operands }) => {
    // Some versions add the files of an archive that such a word names.
    const archive = operands.find((operand) => operand.startsWith("@"));
    // tar takes such a value for a file, and its date.
    const dated = options.find(
      ({ name, value = "" }) => name === "--mtime" && /^([./\\]|\w:[/\\])/.test(value),
    );
    if (dated !== undefined) return `"${dated.value}" names a file; write a date for --mtime`;
    return archive === undefined
      ? faultOfArchive(options)
      : `"${archive}" names an archive; write ./${archive}`;
  },
});
const tar: Form = ([first = "", ...others]) => {
  // The first word of `tar tf x.tar` contains options, too; their values are the next words, in their order.
  const isBundle = /^[a-zA-Z]+$/.test(first);
  if (/^[a-zA-Z]*f[a-zA-Z]/.test(first)) return `"${first}": write f last`;
  const args = isBundle ? [`-${first}`, ...others] : [first, ...others];
  if (!args.some((word) => /^(-[vzjJ]*c|--create$)/.test(word))) return tarList(args);
  const packed = tarPack(args);
  // An exclusion counts for the words after it.
  const hiding = secretPatterns.map((pattern) => `--exclude=${pattern}`);
  return typeof packed === "string" ? packed : { ...packed, args: [...hiding, ...args] };
};

/** tar reads an archive name with a colon from another machine. */
function faultOfArchive(options: readonly { readonly name: string; readonly value?: string }[]) {
  const remote = options.find(
    ({ name, value }) => /^(-f|--file)$/.test(name) && value?.includes(":") === true,
  );
  if (remote !== undefined) return `"${remote.value}" names another machine`;
  return options.some(({ name }) => /^(-t|--list|-c|--create|--help|--version)$/.test(name))
    ? undefined
    : "it needs -t, which lists, or -c, which packs; what unpacks an archive can write anything";
}

/** curl requests a page and prints it. */
const curl = form({
  connects: true,
  options:
    "-s -S -f -i -I -L -v -g -G -4 -6 -H=text -A=text -e=text -m=number -r=text -X=GET|HEAD|OPTIONS --silent --show-error --fail --fail-with-body --include --head --location --verbose --globoff --compressed --header=text --user-agent=text --referer=text --max-time=number --connect-timeout=number --max-redirs=number --retry=number --range=text --request=GET|HEAD|OPTIONS --http1.1 --http2 -V --version",
  operands: (operands) => {
    const other = operands.find((operand) => !/^https?:\/\//i.test(operand));
    return other === undefined ? [] : `"${other}" is not an address that begins with http:// or https://`;
  },
  check: ({ options }) => {
    const file = options.find(({ value }) => value?.startsWith("@") === true);
    return file === undefined ? undefined : `"${file.value}" cannot be the value of ${file.name}`;
  },
});

/** Programs with their own syntax, and programs that describe the machine. */
export const otherPrograms: Readonly<Record<string, Form>> = {
  "[": test,
  arch: form({ options: help, max: 0 }),
  curl,
  date: form({
    options: `-u -R -I[=date|hours|minutes|seconds|ns] -d=text -r=text --utc --universal --rfc-email --iso-8601[=date|hours|minutes|seconds|ns] --rfc-3339=date|seconds|ns --date=text ${help}`,
    max: 1,
    operands: ([shape]) =>
      shape === undefined || shape.startsWith("+")
        ? []
        : `"${shape}" would set the clock; a form begins with +`,
    check: ({ options }) =>
      options.some(({ name, value = "" }) => name === "-r" && !/^\d+$/.test(value))
        ? "-r takes a number of seconds"
        : undefined,
  }),
  factor: form({ options: help }),
  false: none,
  id: form({ options: `-g -G -n -r -u -z ${help}` }),
  jq,
  nproc: form({ options: `--all --ignore=number ${help}`, max: 0 }),
  printenv: form({ options: `-0 --null ${help}` }),
  sleep: form({ options: help, min: 1 }),
  tar,
  test,
  true: none,
  uname: form({ options: `-a -i -m -n -o -p -r -s -v ${help}`, max: 0 }),
  whoami: form({ options: help, max: 0 }),
  xxd,
};

/** The only known form of an interpreter: printing its version. */
export const versionForm: Form = ([word = "", ...more]) =>
  word === "--version" && more.length === 0
    ? { paths: [] }
    : `"${[word, ...more].join(" ").slice(0, 40)}" is its own language, which can do anything`;

const npmList = form({
  options: "-a --all --depth=number --json --long -l --parseable -p --omit=dev|optional|peer",
});

/** npm lists installed packages; its other commands can run scripts. */
export const npmForm: Form = (args) =>
  args[0] === "ls" || args[0] === "list" ? npmList(args.slice(1)) : versionForm(args);
