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
const opaque = /^(-S|--split-string|-c|--command|--call)(=|$)|^-S/;

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
    if (opaque.test(word) && !launcher.valued.has(word)) return [];
    if (word === "--") {
      index += 1;
      break;
    }
    if (program === "env" && /^[A-Za-z_][A-Za-z0-9_]*=/.test(word)) return [];
    if (!word.startsWith("-")) break;
    index += launcher.valued.has(word) ? 2 : 1;
  }
  return words.slice(index + launcher.operands);
}

interface OptionRule {
  /** Matches the option as a word, also with a value attached. */
  readonly option: RegExp;
  /** Only under these subcommands; any when absent. */
  readonly under?: readonly string[];
}

// Options by which a program runs another one, or writes a file past the write policy (GTFOBins).
const rules: ReadonlyMap<string, readonly OptionRule[]> = new Map<string, readonly OptionRule[]>([
  [
    "git",
    [
      { option: /^-c$|^-c[a-z]+\.|^--config-env(=|$)|^--exec-path(=|$)|^(-p|--paginate)$/ },
      {
        option:
          /^--(upload-pack|receive-pack|exec|ext-diff|textconv|open-files-in-pager|output|output-directory)(=|$)/,
      },
      { option: /^-O/, under: ["grep"] },
      { option: /^-x/, under: ["rebase"] },
      { option: /^-o/, under: ["format-patch"] },
      { option: /^-u$/, under: ["clone", "fetch", "ls-remote"] },
      { option: /^--(template|config)(=|$)/, under: ["clone", "init"] },
      { option: /^(foreach|--command.*)$/, under: ["submodule"] },
      { option: /^(run)$/, under: ["bisect"] },
      { option: /^ext::/ },
      { option: /^--(extcmd|tool)(=|$)|^-x/, under: ["difftool", "mergetool"] },
      {
        option:
          /^(alias\.|core\.(pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|credential\.|diff\.|filter\.|merge\.|pager\.|gpg\.|sequence\.|include)/i,
        under: ["config"],
      },
      { option: /^--(tree|index|msg|env|parent|commit|tag-name)-filter(=|$)/, under: ["filter-branch"] },
    ],
  ],
  ["find", [{ option: /^-(exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/ }]],
  ["fd", [{ option: /^(-x|-X|--exec|--exec-batch)(=|$)|^-[xX]/ }]],
  ["rg", [{ option: /^--(pre|hostname-bin)(=|$)|^(-z|--search-zip)$/ }]],
  [
    "tar",
    [
      {
        option:
          /^--(checkpoint-action|to-command|use-compress-program|rsh-command|rmt-command|info-script|new-volume-script)(=|$)|^-I|^-F/,
      },
    ],
  ],
  ["sed", [{ option: /^-i|^--in-place(=|$)|^-f|^--file(=|$)|(^|[;{}\s\d$])[ewrW]\s|\/e[gip]*$|\/w\s/ }]],
  ["awk", [{ option: /system\s*\(|\||>|^-f|^-i|^--(file|include|exec)(=|$)/ }]],
  ["sort", [{ option: /^--(compress-program|output)(=|$)|^-[a-zA-Z]*o/ }]],
  [
    "curl",
    [
      {
        option:
          /^-[a-zA-Z]*[oOKT]|^--(output|output-dir|remote-name|remote-name-all|config|upload-file|create-dirs|dump-header|cookie-jar|trace|trace-ascii|stderr|libcurl|etag-save|hsts|alt-svc)(=|$)|^-[a-zA-Z]*[cD]|^file:/i,
      },
    ],
  ],
  [
    "wget",
    [
      {
        option:
          /^-[a-zA-Z]*[OoaP]|^--(output-document|output-file|append-output|directory-prefix|use-askpass|execute|config)(=|$)|^-e/,
      },
    ],
  ],
  ["man", [{ option: /^(-P|-H|-p)|^--(pager|html|preprocessor)(=|$)/ }]],
  ["less", [{ option: /^[-+]/ }]],
  ["tee", [{ option: /./ }]],
  ["dd", [{ option: /^of=/ }]],
  ["ssh", [{ option: /^-o|^-F|^-E/ }]],
  ["scp", [{ option: /^-o|^-S|^-F/ }]],
  ["rsync", [{ option: /^-[a-zA-Z]*e|^--(rsh|rsync-path|log-file|temp-dir)(=|$)/ }]],
  ["zip", [{ option: /^-TT|^--unzip-command(=|$)|^-T$/ }]],
  ["make", [{ option: /^(SHELL|MAKEFLAGS)=|^--eval(=|$)/ }]],
  ["gdb", [{ option: /^-ex|^--(eval-command|command|init-command)|^-x|^-i/ }]],
  ["go", [{ option: /^-(exec|toolexec|vettool)(=|$)/ }]],
  ["cargo", [{ option: /^--config(=|$)/ }]],
  ["npm", [{ option: /^--(script-shell|node-options|prefix|globalconfig|userconfig)(=|$)|^(exec|x)$/ }]],
  ["vi", [{ option: /^[-+]/ }]],
  ["vim", [{ option: /^[-+]/ }]],
  ["ed", [{ option: /./ }]],
  ["nmap", [{ option: /^--(script|interactive)(=|$)|^-o/ }]],
  ["tcpdump", [{ option: /^-z|^-w/ }]],
  ["ip", [{ option: /^-(b|batch)$/ }, { option: /^exec$/, under: ["netns"] }]],
  ["docker", [{ option: /^(exec|run|cp|build)$/ }]],
]);

/** The first word of a listed program that launches another program or writes a file, or undefined. */
export function dangerousOption(words: readonly string[]): string | undefined {
  const program = baseName(words[0] ?? "");
  const own = rules.get(program) ?? rules.get(program.replace(/^(g|m|n)awk$/, "awk"));
  if (own === undefined) return undefined;
  const subcommand = words.slice(1).find((word) => !word.startsWith("-"));
  for (const word of words.slice(1)) {
    for (const rule of own) {
      if (rule.under !== undefined && (subcommand === undefined || !rule.under.includes(subcommand)))
        continue;
      if (rule.option.test(word)) return word;
    }
  }
  return undefined;
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}
