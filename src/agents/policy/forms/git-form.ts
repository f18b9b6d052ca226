import {
  copiesTo,
  type Form,
  form,
  type KnownForm,
  knownWords,
  type ParsedArguments,
  type PathMention,
} from "./form.ts";
import { oneOf, readingSubcommands } from "./git-reading.ts";

const write = (operands: readonly string[]): readonly PathMention[] =>
  operands.map((path) => ({ path, use: "write" }));

const strategies = "ort|recursive|resolve|octopus|ours";
const sides =
  "ours|theirs|patience|minimal|histogram|ignore-space-change|ignore-all-space|ignore-space-at-eol|ignore-cr-at-eol|renormalize|no-renames";
const merging = `-s=${strategies} --strategy=${strategies} -X=${sides} --strategy-option=${sides}`;
const sequencing = "--continue --abort --skip --quit";

/** A form that writes the workspace's files or the repository. */
function writingForm(options: string, operands: "revision" | typeof write = "revision"): Form {
  return form({ writes: true, options, operands });
}

const localName = /^\w[\w./-]*$/;
const address = /^((https?|ssh|git):\/\/[^-]|\w[\w.-]*@[\w.-]+:)/;

/** The fault of a remote that is neither a name nor a URL: a local repository would run its own hooks. */
function faultOfRemote({ operands: [remote] }: ParsedArguments): string | undefined {
  return remote === undefined || localName.test(remote) || address.test(remote)
    ? undefined
    : `"${remote}" is not a remote's name and no https:, ssh: or git: address`;
}

const network = "-q --quiet -v --verbose --progress --no-progress -4 --ipv4 -6 --ipv6";
const fetching = `${network} --all -p --prune -P --prune-tags -t --tags --no-tags -f --force -a --append -j=number --jobs=number --atomic --depth=number --deepen=number --unshallow --shallow-since=text --set-upstream --no-recurse-submodules --dry-run`;
const merges = `--ff --ff-only --no-ff --no-commit --commit --squash --no-squash -m=message --no-edit --stat -n --no-stat -q --quiet -v --verbose --allow-unrelated-histories --autostash --no-autostash --signoff --no-gpg-sign --no-verify ${merging}`;

/** Configuration keys whose values name neither a program nor the path of one. */
const harmlessKeys =
  /^(user\.(name|email)|author\.(name|email)|committer\.(name|email)|core\.(autocrlf|eol|filemode|quotepath|whitespace|abbrev|logallrefupdates)|branch\.[^\n]*\.(remote|merge|rebase|description)|pull\.(rebase|ff)|push\.(default|autosetupremote)|merge\.(conflictstyle|ff|renames|stat)|diff\.(algorithm|renames|colormoved|context|mnemonicprefix|noprefix)|rebase\.(autostash|autosquash)|log\.(date|decorate)|color\.\w+|commit\.verbose|advice\.\w+|init\.defaultbranch|rerere\.enabled|status\.\w+|fetch\.prune)$/i;

/** The known forms of Git's subcommands that write, by their names in a list. */
const writingSubcommands: Readonly<Record<string, Form>> = {
  add: writingForm(
    "-A --all --no-all -u --update -v --verbose -n --dry-run -f --force -N --intent-to-add --ignore-errors --ignore-missing --renormalize --refresh --sparse --chmod=+x|-x",
  ),
  branch: writingForm(
    "-d -D --delete -m -M --move -c -C --copy -f --force -t[=direct|inherit] --track[=direct|inherit] --no-track -u=text --set-upstream-to=text --unset-upstream --create-reflog -q --quiet",
  ),
  checkout: form({
    writes: true,
    options:
      "-b=text -B=text -d --detach -f --force -q --quiet --ours --theirs -m --merge --orphan=text -t[=direct|inherit] --track[=direct|inherit] --no-track --guess --no-guess --conflict=merge|diff3|zdiff3 --overlay --no-overlay --progress --no-progress --ignore-other-worktrees",
    operands: write,
  }),
  "cherry-pick": writingForm(
    `${sequencing} -n --no-commit -s --signoff -m=number --mainline=number -x --ff --allow-empty --allow-empty-message --keep-redundant-commits --no-gpg-sign ${merging}`,
  ),
  commit: writingForm(
    "-m=message --message=message -F=read --file=read -a --all -s --signoff --no-signoff --amend --no-edit --allow-empty --allow-empty-message -q --quiet -v --verbose --dry-run --author=text --date=text --fixup=text --squash=text -C=text --reuse-message=text --reset-author -n --no-verify --no-gpg-sign --no-post-rewrite -o --only -i --include --short --long --branch --porcelain --status --no-status -u[=no|normal|all] --untracked-files[=no|normal|all] --cleanup=strip|whitespace|verbatim|scissors|default",
  ),
  merge: writingForm(`${merges} --abort --continue --quit`),
  mv: form({
    writes: true,
    options: "-f --force -k -n --dry-run -v --verbose",
    min: 2,
    operands: (operands) => copiesTo(operands, "remove"),
  }),
  notes: form({
    writes: true,
    options: "-m=message --message=message -f --force",
    operands: ([word = "", ...operands]) =>
      ["add", "append", "remove", "copy"].includes(word)
        ? operands.length > 2
          ? "it takes two revisions at most"
          : []
        : `"${word}" is none that kit knows; known: add, append, copy, remove`,
  }),
  rebase: writingForm(
    `${sequencing} --onto=text --root --keep-base --autosquash --no-autosquash --autostash --no-autostash --no-ff -f --force-rebase -q --quiet -v --verbose --stat -n --no-stat --fork-point --no-fork-point -r[=rebase-cousins|no-rebase-cousins] --rebase-merges[=rebase-cousins|no-rebase-cousins] --update-refs --no-update-refs --committer-date-is-author-date --ignore-date --reset-author-date --signoff --apply -m --merge --empty=drop|keep|ask --no-verify --no-gpg-sign --reapply-cherry-picks --no-reapply-cherry-picks --show-current-patch ${merging}`,
  ),
  reset: writingForm("--soft --mixed --hard --keep --merge -q --quiet -N --intent-to-add --no-refresh"),
  restore: form({
    writes: true,
    options:
      "-s=text --source=text -S --staged -W --worktree -q --quiet -m --merge --ours --theirs --overlay --no-overlay --ignore-unmerged --conflict=merge|diff3|zdiff3",
    operands: write,
    min: 1,
  }),
  revert: writingForm(
    `${sequencing} -n --no-commit --no-edit -s --signoff -m=number --mainline=number --no-gpg-sign ${merging}`,
  ),
  rm: form({
    writes: true,
    options: "-r -f --force --cached -n --dry-run -q --quiet --ignore-unmatch --sparse",
    operands: (operands) => {
      const pattern = operands.find((operand) => /^:|[*?[]/.test(operand));
      return pattern === undefined
        ? operands.map((path) => ({ path, use: "remove" }))
        : `"${pattern}" is a pattern; name the files`;
    },
    min: 1,
  }),
  stash: oneOf(
    {
      push: writingForm(
        "-m=message --message=message -k --keep-index --no-keep-index -q --quiet -S --staged",
      ),
      pop: writingForm("--index -q --quiet"),
      apply: writingForm("--index -q --quiet"),
      drop: writingForm("-q --quiet"),
      clear: writingForm(""),
      branch: writingForm(""),
    },
    writingForm("-m=message --message=message -k --keep-index -q --quiet -S --staged"),
  ),
  switch: writingForm(
    "-c=text --create=text -C=text --force-create=text -d --detach -f --force --discard-changes -q --quiet -m --merge --guess --no-guess -t[=direct|inherit] --track[=direct|inherit] --no-track --orphan=text --conflict=merge|diff3|zdiff3 --progress --no-progress --ignore-other-worktrees",
  ),
  tag: writingForm(
    "-a --annotate -m=message --message=message -F=read --file=read -d --delete -f --force --no-sign --create-reflog --cleanup=strip|whitespace|verbatim",
  ),
  // Git runs programs that its configuration names, so few keys are known.
  config: form({
    writes: true,
    options: "--local --add --replace-all --unset --unset-all --type=bool|int --bool --int",
    operands: ([key = "", ...values]) =>
      !harmlessKeys.test(key)
        ? `"${key}" is not a key that kit sets; known: user.name, user.email, branch.*, pull.rebase and others that run nothing`
        : values.length > 1
          ? `"${values[1]}" is one value too many`
          : [],
    min: 1,
  }),
  clone: form({
    writes: true,
    connects: true,
    options: `${network} --depth=number -b=text --branch=text --single-branch --no-single-branch --no-tags -n --no-checkout --bare --mirror -o=text --origin=text --filter=text --sparse --shallow-since=text --no-recurse-submodules`,
    operands: ([, folder]) => (folder === undefined ? [] : [{ path: folder, use: "tree" }]),
    min: 1,
    max: 2,
    check: (parsed) =>
      localName.test(parsed.operands[0] ?? "")
        ? `"${parsed.operands[0]}" is a local folder; name an address`
        : faultOfRemote(parsed),
  }),
  fetch: form({ writes: true, connects: true, options: fetching, check: faultOfRemote }),
  "ls-remote": form({
    connects: true,
    options: `-b -h --heads --branches -t --tags --refs -q --quiet --exit-code --get-url --sort=text --symref`,
    check: faultOfRemote,
  }),
  pull: form({
    writes: true,
    connects: true,
    options: `${fetching} -r[=false|true|merges] --rebase[=false|true|merges] --no-rebase ${merges}`,
    check: faultOfRemote,
  }),
  push: form({
    writes: true,
    connects: true,
    options: `${network} -u --set-upstream --all --branches --mirror --tags --follow-tags -f --force --force-with-lease[=text] --no-force-with-lease --force-if-includes -n --dry-run -d --delete --porcelain --prune --atomic --no-verify --thin --no-thin --no-recurse-submodules`,
    check: faultOfRemote,
  }),
};

/** Options of Git itself that only change its output and where it searches. */
const globalFlags: ReadonlySet<string> = new Set([
  "--no-pager",
  "-P",
  "--no-optional-locks",
  "--literal-pathspecs",
  "--glob-pathspecs",
  "--noglob-pathspecs",
  "--icase-pathspecs",
  "--no-replace-objects",
]);

/** Parses a Git command: global options, then a known form of the subcommand. */
export const git: Form = (args) => {
  let at = 0;
  let folder: string | undefined;
  for (; args[at]?.startsWith("-") === true; at += 1) {
    const word = args[at] ?? "";
    if (word === "--version" || word === "-v")
      return args.length === 1 ? { paths: [] } : `"${args[1]}" is one word too many`;
    if (globalFlags.has(word)) continue;
    if (word !== "-C")
      return `"${word}" is not an option before a subcommand that kit knows${knownWords(word, ["-C", ...globalFlags])}`;
    at += 1;
    if (folder !== undefined) return '"-C" is known once';
    folder = args[at];
    if (folder === undefined || folder === "") return '"-C" needs a folder';
  }
  const subcommand = args[at];
  if (subcommand === undefined) return "it needs a subcommand";
  const known = subcommandForm(subcommand, args.slice(at + 1));
  if (typeof known === "string") return known;
  if (/^(add|grep)$/.test(subcommand) && args.slice(0, at).includes("--literal-pathspecs"))
    return `"--literal-pathspecs" is not known for git ${subcommand}, from which kit keeps files of secrets out by patterns`;
  const inside = known.paths.map(({ path, use }) => ({
    path: folder === undefined || path.startsWith("/") ? path : `${folder}/${path}`,
    use,
  }));
  const paths = folder === undefined ? inside : [{ path: folder, use: "read" as const }, ...inside];
  const listed = /^(reflog|stash)$/.test(subcommand) && /^(show|list)$/.test(args[at + 1] ?? "");
  const optionsAt = at + (listed ? 2 : 1);
  return { ...known, paths, git: { subcommand, optionsAt, ...(folder === undefined ? {} : { folder }) } };
};

/** The reading form if the arguments match it, otherwise the writing form. */
function subcommandForm(subcommand: string, args: readonly string[]): KnownForm | string {
  const read = ownForm(readingSubcommands, subcommand)?.(args);
  if (read !== undefined && typeof read !== "string") return read;
  const written = ownForm(writingSubcommands, subcommand)?.(args);
  if (written !== undefined && typeof written !== "string") return written;
  const reasons = [read, written].filter((reason) => reason !== undefined);
  if (reasons.length > 0) return `git ${subcommand}: ${[...new Set(reasons)].join("; where it writes: ")}`;
  return `"${subcommand}" is not a subcommand that kit knows${knownWords(subcommand, subcommandsOfGit.all)}`;
}

function ownForm(forms: Readonly<Record<string, Form>>, name: string): Form | undefined {
  return Object.hasOwn(forms, name) ? forms[name] : undefined;
}

const reading = Object.keys(readingSubcommands);
const writing = Object.keys(writingSubcommands);

/** The subcommands that kit knows. */
export const subcommandsOfGit: {
  readonly all: readonly string[];
  readonly onlyWriting: ReadonlySet<string>;
} = {
  all: [...new Set([...reading, ...writing])],
  onlyWriting: new Set(writing.filter((name) => !reading.includes(name) && name !== "ls-remote")),
};

/** Whether a word names a subcommand that kit knows. */
export function isSubcommandOfGit(word: string): boolean {
  return Object.hasOwn(readingSubcommands, word) || Object.hasOwn(writingSubcommands, word);
}
