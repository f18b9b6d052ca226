export interface LoggedChange {
  /** `A`, `C`, `D`, `M`, `R`, `T`; for a merge, the letters per parent, such as `MM`. */
  readonly status: string;
  readonly path: string;
  /** The former name, of a rename or copy. */
  readonly from?: string;
}

export interface LoggedCommit {
  readonly hash: string;
  /** Committer time in seconds since 1970. */
  readonly time: number;
  /** The author's name as Git has it; may be empty. */
  readonly author: string;
  readonly changes: readonly LoggedChange[];
}

export interface LogParser {
  push(text: string): void;
  end(): void;
}

/**
 * Parses the output of `git log -z --name-status --format=">%H %ct %aN"` as it arrives.
 *
 * The output is a sequence of NUL-ended tokens: a header per commit, then a status and one or two
 * paths per change. Git puts a line feed before the first status of a commit and an empty token
 * before that of a merge.
 */
export function createLogParser(onCommit: (commit: LoggedCommit) => void): LogParser {
  let rest = "";
  let commit: { hash: string; time: number; author: string; changes: LoggedChange[] } | undefined;
  let status = "";
  let from: string | undefined;

  const flush = (): void => {
    if (commit !== undefined) onCommit(commit);
    commit = undefined;
  };
  const take = (token: string): void => {
    if (status !== "") {
      // Only a two-way rename or copy carries a score, and only it is followed by two paths.
      if (from === undefined && /^[RC]\d/.test(status)) {
        from = token;
        return;
      }
      const change = { status: status.replace(/\d+$/, ""), path: token };
      commit?.changes.push(from === undefined ? change : { ...change, from });
      status = "";
      from = undefined;
    } else if (token.startsWith(">")) {
      flush();
      const [, hash = "", time = "0", author = ""] = /^>(\S*) (\S*) (.*)$/s.exec(token) ?? [];
      commit = { hash, time: Number.parseInt(time, 10), author, changes: [] };
    } else {
      status = token.startsWith("\n") ? token.slice(1) : token;
    }
  };

  return {
    push(text) {
      const tokens = (rest + text).split("\0");
      rest = tokens.pop() ?? "";
      for (const token of tokens) take(token);
    },
    end() {
      flush();
    },
  };
}
