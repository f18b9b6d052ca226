import { fits, type OptionRule } from "./dangerous-option.ts";

/** Options of a launcher that take a value of their own, so that the program behind can be found. */
const launchers: ReadonlyMap<string, { readonly valued: ReadonlySet<string>; readonly operands: number }> =
  new Map([
    ["env", { valued: new Set(["-u", "--unset", "-C", "--chdir"]), operands: 0 }],
    ["nice", { valued: new Set(["-n", "--adjustment"]), operands: 0 }],
    ["ionice", { valued: new Set(["-c", "-n"]), operands: 0 }],
    ["nohup", { valued: new Set(), operands: 0 }],
    ["setsid", { valued: new Set(), operands: 0 }],
    ["stdbuf", { valued: new Set(["-i", "-o", "-e"]), operands: 0 }],
    ["timeout", { valued: new Set(["-k", "-s", "--signal", "--kill-after"]), operands: 1 }],
    ["time", { valued: new Set(["-f", "-o"]), operands: 0 }],
    ["sudo", { valued: new Set(["-u", "-g"]), operands: 0 }],
    ["doas", { valued: new Set(["-u"]), operands: 0 }],
    ["xargs", { valued: new Set(["-n", "-L", "-P", "-I", "-d", "-s", "-a", "-E"]), operands: 0 }],
    ["watch", { valued: new Set(["-n", "--interval"]), operands: 0 }],
    ["strace", { valued: new Set(["-e", "-o", "-p"]), operands: 0 }],
    ["unshare", { valued: new Set(), operands: 0 }],
    ["chroot", { valued: new Set(), operands: 1 }],
    ["flock", { valued: new Set(["-w", "-E"]), operands: 1 }],
    ["script", { valued: new Set(), operands: 0 }],
    ["npx", { valued: new Set(["-p", "--package"]), operands: 0 }],
  ]);

// A string that the launcher itself splits, or runs in a shell: what it runs cannot be told.
const opaque: OptionRule = { short: "Sc", long: ["split-string", "command", "call"] };

/**
 * The command line behind a launcher (`timeout 5 git status` gives `git status`); undefined when the
 * program is no launcher, empty when what it would run cannot be told.
 */
export function launchedProgram(words: readonly string[]): readonly string[] | undefined {
  const program = baseName(words[0] ?? "");
  const launcher = launchers.get(program);
  if (launcher === undefined) return undefined;
  let index = 1;
  while (index < words.length) {
    const word = words[index] ?? "";
    if (word === "--") {
      index += 1;
      break;
    }
    if (!launcher.valued.has(word) && fits(opaque, word)) return [];
    if (program === "env" && /^[A-Za-z_][A-Za-z0-9_]*=/.test(word)) return [];
    if (!word.startsWith("-")) break;
    index += launcher.valued.has(word) ? 2 : 1;
  }
  return words.slice(index + launcher.operands);
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}
