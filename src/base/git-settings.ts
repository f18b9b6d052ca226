/**
 * Settings of Git with which no configuration of a repository starts a program or opens a connection by itself: a
 * repository can come from an archive, with a `.git/config` that a stranger wrote. They override it as
 * `GIT_CONFIG_KEY_…`. Programs under a name that the repository chooses (filters, diff and merge drivers) need more.
 */
export const inertGitSettings: Readonly<Record<string, string>> = {
  "safe.bareRepository": "explicit",
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.alternateRefsCommand": "true",
  "core.pager": "cat",
  "core.editor": "true",
  "core.askPass": "true",
  "core.sshCommand": "ssh",
  "core.protectHFS": "true",
  "core.protectNTFS": "true",
  "sequence.editor": "true",
  "credential.helper": "",
  "commit.gpgSign": "false",
  "commit.verbose": "false",
  "tag.gpgSign": "false",
  "tag.forceSignAnnotated": "false",
  "push.gpgSign": "false",
  "gpg.program": "false",
  "gpg.openpgp.program": "false",
  "gpg.x509.program": "false",
  "gpg.ssh.program": "false",
  "gpg.ssh.defaultKeyCommand": "",
  "log.showSignature": "false",
  // Another value would merge again, with the merge drivers of the repository.
  "log.diffMerges": "separate",
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
  // It could name any file of the machine; Git reads the `.mailmap` of the work tree without it.
  "mailmap.file": "/dev/null",
};

/** Settings as variables of Git's environment, where a key can hold any character. */
export function toGitVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const all = Object.entries(settings);
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(all.length) };
  for (const [index, [key, value]] of all.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}

/** Settings that disable the filters among the keys of a configuration. */
export function withoutFilters(keys: readonly string[]): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const key of keys) {
    const filter = /^(filter\..*\.)(clean|smudge|process|required)$/is.exec(key)?.[1];
    if (filter === undefined) continue;
    for (const name of ["clean", "smudge", "process"]) settings[`${filter}${name}`] = "";
    settings[`${filter}required`] = "false";
  }
  return settings;
}
