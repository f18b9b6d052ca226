import { type Form, form, type PathMention } from "./form.ts";

const help = "--help --version";

const none: Form = () => ({ paths: [] });

const jqOptions =
  "-c --compact-output -n --null-input -e --exit-status -s --slurp -r --raw-output -R --raw-input -j --join-output -a --ascii-output -C --color-output -M --monochrome-output -S --sort-keys --tab --indent=number --args --jsonargs --stream --seq -h --help -V --version";

/** What reads modules from where the filter says, or the environment, which may hold what a caller granted. */
const jqReaders = /(?<![.\w])(import|include|modulemeta|env)\b(?!\s*:)|\$ENV\b/;

const jqForm = form({
  options: jqOptions,
  operands: ([filter = "", ...files]) => {
    const word = jqReaders.exec(filter)?.[0];
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
    if (word === "--") return '"--" is no option that kit knows; name files by ./';
    if (!/^--(arg|argjson|slurpfile|rawfile)$/.test(word)) {
      others.push(word);
      continue;
    }
    at += 2;
    const value = args[at];
    if (value === undefined) return `"${word}" needs a name and a value`;
    if (word.endsWith("file")) paths.push({ path: value, use: "read" });
  }
  const known = jqForm(others);
  return typeof known === "string" ? known : { paths: [...known.paths, ...paths] };
};

/** xxd reads its options in a way of its own, and writes its second operand. */
const xxd: Form = (args) => {
  let at = 0;
  for (; args[at]?.startsWith("-") === true && args[at] !== "-"; at += 1) {
    const word = args[at] ?? "";
    if (/^-[clgos]$/.test(word)) {
      at += 1;
      if (!/^[+-]?(0x)?[\da-f]+$/i.test(args[at] ?? "")) return `"${word}" needs a number`;
    } else if (!/^-([abeEipud]|ps|v|h|[clgo]\d+|s[+-]?\d+)$/.test(word)) {
      return `"${word}" is no option that kit knows; known: -a -b -c -d -e -E -g -i -l -o -p -ps -s -u`;
    }
  }
  const [path, extra] = args.slice(at);
  if (extra !== undefined) return `"${extra}" would be written; at most one file is known`;
  return { paths: path === undefined || path === "-" ? [] : [{ path, use: "read" }] };
};

/** `test` and `[`: what follows a question about a file is a path. */
const test: Form = (args) => ({
  paths: args.flatMap((word, index) =>
    /^-[bcdefghkprsuwxGLNOS]$/.test(args[index - 1] ?? "") || /^-(nt|ot|ef)$/.test(args[index - 1] ?? "")
      ? [{ path: word, use: "read" as const }]
      : [],
  ),
});

/** tar that lists, or packs files of the workspace: what unpacks can write anything. */
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
  check: ({ options }) => faultOfArchive(options),
});
const tar: Form = ([first = "", ...others]) => {
  // The first word of `tar tf x.tar` is options, too.
  const args = /^[a-zA-Z]+$/.test(first) ? [`-${first}`, ...others] : [first, ...others];
  const packs = args.some((word) => /^(-[vzjJ]*c|--create$)/.test(word));
  return (packs ? tarPack : tarList)(args);
};

/** A name with a colon is an archive of another machine. */
function faultOfArchive(options: readonly { readonly name: string; readonly value?: string }[]) {
  const remote = options.find(
    ({ name, value }) => /^(-f|--file)$/.test(name) && value?.includes(":") === true,
  );
  if (remote !== undefined) return `"${remote.value}" names another machine`;
  return options.some(({ name }) => /^(-t|--list|-c|--create|--help|--version)$/.test(name))
    ? undefined
    : "it needs -t, which lists, or -c, which packs; what unpacks an archive can write anything";
}

/** curl that asks for a page and prints it. */
const curl = form({
  connects: true,
  options:
    "-s -S -f -i -I -L -v -g -G -4 -6 -H=text -A=text -e=text -m=number -r=text -X=GET|HEAD|OPTIONS --silent --show-error --fail --fail-with-body --include --head --location --verbose --globoff --compressed --header=text --user-agent=text --referer=text --max-time=number --connect-timeout=number --max-redirs=number --retry=number --range=text --request=GET|HEAD|OPTIONS --http1.1 --http2 -V --version",
  operands: (operands) => {
    const other = operands.find((operand) => !/^https?:\/\//i.test(operand));
    return other === undefined ? [] : `"${other}" is no address that begins with http:// or https://`;
  },
  check: ({ options }) => {
    const file = options.find(({ value }) => value?.startsWith("@") === true);
    return file === undefined ? undefined : `"${file.value}" cannot be the value of ${file.name}`;
  },
});

/** Programs with a way of their own, and those that tell of the machine. */
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

/** How an interpreter is asked for what it is: nothing else that it does is known. */
export const versionForm: Form = ([word = "", ...more]) =>
  word === "--version" && more.length === 0
    ? { paths: [] }
    : `"${[word, ...more].join(" ").slice(0, 40)}" is its own language, which can do anything`;

const npmList = form({
  options: "-a --all --depth=number --json --long -l --parseable -p --omit=dev|optional|peer",
});

/** npm tells what is installed; the rest of it runs scripts. */
export const npmForm: Form = (args) =>
  args[0] === "ls" || args[0] === "list" ? npmList(args.slice(1)) : versionForm(args);
