/**
 * Runs Git with arguments and returns the NUL-terminated entries of its output. Undefined if Git fails.
 */
export type RunGit = (args: readonly string[]) => Promise<readonly string[] | undefined>;

/** Words per command; each costs a call of Git. */
const maxWords = 20;

const names = ["--name-only", "-z", "--no-renames", "--no-relative"];
const plainDiff = ["diff", ...names, "--no-ext-diff", "--no-textconv"];

/**
 * The files of the work tree that a subcommand would replace, relative to the top of its repository: those that differ
 * in its revisions, and uncommitted changes that it would discard. May list too many files, never too few. `undefined`
 * if Git cannot tell. `args` are the words after the subcommand.
 */
export async function changedByGit(
  subcommand: string,
  args: readonly string[],
  runGit: RunGit,
): Promise<readonly string[] | undefined> {
  // A continued operation was checked when it began, and an aborted one restores the state before it.
  if (args.length === 1 && /^--(continue|abort|skip|quit|show-current-patch)$/.test(args[0] ?? "")) return [];
  const parsed = toWords(args);
  const has = (option: RegExp): boolean => parsed.options.some((each) => option.test(each));
  const isForced = has(/^(-[a-z]*f[a-z]*|--force|--discard-changes|--hard|--merge|--keep)$/);
  // A value joined to an option can be a revision, but not a path.
  const joinedRevisions = [...(isForced ? ["HEAD"] : []), ...parsed.values];
  const treesOfAll = async (): Promise<Trees> => {
    const joined = await treesOf(joinedRevisions, runGit);
    const { trees, others } = await treesOf(parsed.words, runGit);
    return { trees: [...joined.trees, ...trees], others };
  };
  switch (subcommand) {
    case "checkout": {
      const { trees, others } = await treesOfAll();
      // A word after an option can be its value, such as the name of a new branch, instead of a path.
      const isValued = has(/^-[a-z]*[bB]|^--(orphan|conflict)$/);
      const paths = [...parsed.paths, ...(isValued && trees.length > 0 ? [] : others)];
      return changedFrom({ trees, paths }, runGit);
    }
    case "restore": {
      if (has(/^(-S|--staged)$/) && !has(/^-[a-zA-Z]*W|^--worktree$/)) return [];
      const { trees, others } = has(/^-[a-zA-Z]*s|^--source/)
        ? await treesOfAll()
        : { trees: [], others: parsed.words };
      return changedFrom({ trees, paths: [...parsed.paths, ...others] }, runGit);
    }
    case "switch":
      // A branch without a history starts with no files.
      if (has(/^--orphan/)) return runGit(["ls-files", "-z", "--full-name", ":/"]);
      return changedFrom({ ...(await treesOfAll()), paths: [] }, runGit);
    case "reset":
      return isForced ? changedFrom({ ...(await treesOfAll()), paths: [] }, runGit) : [];
    case "rebase": {
      const operands = operandsOf(args, /^-[a-z]*[sX]$|^--(strategy|strategy-option|onto|empty)$/);
      const upstream = operands.length === 0 ? ["@{upstream}"] : [];
      const { trees } = await treesOf([...parsed.values, ...parsed.words, ...upstream], runGit);
      return changedFrom({ trees, paths: [] }, runGit);
    }
    case "merge":
      return changedByMerge(
        operandsOf(args, /^-[nqv]*[msX]$|^--(message|strategy|strategy-option)$/),
        runGit,
      );
    case "cherry-pick":
    case "revert":
      return changedByPicks(
        operandsOf(args, /^-[a-z]*[mX]$|^--(mainline|strategy|strategy-option)$/),
        runGit,
      );
    case "stash":
      return changedByStash(args, runGit);
    default:
      return [];
  }
}

/** The arguments by kind: options, values joined to options, possible revisions, and words that can only be paths. */
interface Words {
  readonly options: readonly string[];
  readonly values: readonly string[];
  readonly words: readonly string[];
  readonly paths: readonly string[];
}

function toWords(args: readonly string[]): Words {
  const end = args.indexOf("--");
  const before = end === -1 ? args : args.slice(0, end);
  const options = before.filter(isOption);
  // The only short option joined with a revision is -s of restore.
  const values = options.flatMap((option) => option.match(/^(?:--[^=]+=|-[^-s]*s)(.+)$/s)?.[1] ?? []);
  const words = before.filter((word) => !isOption(word)).map((word) => (word === "-" ? "@{-1}" : word));
  return { options, values, words, paths: end === -1 ? [] : args.slice(end + 1) };
}

/** The words that are neither options nor the separate values of `valued` options. */
function operandsOf(args: readonly string[], valued: RegExp): readonly string[] {
  return args.filter((word, at) => !isOption(word) && !valued.test(args[at - 1] ?? ""));
}

function isOption(word: string): boolean {
  return word.startsWith("-") && word !== "-";
}

interface Trees {
  readonly trees: readonly string[];
  /** The words that name no tree. */
  readonly others: readonly string[];
}

/** The trees that words can name: a tag, a branch of the same name, or the remote branch that checkout would guess. */
async function treesOf(words: readonly string[], runGit: RunGit): Promise<Trees> {
  const trees: string[] = [];
  const others: string[] = [];
  for (const [at, word] of words.entries()) {
    const found = at < maxWords ? await treesOfWord(word, runGit) : [];
    trees.push(...found);
    if (found.length === 0) others.push(word);
  }
  return { trees, others };
}

async function treesOfWord(word: string, runGit: RunGit): Promise<readonly string[]> {
  const trees = new Set<string>();
  for (const name of [word, `refs/heads/${word}`]) {
    const tree = await runGit(["rev-parse", "--verify", "-q", `${name}^{tree}`]);
    if (tree?.[0] !== undefined) trees.add(tree[0].trim());
  }
  if (trees.size > 0) return [...trees];
  const guessed = await runGit(["for-each-ref", "--format=%(objectname)", `refs/remotes/*/${word}`]);
  return (guessed ?? []).flatMap((lines) => lines.split("\n")).filter((line) => line !== "");
}

/** Files that differ between the work tree and trees; with paths only, between work tree and index. */
async function changedFrom(
  { trees, paths }: { readonly trees: readonly string[]; readonly paths: readonly string[] },
  runGit: RunGit,
): Promise<readonly string[] | undefined> {
  if (trees.length === 0) return paths.length === 0 ? [] : runGit([...plainDiff, "--", ...paths]);
  return joinedFor(trees, (tree) => runGit([...plainDiff, tree, "--", ...paths]));
}

async function changedByMerge(
  operands: readonly string[],
  runGit: RunGit,
): Promise<readonly string[] | undefined> {
  // Both can name several branches: those in the configuration, or those that were fetched.
  if (operands.length === 0 || operands.includes("FETCH_HEAD")) return undefined;
  return joinedFor(operands, async (word) => {
    // Unrelated histories have no base to compare with.
    return (
      (await runGit([...plainDiff, `HEAD...${word}`, "--"])) ?? runGit([...plainDiff, "HEAD", word, "--"])
    );
  });
}

async function changedByPicks(
  operands: readonly string[],
  runGit: RunGit,
): Promise<readonly string[] | undefined> {
  // A word that excludes commits from another word's range cannot be checked alone.
  if (operands.some((word) => word.startsWith("^"))) return undefined;
  return joinedFor(operands, (word) =>
    runGit(["log", "--format=", ...names, "-m", "--root", "--no-walk=unsorted", word, "--"]),
  );
}

async function changedByStash(
  [verb = "push", ...args]: readonly string[],
  runGit: RunGit,
): Promise<readonly string[] | undefined> {
  if (verb === "drop" || verb === "clear") return [];
  if (!/^(pop|apply|branch)$/.test(verb)) return runGit([...plainDiff, "HEAD", "--"]);
  const rest = args.filter((word) => !isOption(word));
  const stash = rest[verb === "branch" ? 1 : 0] ?? "0";
  const entry = /^\d+$/.test(stash) ? `stash@{${stash}}` : stash;
  const untracked = await runGit(["ls-tree", "-r", "-z", "--name-only", "--full-tree", `${entry}^3`]);
  const tracked = await joinedFor(verb === "branch" ? [entry, `${entry}^1`] : [entry], (to) =>
    runGit([...plainDiff, ...(to === entry ? [`${entry}^1`, entry] : [to]), "--"]),
  );
  return tracked && [...tracked, ...(untracked ?? [])];
}

/** The combined results of a query for each word; `undefined` if one query fails, or if there are too many words. */
async function joinedFor(
  words: readonly string[],
  query: (word: string) => Promise<readonly string[] | undefined>,
): Promise<readonly string[] | undefined> {
  if (words.length > 2 * maxWords) return undefined;
  const all: string[] = [];
  for (const word of words) {
    const found = await query(word);
    if (found === undefined) return undefined;
    all.push(...found);
  }
  return all;
}
