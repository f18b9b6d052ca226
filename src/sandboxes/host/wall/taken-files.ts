import { refusalOf, refusedReplacement, replacement } from "../../../base/git-state-files.ts";
import { readHeld } from "./held-files.ts";

/** As `refusalOf`, for a file of the open Git folder: its own replacements of objects may be packed. */
export function refusalIn(held: string, path: string, bytes: Buffer): string | undefined {
  const refusal = refusalOf(path, bytes);
  if (refusal !== undefined || path !== "packed-refs") return refusal;
  const known = new Map(replacementsOf(readHeld(held, path) ?? Buffer.alloc(0)));
  const added = replacementsOf(bytes).find(
    ([name, replaced]) =>
      known.get(name) !== replaced && readHeld(held, name)?.toString("latin1").trim() !== replaced,
  );
  return added === undefined ? undefined : refusedReplacement(added[0]);
}

/** The names in a file of packed branches that replace an object, with the object in its place. */
const replacementsOf = (bytes: Buffer): readonly (readonly [string, string])[] =>
  bytes
    .toString("latin1")
    .split("\n")
    .map((line) => line.split(" "))
    .flatMap(([replaced = "", name = ""]) => (replacement.test(name) ? [[name, replaced] as const] : []));
