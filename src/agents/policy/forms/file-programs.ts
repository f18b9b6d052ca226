import { type Form, form, type PathMention } from "./form.ts";

const help = "--help --version";

/** A program that tells of files: what links among its operands lead to counts. */
function tells(options: string): Form {
  return form({ options: `${options} ${help}`, operands: "read" });
}

/** The sources are read, the last operand is written: it, or a file of that name in it. */
function copies(operands: readonly string[], source: "read" | "remove"): readonly PathMention[] | string {
  const target = operands.at(-1);
  if (target === undefined || operands.length < 2) return "it needs what to take and where to put it";
  return operands.slice(0, -1).flatMap((path): readonly PathMention[] => {
    const name = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
    const below =
      name === "" || name === "." || name === ".." ? target : `${target.replace(/\/+$/, "")}/${name}`;
    return [
      { path, use: source },
      { path: target, use: "place" },
      // What is below a folder that is copied is written, too.
      { path: below, use: "tree" },
    ];
  });
}

/** Links of the same folder: the text of a link counts from where the link lies. */
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

const modes = /^([0-7]{3}|0[0-7]{3}|[ugoa]*[-+=][rwxX]*)$/;

/** Programs that tell of files and folders, and those that change them. */
export const filePrograms: Readonly<Record<string, Form>> = {
  basename: form({ options: `-a -s=text -z --multiple --suffix=text --zero ${help}`, min: 1 }),
  chmod: form({
    writes: true,
    options: `-c -f -v --changes --quiet --verbose ${help}`,
    operands: ([mode = "", ...paths]) =>
      modes.test(mode)
        ? paths.map((path) => ({ path, use: "write" }))
        : `"${mode}" is no mode that kit knows; known: 644, u+x and the like`,
    min: 2,
  }),
  cmp: form({
    options: `-b -i=text -l -n=number -s --print-bytes --ignore-initial=text --verbose --bytes=number --quiet --silent ${help}`,
    operands: "read",
  }),
  cp: form({
    writes: true,
    options: `-a -d -f -i -n -p -P -r -R -u -v --archive --force --interactive --no-clobber --no-dereference --recursive --update --verbose ${help}`,
    operands: (operands) => copies(operands, "read"),
  }),
  df: tells(
    "-a -h -H -i -k -l -m -P -T -B=text --all --block-size=text --human-readable --inodes --portability --total --print-type",
  ),
  diff: form({
    options: `-a -b -B -c -C=number -d -e -E -i -I=text -n -N -p -F=text -q -r -s -t -T -u -U=number -w -W=number -x=text -y -Z --normal --brief --report-identical-files --context[=number] --unified[=number] --ed --rcs --side-by-side --width=number --left-column --suppress-common-lines --show-c-function --label=text --expand-tabs --initial-tab --recursive --no-dereference --new-file --exclude=text --ignore-case --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines=text --text --strip-trailing-cr --minimal --speed-large-files --color[=never|always|auto] ${help}`,
    operands: "read",
    check: ({ options }) => {
      const given = new Set(options.map(({ name }) => name));
      const descends = given.has("-r") ? "-r" : given.has("--recursive") ? "--recursive" : undefined;
      return descends === undefined || given.has("--no-dereference")
        ? undefined
        : `"${descends}" follows links out of the workspace; add --no-dereference`;
    },
  }),
  dirname: form({ options: `-z --zero ${help}`, min: 1 }),
  du: tells(
    "-0 -a -b -c -d=number -h -k -l -m -P -s -S -t=text -x -B=text --null --all --apparent-size --block-size=text --bytes --total --max-depth=number --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold=text --time[=text] --time-style=text --exclude=text --one-file-system",
  ),
  file: tells(
    "-b -h -i -I -k -L -n -N -0 -r -e=text -F=text --brief --no-dereference --mime --mime-type --mime-encoding --extension --apple --keep-going --dereference --no-buffer --no-pad --print0 --raw --exclude=text --separator=text",
  ),
  ln: form({
    writes: true,
    options: `-f -n -s -v --force --symbolic --verbose ${help}`,
    operands: links,
    max: 2,
  }),
  ls: tells(
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
    operands: (operands) => copies(operands, "remove"),
  }),
  pwd: form({ options: `-L -P --logical --physical ${help}`, max: 0 }),
  readlink: form({
    options: `-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero ${help}`,
    operands: "entry",
    min: 1,
  }),
  realpath: form({
    options: `-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --physical --quiet --no-symlinks --relative-to=read --relative-base=read --zero ${help}`,
    operands: "entry",
    min: 1,
  }),
  rm: form({
    writes: true,
    options: `-d -f -i -I -r -R -v --dir --force --recursive --verbose ${help}`,
    operands: "remove",
    min: 1,
  }),
  rmdir: form({ writes: true, options: `-v --verbose ${help}`, operands: "remove", min: 1 }),
  stat: tells(
    "-c=text -f -l -L -n -r -s -t -x --format=text --printf=text --file-system --terse --dereference",
  ),
  tee: form({ writes: true, options: `-a -i -p --append --ignore-interrupts ${help}`, operands: "write" }),
  touch: form({
    writes: true,
    options: `-a -c -d=text -h -m -r=read -t=text --no-create --date=text --no-dereference --reference=read --time=text ${help}`,
    operands: "write",
    min: 1,
  }),
  tree: tells(
    "-a -C -d -D -f -F -g -h -i -I=text -J -L=number -n -N -p -P=text -q -Q -r -s -S -t -u -U -v -x -X --charset=text --dirsfirst --du --filelimit=number --filesfirst --gitignore --ignore-case --inodes --matchdirs --metafirst --noreport --prune --si --sort=text --timefmt=text",
  ),
  which: form({ options: "-a -s", min: 1 }),
};
