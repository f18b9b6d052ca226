import { createHash } from "node:crypto";

/** The part of a connection of the package `pg` that kit uses. */
export interface PostgresQuery {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
}

export interface PostgresResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** A connection of the package `pg`, which prepares a statement with a name once, and later only executes it. */
interface NamedQuery {
  query(named: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
  }): Promise<PostgresResult>;
}

/** The most names, because a connection keeps each of its statements in memory. */
const maxNames = 300;

/** A migration has changed the columns of the result: the statement has to be prepared again. */
const changedResult = "0A000";
/** A pooler does not keep prepared statements: another connection has the name, or this one lacks it. */
const lostNames: ReadonlySet<unknown> = new Set(["26000", "42P05"]);

/**
 * Gives statements with parameters a name that their text determines, so that Postgres parses and plans each once per
 * connection instead of each time. Stops to do so behind a pooler that does not keep prepared statements.
 */
export class NamedStatements {
  readonly #names = new Map<string, string>();
  #isOff = false;

  /** Runs a statement outside of a transaction. `onStale` is called if the connection should not be used again. */
  async ask(
    connection: PostgresQuery,
    { text, values = [] }: { readonly text: string; readonly values?: unknown[] | undefined },
    onStale?: () => void,
  ): Promise<PostgresResult> {
    const name = values.length === 0 ? undefined : this.#nameOf(text);
    if (name === undefined) return await connection.query(text, values);
    try {
      return await (connection as unknown as NamedQuery).query({ name, text, values });
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (lostNames.has(code)) this.#isOff = true;
      else if (code !== changedResult) throw error;
      onStale?.();
      return await connection.query(text, values);
    }
  }

  #nameOf(text: string): string | undefined {
    if (this.#isOff) return undefined;
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size >= maxNames) return known;
    const name = `kit_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
    this.#names.set(text, name);
    return name;
  }
}
