import { discoverSources } from "../../app/sources/discover-sources.ts";
import {
  type AnyEntry,
  type Command,
  type CommandContext,
  type CommandOption,
  type Completion,
  defineCommand,
  globalOptions,
} from "../command.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

/** A word that can come next, and what it means. */
interface Candidate {
  readonly word: string;
  readonly meaning: string;
}

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/**
 * Makes the command that prints a shell's completion script. The script knows no command: at each Tab it asks kit with the
 * words of the line, so what it offers is what the installed kit has.
 */
export function createCompletion(table: readonly AnyEntry[]): Command {
  return defineCommand({
    arguments: [
      { usage: "<shell>", description: "bash, zsh or fish", completes: shells },
      { usage: "[words...]", description: "After --: prints what can complete the last of these words" },
    ],
    options: {},
    examples: [
      'eval "$(kit completion bash)"    # in ~/.bashrc',
      'eval "$(kit completion zsh)"     # in ~/.zshrc, after compinit',
      "kit completion fish > kit.fish   # in ~/.config/fish/completions",
    ],
    details:
      "Completes commands, options, their values where there are a few, and the names of the project's agents and workflows; files otherwise.",
    async run({ args: [shell = "", ...words] }, context) {
      const known = shells.find((name) => name === shell);
      if (known === undefined)
        throw usageError(`kit has no completions for '${shell}'.`, "It has them for bash, zsh and fish.");
      if (words.length === 0) context.output.write(scripts[known]);
      else
        for (const { word, meaning } of await completeLine(table, words, context)) {
          const isPlain = known === "bash" || meaning === "";
          context.output.line(isPlain ? word : `${word}\t${safeLine(meaning)}`);
        }
      return 0;
    },
  });
}

/** Finds the words that can stand in the place of the last one; none where the command takes a file. */
async function completeLine(
  table: readonly AnyEntry[],
  words: readonly string[],
  context: CommandContext,
): Promise<readonly Candidate[]> {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const candidates = await candidatesAfter(table, before, { typed, root: context.root });
  return candidates.filter(({ word }) => word.startsWith(typed));
}

interface Typed {
  readonly typed: string;
  /** Absolute: the project's folder. */
  readonly root: string;
}

async function candidatesAfter(
  table: readonly AnyEntry[],
  before: readonly string[],
  { typed, root }: Typed,
): Promise<readonly Candidate[]> {
  const last = before.at(-1) ?? "";
  if (globalOptions.some((option) => isValueOf(option, last))) return [];
  const names = positionalsOf(before, []);
  let entries: readonly AnyEntry[] | undefined = table;
  let entry: AnyEntry | undefined;
  let depth = 0;
  while (entries !== undefined && depth < names.length) {
    entry = entries.find(({ name }) => name === names[depth]);
    if (entry === undefined) return [];
    entries = "commands" in entry ? entry.commands : undefined;
    depth += 1;
  }
  if (entries !== undefined) {
    if (typed.startsWith("-")) return optionCandidates([]);
    return entries.map(({ name, summary }) => ({ word: name, meaning: summary }));
  }
  if (entry === undefined || !("load" in entry)) return [];
  const command = await entry.load();
  const options = Object.values(command.options);
  const option = options.find((each) => isValueOf(each, last));
  if (option !== undefined) return await toCandidates(option.parse?.choices, root);
  if (typed.startsWith("-")) return optionCandidates(options);
  const given = positionalsOf(before, options).length - depth;
  const positions = command.arguments ?? [];
  const argument = positions[given] ?? positions.findLast(({ usage }) => usage.includes("..."));
  return await toCandidates(argument?.completes, root);
}

/** The words that are neither options nor their values. */
function positionalsOf(
  words: readonly string[],
  options: readonly CommandOption<unknown>[],
): readonly string[] {
  const withValue = [...options, ...globalOptions].filter(takesValue).flatMap(optionNames);
  return words.filter((word, at) => !word.startsWith("-") && !withValue.includes(words[at - 1] ?? ""));
}

type Described = Pick<CommandOption<unknown>, "flags" | "description">;

function takesValue({ flags }: Described): boolean {
  return flags.includes("<");
}

/** Whether the word after `last` is the value of an option. */
function isValueOf(option: Described, last: string): boolean {
  return takesValue(option) && optionNames(option).includes(last);
}

/** `-f, --framework <name>` is called `-f` and `--framework`. */
function optionNames({ flags }: Described): readonly string[] {
  return flags.split(/[ ,]+/).filter((part) => part.startsWith("-"));
}

function optionCandidates(options: readonly Described[]): readonly Candidate[] {
  const help: Described = { flags: "--help", description: "Explain this command" };
  return [...options, ...globalOptions, help].map((option) => ({
    word: optionNames(option).at(-1) ?? "",
    meaning: option.description,
  }));
}

async function toCandidates(completes: Completion | undefined, root: string): Promise<readonly Candidate[]> {
  if (completes === undefined) return [];
  if (typeof completes !== "string") return completes.map((word) => ({ word, meaning: "" }));
  // Only looks at the names of files: no code of the project runs.
  const { sources } = await discoverSources(root);
  return sources
    .filter(({ kind }) => completes.split(" or ").includes(kind))
    .map(({ name, path }) => ({ word: name, meaning: path }));
}

const scripts: Readonly<Record<Shell, string>> = {
  bash: `_kit() {
  local IFS=$'\\n'
  COMPREPLY=($(kit completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kit kit
`,
  zsh: `#compdef kit
_kit() {
  local line
  local -a found
  for line in "\${(@f)$(kit completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${\${line//:/\\\\:}/$'\\t'/:}}")
  done
  if (( \${#found} )); then _describe kit found; else _files; fi
}
compdef _kit kit
`,
  fish: `function __kit_complete
  set -l words (commandline -opc)
  set -l found (kit completion fish -- $words[2..] (commandline -ct) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c kit -f -a '(__kit_complete)'
`,
};
