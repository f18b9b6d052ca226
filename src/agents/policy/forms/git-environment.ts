import type { KnownForm } from "./form.ts";

/**
 * Settings under which Git runs no program but itself, over all that a repository's configuration says. Hooks,
 * monitors, pagers, editors, helpers of credentials and signing programs are off; no submodule is entered.
 */
const settings: Readonly<Record<string, string>> = {
  "safe.bareRepository": "explicit",
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.attributesFile": "/dev/null",
  "core.alternateRefsCommand": "true",
  "core.pager": "cat",
  "core.editor": "true",
  "sequence.editor": "true",
  "credential.helper": "",
  "commit.gpgSign": "false",
  "tag.gpgSign": "false",
  "tag.forceSignAnnotated": "false",
  "push.gpgSign": "false",
  "gpg.program": "false",
  "gpg.openpgp.program": "false",
  "gpg.x509.program": "false",
  "gpg.ssh.program": "false",
  "gpg.ssh.defaultKeyCommand": "",
  "log.showSignature": "false",
  "merge.verifySignatures": "false",
  "diff.submodule": "short",
  "diff.ignoreSubmodules": "dirty",
  "status.submoduleSummary": "false",
  "submodule.recurse": "false",
  "fetch.recurseSubmodules": "false",
  "push.recurseSubmodules": "no",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "protocol.ext.allow": "never",
  "init.templateDir": "",
  "help.autoCorrect": "0",
};

/** The environment of a known form of Git's: its own files of configuration do not count, the repository's does. */
export function gitEnvironment(
  known: KnownForm,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const all = Object.entries({ ...settings, ...more });
  const environment: Record<string, string> = {
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
    GIT_CONFIG_COUNT: String(all.length),
  };
  for (const [index, [key, value]] of all.entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key;
    environment[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return environment;
}

/** Whether a repository's configuration may name programs by names of its own: for filters, diffs and merges. */
export function mayNameDrivers(config: string): boolean {
  return /\[\s*(diff|filter|merge|include|includeif|extensions)\b/i.test(config);
}

/** Disables the programs that a configuration names; `keys` are all its keys. */
export interface DriverGuard {
  /** Settings that switch them off. */
  readonly settings: Readonly<Record<string, string>>;
  /** Options for the subcommand that do it. */
  readonly options: readonly string[];
  /** The key of a program that would be run all the same. */
  readonly refused?: string;
}

const shows = new Set(
  "diff log show whatchanged diff-files diff-index diff-tree range-diff reflog stash".split(" "),
);
const merges = new Set("merge rebase cherry-pick revert stash pull checkout switch restore".split(" "));

/** How the programs that a repository's configuration names stay out of a known form. */
export function guardDrivers(keys: readonly string[], subcommand: string): DriverGuard {
  const off: Record<string, string> = {};
  for (const key of keys) {
    const filter = /^(filter\..*\.)(clean|smudge|process|required)$/is.exec(key)?.[1];
    if (filter === undefined) continue;
    for (const name of ["clean", "smudge", "process"]) off[`${filter}${name}`] = "";
    off[`${filter}required`] = "false";
  }
  const draws = keys.some((key) => /^diff\.(external|.*\.(command|textconv))$/is.test(key));
  const options = !draws
    ? []
    : subcommand === "blame"
      ? ["--no-textconv"]
      : shows.has(subcommand)
        ? ["--no-ext-diff", "--no-textconv"]
        : [];
  const driver = merges.has(subcommand) ? keys.find((key) => /^merge\..*\.driver$/is.test(key)) : undefined;
  return { settings: off, options, ...(driver === undefined ? {} : { refused: driver }) };
}
