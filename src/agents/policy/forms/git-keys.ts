import { inertGitSettings, withoutFilters } from "../../../base/git-settings.ts";
import type { KnownForm } from "./form.ts";

/** A key of a configuration, in Git's spelling: section and name in lower case. */
export interface ConfigEntry {
  readonly key: string;
  readonly value: string;
}

/** Settings of known forms beyond the inert ones: files that only the configuration of the user may name. */
export const formSettings: Readonly<Record<string, string>> = {
  ...inertGitSettings,
  "core.attributesFile": "/dev/null",
  "core.excludesFile": "/dev/null",
  "commit.template": "/dev/null",
  "diff.orderFile": "/dev/null",
};

const overridden = new Set([
  ...Object.keys(formSettings).map((key) => key.toLowerCase()),
  // Variables of the environment go before these.
  "core.gitproxy",
]);

const names = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Sections of which no known form starts a program or opens a file, and those of other tools. */
const harmlessSections = names(
  "add advice alias am apply attr branch browser checkout clean clone color column commitgraph completion difftool feature format fsck gc gitcvs gitweb gpg grep gui guitool help i18n imap index init instaweb interactive log lsrefs maintenance man mergetool notes pack pager pretty promisor protocol pull push rebase receive reflog repack rerere reset revert safe sendemail sequence showbranch sparse splitindex stash status submodule tag tar trace2 uploadarchive uploadpack url user versionsort web worktree " +
    "annex branchless bugtraq codespaces fork gerrit gh gitbutler gitflow gitg gitk gitlens gitreview git-p4 github gitkraken graphite hooks hub jj lazygit lfs magit smartgit sourcetree spr stgit svn svn-remote tgit tortoise tower vscode",
);

/** Sections that only forms with a connection read. */
const connectingSections = names("bundle credential fetch http remote ssh transfer");

/** The known names in sections with programs or paths: without and with a subsection. */
const knownNames: Readonly<Record<string, readonly [ReadonlySet<string>, ReadonlySet<string>?]>> = {
  blame: [names("blankboundary coloring date markignoredlines markunblamablelines showemail showroot")],
  commit: [names("cleanup status")],
  core: [
    names(
      "abbrev autocrlf bare bigfilethreshold checkroundtripencoding checkstat commentchar commentstring commitgraph compression createobject deltabasecachelimit disambiguate eol filemode filesreflocktimeout fscache fsmonitorhookversion fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorecase logallrefupdates longpaths loosecompression maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout precomposeunicode preloadindex quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace",
    ),
  ],
  credential: [names("interactive usehttppath username"), names("provider usehttppath username")],
  diff: [
    names(
      "algorithm autorefreshindex colormoved colormovedws context dirstat dstprefix guitool indentheuristic interhunkcontext mnemonicprefix noprefix relative renamelimit renames srcprefix statgraphwidth statnamewidth suppressblankempty tool trustexitcode wordregex wserrorhighlight",
    ),
    names("algorithm binary cachetextconv funcname trustexitcode wordregex xfuncname"),
  ],
  extensions: [
    names(
      "compatobjectformat noop objectformat partialclone preciousobjects relativeworktrees worktreeconfig",
    ),
  ],
  fetch: [
    names(
      "all fsckobjects negotiationalgorithm output parallel prune prunetags showforcedupdates unpacklimit writecommitgraph",
    ),
  ],
  http: [
    names("extraheader followredirects lowspeedlimit lowspeedtime maxrequests postbuffer useragent version"),
    names("extraheader followredirects postbuffer useragent version"),
  ],
  merge: [
    names(
      "autoedit autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff guitool log renamelimit renames renormalize stat suppressdest tool verbosity",
    ),
    names("name recursive"),
  ],
  remote: [
    names("pushdefault"),
    names(
      "fetch followremotehead gh-resolved mirror partialclonefilter promisor prune prunetags push pushurl skipdefaultupdate skipfetchall tagopt url",
    ),
  ],
  trailer: [names("ifexists ifmissing separators where"), names("ifexists ifmissing key where")],
  transfer: [names("credentialsinurl fsckobjects hiderefs unpacklimit")],
};

function isKnownKey(key: string, connects: boolean): boolean {
  const [, section = "", subsection, name = ""] = /^([^.]*)(?:\.(.*))?\.([^.]*)$/s.exec(key) ?? [];
  if (harmlessSections.has(section) || (!connects && connectingSections.has(section))) return true;
  const [alone, below] = Object.hasOwn(knownNames, section) ? (knownNames[section] ?? []) : [];
  return (subsection === undefined ? alone : below)?.has(name) === true;
}

/** How to keep Git from running the programs that a configuration names. */
interface ConfigGuard {
  /** Settings that disable the programs. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whether the configuration names programs for diffs; their replacements print less than Git itself. */
  readonly draws: boolean;
  /** The key of a program for merges, which cannot be disabled. */
  readonly driver?: string;
  /** A key that may lead out of the workspace or start a program. */
  readonly unknown?: string;
}

const drawer = /^diff\.(external|.*\.(command|textconv))$/s;

/** A program for diffs that starts no other: Git has no value that turns one off, and not every subcommand an option. */
const plainDiff = 'compare() { diff -u -- "$2" "$5"; :; }; compare';

/** Judges the entries of a repository's configuration for a known form. */
export function guardConfig(entries: readonly ConfigEntry[], { connects }: KnownForm): ConfigGuard {
  const keys = entries.map(({ key }) => key);
  const isGuarded = (key: string): boolean =>
    overridden.has(key) ||
    drawer.test(key) ||
    /^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$/s.test(key);
  const driver = keys.find((key) => /^merge\..*\.driver$/s.test(key));
  const unknown = entries.find(
    ({ key, value }) =>
      !isGuarded(key) &&
      !isKnownKey(key, connects === true) &&
      // Newer versions of Git accept an address here.
      !(key === "extensions.refstorage" && /^(files|reftable)$/.test(value)),
  )?.key;
  const drawers = keys.filter((key) => drawer.test(key));
  return {
    settings: {
      ...withoutFilters(keys),
      ...Object.fromEntries(drawers.map((key) => [key, key.endsWith(".textconv") ? "cat --" : plainDiff])),
    },
    draws: drawers.length > 0,
    ...(driver === undefined ? {} : { driver }),
    ...(unknown === undefined ? {} : { unknown }),
  };
}

/** The entries of `git config --list -z`. */
export function parseListedConfig(text: string): readonly ConfigEntry[] {
  return text.split("\0").flatMap((entry) => {
    if (entry === "") return [];
    const end = entry.indexOf("\n");
    return [
      end === -1 ? { key: entry, value: "" } : { key: entry.slice(0, end), value: entry.slice(end + 1) },
    ];
  });
}

/** Whether a configuration file, in the form in which Git writes it, has only keys that need no guard. */
export function isPlainConfig(text: string): boolean {
  let section = "";
  return text.split("\n").every((line) => {
    if (/^\s*([#;].*)?$/.test(line)) return true;
    if (line.endsWith("\\") || line.endsWith("\\\r")) return false;
    const header = /^\s*\[\s*([\w-]+)(\s+"[^"\\]*")?\s*\]\s*$/.exec(line);
    if (header !== null) {
      section = `${header[1]?.toLowerCase()}${header[2] === undefined ? "" : ".x"}`;
      // A work tree can have a configuration of its own.
      return !section.startsWith("extensions");
    }
    const name = /^\s*([A-Za-z][\w-]*)\s*(=|$)/.exec(line)?.[1];
    return name !== undefined && isKnownKey(`${section}.${name.toLowerCase()}`, true);
  });
}
