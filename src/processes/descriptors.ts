import { openSync, readdirSync, readFileSync } from "node:fs";

let inherited: readonly number[] | undefined;
let nothing: number | undefined;

/**
 * Returns the descriptors of a child from 3 on: `own` first, then nothing in the place of every descriptor that
 * the parent of this process left open for it. Node closes what it has opened itself, and no other.
 */
export function descriptors(own: readonly (number | "pipe")[]): (number | "pipe" | "ignore")[] {
  inherited ??= findInherited();
  const highest = Math.max(2 + own.length, ...inherited);
  const list: (number | "pipe" | "ignore")[] = [];
  for (let number = 3; number <= highest; number += 1) {
    list.push(own[number - 3] ?? (inherited.includes(number) ? openNothing() : "ignore"));
  }
  return list;
}

const closesOnExec = 0o2000000;

/** Linux tells which descriptors a child would have; elsewhere none is known. */
function findInherited(): readonly number[] {
  try {
    return readdirSync("/proc/self/fdinfo")
      .map(Number)
      .filter((number) => number > 2 && number < 1_024 && isInherited(number));
  } catch {
    return [];
  }
}

function isInherited(number: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0;
  } catch {
    // It was open to read this folder.
    return false;
  }
}

function openNothing(): number {
  nothing ??= openSync("/dev/null", "r+");
  return nothing;
}
