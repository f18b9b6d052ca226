import { isSafeName } from "./git-names.ts";

/** A rule for the content of a file. */
interface Format {
  test(content: string): boolean;
}

/** Each line has this form, or is empty. */
const lines = (line: string): Format => {
  const pattern = new RegExp(`^(?:${line})?$`);
  return { test: (content) => content.split("\n").every((each) => pattern.test(each)) };
};

const object = "[0-9a-f]{40}(?:[0-9a-f]{24})?";
const reference = new RegExp(`^(?:ref: refs/[^\\0\\n]{1,1000}|${object})\\n?$`);
const objects = lines(`${object}(?: ${object})?`);
const text = /^/;
/** The name of a branch or tag, as Git accepts it. Git stops at a file with others. */
const name = "refs(?!\\S*(?:\\.\\.|@\\{))(?:/(?!\\.)[^\\0- \\x7f~^:?*[\\\\/]+(?<!\\.lock))+";
const packed = lines(`# pack-refs with:[ \\w-]*|${object} ${name}|\\^${object}`);
const word = /^[\w.-]{0,60}\n?$/;
/** A word as Git quotes it for a shell. */
const quoted = "'(?:[^'!]|'\\\\['!]')*'";
const strategies = "ort|recursive|resolve|octopus|ours|subtree";
/** All steps of a list but `exec`, and comments. */
const steps = lines(
  "[ \\t]*(?:[^\\w\\s][^\\n]*|(?:pick|reword|edit|squash|fixup|drop|label|reset|merge|update-ref|noop|break|revert|[presfdltmub])(?:[ \\t][^\\n]*)?)?",
);
const switches =
  "no-commit|edit|allow-empty|allow-empty-message|(?:drop|keep)-redundant-commits|signoff|record-origin|allow-ff|allow-rerere-auto|commit-use-reference";
const options = lines(
  `\\[options\\]|\\t(?:(?:${switches}) = (?:true|false)|mainline = \\d+|default-msg-cleanup = [a-z]+|strategy = (?:${strategies})|strategy-option = [\\w=-]+)`,
);
const strategyOptions = /^(?:(?:^|[ \n]+)'?--[\w=-]+'?)*\n?$/;
const author = new RegExp(`^(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)=${quoted}\\n)*$`);
/** Options of `git apply` that do not change which files a patch names. */
const applyOptions = /^(?: ?'(?:-[pC]\d+|--whitespace=[a-z-]+|--ignore-whitespace|--reject)')*\n?$/;

/** The folders of an unfinished rebase, cherry-pick or revert. */
export const stateFolders: readonly string[] = ["rebase-merge", "rebase-apply", "sequencer"];

/**
 * The files that kit takes over, and what they may contain: names and contents for which no Git starts a program of the work tree, now
 * or with `--continue`. A strategy of a rebase, for example, is a program `git-merge-…` that may lie in any folder.
 */
const formats: readonly (readonly [path: RegExp, content: Format])[] = [
  [/^HEAD$/, reference],
  [/^packed-refs$/, packed],
  [/^(?:index|FETCH_HEAD|MERGE_RR)$/, text],
  [/^(?:MERGE_MSG|SQUASH_MSG|COMMIT_EDITMSG|TAG_EDITMSG)$/, text],
  [/^(?:shallow|MERGE_HEAD|MERGE_AUTOSTASH)$/, objects],
  [/^(?:(?:ORIG|CHERRY_PICK|REVERT|REBASE)_HEAD|AUTO_MERGE|BISECT_(?:HEAD|EXPECTED_REV))$/, reference],
  [/^(?:MERGE_MODE|BISECT_(?:ANCESTORS_OK|FIRST_PARENT))$/, word],
  [/^BISECT_LOG$/, text],
  [/^BISECT_NAMES$/, new RegExp(`^(?: ?${quoted})*\\n?$`)],
  [/^BISECT_START$/, /^\w[^\s\0]*\n?$/],
  [/^BISECT_TERMS$/, /^(?:\w[\w-]*\n){2}$/],
  [/^refs(?:\/(?!\.)[^/\p{Cc} ]+)+$/u, reference],
  [/^logs(?:\/(?!\.)[^/\p{Cc} ]+)+$/u, lines(`${object} ${object} [^\\n]*`)],
  [/^rebase-merge\/(?:git-rebase-todo|git-rebase-todo\.backup|done)$/, steps],
  [/^rebase-merge\/(?:message|message-squash|message-fixup|patch)$/, text],
  [
    /^rebase-merge\/(?:onto|orig-head|stopped-sha|amend|squash-onto|autostash|rewritten-(?:list|pending))$/,
    objects,
  ],
  [/^rebase-merge\/current-fixups$/, lines(`(?:fixup|squash)(?: -[cC])? ${object}`)],
  [/^rebase-merge\/(?:update-refs|refs-to-delete)$/, lines(`refs/[^\\0 ]+ ?|${object}`)],
  [/^rebase-merge\/(?:msgnum|end|interactive|quiet|verbose|signoff|allow_rerere_autoupdate)$/, word],
  [/^rebase-merge\/(?:(?:drop|keep)_redundant_commits|(?:no-)?reschedule-failed-exec)$/, word],
  [/^rebase-merge\/(?:cdate_is_adate|ignore_date)$/, word],
  [/^rebase-merge\/strategy$/, new RegExp(`^(?:${strategies})\\n?$`)],
  [/^rebase-merge\/strategy_opts$/, strategyOptions],
  [/^rebase-(?:merge|apply)\/head-name$/, /^(?:refs\/[^\s\0]+|detached HEAD)\n?$/],
  [/^rebase-(?:merge|apply)\/author-script$/, author],
  [/^rebase-apply\/(?:\d{4,}|info|patch|final-commit)$/, text],
  [/^rebase-apply\/(?:onto|orig-head|original-commit|rewritten|abort-safety|autostash)$/, objects],
  [
    /^rebase-apply\/(?:next|last|utf8|keep|messageid|scissors|quiet|sign|threeway|applying|rebasing|no_inbody_headers|quoted-cr)$/,
    word,
  ],
  [/^rebase-apply\/apply-opt$/, applyOptions],
  [/^sequencer\/todo$/, steps],
  [/^sequencer\/(?:head|abort-safety)$/, objects],
  [/^sequencer\/opts$/, options],
];

/** Whether kit takes over a file of this name at all. */
export const isTaken = (path: string): boolean => formatOf(path) !== undefined;

const formatOf = (path: string): Format | undefined => formats.find(([name]) => name.test(path))?.[1];

/** The names of objects that replace others. */
export const replacement: RegExp = /^refs\/replace\//;

/** Why kit does not take over a replacement of an object: the name of a commit would no longer stand for its content. */
export const refusedReplacement = (path: string): string =>
  `${path} was not taken over: with it, Git shows another object in the place of one.`;

/** Why kit does not take over a file with this content. */
export function refusalOf(path: string, bytes: Buffer): string | undefined {
  if (replacement.test(path)) return refusedReplacement(path);
  const content = bytes.toString("latin1");
  const isFine =
    formatOf(path)?.test(content) === true && (path !== "MERGE_RR" || hasSafeNames(bytes.toString()));
  if (isFine) return undefined;
  if (path === "HEAD") return "HEAD was not taken over: it names no branch and no commit.";
  if (/(?:^|\n)[ \t]*(?:x|exec)[ \t]/.test(content) && formatOf(path) === steps)
    return "The rebase was not taken over: its next steps run programs.";
  return `${path} was not taken over: kit does not know its content as harmless.`;
}

/** Conflicts that Git resolves again: for each, the name of its record and of the file that Git writes. */
function hasSafeNames(records: string): boolean {
  return records
    .split("\0")
    .slice(0, -1)
    .every((record) => {
      const [, name = ""] = /^[0-9a-f]{40,64}(?:\.\d+)?\t(.*)$/s.exec(record) ?? [];
      return isSafeName(name);
    });
}
