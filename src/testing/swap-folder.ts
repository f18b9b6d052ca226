/**
 * A process that swaps `race` in a folder between a folder and a link to somewhere outside, as fast
 * as rename(2) allows, until it is killed. Argument: the folder, which also contains `evil`, the link.
 */
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = process.argv[2] ?? "";
const race = join(root, "race");
const evil = join(root, "evil");
const moved = join(root, "aside");

function move(from: string, to: string): void {
  for (;;) {
    try {
      renameSync(from, to);
      return;
    } catch {
      discard(to);
    }
  }
}

/** Ignores errors: another process may have created the folder again, and be writing in it. */
function discard(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next attempt will succeed.
  }
}

/** Each state lasts for up to 0.02 ms, so that attempts meet both states and the change between them. Code that checks a
 * path before it opens it leaks hundreds of times in 20,000 attempts. */
function stay(): void {
  const end = performance.now() + Math.random() * 0.02;
  while (performance.now() < end);
}

process.stdout.write("swapping\n");
for (;;) {
  move(race, moved);
  move(evil, race);
  stay();
  move(race, evil);
  move(moved, race);
  stay();
}
