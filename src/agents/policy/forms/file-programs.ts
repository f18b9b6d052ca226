import {
  copiesTo,
  type Form,
  form,
  mentionOf,
  type ParsedArguments,
  type PathMention,
  secretPatterns,
} from "./form.ts";

const help = "--help --version";

/** A program that reads files or lists folders; it follows links among its operands. */
function reads(options: string): Form {
  return form({ options: `${options} ${help}`, operands: "read" });
}

/** The paths of a link in the working folder: the target of a link is relative to the folder of the link. */
function links(operands: readonly string[]): readonly PathMention[] | string {
  const [target, link] = operands;
  if (target === undefined || link === undefined) return "it needs a target and the name of the link";
  if (link.includes("/")) return `"${link}" lies in another folder; make links in the working folder`;
  return [
    { path: target, use: "write" },
    { path: link, use: "place" },
    { path: `${link}/${target.split("/").at(-1)}`, use: "tree" },
  ];
}

const keepsLinks = (options: ParsedArguments["options"]): boolean =>
  options.some(({ name }) => name === "--no-dereference");

const modes = /^([0-7]{3}|0[0-7]{3}|[ugoa]*[-+=][rwxX]*)$/;

/** Programs that list files and folders, and programs that change them. */
export const filePrograms: Readonly<Record<string, Form>> = {
  basename: form({ options: `-a -s=text -z --multiple --suffix=text --zero ${help}`, min: 1 }),
  chmod: form({
    writes: true,
    options: `-c -f -v --changes --quiet --verbose ${help}`,
    operands: ([mode = "", ...paths]) =>
      modes.test(mode)
        ? paths.map((path) => ({ path, use: "write" }))
        : `"${mode}" is not a mode that kit knows; known: 644, u+x and the like`,
    min: 2,
  }),
  cmp: form({
    options: `-b -i=text -l -n=number -s --print-bytes --ignore-initial=text --verbose --bytes=number --quiet --silent ${help}`,
    operands: "read",
  }),
  cp: form({
    writes: true,
    options: `-a -d -f -i -n -p -P -r -R -u -v --archive --force --interactive --no-clobber --no-dereference --recursive --update --verbose ${help}`,
    operands: (operands) => copiesTo(operands, "read"),
  }),
  df: reads(
    "-a -h -H -i -k -l -m -P -T -B=text --all --block-size=text --human-readable --inodes --portability --total --print-type",
  ),
  diff: form({
    options: `-a -b -B -c -C=number -d -e -E -i -I=text -n -N -p -F=text -q -r -s -t -T -u -U=number -w -W=number -x=text -y -Z --normal --brief --report-identical-files --context[=number] --unified[=number] --ed --rcs --side-by-side --width=number --left-column --suppress-common-lines --show-c-function --label=text --expand-tabs --initial-tab --recursive --no-dereference --new-file --exclude=text --ignore-case --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines=text --text --strip-trailing-cr --minimal --speed-large-files --color[=never|always|auto] ${help}`,
    // diff opens files of a folder that no word names.
    operands: (operands, options) =>
      operands.flatMap((path) => mentionOf(path, keepsLinks(options) ? "read" : "file")),
    check: ({ options }) => {
      const descends = options.find(({ name }) => name === "-r" || name === "--recursive")?.name;
      return descends === undefined || keepsLinks(options)
        ? undefined
        : `"${descends}" follows links out of the workspace; add --no-dereference`;
    },
    hides: ({ options }) =>
      keepsLinks(options) ? secretPatterns.map((pattern) => `--exclude=${pattern}`) : [],
  }),
  dirname: form({ options: `-z --zero ${help}`, min: 1 }),
  du: reads(
    "-0 -a -b -c -d=number -h -k -l -m -P -s -S -t=text -x -B=text --null --all --apparent-size --block-size=text --bytes --total --max-depth=number --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold=text --time[=text] --time-style=text --exclude=text --one-file-system",
  ),
  file: reads(
    "-b -h -i -I -k -L -n -N -0 -r -e=text -F=text --brief --no-dereference --mime --mime-type --mime-encoding --extension --apple --keep-going --dereference --no-buffer --no-pad --print0 --raw --exclude=text --separator=text",
  ),
  ln: form({
    writes: true,
    options: `-f -n -s -v --force --symbolic --verbose ${help}`,
    operands: links,
    max: 2,
  }),
  ls: reads(
    "-a -A -b -B -c -C -d -f -F -g -G -h -i -I=text -k -l -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -w=number -x -X -1 --all --almost-all --author --escape --block-size=text --ignore-backups --color[=always|auto|never] --directory --classify[=always|auto|never] --file-type --format=text --full-time --group-directories-first --no-group --human-readable --si --hide=text --indicator-style=text --inode --ignore=text --literal --numeric-uid-gid --hide-control-chars --quote-name --quoting-style=text --reverse --recursive --size --sort=text --time=text --time-style=text --width=number --zero",
  ),
  mkdir: form({
    writes: true,
    options: `-m=text -p -v --mode=text --parents --verbose ${help}`,
    operands: "write",
    min: 1,
  }),
  mv: form({
    writes: true,
    options: `-f -i -n -u -v --force --interactive --no-clobber --update --verbose ${help}`,
    operands: (operands) => copiesTo(operands, "remove"),
  }),
  pwd: form({ options: `-L -P --logical --physical ${help}`, max: 0 }),
  readlink: form({
    options: `-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero ${help}`,
    // It prints where the link itself leads, or where all links on the way lead.
    operands: (operands, options) => {
      const follows = options.some(({ name }) => /^(-[efm]|--canonicalize.*)$/.test(name));
      return operands.flatMap((path) => mentionOf(path, follows ? "read" : "entry"));
    },
    min: 1,
  }),
  realpath: form({
    options: `-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --physical --quiet --no-symlinks --relative-to=read --relative-base=read --zero ${help}`,
    operands: (operands, options) => {
      const isLiteral = options.some(({ name }) => /^(-s|--no-symlinks)$/.test(name));
      return operands.flatMap((path) => mentionOf(path, isLiteral ? "entry" : "read"));
    },
    min: 1,
  }),
  rm: form({
    writes: true,
    options: `-d -f -i -I -r -R -v --dir --force --recursive --verbose ${help}`,
    operands: "remove",
    min: 1,
  }),
  rmdir: form({ writes: true, options: `-v --verbose ${help}`, operands: "remove", min: 1 }),
  stat: reads(
    "-c=text -f -l -L -n -r -s -t -x --format=text --printf=text --file-system --terse --dereference",
  ),
  tee: form({ writes: true, options: `-a -i -p --append --ignore-interrupts ${help}`, operands: "write" }),
  touch: form({
    writes: true,
    options: `-a -c -d=text -h -m -r=read -t=text --no-create --date=text --no-dereference --reference=read --time=text ${help}`,
    operands: "write",
    min: 1,
  }),
  tree: reads(
    "-a -C -d -D -f -F -g -h -i -I=text -J -L=number -n -N -p -P=text -q -Q -r -s -S -t -u -U -v -x -X --charset=text --dirsfirst --du --filelimit=number --filesfirst --gitignore --ignore-case --inodes --matchdirs --metafirst --noreport --prune --si --sort=text --timefmt=text",
  ),
  which: form({
    options: "-a -s",
    operands: (operands) =>
      operands.flatMap((operand) => (operand.includes("/") ? mentionOf(operand, "read") : [])),
    min: 1,
  }),
};

const sums = "-b --binary -t --text -z --zero --tag";
const encoding = "-d -D --decode -i --ignore-garbage -w=number --wrap=number -b=number";

/** Programs that print texts and files. */
export const textPrograms: Readonly<Record<string, Form>> = {
  base32: reads(encoding),
  base64: reads(encoding),
  b2sum: reads(sums),
  cat: reads(
    "-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
  ),
  cksum: reads(""),
  column: reads(
    "-t --table -s=text --separator=text -o=text --output-separator=text -c=number --output-width=number -x --fillrows -n=text --table-name=text -N=text --table-columns=text -R=text --table-right=text -H=text --table-hide=text -T=text -W=text -O=text --table-order=text -d --table-noheadings -e -J --json -L --keep-empty-lines",
  ),
  comm: form({
    options: `-1 -2 -3 -z --total --zero-terminated --check-order --nocheck-order --output-delimiter=text ${help}`,
    operands: "read",
  }),
  cut: reads(
    "-b=text -c=text -d=text -f=text -n -s -z --bytes=text --characters=text --delimiter=text --fields=text --complement --only-delimited --output-delimiter=text --zero-terminated",
  ),
  echo: (args) => (args.length >= 0 ? { paths: [] } : ""),
  expand: reads("-i -t=text --initial --tabs=text"),
  expr: (args) => (args.length >= 0 ? { paths: [] } : ""),
  fmt: reads("-c -s -t -u -w=number -g=number -p=text -# --width=number --goal=number --prefix=text"),
  fold: reads("-b -s -w=number -# --bytes --spaces --width=number"),
  head: reads(
    "-c=number -n=number -q -v -z -# --bytes=number --lines=number --quiet --silent --verbose --zero-terminated",
  ),
  hexdump: reads(
    "-b -c -C -d -o -x -v -e=text -n=number -s=number --canonical --no-squeezing --length=number --skip=number",
  ),
  join: reads(
    "-a=1|2 -e=text -i -j=number -o=text -t=text -v=1|2 -1=number -2=number -z --check-order --nocheck-order --header --ignore-case --zero-terminated",
  ),
  md5sum: reads(sums),
  nl: reads(
    "-b=text -d=text -f=text -h=text -i=number -l=number -n=ln|rn|rz -p -s=text -v=number -w=number --body-numbering=text --number-format=ln|rn|rz --number-separator=text --number-width=number --starting-line-number=number",
  ),
  od: reads(
    "-A=d|o|x|n -j=number -N=number -S=number -t=text -v -w[=number] -a -b -c -d -f -i -l -o -s -x --address-radix=d|o|x|n --skip-bytes=number --read-bytes=number --strings[=number] --format=text --width[=number] --output-duplicates --endian=big|little",
  ),
  paste: reads("-d=text -s -z --delimiters=text --serial --zero-terminated"),
  printf: (args) => (args.length >= 0 ? { paths: [] } : ""),
  rev: reads(""),
  seq: form({
    options: `-# -f=text -s=text -w --format=text --separator=text --equal-width ${help}`,
    max: 3,
  }),
  sha1sum: reads(sums),
  sha224sum: reads(sums),
  sha256sum: reads(sums),
  sha384sum: reads(sums),
  sha512sum: reads(sums),
  shasum: reads("-a=number -b -t --algorithm=number"),
  // With `-e`, operands are echoed text, but are checked as paths nevertheless.
  shuf: reads(
    "-e -i=text -n=number -r -z --echo --input-range=text --head-count=number --repeat --zero-terminated",
  ),
  sort: reads(
    "-b -c -C -d -f -g -h -i -k=text -m -M -n -r -R -s -S=text -t=text -u -V -z --ignore-leading-blanks --check[=quiet|silent|diagnose-first] --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting --key=text --merge --month-sort --numeric-sort --reverse --random-sort --stable --buffer-size=text --field-separator=text --unique --version-sort --zero-terminated --sort=general-numeric|human-numeric|month|numeric|random|version --parallel=number --batch-size=number --debug",
  ),
  // An operand @file names a file with more options.
  strings: form({
    options: `-a --all -d --data -f --print-file-name -n=number --bytes=number -# -t=o|d|x --radix=o|d|x -o -w --include-all-whitespace -e=s|S|b|l|B|L --encoding=s|S|b|l|B|L ${help}`,
    operands: "read",
    check: ({ operands }) => {
      const response = operands.find((operand) => operand.startsWith("@"));
      return response === undefined ? undefined : `"${response}" is a file of options; write ./${response}`;
    },
  }),
  sum: reads("-r -s --sysv"),
  tac: reads("-b -r -s=text --before --regex --separator=text"),
  tail: reads(
    "-c=number -n=number -q -r -v -z -# --bytes=number --lines=number --quiet --silent --verbose --zero-terminated",
  ),
  tr: form({
    options: `-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1 ${help}`,
    min: 1,
    max: 2,
  }),
  tsort: reads(""),
  unexpand: reads("-a -t=text --all --first-only --tabs=text"),
  // `uniq` writes to its second operand.
  uniq: form({
    options: `-c -d -D -f=number -i -s=number -u -w=number -z -# --count --repeated --all-repeated[=none|prepend|separate] --skip-fields=number --group[=separate|prepend|append|both] --ignore-case --skip-chars=number --unique --zero-terminated --check-chars=number ${help}`,
    operands: "read",
    max: 1,
    optionsFirst: true,
  }),
  wc: reads("-c -l -L -m -w --bytes --chars --lines --max-line-length --words"),
};
