import { type Form, type KnownForm, knownWords } from "./form.ts";
import { readingSubcommands } from "./git-reading.ts";
import { writingSubcommands } from "./git-writing.ts";

/** Options of Git itself that change no more than how it prints, and where it looks. */
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

/** Git: what is before its subcommand, and one of the subcommand's known forms. */
export const git: Form = (args) => {
  let at = 0;
  let folder: string | undefined;
  for (; args[at]?.startsWith("-") === true; at += 1) {
    const word = args[at] ?? "";
    if (word === "--version" || word === "-v")
      return args.length === 1 ? { paths: [] } : `"${args[1]}" is one word too many`;
    if (globalFlags.has(word)) continue;
    if (word !== "-C")
      return `"${word}" is no option before a subcommand that kit knows${knownWords(word, ["-C", ...globalFlags])}`;
    at += 1;
    if (folder !== undefined) return '"-C" is known once';
    folder = args[at];
    if (folder === undefined || folder === "") return '"-C" needs a folder';
  }
  const subcommand = args[at];
  if (subcommand === undefined) return "it needs a subcommand";
  const known = subcommandForm(subcommand, args.slice(at + 1));
  if (typeof known === "string") return known;
  const inside = known.paths.map(({ path, use }) => ({
    path: folder === undefined || path.startsWith("/") ? path : `${folder}/${path}`,
    use,
  }));
  const paths = folder === undefined ? inside : [{ path: folder, use: "read" as const }, ...inside];
  const listed = /^(reflog|stash)$/.test(subcommand) && /^(show|list)$/.test(args[at + 1] ?? "");
  const optionsAt = at + (listed ? 2 : 1);
  return { ...known, paths, git: { subcommand, optionsAt, ...(folder === undefined ? {} : { folder }) } };
};

/** The reading form when the arguments are one, else the writing one. */
function subcommandForm(subcommand: string, args: readonly string[]): KnownForm | string {
  const read = ownForm(readingSubcommands, subcommand)?.(args);
  if (read !== undefined && typeof read !== "string") return read;
  const written = ownForm(writingSubcommands, subcommand)?.(args);
  if (written !== undefined && typeof written !== "string") return written;
  const reasons = [read, written].filter((reason) => reason !== undefined);
  if (reasons.length > 0) return `git ${subcommand}: ${[...new Set(reasons)].join("; where it writes: ")}`;
  return `"${subcommand}" is no subcommand that kit knows${knownWords(subcommand, subcommandsOfGit.all)}`;
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
