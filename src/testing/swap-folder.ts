/**
 * A process of its own that swaps `race` in a folder between a folder and a link out of there, as fast
 * as rename(2) goes, until it is killed. Argument: the folder, which also holds `evil`, the link.
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

/** A write has just created the folder anew, and may be busy in it. */
function discard(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next attempt will do.
  }
}

/** Each state lasts for up to 0.02 ms: attempts meet both, and the change between them; checking a path before
 * opening it leaks hundreds of times in 20,000 then. */
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
