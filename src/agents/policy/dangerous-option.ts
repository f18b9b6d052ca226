/** Words of a command line by which a program runs another one, or writes a file past the write policy. */
export interface OptionRule {
  /** Long options. Programs take the beginning of a name for the whole: `--upl` is `--upload-pack`. */
  readonly long?: readonly string[];
  /** Letters of short options, which may stand behind others: `-nO` is `-n -O`. */
  readonly short?: string;
  /** What no option of these forms is. */
  readonly word?: RegExp;
  /** Only with these subcommands, or only before the subcommand; anywhere when absent. */
  readonly under?: readonly string[] | "program";
}

const submodule = ["submodule", "submodule--helper"];
const anyWord = /./;
// The commands e, w, r and W, and the flags e and w of s behind any sign that ends a replacement.
const sedScript =
  /(^|[;{}\s\d$])[ewrW]\s|[^\w\s\\.-][gipmMI\d]*e[gipmMI\d]*\s*([;}\n]|$)|[^\w\s\\.-][gipmMI\d]*w\s/;

// From GTFOBins and the manuals. What a program reads from its own files is not for its options to tell.
const rules: ReadonlyMap<string, readonly OptionRule[]> = new Map<string, readonly OptionRule[]>([
  [
    "git",
    [
      { word: /^-c|^(-p|--paginate)$/, under: "program" },
      {
        long: [
          "config-env",
          "exec-path",
          "git-dir",
          "separate-git-dir",
          "upload-pack",
          "receive-pack",
          "exec",
        ],
      },
      { long: ["ext-diff", "textconv", "open-files-in-pager", "output", "output-directory"] },
      { word: /^ext::/ },
      { short: "O", under: ["grep"] },
      { short: "x", under: ["rebase"] },
      { short: "o", under: ["format-patch", "archive"] },
      { short: "u", under: ["clone", "fetch", "ls-remote"] },
      { short: "c", long: ["config"], under: ["clone"] },
      { long: ["template"], under: ["clone", "init"] },
      { word: /^foreach$/, long: ["command"], under: submodule },
      { word: /^run$/, under: ["bisect"] },
      { short: "tx", long: ["extcmd", "tool"], under: ["difftool", "mergetool"] },
      {
        word: /^(alias|credential|diff|filter|gpg|hook|include|includeif|merge|pager|protocol|sendemail|sequence|trailer|url)\.|^(browser|difftool|guitool|man|mergetool)\..*\.(cmd|path)$|^core\.(pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|alternaterefscommand|attributesfile|worktree)|^remote\..*\.(uploadpack|receivepack|vcs)$|^submodule\..*\.update$|^(init\.templatedir|interactive\.difffilter|rename-section)$/i,
        long: ["rename-section"],
        under: ["config"],
      },
      {
        long: [
          "setup",
          "tree-filter",
          "index-filter",
          "msg-filter",
          "env-filter",
          "parent-filter",
          "commit-filter",
          "tag-name-filter",
        ],
        under: ["filter-branch"],
      },
      {
        word: anyWord,
        under: ["daemon", "instaweb", "merge-index", "remote-ext", "send-email", "web--browse"],
      },
    ],
  ],
  ["find", [{ word: /^-(exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/ }]],
  ["fd", [{ short: "xX", long: ["exec", "exec-batch"] }]],
  ["rg", [{ short: "z", long: ["pre", "hostname-bin", "search-zip"] }]],
  [
    "tar",
    [
      {
        short: "IF",
        long: [
          "checkpoint-action",
          "to-command",
          "use-compress-program",
          "rsh-command",
          "rmt-command",
          "info-script",
          "new-volume-script",
        ],
      },
    ],
  ],
  ["sed", [{ short: "if", long: ["in-place", "file"], word: sedScript }]],
  ["awk", [{ short: "fiEl", long: ["file", "include", "exec", "load"], word: /system\s*\(|\||>/ }]],
  ["sort", [{ short: "o", long: ["compress-program", "output"] }]],
  [
    "curl",
    [
      {
        word: /^-[a-z]*[oktcd]|^file:/i,
        long: [
          "output",
          "output-dir",
          "remote-name",
          "remote-name-all",
          "config",
          "upload-file",
          "create-dirs",
          "dump-header",
          "cookie-jar",
          "trace",
          "trace-ascii",
          "stderr",
          "libcurl",
          "etag-save",
          "hsts",
          "alt-svc",
        ],
      },
    ],
  ],
  [
    "wget",
    [
      {
        short: "OoaPe",
        long: [
          "output-document",
          "output-file",
          "append-output",
          "directory-prefix",
          "use-askpass",
          "execute",
          "config",
        ],
      },
    ],
  ],
  ["man", [{ short: "PHp", long: ["pager", "html", "preprocessor"] }]],
  ["less", [{ word: /^[-+]/ }]],
  ["tee", [{ word: anyWord }]],
  ["dd", [{ word: /^of=/ }]],
  ["ssh", [{ short: "oFE" }]],
  ["scp", [{ short: "oSF" }]],
  ["rsync", [{ short: "e", long: ["rsh", "rsync-path", "log-file", "temp-dir"] }]],
  ["zip", [{ short: "T", long: ["unzip-command"] }]],
  ["make", [{ word: /^(SHELL|MAKEFLAGS)=/, long: ["eval"] }]],
  ["gdb", [{ word: /^-ex|^--(eval-command|command|init-command)|^-x|^-i/ }]],
  ["go", [{ word: /^-(exec|toolexec|vettool)(=|$)/ }]],
  ["cargo", [{ long: ["config"] }]],
  [
    "npm",
    [
      {
        word: /^(exec|x)$/,
        long: ["script-shell", "node-options", "prefix", "globalconfig", "userconfig"],
      },
    ],
  ],
  ["vi", [{ word: /^[-+]/ }]],
  ["vim", [{ word: /^[-+]/ }]],
  ["ed", [{ word: anyWord }]],
  ["nmap", [{ word: /^-o/, long: ["script", "interactive"] }]],
  ["tcpdump", [{ short: "zw" }]],
  ["ip", [{ word: /^-(b|batch)$|^exec$/ }]],
  ["docker", [{ word: /^(exec|run|cp|build)$/ }]],
]);

/** Options of Git itself, before the subcommand, whose value is the next word. */
const valuedOfGit = new Set([
  "-C",
  "-c",
  "--attr-source",
  "--config-env",
  "--git-dir",
  "--namespace",
  "--work-tree",
]);

/** Harmless options whose names are the beginnings of others'. */
const harmless = new Set(["checkpoint", "text"]);

/** The first word of a listed program that launches another program or writes a file, or undefined. */
export function dangerousOption(words: readonly string[]): string | undefined {
  const [path = "", ...given] = words;
  const program = path.slice(path.lastIndexOf("/") + 1);
  const own = rules.get(program) ?? rules.get(program.replace(/^[gmn]awk$/, "awk"));
  if (own === undefined) return undefined;
  const at = subcommandAt(given);
  const subcommand = given[at] ?? "";
  const applying = own.filter(({ under = "program" }) => under === "program" || under.includes(subcommand));
  // The first word of `tar cf x.tar` is options, too.
  const read = (word: string, index: number): string =>
    program === "tar" && index === 0 && !word.startsWith("-") ? `-${word}` : word;
  return given.find((word, index) =>
    applying.some((rule) => (rule.under !== "program" || index < at) && fits(rule, read(word, index))),
  );
}

/** Whether a word is an option of the rule, in any of the forms that programs take. */
export function fits({ long = [], short = "", word: pattern }: OptionRule, word: string): boolean {
  if (pattern?.test(word) === true) return true;
  if (!word.startsWith("-")) return false;
  if (!word.startsWith("--"))
    return [...(letters.exec(word)?.[0] ?? "")].some((each) => short.includes(each));
  const [name = ""] = word.slice(2).split("=", 1);
  return name !== "" && !harmless.has(name) && long.some((option) => option.startsWith(name));
}

/** Short options that stand together, up to the value of the last one. */
const letters = /(?<=^-)[a-zA-Z0-9]+/;

function subcommandAt(given: readonly string[]): number {
  let index = 0;
  for (let word = given[index]; word?.startsWith("-"); word = given[index])
    index += valuedOfGit.has(word) ? 2 : 1;
  return index;
}
