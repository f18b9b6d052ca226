import { toGitVariables } from "../../../base/git-settings.ts";
import { type Form, form, type KnownForm, type ParsedArguments } from "./form.ts";
import { formSettings } from "./git-keys.ts";
import { searchForm } from "./other-programs.ts";

/** Options for the content and format of diffs. */
const diffOptions =
  "-p -u --patch -s --no-patch -U=number --unified=number --stat[=text] --numstat --shortstat --dirstat[=text] --cumulative --summary --name-only --name-status --compact-summary --raw --patch-with-stat --patch-with-raw --full-index --binary --abbrev[=number] -M[=text] -C[=text] -B[=text] -D --irreversible-delete --find-renames[=text] --find-copies[=text] --find-copies-harder --no-renames --rename-empty --no-rename-empty -l=number -R -a --text -w -b --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines -I=text --ignore-matching-lines=text -W --function-context --inter-hunk-context=number --word-diff[=plain|porcelain|color|none] --word-diff-regex=text --color-words[=text] --color[=always|never|auto] --no-color --color-moved[=text] --minimal --patience --histogram --diff-algorithm=text --anchored=text --indent-heuristic --no-indent-heuristic -S=text -G=text --pickaxe-all --pickaxe-regex --find-object=text --diff-filter=text --relative[=text] --no-relative --exit-code --quiet --no-ext-diff --no-textconv --src-prefix=text --dst-prefix=text --no-prefix --line-prefix=text --check --ignore-submodules[=dirty|all] --ws-error-highlight=text --rotate-to=text --skip-to=text --cc -c -m -z -r -t";

/** Options that select commits and format them. */
const logOptions =
  "-n=number -# --max-count=number --skip=number --since=text --after=text --until=text --before=text --author=text --committer=text --grep=text --grep-reflog=text --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings -P --perl-regexp --basic-regexp --merges --no-merges --min-parents[=number] --max-parents[=number] --no-min-parents --no-max-parents --first-parent --not --all --branches[=text] --tags[=text] --remotes[=text] --glob=text --exclude=text --reflog --ignore-missing --cherry-mark --cherry-pick --cherry --left-only --right-only --left-right --boundary --simplify-by-decoration --full-history --dense --sparse --simplify-merges --ancestry-path[=text] --show-pulls --topo-order --date-order --author-date-order --reverse --no-walk[=sorted|unsorted] --do-walk -g --walk-reflogs --merge --oneline --pretty[=text] --format[=text] --abbrev-commit --no-abbrev-commit --encoding=text --expand-tabs[=number] --no-expand-tabs --notes[=text] --no-notes --relative-date --date=text --parents --children --graph --no-graph --decorate[=short|full|auto|no] --no-decorate --decorate-refs=text --decorate-refs-exclude=text --clear-decorations --source --use-mailmap --mailmap --no-mailmap --log-size --full-diff --follow -L=text --diff-merges=off|none|on|m|first-parent|1|separate|combined|c|dense-combined|cc --no-diff-merges --root -q";

const commits = `${logOptions} ${diffOptions}`;
const filters =
  "--contains[=text] --no-contains[=text] --merged[=text] --no-merged[=text] --points-at=text --sort=text --format=text --color[=always|never|auto] --no-color --column[=text] --no-column -i --ignore-case";

const has = ({ options }: ParsedArguments, names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

const listing = ["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

/** Options that turn a writing subcommand into a listing one. */
function faultOfListing(parsed: ParsedArguments, names: readonly string[]): string | undefined {
  return parsed.operands.length === 0 || has(parsed, names)
    ? undefined
    : `"${parsed.operands[0]}" would be made; --list lists`;
}

/** A form for a first word that selects one of several forms. */
export function oneOf(forms: Readonly<Record<string, Form>>, otherwise?: Form): Form {
  return (words) => {
    const [word = "", ...args] = words;
    const chosen = Object.hasOwn(forms, word) ? forms[word] : undefined;
    if (chosen !== undefined) return chosen(args);
    if (otherwise !== undefined && (words.length === 0 || word.startsWith("-"))) return otherwise(words);
    return `"${word}" is none that kit knows; known: ${Object.keys(forms).join(", ")}`;
  };
}

const revisions = (options: string): Form => form({ options, operands: "revision" });

const configValues =
  "--get --get-all --get-regexp -l --list --local --show-origin --show-scope -z --null --name-only --type=bool|int|path|bool-or-int|expiry-date --bool --int --path --default=text --includes";
const readsConfig = form({
  options: configValues,
  check: (parsed) => {
    const [first, second] = parsed.operands;
    const reads = has(parsed, ["--get", "--get-all", "--get-regexp"]);
    if (parsed.operands.length <= (reads ? 2 : 1)) return undefined;
    return first === "get" || first === "list" ? undefined : `"${second}" would be set; --get reads`;
  },
  max: 2,
});

/** The known forms of Git's subcommands that change nothing and open no connection. */
export const readingSubcommands: Readonly<Record<string, Form>> = {
  apply: form({
    options: "--check --stat --numstat --summary -z -p=number -R --reverse -v --verbose --recount",
    operands: "read",
    check: (parsed) =>
      has(parsed, ["--check", "--stat", "--numstat", "--summary"])
        ? undefined
        : "a patch can write anything; --check, --stat, --numstat and --summary look at it",
  }),
  blame: revisions(
    "-b --root --show-stats -f --show-name -n --show-number -p --porcelain --line-porcelain --incremental -c -t -l -s -e --show-email -w --ignore-rev=text --ignore-revs-file=read --color-lines --color-by-age --minimal -C[=number] -M[=number] -L=text --abbrev[=number] --date=text --since=text --first-parent --reverse --no-textconv --encoding=text",
  ),
  branch: form({
    options: `-a -r -v --verbose -l --list --all --remotes --show-current --abbrev[=number] --no-abbrev -q ${filters}`,
    check: (parsed) => faultOfListing(parsed, ["-a", "-r", "--all", "--remotes", ...listing]),
  }),
  "cat-file": form({ options: "-t -s -e -p", min: 1, max: 2, operands: "revision" }),
  "check-attr": revisions("-a --all --cached -z"),
  "check-ignore": revisions("-q --quiet -v --verbose -n --non-matching --no-index"),
  cherry: revisions("-v --verbose --abbrev[=number]"),
  config: readsConfig,
  "count-objects": form({ options: "-v --verbose -H --human-readable", max: 0 }),
  describe: revisions(
    "--all --tags --contains --long --first-parent --abbrev=number --exact-match --candidates=number --match=text --exclude=text --always --dirty[=text] --broken[=text]",
  ),
  diff: revisions(`${diffOptions} -# --cached --staged --merge-base --no-index --ours --theirs --base`),
  "diff-files": revisions(`${diffOptions} -# -q`),
  "diff-index": revisions(`${diffOptions} --cached --merge-base`),
  "diff-tree": revisions(
    `${diffOptions} --root --no-commit-id --always --pretty[=text] --format[=text] --merge-base`,
  ),
  "for-each-ref": form({ options: `--count=number ${filters}` }),
  grep: searchForm(
    "-A=number -B=number -C=number --after-context=number --before-context=number --context=number -# --cached --untracked --exclude-standard --no-exclude-standard -v --invert-match -i --ignore-case -w --word-regexp -a --text -I --no-textconv -r --recursive --no-recursive --max-depth=number -E --extended-regexp -G --basic-regexp -F --fixed-strings -P --perl-regexp -n --line-number --column -h -H --full-name -l --files-with-matches --name-only -L --files-without-match -z --null -o --only-matching -c --count --color[=always|never|auto] --no-color --break --heading --threads=number -p --show-function -W --function-context -f=read -e=message --and --or --not --all-match -q --quiet -m=number --max-count=number",
    ["-e", "-f"],
  ),
  log: revisions(commits),
  "ls-files": revisions(
    "-z -t -v -f -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -k --killed --directory --no-empty-directory --eol -u --unmerged --resolve-undo -x=text --exclude=text -X=read --exclude-from=read --exclude-per-directory=text --exclude-standard --full-name --error-unmatch --with-tree=text --abbrev[=number] --deduplicate --format=text",
  ),
  "ls-tree": revisions(
    "-d -r -t -z -l --long --name-only --name-status --object-only --full-name --full-tree --format=text --abbrev[=number]",
  ),
  "merge-base": revisions("-a --all --octopus --independent --is-ancestor --fork-point"),
  "name-rev": revisions(
    "--name-only --tags --refs=text --exclude=text --all --undefined --no-undefined --always",
  ),
  notes: oneOf({ list: revisions(""), show: revisions("") }, form({ max: 0 })),
  "range-diff": revisions(`--creation-factor=number --no-dual-color --left-only --right-only ${diffOptions}`),
  reflog: oneOf({ show: revisions(commits) }, form({ options: commits, max: 0 })),
  remote: oneOf(
    { "get-url": form({ options: "--all --push", min: 1, max: 1 }) },
    form({ options: "-v --verbose", max: 0 }),
  ),
  "rev-list": revisions(
    `${logOptions} --count --objects --objects-edge --unpacked --header --timestamp --disk-usage[=human] --abbrev[=number] --no-abbrev --quiet --max-age=number --min-age=number --no-object-names --object-names --in-commit-order`,
  ),
  "rev-parse": revisions(
    "--verify -q --quiet --short[=number] --abbrev-ref[=strict|loose] --symbolic --symbolic-full-name --not --all --branches[=text] --tags[=text] --remotes[=text] --glob=text --exclude=text --disambiguate=text --show-toplevel --show-prefix --show-cdup --show-superproject-working-tree --git-dir --git-common-dir --absolute-git-dir --git-path=text --path-format=absolute|relative --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-object-format[=storage|input|output] --since=text --until=text --sq --revs-only --no-revs --flags --no-flags --default=text",
  ),
  shortlog: revisions(
    `-s --summary -e --email -w[=text] -c --group=text -n --numbered ${logOptions.replace("-n=number", "")}`,
  ),
  show: revisions(commits),
  "show-ref": form({
    options:
      "--tags --heads --branches --verify --exists --head -d --dereference -s --hash[=number] --abbrev[=number] -q --quiet",
  }),
  stash: oneOf({
    list: revisions(commits),
    show: revisions(`${diffOptions} -u --include-untracked --only-untracked`),
  }),
  status: revisions(
    "-v --verbose -s --short -b --branch --show-stash --ahead-behind --no-ahead-behind --porcelain[=v1|v2|1|2] --long -z --null -u[=no|normal|all] --untracked-files[=no|normal|all] --ignored[=traditional|no|matching] --ignore-submodules[=dirty|all] --column[=text] --no-column --renames --no-renames --find-renames[=text]",
  ),
  "symbolic-ref": form({ options: "-q --quiet --short --no-recurse", min: 1, max: 1 }),
  tag: form({
    options: `-l --list -n[=number] ${filters}`,
    check: (parsed) => faultOfListing(parsed, ["-l", "-n", ...listing]),
  }),
  var: form({ options: "-l", max: 1 }),
  version: form({ options: "--build-options", max: 0 }),
  whatchanged: revisions(commits),
  worktree: oneOf({ list: form({ options: "-v --verbose --porcelain -z", max: 0 }) }),
};

/** The environment for a known form of Git: ignores the user's and the system's configuration, not the repository's. */
export function gitEnvironment(
  known: KnownForm,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_PAGER: "cat",
    GIT_EDITOR: "true",
    GIT_SEQUENCE_EDITOR: "true",
    GIT_ASKPASS: "true",
    GIT_TERMINAL_PROMPT: "0",
    GIT_SSH_COMMAND: "ssh",
    GIT_PROXY_COMMAND: "",
    // A local repository would run the hooks of its own folder, so forms without a connection may not fetch lazily.
    GIT_ALLOW_PROTOCOL: known.connects === true ? "https:http:ssh:git" : "none",
    GIT_NO_LAZY_FETCH: known.connects === true ? "0" : "1",
    ...(known.writes === true ? {} : { GIT_OPTIONAL_LOCKS: "0" }),
    ...toGitVariables({ ...formSettings, ...more }),
  };
}
