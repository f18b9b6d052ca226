import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { isRecord } from "../../base/record.ts";
import { underFileLock } from "../../sqlite/file-lock.ts";

/** Tokens as kit keeps them. `scope` is what they were given for, `issuer` the authorization server that gave them. */
export type Tokens = StoredOAuthTokens & {
  /** Milliseconds since 1970; absent if the authorization server did not say. */
  readonly expires_at?: number;
};

/** A person's login at one server, as kit keeps it. */
export interface LoginRecord {
  /** The address of the server. */
  readonly server: string;
  readonly tokens?: Tokens | undefined;
  /** How kit is known at authorization servers, by issuer. */
  readonly clients?: Readonly<Record<string, StoredOAuthClientInformation>> | undefined;
  /** Where tokens are renewed. */
  readonly discovery?: OAuthDiscoveryState | undefined;
  /** The server has asked for this in vain since `at` (ISO 8601): the next login asks for that scope, by that metadata. */
  readonly requested?:
    | { readonly scope?: string; readonly metadata?: string; readonly at?: string }
    | undefined;
  /** A login that a browser has begun at kit's server. */
  readonly pending?: PendingLogin | undefined;
}

/** A login between the way of the browser to the authorization server and its way back. */
export interface PendingLogin {
  readonly state: string;
  readonly verifier: string;
  /** The address that the authorization server sends the browser to. */
  readonly redirect: string;
  /** The scope that was asked for. */
  readonly scope?: string | undefined;
  readonly discovery: OAuthDiscoveryState;
  readonly clients: Readonly<Record<string, StoredOAuthClientInformation>>;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** Longer than a request to an authorization server may take; under the lock there is only one. */
const maxWaitMs = 60_000;

/**
 * The file of one login, which belongs to one project, one name and one address: another repository that names the same server has no
 * part in it. All processes of the person share the file; each change is made under a lock.
 */
export class LoginFile {
  readonly #folder: string;
  readonly #file: string;
  readonly #server: string;

  /** `folder`: absolute, of the person, and outside of any project. */
  constructor(folder: string, of: { readonly root: string; readonly name: string; readonly url: URL }) {
    this.#folder = folder;
    this.#server = of.url.href;
    const root = existsSync(of.root) ? realpathSync(of.root) : of.root;
    const key = [root, of.name, of.url.href].join("\0");
    this.#file = join(folder, `${createHash("sha256").update(key).digest("hex")}.json`);
  }

  /** Returns the login that is kept now. A file that another user could have written or read counts for nothing. */
  read(): LoginRecord {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(this.#file, "r");
      const stats = fstatSync(descriptor);
      const isForeign =
        process.getuid !== undefined && (stats.uid !== process.getuid() || (stats.mode & 0o077) !== 0);
      const value: unknown = isForeign ? undefined : JSON.parse(readFileSync(descriptor, "utf8"));
      if (isRecord(value) && value.server === this.#server) return value as unknown as LoginRecord;
    } catch {
      // There is no login, or its file is broken: a person has to log in.
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
    return { server: this.#server };
  }

  /**
   * Runs `work` while no other process changes the file. `work` gets the kept login, and writes the one that is kept from then on;
   * `undefined` removes the file. A change is written at once, so that a crash after an answer loses nothing.
   */
  async change<Result>(
    work: (
      current: LoginRecord,
      write: (next: Omit<LoginRecord, "server"> | undefined) => void,
    ) => Promise<Result>,
  ): Promise<Result> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    return await underFileLock(`${this.#file}.lock`, { maxMs: maxWaitMs }, () =>
      work(this.read(), (next) => this.#write(next)),
    );
  }

  #write(next: Omit<LoginRecord, "server"> | undefined): void {
    // Under the lock, this file is what a killed process has left.
    const draft = `${this.#file}.new`;
    rmSync(draft, { force: true });
    if (next === undefined) {
      rmSync(this.#file, { force: true });
      return;
    }
    const descriptor = openSync(draft, "wx", 0o600);
    try {
      writeSync(descriptor, JSON.stringify({ ...next, server: this.#server }));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, this.#file);
  }
}
