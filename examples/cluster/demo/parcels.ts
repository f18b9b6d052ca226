import { existsSync, readFileSync } from "node:fs";

interface Line {
  readonly number: number;
  readonly way: string;
  readonly what: "begin" | "end";
  readonly at: number;
  readonly pid: number;
}

/** The parcels that a kit was working on when it was killed, and the kits that took them over. */
export interface Takeover {
  readonly parcels: number;
  readonly taken: readonly { readonly pid: number; readonly parcels: number }[];
  /** Milliseconds until the last of them continued. */
  readonly afterMs: number;
}

/** The log records of the kits about their parcels. */
export class Parcels {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** The running steps of a kit. */
  atWork(pid: number): readonly Line[] {
    const open = new Map<string, Line>();
    for (const line of this.#lines()) {
      if (line.pid !== pid) continue;
      const key = `${line.number} ${line.way}`;
      if (line.what === "begin") open.set(key, line);
      else open.delete(key);
    }
    return [...open.values()];
  }

  /** The number of a kit's finished steps. */
  done(pid: number): number {
    return this.#lines().filter((line) => line.pid === pid && line.what === "end").length;
  }

  /** The kits that continued the steps interrupted at a time; `undefined` while one of these steps still waits. */
  takeover(cut: readonly Line[], at: number): Takeover | undefined {
    const later = this.#lines().filter((line) => line.what === "begin" && line.at >= at);
    const next = cut.map(({ number, way, pid }) =>
      later.find((line) => line.number === number && line.way === way && line.pid !== pid),
    );
    const found = next.filter((line) => line !== undefined);
    if (found.length < cut.length) return undefined;
    const by = Map.groupBy(found, ({ pid }) => pid);
    return {
      parcels: cut.length,
      taken: [...by].map(([pid, lines]) => ({ pid, parcels: lines.length })),
      afterMs: Math.max(0, ...found.map((line) => line.at - at)),
    };
  }

  #lines(): readonly Line[] {
    if (!existsSync(this.#file)) return [];
    return readFileSync(this.#file, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  }
}
